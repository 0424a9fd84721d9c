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
        self._told, self._dumped = known.entries, known.progress.sort(_KEY)
        self._entries_told, self._records = _Marked(known.entries), _Marked(known.records)
        self._joined, self._wanted = _Marked(known.joined), _Marked(known.wanted)
        self._filler = job.identity.filler()
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
            shown = self._placed(part.progress, part.base)
            progress = None if shown is None else _Marked(shown)
            for frame in part.lines.frames(part.base):
                for at in range(0, len(frame), PIECE):
                    yield self._completed(frame.slice(at, PIECE), entries, progress)

    def progress(self) -> Iterator[pl.DataFrame]:
        """The rows of `TOLD`, once the lines have streamed."""
        places = self.places
        lines = places.select(_KEY).hstack(_named(places))
        yield self._dumped.join(lines, on=_KEY, how="left").select(list(TOLD)).cast(pl.Schema(TOLD)).sort(_KEY)
        yield from self._progress.frames(0)

    def _placed(self, rows: Rows, base: int) -> pl.DataFrame | None:
        frames = [place(frame, self._job) for frame in rows.frames(base)]
        return pl.concat(frames) if frames else None

    def _entries(self, part: Part) -> _Marked:
        """Entries of the lines that have signals, and of those of this part that have none because they are many."""
        folded = self._placed(part.folded, part.base)
        if folded is None:
            return self._entries_told
        return _Marked(pl.concat([self._told, self._folded.entries(folded, self._told)]))

    @property
    def places(self) -> pl.DataFrame:
        """One row for each wanted line; where a source goes on in a later part, its first stamp there comes next."""
        return pl.concat([*self._places, self._waiting])

    @stage("lines")
    def _completed(self, frame: pl.DataFrame, entries: _Marked, progress: _Marked | None) -> pl.DataFrame:
        placed = place(frame, self._job)
        keys = _keys(placed)
        if (keys[1:] < keys[:-1]).any():
            placed, keys = placed.sort(_KEY), np.sort(keys)
        completed = times.complete(placed, self._job.contexts, self._last)
        timed = times.neighbours(completed, self._carry, self._job.contexts)
        if len(self._waiting):
            self._wait(timed.lines)
        full = times.within_attempts(self._filler.fill(timed.lines))
        wanted = self._wanted.rows(keys)[1]
        places = full.select(name for name in PLACES if name in full.columns)[wanted].hstack(timed.beside(wanted))
        places = places.select(list(PLACES)).cast(pl.Schema(PLACES))
        last = pl.col("next_ns").is_null()
        self._places.append(places.filter(~last))
        self._waiting = pl.concat([self._waiting, places.filter(last)], rechunk=True)
        if progress is not None:
            self._steps(progress, full, keys)
        out = full.hstack(entries.beside(keys)).hstack(self._records.beside(keys))
        if self._joined.touches(keys):
            out = out.hstack(self._joined.beside(keys)).with_columns(message=pl.coalesce("whole", "message"))
        if not self._keep_text:
            telling = pl.col("level").is_in(_KEPT_LEVELS).fill_null(False)
            last = pl.struct("source_id", "rank", "attempt").is_last_distinct()  # what somebody said last is shown
            kept = telling | last | pl.col("entry").is_not_null() | pl.col("record").is_not_null()
            out = out.with_columns(pl.when(kept).then(pl.col("message")).alias("message"))
        return out.select(list(LINE_ROWS)).cast(pl.Schema(LINE_ROWS))

    def _steps(self, progress: _Marked, lines: pl.DataFrame, keys: Keys) -> None:
        """Keep the progress that these lines show."""
        shown, at = progress.rows(keys)
        rows = progress.table[shown].with_columns(pl.lit(None, pl.Int64).alias("stamp_ns"))
        told = rows.hstack(_named(lines.select(_OF_LINE)[at]))
        own = told.filter(~pl.col("source_id").is_in(self._silent)).select(list(TOLD)).cast(pl.Schema(TOLD))
        self._progress.waiting.append(own)
        self._rows += len(own)
        if self._spill is not None and self._rows >= _MANY:
            self._progress.write(self._spill / "told")
            self._rows = 0

    def _wait(self, frame: pl.DataFrame) -> None:
        """Lines of earlier parts that wait for the next stamp of their source get it from this part."""
        stamped = frame.select("source_id", "next_ns").filter(pl.col("next_ns").is_not_null())
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


class _Marked:
    """A table by source and line that says something of a few lines, with a look-up by sorted keys of lines."""

    def __init__(self, table: pl.DataFrame) -> None:
        self.table = table.sort(_KEY, maintain_order=True)
        self._keys = _keys(self.table)
        self._said = self.table.drop(_KEY)

    def _near(self, keys: Keys) -> slice:
        """The rows of the table that can concern these lines."""
        return slice(*np.searchsorted(self._keys, (keys[0], keys[-1] + 1)).tolist())

    def touches(self, keys: Keys) -> bool:
        """Whether something may be said of one of the lines."""
        near = self._near(keys)
        return bool(near.stop > near.start)

    def rows(self, keys: Keys) -> tuple[Positions, Positions]:
        """The rows of the table that concern these lines, and for each the place of its line."""
        near = self._near(keys)
        own = self._keys[near]
        at = np.searchsorted(keys, own)
        there = np.flatnonzero(keys[np.minimum(at, len(keys) - 1)] == own)
        return there + near.start, at[there]

    def beside(self, keys: Keys) -> pl.DataFrame:
        """What a table with one row for some of the lines says, for all of them."""
        rows, at = self.rows(keys)
        if not len(rows):
            return self._said.clear(len(keys))
        place = np.full(len(keys), -1, dtype=np.int64)
        place[at] = rows
        index = pl.Series(place).set(pl.Series(place < 0), None)
        return self._said.select(pl.all().gather(index))


def _named(lines: pl.DataFrame) -> pl.DataFrame:
    """What progress takes over of its lines."""
    return lines.select(pl.col(name).alias(f"line_{name}") for name in _OF_LINE)


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
