"""Reading one job on several machines: each reads a share of it into a part, and the parts become one timeline.

All see the same files and divide them alike without talking to one another; or each has files of its own, and the
shares are whatever lies on each machine. Parts that do not belong together, are missing or come twice are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from firstfault.ingest.options import IngestOptions, OptionError
from firstfault.ingest.part import Part, load, save
from firstfault.ingest.plan import Unit
from firstfault.ingest.problems import Problem
from firstfault.ingest.saved import SavedError, from_plain, to_plain
from firstfault.timeline.place import put

KIND = "firstfault-part/2"
_HEAD = "manifest.json"
_LAUNCHERS = (
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"),
    ("RANK", "WORLD_SIZE"),
)
"""What launchers tell their processes. Kubernetes sets no count: the manifest of the Job may, or `auto/N` says it."""


class PartError(Exception):
    """Parts that cannot be united: which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The `index`-th of `count` shares, from 0. Where `own`, a share is all files of the machine that reads it."""

    index: int
    count: int
    own: bool = False


def parse_shard(text: str, own: bool = False, env: Mapping[str, str] = os.environ) -> Shard:
    """A share out of `i/n`, `auto` or `auto/n`. Raises OptionError."""
    found = re.fullmatch(r"(\d{1,6}|auto)(?:/(\d{1,6}))?", text)
    if found is None or (found[1] != "auto" and found[2] is None):
        raise OptionError(f"shard {text!r}: write i/n with i from 0, such as 0/4, or auto, or auto/n")
    if found[1] != "auto":
        index, count = int(found[1]), int(found[2])
    else:
        index, count = _from_launcher(found[2], env)
    if not 0 <= index < count:
        raise OptionError(f"shard {index}/{count}: i counts from 0 to n-1")
    return Shard(index, count, own)


def _from_launcher(given: str | None, env: Mapping[str, str]) -> tuple[int, int]:
    for place, size in _LAUNCHERS:
        index, count = env.get(place, ""), given or env.get(size, "")
        if index.isdigit() and count.isdigit():
            return int(index), int(count)
        if index.isdigit():
            raise OptionError(f"shard auto: {place} is set but {size} is not; write auto/n")
    names = ", ".join("/".join(pair) for pair in _LAUNCHERS)
    raise OptionError(f"shard auto: no launcher says which this is ({names}); write i/n")


def share(units: Sequence[Unit], shard: Shard) -> list[int]:
    """The places of the units that a shard reads: the biggest first, each to the shard with the least so far."""
    if shard.own:
        return list(range(len(units)))
    loads = [0] * shard.count
    mine = []
    for place in sorted(range(len(units)), key=lambda place: (-units[place].bytes, place)):
        least = min(range(shard.count), key=lambda one: (loads[one], one))
        loads[least] += units[place].bytes + 1
        if least == shard.index:
            mine.append(place)
    return sorted(mine)


def write_part(
    file: Path,
    shard: Shard,
    job: Mapping[str, Any],
    units: Sequence[Unit],
    places: Sequence[int],
    parts: Sequence[Part],
) -> None:
    """Write the parts of a share into a file, whole or not at all. `job` says what the shares of one job agree on."""
    same: list[Any] = [job["options"], job["catalog"]]
    if not shard.own:
        same += [job["roots"], job["problems"], len(units)]
        same += [[found.path, found.size] for unit in units for found in unit.files]
    head = {
        "kind": KIND, **job, "shard": [shard.index, shard.count], "own": shard.own, "host": platform.node(),
        "places": list(places), "key": hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest(),
    }  # fmt: skip
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            archive.writestr(_HEAD, json.dumps(head))
            for place, part in zip(places, parts, strict=True):
                save(part, archive, str(place))
        put(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def agreed(roots: Sequence[str], options: IngestOptions, catalog: str, problems: Sequence[Problem]) -> dict[str, Any]:
    """What all shares of a job have to agree on, and what their union needs to know of it."""
    return {
        "roots": list(roots), "catalog": catalog, "problems": to_plain(list(problems)),
        "options": {
            "hosts": dict(options.hosts), "ranks": dict(options.ranks), "tz": options.tz, "year": options.year,
            "keep_text": options.keep_text,
        },
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class United:
    """All parts of a job in the order of its plan, with what `agreed` said."""

    parts: list[Part]
    roots: list[str]
    problems: list[Problem]
    options: IngestOptions


def unite(files: Sequence[Path], options: IngestOptions, catalog: str) -> United:
    """The parts in these files. Raises PartError where they are not the shares of one job, each exactly once."""
    heads = [_head(file) for file in files]
    if not heads:
        raise PartError("no parts; give the files that `ingest --shard` wrote")
    try:
        return _united(files, heads, options, catalog)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise PartError(
            f"{files[0]}: damaged, or not written by firstfault ({error}); read that share again"
        ) from error


def _united(files: Sequence[Path], heads: Sequence[Mapping[str, Any]], options: IngestOptions, catalog: str) -> United:
    first = heads[0]
    if first["catalog"] != catalog:
        raise PartError(f"{files[0]}: written with another catalog or version of firstfault; use one for all")
    for file, head in zip(files, heads, strict=True):
        if head["own"] != first["own"] or head["shard"][1] != first["shard"][1] or head["catalog"] != catalog:
            raise PartError(f"{file}: not a part of the same job as {files[0]}")
        if head["key"] != first["key"]:
            why = "it was read with other paths or options, or the files changed meanwhile; read all shares again"
            raise PartError(f"{file}: does not fit {files[0]}: {why}")
    _complete(files, heads)
    told = IngestOptions(**first["options"])
    options = replace(options, hosts=told.hosts, ranks=told.ranks, tz=told.tz, year=told.year, keep_text=told.keep_text)
    read: dict[int, list[tuple[int, Part]]] = {}
    for file, head in zip(files, heads, strict=True):
        with zipfile.ZipFile(file) as archive:
            read[head["shard"][0]] = [(place, load(file, archive, str(place))) for place in head["places"]]
    if not first["own"]:
        problems = from_plain(list[Problem], first["problems"])
        parts = sorted((one for some in read.values() for one in some), key=lambda one: one[0])
        return United([part for _, part in parts], list(first["roots"]), problems, options)
    machines = [
        Machine(
            head["host"], head["roots"], from_plain(list[Problem], head["problems"]),
            [part for _, part in sorted(read[head["shard"][0]], key=lambda one: one[0])],
        )
        for head in sorted(heads, key=lambda head: int(head["shard"][0]))
    ]  # fmt: skip
    return of_machines(machines, United([], [], [], options))


@dataclass(frozen=True, slots=True)
class Machine:
    """What was read of the files that only one machine has; its parts in their order."""

    host: str
    roots: Sequence[str]
    problems: Sequence[Problem]
    parts: Sequence[Part]


def of_machines(machines: Sequence[Machine], shared: United) -> United:
    """All of it with what lies nowhere in particular; a path that two machines have gets its machine in front."""
    roots, problems, parts = list(shared.roots), list(shared.problems), list(shared.parts)
    for machine in machines:
        for part in machine.parts:
            for state in part.states:
                state.root += len(roots)
            parts.append(part)
        several = len(machine.roots) > 1
        roots += [f"{machine.host}/{root.strip('/')}" if several else machine.host for root in machine.roots]
        problems += machine.problems
    return United(parts, roots, problems, shared.options)


def _complete(files: Sequence[Path], heads: Sequence[Mapping[str, Any]]) -> None:
    """Each share once."""
    count = heads[0]["shard"][1]
    by_index: dict[int, Path] = {}
    for file, head in zip(files, heads, strict=True):
        index = head["shard"][0]
        if index in by_index:
            raise PartError(f"{file}: shard {index}/{count} comes twice, also as {by_index[index]}; give each once")
        by_index[index] = file
    if missing := [index for index in range(count) if index not in by_index]:
        named = ", ".join(f"{index}/{count}" for index in missing[:8]) + (" ..." if len(missing) > 8 else "")
        raise PartError(f"{len(missing)} of {count} shards are missing: {named}; read them too, then merge all")


def _head(file: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(file) as archive:
            head = json.loads(archive.read(_HEAD))
        if head["kind"] == KIND:
            index, count = head["shard"]
            if type(index) is int and type(count) is int and 0 <= index < count:
                return dict(head)
    except FileNotFoundError as error:
        raise PartError(f"{file}: no such file") from error
    except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError) as error:
        raise PartError(f"{file}: no part of a timeline, or a damaged one ({error})") from error
    raise PartError(f"{file}: no part of a timeline that this version can read")


__all__ = [
    "Machine", "PartError", "SavedError", "Shard", "United", "agreed", "of_machines", "parse_shard", "share", "unite",
    "write_part",
]  # fmt: skip
