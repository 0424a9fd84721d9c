"""What comes out of one unit of work: lines in memory or in files, the state of its sources; and its form as a file.

Sources are numbered from 0 inside a part, until `numbered` gives all parts of a job their place.
A part is saved into a zip archive that may hold many: one member of JSON and some of Parquet each.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
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
PIECE = 1 << 15
"""Rows that are read from files into memory at a time."""

_ROWS = ("lines", "progress", "folded")
_SUMMARIES = ("keys", "stamps")


@dataclass(frozen=True, slots=True)
class RowsFile:
    """Rows as Parquet: a file, or a member of an archive of parts."""

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

    def content(self) -> bytes:
        """The file of Parquet as it is."""
        if self.member is None:
            return self.path.read_bytes()
        with zipfile.ZipFile(self.path) as archive:
            return archive.read(self.member)


@dataclass(slots=True)
class Rows:
    """What grows with the logs: in files first, the rest in memory. `source` is the number of a source in its part."""

    files: list[RowsFile] = field(default_factory=list)
    waiting: list[pl.DataFrame] = field(default_factory=list)

    def write(self, stem: Path) -> int:
        """Move what waits in memory to new files of Parquet with names that begin so; the size of them."""
        size = 0
        if self.waiting:
            rows = pl.concat(self.waiting)
            for at in range(0, len(rows), PIECE):
                path = stem.with_name(f"{stem.name}-{len(self.files):06d}.parquet")
                piece = rows.slice(at, PIECE)
                piece.write_parquet(path, compression="lz4", statistics=False)
                self.files.append(RowsFile(path))
                size += path.stat().st_size
        self.waiting = []
        return size

    def frames(self, base: int) -> Iterator[pl.DataFrame]:
        """The rows with the final numbers of their sources, one piece at a time in memory."""
        pieces: tuple[Callable[[], pl.DataFrame], ...]
        pieces = (*(file.frame for file in self.files), *(frame.clone for frame in self.waiting))
        for piece in pieces:
            yield _moved(piece(), "source", base)


@dataclass(slots=True)
class Part:
    """What came out of one unit. `base` is added to the sources of its rows, all else has its final number."""

    states: list[SourceState] = field(default_factory=list)
    lines: Rows = field(default_factory=Rows)
    progress: Rows = field(default_factory=Rows)
    folded: Rows = field(default_factory=Rows)
    dumps: list[tuple[int, dumps.DumpRows]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    keys: pl.DataFrame | None = None
    stamps: pl.DataFrame | None = None
    shard: Shard | None = None
    base: int = 0


def numbered(parts: Sequence[Part]) -> None:
    """Give the sources of parts that follow one another numbers that follow one another."""
    base = 0
    for part in parts:
        count = len(part.states)
        part.base = base
        for state in part.states:
            state.number += base
        part.dumps = [(number + base, rows) for number, rows in part.dumps]
        part.keys = None if part.keys is None else _moved(part.keys, "source_id", base)
        part.stamps = None if part.stamps is None else _moved(part.stamps, "source", base)
        base += count


def _moved(frame: pl.DataFrame, column: str, base: int) -> pl.DataFrame:
    return frame.with_columns((pl.col(column) + base).cast(pl.Int32)) if base else frame


def save(part: Part, archive: zipfile.ZipFile, name: str) -> None:
    """Write a part that has no final numbers yet into an archive, under a name."""
    rows: dict[str, Rows] = {key: getattr(part, key) for key in _ROWS}
    summaries = {key: frame for key in _SUMMARIES if (frame := getattr(part, key)) is not None}
    said = {
        "states": to_plain(part.states),
        "dumps": to_plain(part.dumps),
        "problems": to_plain(part.problems),
        "shard": to_plain(part.shard),
        "rows": {key: len(one.files) + len(one.waiting) for key, one in rows.items()},
        "summaries": list(summaries),
    }
    archive.writestr(f"{name}/part.json", json.dumps(said, ensure_ascii=True), zipfile.ZIP_DEFLATED, 1)
    for key, frame in summaries.items():
        archive.writestr(f"{name}/{key}.parquet", as_parquet(frame))
    for key, one in rows.items():
        for number, file in enumerate(one.files):
            archive.writestr(f"{name}/{key}-{number}.parquet", file.content())
        for number, frame in enumerate(one.waiting, len(one.files)):
            archive.writestr(f"{name}/{key}-{number}.parquet", as_parquet(frame))


def as_parquet(frame: pl.DataFrame) -> bytes:
    """A frame as a file of Parquet."""
    out = io.BytesIO()
    frame.write_parquet(out, compression="zstd", compression_level=1, statistics=False)
    return out.getvalue()


def load(path: Path, archive: zipfile.ZipFile, name: str) -> Part:
    """A part out of the archive at `path`; its rows stay there until they are asked for. Raises SavedError."""
    try:
        said = json.loads(archive.read(f"{name}/part.json"))
        rows = {key: _members(path, f"{name}/{key}", int(said["rows"][key])) for key in _ROWS}
        keys, stamps = (
            pl.read_parquet(io.BytesIO(archive.read(f"{name}/{key}.parquet"))) if key in said["summaries"] else None
            for key in _SUMMARIES
        )
        return Part(
            states=from_plain(list[SourceState], said["states"]),
            lines=rows["lines"],
            progress=rows["progress"],
            folded=rows["folded"],
            dumps=from_plain(list[tuple[int, dumps.DumpRows]], said["dumps"]),
            problems=from_plain(list[Problem], said["problems"]),
            keys=keys,
            stamps=stamps,
            shard=from_plain(Shard | None, said["shard"]),
        )
    except _BROKEN as error:
        raise SavedError(f"{path}: {name} cannot be read: {error}") from error


def _members(path: Path, name: str, count: int) -> Rows:
    return Rows([RowsFile(path, f"{name}-{number}.parquet") for number in range(count)])
