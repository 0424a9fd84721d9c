"""The rows of `line_rows`, completed while they stream from the parts into the timeline, and what waits for them.

Only what is wanted of the lines stays in memory; progress, which grows with the logs, goes to files where there is a
folder for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.ingest import times
from firstfault.ingest.assemble import Job
from firstfault.ingest.part import PIECE, Part, Rows
from firstfault.ingest.stages import stage
from firstfault.ingest.tables import PROGRESS, Folded

Keys = npt.NDArray[np.int64]
Positions = npt.NDArray[np.intp]

LINE_ROWS: dict[str, Any] = {
    "source_id": pl.Int32, "line": pl.Int64, "byte_offset": pl.Int64, "byte_length": pl.Int64, "stamp_ns": pl.Int64,
    "stamp_kind": pl.String, "stamp_res_ns": pl.Int64, "utc_offset_s": pl.Int32, "collect_ns": pl.Int64,
    "near_ns": pl.Int64, "level": pl.String, "host": pl.String, "rank": pl.Int32, "local_rank": pl.Int32,
    "attempt": pl.Int32, "pid": pl.Int64, "gpu": pl.Int32, "format": pl.String, "record": pl.Int64,
    "message": pl.String, "entry": pl.String, "class": pl.String,
}  # fmt: skip
PLACES: dict[str, Any] = {
    "source_id": pl.Int32, "line": pl.Int64, "level": pl.String, "host": pl.String, "rank": pl.Int32,
    "local_rank": pl.Int32, "attempt": pl.Int32, "pid": pl.Int64, "gpu": pl.Int32, "stamp_ns": pl.Int64,
    "stamp_kind": pl.String, "stamp_res_ns": pl.Int64, "utc_offset_s": pl.Int32,
    "near_ns": pl.Int64, "near_kind": pl.String, "near_res_ns": pl.Int64, "near_offset_s": pl.Int32,
    "next_ns": pl.Int64,
}  # fmt: skip
_OF_LINE = ("rank", "host", "attempt", "stamp_ns", "near_ns")
TOLD: dict[str, Any] = PROGRESS | {f"line_{name}": PLACES[name] for name in _OF_LINE}
"""Progress with what its line says of place and time."""
_KEY = ["source_id", "line"]
_KEPT_LEVELS = ["WARN", "ERROR", "FATAL"]
_MANY = 1 << 16
_LINE_BITS = 40


@dataclass(frozen=True, slots=True)
class Known:
    """What the signals and records of a job say of its lines, by source and line."""

    entries: pl.DataFrame
    records: pl.DataFrame
    joined: pl.DataFrame
    progress: pl.DataFrame
    wanted: pl.DataFrame


class LineTable:
    """The lines of a job. Once they have streamed, `places` has the place and time of the lines that are wanted."""

    def __init__(self, job: Job, known: Known, folded: Folded, keep_text: bool, spill: Path | None) -> None:
        self._job, self._folded = job, folded
        tables = (known.entries, known.records, known.joined, known.progress, known.wanted)
        self._known = Known(*(table.sort(_KEY) for table in tables))
        self._keep_text = keep_text
        self._spill = spill
        self._carry: dict[int, times.Near] = {}
        self._last: dict[int, int] = {}
        self._places = [pl.DataFrame(schema=PLACES)]
        self._waiting = pl.DataFrame(schema=PLACES)
        self._silent = [one.id for one in job.sources if one.twin_of is not None]
        self._progress, self._rows = Rows(), 0

    def frames(self) -> Iterator[pl.DataFrame]:
        """All rows, part by part."""
        for part in self._job.parts:
            entries = self._entries(part)
            progress = self._placed(part.progress, part.base)
            for frame in part.lines.frames(part.base):
                for at in range(0, len(frame), PIECE):
                    yield self._completed(frame.slice(at, PIECE), entries, progress)

    def progress(self) -> Iterator[pl.DataFrame]:
        """The rows of `TOLD`, once the lines have streamed."""
        places = self.places
        lines = places.select(_KEY).hstack(_named(places))
        yield self._known.progress.join(lines, on=_KEY, how="left").select(list(TOLD)).cast(pl.Schema(TOLD)).sort(_KEY)
        yield from self._progress.frames(0)

    def _placed(self, rows: Rows, base: int) -> pl.DataFrame | None:
        frames = [place(frame, self._job) for frame in rows.frames(base)]
        return pl.concat(frames).sort(_KEY, maintain_order=True) if frames else None

    def _entries(self, part: Part) -> pl.DataFrame:
        """Entries of the lines that have signals, and of those of this part that have none because they are many."""
        told = self._known.entries
        folded = self._placed(part.folded, part.base)
        return told if folded is None else pl.concat([told, self._folded.entries(folded, told)]).sort(_KEY)

    @property
    def places(self) -> pl.DataFrame:
        """One row for each wanted line; where a source goes on in a later part, its first stamp there comes next."""
        return pl.concat([*self._places, self._waiting])

    @stage("lines")
    def _completed(self, frame: pl.DataFrame, entries: pl.DataFrame, progress: pl.DataFrame | None) -> pl.DataFrame:
        placed = place(frame, self._job)
        keys = _keys(placed)
        if (keys[1:] < keys[:-1]).any():
            placed, keys = placed.sort(_KEY), np.sort(keys)
        timed = times.neighbours(
            times.complete(placed, self._job.contexts, self._last), self._carry, self._job.contexts
        )
        if len(self._waiting):
            self._wait(timed)
        full = times.within_attempts(self._job.identity.fill(timed))
        _, wanted = _found(_within(self._known.wanted, full), keys)
        places = full.select(list(PLACES))[wanted].cast(pl.Schema(PLACES))
        last = pl.col("next_ns").is_null()
        self._places.append(places.filter(~last))
        self._waiting = pl.concat([self._waiting, places.filter(last)], rechunk=True)
        if progress is not None:
            self._steps(_within(progress, full), full, keys)
        out = full.hstack(_beside(_within(entries, full), keys)).hstack(
            _beside(_within(self._known.records, full), keys)
        )
        if len(joined := _within(self._known.joined, full)):
            out = out.hstack(_beside(joined, keys)).with_columns(message=pl.coalesce("whole", "message"))
        if not self._keep_text:
            telling = pl.col("level").is_in(_KEPT_LEVELS).fill_null(False)
            last = pl.struct("source_id", "rank", "attempt").is_last_distinct()  # what somebody said last is shown
            kept = telling | last | pl.col("entry").is_not_null() | pl.col("record").is_not_null()
            out = out.with_columns(pl.when(kept).then(pl.col("message")).alias("message"))
        return out.select(list(LINE_ROWS)).cast(pl.Schema(LINE_ROWS))

    def _steps(self, progress: pl.DataFrame, lines: pl.DataFrame, keys: Keys) -> None:
        """Keep the progress that these lines show."""
        shown, at = _found(progress, keys)
        told = progress[shown].with_columns(pl.lit(None, pl.Int64).alias("stamp_ns")).hstack(_named(lines[at]))
        own = told.filter(~pl.col("source_id").is_in(self._silent)).select(list(TOLD)).cast(pl.Schema(TOLD))
        self._progress.waiting.append(own)
        self._rows += len(own)
        if self._spill is not None and self._rows >= _MANY:
            self._progress.write(self._spill / "told")
            self._rows = 0

    def _wait(self, frame: pl.DataFrame) -> None:
        """Lines of earlier parts that wait for the next stamp of their source get it from this part."""
        stamped = frame.filter(pl.col("next_ns").is_not_null())
        first = stamped.unique("source_id", keep="first", maintain_order=True)
        late = self._waiting.join(
            first.select("source_id", pl.col("next_ns").alias("_late")), on="source_id", how="inner"
        )
        if len(late):
            self._waiting = self._waiting.join(late, on="source_id", how="anti")
            self._places.append(late.with_columns(next_ns=pl.col("_late")).drop("_late"))


def _keys(frame: pl.DataFrame) -> Keys:
    """Source and line of each row as one number."""
    source = frame["source_id"].to_numpy().astype(np.int64)
    keys: Keys = (source << _LINE_BITS) | frame["line"].to_numpy().astype(np.int64)
    return keys


def _found(table: pl.DataFrame, keys: Keys) -> tuple[Positions, Positions]:
    """The rows of a table by source and line that are among sorted lines, and for each the row of its line."""
    own = _keys(table)
    at = np.searchsorted(keys, own)
    there = np.flatnonzero(keys[np.minimum(at, len(keys) - 1)] == own)
    return there, at[there]


def _beside(table: pl.DataFrame, keys: Keys) -> pl.DataFrame:
    """The columns of a table that has one row for some of the lines, for all of them."""
    columns = table.drop(_KEY)
    rows, at = _found(table, keys)
    place = np.full(len(keys), -1, dtype=np.int64)
    place[at] = rows
    index = pl.Series(place).set(pl.Series(place < 0), None)
    return columns.select(pl.all().gather(index))


def _named(lines: pl.DataFrame) -> pl.DataFrame:
    """What progress takes over of its lines."""
    return lines.select(pl.col(name).alias(f"line_{name}") for name in _OF_LINE)


def _within(table: pl.DataFrame, part: pl.DataFrame) -> pl.DataFrame:
    """The rows of a table by source and line, in this order, that can concern a part."""
    first, last = part["source_id"][0], part["source_id"][-1]
    start = int(table["source_id"].search_sorted(first, "left"))
    stop = int(table["source_id"].search_sorted(last, "right"))
    return table.slice(start, stop - start).filter(pl.col("line").is_between(part["line"].min(), part["line"].max()))


def place(frame: pl.DataFrame, job: Job) -> pl.DataFrame:
    """A frame whose `source` is a number of a part, with the number of the source and the line counted from its top."""
    numbers = job.places["number"].to_numpy()
    ids, before = (np.zeros(int(numbers.max(initial=0)) + 1, dtype=np.int64) for _ in range(2))
    ids[numbers], before[numbers] = job.places["id"].to_numpy(), job.places["before"].to_numpy()
    source = frame["source"].to_numpy()
    return frame.drop("source").with_columns(
        pl.Series("line", frame["line"].to_numpy() + before[source], dtype=pl.Int64),
        pl.Series("source_id", ids[source].astype(np.int32), dtype=pl.Int32),
    )
