"""Divides the files of a job into units of work, the same whatever the number of workers.

Small files travel together, a big plain file is cut into shards at fixed places, archives and compressed files stay
whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from firstfault.ingest import dumps
from firstfault.ingest.discover import STDIN, Found
from firstfault.ingest.frame import encoding_of
from firstfault.ingest.opening import hole_of, is_binary, is_packed
from firstfault.ingest.options import Bounds
from firstfault.ingest.sharding import in_reach


@dataclass(frozen=True, slots=True)
class Shard:
    """The lines of a file that begin in `start:stop`."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Unit:
    """What one worker reads in one go: whole files, or a shard of one. `first` is the number of its first file."""

    first: int
    files: tuple[Found, ...]
    shard: Shard | None = None

    @property
    def bytes(self) -> int:
        return self.shard.stop - self.shard.start if self.shard else sum(found.size for found in self.files)


def plan(files: Sequence[Found], bounds: Bounds) -> list[Unit]:
    """The units of a job, in the order of its files."""
    units: list[Unit] = []
    waiting: list[Found] = []
    size = 0
    for number, found in enumerate(files):
        if _divisible(found, bounds):
            units += _units(number, waiting)
            waiting, size = [], 0
            cuts = [0, *_cuts(found, bounds), found.size]
            units += [Unit(number, (found,), Shard(start, stop)) for start, stop in pairwise(cuts)]
            continue
        waiting.append(found)
        size += max(found.size, bounds.file_cost)
        if size >= bounds.unit or (size >= bounds.unit // 4 and _ends_here(found)):
            units += _units(number + 1, waiting)
            waiting, size = [], 0
    return units + _units(len(files), waiting)


def _ends_here(found: Found) -> bool:
    """Whether a unit may end with this file, for no other reason than its path: a file that grows moves few ends."""
    return zlib.crc32(found.path.encode("utf-8", "replace")) % 8 == 0


def _units(end: int, waiting: Iterable[Found]) -> list[Unit]:
    files = tuple(waiting)
    return [Unit(end - len(files), files)] if files else []


def _cuts(found: Found, bounds: Bounds) -> list[int]:
    """Where a big file is cut: at fixed places, but for those in the middle of a giant line."""
    with open(found.file, "rb") as file:
        return [at for at in range(bounds.shard, found.size, bounds.shard) if in_reach(file, at)]


def _divisible(found: Found, bounds: Bounds) -> bool:
    """Whether a file is plain text that is worth cutting."""
    if found.file == STDIN or found.size < 2 * bounds.shard:
        return False
    try:
        with open(found.file, "rb") as file:
            head = file.read(dumps.HEAD_BYTES)
            if hole_of(file, bounds) is not None:
                return False
    except OSError:
        return False
    plain = not is_packed(head) and not is_binary(head) and encoding_of(head) == "utf-8"
    return plain and dumps.find_reader(found.path, head) is None
