"""Completes stamps that leave out the year or the day, and gives every line the stamp of its neighbour.

What is missing comes from the source's own fuller stamps, else from those of the other sources of the job, else from
`--year`, else from the time the files were last changed. The nearest possible moment is taken, so that a job that
runs over New Year or midnight stays in one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.ingest import stamps

SECOND = stamps.SECOND
DAY = stamps.DAY
_FULL = ("full", "offset")
_COUNTED = ("monotonic", "relative")


@dataclass(frozen=True, slots=True)
class Context:
    """Where in time a source lies: an anchor near its stamps. `year` is what the user says, and wins."""

    anchor_ns: int
    year: int | None = None


def summarise_stamps(frame: pl.DataFrame) -> pl.DataFrame:
    """How many stamps of each kind each source has, and the first and last of them."""
    return (
        frame.filter(pl.col("stamp_ns").is_not_null())
        .group_by("source", "stamp_kind")
        .agg(pl.col("stamp_ns").min().alias("first"), pl.col("stamp_ns").max().alias("last"), pl.len().alias("n"))
        .sort("source", "stamp_kind")
    )


def merge_stamps(summaries: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Several summaries as one."""
    return (
        pl.concat(summaries)
        .group_by("source", "stamp_kind")
        .agg(pl.col("first").min(), pl.col("last").max(), pl.col("n").sum())
        .sort("source", "stamp_kind")
    )


def contexts(
    summary: pl.DataFrame, sources: Iterable[tuple[int, int]], extra: Iterable[int], year: int | None
) -> Mapping[int, Context]:
    """A context for each source (number, time of last change); `extra` holds full stamps from dumps."""
    own: dict[int, int] = {}
    for source, first, last in summary.filter(pl.col("stamp_kind").is_in(_FULL)).select("source", "first", "last").iter_rows():
        middle = (first + last) // 2
        own[source] = middle if source not in own else (own[source] + middle) // 2
    known = sorted([*own.values(), *extra])
    all_sources = list(sources)
    changed = max((mtime for _, mtime in all_sources if mtime > 0), default=0)
    job = known[len(known) // 2] if known else _before(changed)
    return {source: Context(own.get(source, job), year) for source, _ in all_sources}


def _before(changed_ns: int) -> int:
    """An anchor such that the nearest year puts a stamp within the year before a file was changed (plus a day for zones)."""
    return changed_ns - 182 * DAY if changed_ns else 0


def complete(frame: pl.DataFrame, known: Mapping[int, Context]) -> pl.DataFrame:
    """The frame, its stamps completed, with `near_ns`, `next_ns` and what kind and resolution the near stamp has.

    `frame` holds lines of whole or of parts of sources, in order.
    """
    ns = frame["stamp_ns"].to_numpy(allow_copy=True) if not frame["stamp_ns"].null_count() else None
    values = frame["stamp_ns"].fill_null(0).to_numpy().astype(np.int64) if ns is None else ns.astype(np.int64)
    kinds = frame["stamp_kind"]
    partial = kinds.is_in(["no-year", "time-only"]).fill_null(False)
    if partial.any():
        values = values.copy()
        source = frame["source"].to_numpy()
        for number in np.unique(source[partial.to_numpy()]).tolist():
            rows = np.flatnonzero(source == number)
            own = kinds.gather(pl.Series(rows))
            values[rows] = _complete_source(values[rows], own, known.get(number, Context(0)))
    column = pl.when(pl.col("stamp_kind").is_null()).then(None).otherwise(pl.Series("v", values)).alias("stamp_ns")
    return frame.with_columns(column)


def _complete_source(ns: npt.NDArray[np.int64], kinds: pl.Series, context: Context) -> npt.NDArray[np.int64]:
    out = ns.copy()
    no_year = kinds.eq("no-year").fill_null(False).to_numpy()
    if no_year.any():
        out[no_year] = nearest_year(ns[no_year], context)
    time_only = kinds.eq("time-only").fill_null(False).to_numpy()
    if time_only.any():
        dated = kinds.is_in([*_FULL, "no-year"]).fill_null(False).to_numpy()
        out[time_only] = nearest_day(ns, out, time_only, dated, context)
    return out


def nearest_year(ns: npt.NDArray[np.int64], context: Context) -> npt.NDArray[np.int64]:
    """Stamps without a year in the year that brings them nearest to the anchor."""
    if context.year is not None:
        anchor = int(stamps.fill_year(ns[:1], context.year)[0])
    else:
        anchor = context.anchor_ns
    year = stamps.year_of(anchor) if anchor > 0 else stamps.BASE_YEAR
    best = stamps.fill_year(ns, year)
    for other in (year - 1, year + 1):
        if other >= 1970:
            candidate = stamps.fill_year(ns, other)
            best = np.where(np.abs(candidate - anchor) < np.abs(best - anchor), candidate, best)
    return best


def nearest_day(
    ns: npt.NDArray[np.int64],
    completed: npt.NDArray[np.int64],
    time_only: npt.NDArray[np.bool_],
    dated: npt.NDArray[np.bool_],
    context: Context,
) -> npt.NDArray[np.int64]:
    """Stamps of a time alone on the day that brings them nearest to the dated stamp before them (or after, at the top)."""
    times = ns[time_only]
    if dated.any():
        at = np.flatnonzero(dated)
        place = np.clip(np.searchsorted(at, np.flatnonzero(time_only)) - 1, 0, None)
        anchor = completed[at[place]]
    else:
        # a time that falls back by more than half a day has passed midnight
        days = np.concatenate([[0], np.cumsum(np.round(-np.diff(times) / DAY).astype(np.int64))])
        base = context.anchor_ns - int(times[0])
        return times + days * DAY + int(np.round(base / DAY)) * DAY
    return times + np.round((anchor - times) / DAY).astype(np.int64) * DAY


def neighbours(frame: pl.DataFrame) -> pl.DataFrame:
    """`near_ns` (own stamp, else the one before, at the top the one after), and kind, resolution and follower of it.

    Stamps of a wall clock and counts since boot do not stand in for one another: each source uses the family that most
    of its stamped lines have.
    """
    counted = pl.col("stamp_kind").is_in(_COUNTED)
    stamped = pl.col("stamp_ns").is_not_null()
    mostly = (
        (counted & stamped).fill_null(False).sum().over("source") * 2 > stamped.sum().over("source")
    ).alias("_mostly")
    out = frame.with_columns(mostly)
    fits = stamped & (counted.fill_null(False) == pl.col("_mostly"))
    out = out.with_columns(
        pl.when(fits).then(pl.col("stamp_ns")).alias("_ns"),
        pl.when(fits).then(pl.col("stamp_kind")).alias("_kind"),
        pl.when(fits).then(pl.col("stamp_res_ns")).alias("_res"),
    )
    forward = [pl.col(name).forward_fill().over("source") for name in ("_ns", "_kind", "_res")]
    backward = [pl.col(name).backward_fill().over("source") for name in ("_ns", "_kind", "_res")]
    out = out.with_columns(
        near_ns=pl.coalesce("stamp_ns", forward[0], backward[0]),
        near_kind=pl.coalesce("stamp_kind", forward[1], backward[1]),
        near_res=pl.coalesce("stamp_res_ns", forward[2], backward[2]),
        next_ns=backward[0],
    )
    return out.drop("_mostly", "_ns", "_kind", "_res")
