"""The rows of `line_rows`, completed while they stream from the parts into the timeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from firstfault.ingest import times
from firstfault.ingest.assemble import Job
from firstfault.ingest.stages import stage

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
_KEY = ["source_id", "line"]
_KEPT_LEVELS = ["WARN", "ERROR", "FATAL"]


class LineTable:
    """The lines of a job. Once they have streamed, `places` holds the place and time of the lines in `wanted`."""

    def __init__(
        self,
        job: Job,
        entries: pl.DataFrame,
        records: pl.DataFrame,
        joined: pl.DataFrame,
        wanted: pl.DataFrame,
        keep_text: bool,
    ) -> None:
        self._job, self._entries, self._records, self._wanted = job, entries, records, wanted
        self._joined = joined
        self._keep_text = keep_text
        self._carry: dict[int, times.Near] = {}
        self._last: dict[int, int] = {}
        self._met: set[int] = set()
        self._places: list[pl.DataFrame] = []

    def frames(self) -> Iterator[pl.DataFrame]:
        """All rows, part by part."""
        for part in self._job.parts:
            for frame in part.frames():
                yield self._completed(frame)

    @property
    def places(self) -> pl.DataFrame:
        """One row for each wanted line; where a source goes on in a later part, its first stamp there comes next."""
        empty = pl.DataFrame(schema=PLACES)
        return pl.concat([empty, *self._places])

    @stage("lines")
    def _completed(self, frame: pl.DataFrame) -> pl.DataFrame:
        placed = place(frame, self._job).sort(_KEY)
        known = set(self._met)
        self._met.update(placed["source_id"].unique().to_list())
        timed = times.neighbours(
            times.complete(placed, self._job.contexts, self._last), self._carry, self._job.contexts
        )
        self._wait(timed, known)
        full = times.within_attempts(self._job.identity.fill(timed))
        wanted, entries, records = (_within(table, full) for table in (self._wanted, self._entries, self._records))
        self._places.append(full.join(wanted, on=_KEY, how="semi").select(list(PLACES)).cast(pl.Schema(PLACES)))
        out = full.join(entries, on=_KEY, how="left", maintain_order="left")
        out = out.join(records, on=_KEY, how="left", maintain_order="left")
        if len(joined := _within(self._joined, full)):
            out = out.join(joined, on=_KEY, how="left", maintain_order="left")
            out = out.with_columns(message=pl.coalesce("whole", "message"))
        if not self._keep_text:
            telling = pl.col("level").is_in(_KEPT_LEVELS).fill_null(False)
            kept = telling | pl.col("entry").is_not_null() | pl.col("record").is_not_null()
            out = out.with_columns(pl.when(kept).then(pl.col("message")).alias("message"))
        return out.select(list(LINE_ROWS)).cast(pl.Schema(LINE_ROWS))

    def _wait(self, frame: pl.DataFrame, known: set[int]) -> None:
        """Lines of earlier parts that wait for the next stamp of their source get it from this part."""
        first = (
            frame.filter(pl.col("source_id").is_in(list(known)) & pl.col("next_ns").is_not_null())
            .unique("source_id", keep="first", maintain_order=True)
            .select("source_id", pl.col("next_ns").alias("_late"))
        )
        if not len(first):
            return
        late = pl.coalesce("next_ns", "_late").alias("next_ns")
        self._places = [
            places.join(first, on="source_id", how="left", maintain_order="left").with_columns(late).drop("_late")
            for places in self._places
        ]


def _within(table: pl.DataFrame, part: pl.DataFrame) -> pl.DataFrame:
    """The rows of a table by line that can concern a part."""
    lines = pl.col("line").is_between(part["line"].min(), part["line"].max())
    return table.filter(lines & pl.col("source_id").is_in(part["source_id"].unique().to_list()))


def place(frame: pl.DataFrame, job: Job) -> pl.DataFrame:
    """A frame whose `source` is a number of a part, with the number of the source and the line counted from its top."""
    joined = frame.join(job.places, left_on="source", right_on="number", how="inner", maintain_order="left")
    return joined.with_columns(pl.col("line") + pl.col("before")).rename({"id": "source_id"}).drop("before", "source")
