"""What comes out of one unit of work: lines in memory or in files, the state of its sources; and its form as a file.

Sources are numbered from 0 inside a part, until `numbered` gives all parts of a job their place.
A part is saved into a zip archive that may hold many: one member of JSON and some of Parquet each.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from firstfault.ingest import dumps
from firstfault.ingest.extract.source import SourceState
from firstfault.ingest.plan import Shard
from firstfault.ingest.problems import Problem
from firstfault.ingest.saved import SavedError, from_plain, to_plain

_BROKEN = (
    KeyError, ValueError, TypeError, OSError, zlib.error, zipfile.BadZipFile, pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)  # fmt: skip
"""What is raised over an archive of parts that is damaged, or something else."""
_TABLES = ("progress", "folded", "keys", "stamps")


@dataclass(frozen=True, slots=True)
class LinesFile:
    """Lines as Parquet: a file, or a member of an archive of parts."""

    path: Path
    member: str | None = None

    def frame(self) -> pl.DataFrame:
        """The lines. Raises SavedError where the file holds something else."""
        if self.member is None:
            return pl.read_parquet(self.path)
        try:
            with zipfile.ZipFile(self.path) as archive:
                return pl.read_parquet(io.BytesIO(archive.read(self.member)))
        except _BROKEN as error:
            raise SavedError(f"{self.path}: {self.member} cannot be read: {error}") from error


@dataclass(slots=True)
class Part:
    """What came out of one unit. `base` is added to the numbers of its lines, all else has its final number."""

    states: list[SourceState] = field(default_factory=list)
    lines: list[pl.DataFrame] = field(default_factory=list)
    files: list[LinesFile] = field(default_factory=list)
    progress: list[pl.DataFrame] = field(default_factory=list)
    folded: list[pl.DataFrame] = field(default_factory=list)
    dumps: list[tuple[int, dumps.DumpRows]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    keys: pl.DataFrame | None = None
    stamps: pl.DataFrame | None = None
    shard: Shard | None = None
    base: int = 0

    def frames(self) -> Iterator[pl.DataFrame]:
        """Its lines with their final numbers, one piece at a time in memory."""
        pieces = (*(file.frame for file in self.files), *(frame.clone for frame in self.lines))
        for piece in pieces:
            yield _moved(piece(), "source", self.base)


def numbered(parts: Sequence[Part]) -> None:
    """Give the sources of parts that follow one another numbers that follow one another."""
    base = 0
    for part in parts:
        count = len(part.states)
        part.base = base
        for state in part.states:
            state.number += base
        part.dumps = [(number + base, rows) for number, rows in part.dumps]
        part.progress = [_moved(frame, "source", base) for frame in part.progress]
        part.folded = [_moved(frame, "source", base) for frame in part.folded]
        part.keys = None if part.keys is None else _moved(part.keys, "source_id", base)
        part.stamps = None if part.stamps is None else _moved(part.stamps, "source", base)
        base += count


def _moved(frame: pl.DataFrame, column: str, base: int) -> pl.DataFrame:
    return frame.with_columns((pl.col(column) + base).cast(pl.Int32)) if base else frame


def save(part: Part, archive: zipfile.ZipFile, name: str) -> None:
    """Write a part that has no final numbers yet into an archive, under a name."""
    tables = {
        "progress": part.progress, "folded": part.folded,
        "keys": [] if part.keys is None else [part.keys],
        "stamps": [] if part.stamps is None else [part.stamps],
    }  # fmt: skip
    said = {
        "states": to_plain(part.states),
        "dumps": to_plain(part.dumps),
        "problems": to_plain(part.problems),
        "shard": to_plain(part.shard),
        "tables": {key: len(frames) for key, frames in tables.items()},
        "lines": len(part.files) + len(part.lines),
    }
    archive.writestr(f"{name}/part.json", json.dumps(said, ensure_ascii=True), zipfile.ZIP_DEFLATED, 1)
    for key, frames in tables.items():
        for number, frame in enumerate(frames):
            archive.writestr(f"{name}/{key}-{number}.parquet", as_parquet(frame))
    for number, file in enumerate(part.files):
        if file.member is None:
            archive.write(file.path, f"{name}/lines-{number}.parquet")
        else:
            archive.writestr(f"{name}/lines-{number}.parquet", as_parquet(file.frame()))
    for number, frame in enumerate(part.lines, len(part.files)):
        archive.writestr(f"{name}/lines-{number}.parquet", as_parquet(frame))


def as_parquet(frame: pl.DataFrame) -> bytes:
    """A frame as a file of Parquet."""
    out = io.BytesIO()
    frame.write_parquet(out, compression="zstd", compression_level=1, statistics=False)
    return out.getvalue()


def load(path: Path, archive: zipfile.ZipFile, name: str) -> Part:
    """A part out of the archive at `path`; its lines stay there until they are asked for. Raises SavedError."""
    try:
        said = json.loads(archive.read(f"{name}/part.json"))
        counts, lines = said["tables"], int(said["lines"])
        tables = {
            key: [
                pl.read_parquet(io.BytesIO(archive.read(f"{name}/{key}-{number}.parquet")))
                for number in range(int(counts[key]))
            ]
            for key in _TABLES
        }
        return Part(
            states=from_plain(list[SourceState], said["states"]),
            files=[LinesFile(path, f"{name}/lines-{number}.parquet") for number in range(lines)],
            progress=tables["progress"],
            folded=tables["folded"],
            dumps=from_plain(list[tuple[int, dumps.DumpRows]], said["dumps"]),
            problems=from_plain(list[Problem], said["problems"]),
            keys=next(iter(tables["keys"]), None),
            stamps=next(iter(tables["stamps"]), None),
            shard=from_plain(Shard | None, said["shard"]),
        )
    except _BROKEN as error:
        raise SavedError(f"{path}: {name} cannot be read: {error}") from error
