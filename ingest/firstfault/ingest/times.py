"""Completes stamps that leave out the year or the day, and gives every line the stamp of its neighbour.

What is missing comes from the source's own fuller stamps, else from those of the other sources of the job, else from
`--year`, else from the time the files were last changed. The nearest possible moment is taken, so that a job that
runs over New Year or midnight stays in one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.ingest import stamps
from firstfault.ingest.stages import stage

SECOND = stamps.SECOND
DAY = stamps.DAY
Codes = npt.NDArray[np.int8]
_FULL = ("full", "offset")
_COUNTED = ("monotonic", "relative")
_KINDS = pl.Enum(stamps.KINDS)
_CODE = {word: code for code, word in enumerate(_KINDS.categories)}
_NO_YEAR, _TIME_ONLY = _CODE["no-year"], _CODE["time-only"]
_STAMP = ("stamp_ns", "stamp_kind", "stamp_res_ns", "utc_offset_s")
_RENAME = {name: ("utc", "near") if name.startswith("utc") else ("stamp", "near") for name in _STAMP}


@dataclass(frozen=True, slots=True)
class Context:
    """Where in time a source lies: an anchor near its stamps, and its first stamps. `year` is what the user says.

    `counted` says that most of its stamps count from a boot; `top` is the first stamp that is of the family of most.
    """

    anchor_ns: int
    year: int | None = None
    counted: bool = False
    top: Near | None = None
    dated_ns: int | None = None
    """The first stamp that has a date."""


_TOP = ("line", "stamp_ns", "stamp_res_ns", "utc_offset_s")


@stage("summaries")
def summarise(frame: pl.DataFrame) -> pl.DataFrame:
    """How many stamps of each kind each source has, the least and the greatest, and the first with its line."""
    return (
        frame.filter(pl.col("stamp_ns").is_not_null())
        .group_by("source", "stamp_kind")
        .agg(
            pl.col("stamp_ns").min().alias("first"),
            pl.col("stamp_ns").max().alias("last"),
            pl.len().cast(pl.Int64).alias("n"),
            *(pl.col(name).first().cast(pl.Int64) for name in _TOP),  # lines of a source stand in order
        )
        .with_columns(pl.col("stamp_kind").cast(pl.String))
        .sort("source", "stamp_kind")
    )


def merge(summaries: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Several summaries as one."""
    empty = pl.DataFrame(
        schema={
            "source": pl.Int32, "stamp_kind": pl.String, "first": pl.Int64, "last": pl.Int64, "n": pl.Int64,
            **dict.fromkeys(_TOP, pl.Int64),
        }
    )  # fmt: skip
    top = pl.struct(_TOP).sort_by("line").first().alias("top")
    return (
        pl.concat([empty, *summaries])
        .group_by("source", "stamp_kind")
        .agg(pl.col("first").min(), pl.col("last").max(), pl.col("n").sum(), top)
        .unnest("top")
        .sort("source", "stamp_kind")
    )


def contexts(
    summary: pl.DataFrame, changed: Mapping[int, int], dated: Iterable[int], year: int | None
) -> Mapping[int, Context]:
    """A context for each source. `changed` has the time of its last change, `dated` full stamps from dumps."""
    own: dict[int, int] = {}
    full = (
        summary.filter(pl.col("stamp_kind").is_in(_FULL))
        .group_by("source")
        .agg(pl.col("first").min(), pl.col("last").max())
    )
    for source, first, last in full.sort("source").iter_rows():
        own[source] = (first + last) // 2
    known = sorted([*own.values(), *dated])
    job = known[len(known) // 2] if known else _before(max(changed.values(), default=0))
    kinds: dict[int, list[dict[str, Any]]] = {source: [] for source in changed}
    for row in summary.sort("source", "line").iter_rows(named=True):
        kinds.setdefault(row["source"], []).append(row)
    return {source: _context(kinds[source], own.get(source, job), year) for source in changed}


def _context(kinds: Sequence[Mapping[str, Any]], anchor_ns: int, year: int | None) -> Context:
    """The context of a source from its kinds of stamps, in the order of their first lines."""
    counted = sum(one["n"] for one in kinds if one["stamp_kind"] in _COUNTED) * 2 > sum(one["n"] for one in kinds)
    if year is not None and (bare := next((one for one in kinds if one["stamp_kind"] == "no-year"), None)):
        anchor_ns = int(stamps.fill_year(np.array([bare["stamp_ns"]]), year)[0])
    plain = Context(anchor_ns)
    dated = next((_dated(one, plain) for one in kinds if one["stamp_kind"] in (*_FULL, "no-year")), None)
    top = next((one for one in kinds if (one["stamp_kind"] in _COUNTED) == counted), None)
    near = None
    if top is not None:
        ns = _dated(top, plain)
        if top["stamp_kind"] == "time-only":
            times = np.array([top["stamp_ns"]])
            ns = int(nearest_day(times, np.array([0]), np.array([True]), np.array([False]), plain, dated)[0])
        near = Near(ns, top["stamp_kind"], top["stamp_res_ns"], top["utc_offset_s"])
    return Context(anchor_ns, year, counted, near, dated)


def _dated(one: Mapping[str, Any], context: Context) -> int:
    """The first stamp of a kind, its year filled in where it has none."""
    if one["stamp_kind"] != "no-year":
        return int(one["stamp_ns"])
    return int(nearest_year(np.array([one["stamp_ns"]]), context)[0])


def _before(changed_ns: int) -> int:
    """An anchor such that the nearest year puts a stamp within the year before a file was changed."""
    return changed_ns - 182 * DAY if changed_ns else 0


def complete(frame: pl.DataFrame, known: Mapping[int, Context], last: dict[int, int] | None = None) -> pl.DataFrame:
    """The frame, its stamps completed.

    `frame` holds lines of whole sources or of parts of them, in order; `last` has the stamp by which a time without a
    date is placed at the top of a source's next part, and is brought up to date.
    """
    last = {} if last is None else last
    kinds = _codes(frame["stamp_kind"])
    partial = (kinds == _NO_YEAR) | (kinds == _TIME_ONLY)
    if not partial.any():
        return frame
    values = frame["stamp_ns"].fill_null(0).to_numpy().astype(np.int64)
    source = frame["source_id"].to_numpy()
    for number in np.unique(source[partial]).tolist():
        first, stop = np.searchsorted(source, [number, number + 1]).tolist()
        own = kinds[first:stop]
        context = known.get(number, Context(0))
        values[first:stop] = _complete_source(values[first:stop], own, context, last.get(number, context.dated_ns))
        wanted = _dates(own) if context.dated_ns is not None else own == _TIME_ONLY
        if len(at := np.flatnonzero(wanted)):
            last[number] = int(values[first + int(at[-1])])
    column = pl.when(pl.col("stamp_kind").is_not_null()).then(pl.Series("stamp_ns", values)).alias("stamp_ns")
    return frame.with_columns(column)


def _codes(kinds: pl.Series) -> Codes:
    """The numbers of kinds, -1 where a line has no stamp."""
    codes: Codes = kinds.cast(_KINDS).to_physical().cast(pl.Int8).fill_null(-1).to_numpy()
    return codes


def _dates(kinds: Codes) -> npt.NDArray[np.bool_]:
    """Which stamps have a date."""
    found: npt.NDArray[np.bool_] = (kinds == _CODE["full"]) | (kinds == _CODE["offset"]) | (kinds == _NO_YEAR)
    return found


def _complete_source(
    ns: npt.NDArray[np.int64], kinds: Codes, context: Context, last: int | None
) -> npt.NDArray[np.int64]:
    out = ns.copy()
    no_year = kinds == _NO_YEAR
    if no_year.any():
        out[no_year] = nearest_year(ns[no_year], context)
    time_only = kinds == _TIME_ONLY
    if time_only.any():
        out[time_only] = nearest_day(ns, out, time_only, _dates(kinds), context, last)
    return out


def nearest_year(ns: npt.NDArray[np.int64], context: Context) -> npt.NDArray[np.int64]:
    """Stamps without a year in the year that brings them nearest to the anchor."""
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
    last: int | None = None,
) -> npt.NDArray[np.int64]:
    """Stamps of a time alone on the day that brings them nearest to the dated stamp before them (at the top: after).

    `last` is that stamp for those at the top; where no stamp of a source has a date, the one before.
    """
    times = ns[time_only]
    if dated.any():
        at = np.flatnonzero(dated)
        place = np.searchsorted(at, np.flatnonzero(time_only)) - 1
        top = completed[at[0]] if last is None else last
        anchor = np.where(place < 0, top, completed[at[np.clip(place, 0, None)]])
    elif context.dated_ns is not None and last is not None:
        anchor = np.full(len(times), last)
    else:
        # a time that falls back by more than half a day has passed midnight
        days = np.concatenate([[0], np.cumsum(np.round(-np.diff(times) / DAY).astype(np.int64))])
        base = (context.anchor_ns if last is None else last) - int(times[0])
        unwrapped: npt.NDArray[np.int64] = times + days * DAY + round(base / DAY) * DAY
        return unwrapped
    nearest: npt.NDArray[np.int64] = times + np.round((anchor - times) / DAY).astype(np.int64) * DAY
    return nearest


class Near(NamedTuple):
    """The last stamp of a source so far, for lines of its next part."""

    ns: int | None
    kind: str | None
    res_ns: int | None
    offset_s: int | None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Lines with `near_ns` (own stamp, else the one before, at the top the one after), `next_ns` and `from_next`.

    `at` says for each line which of the `stamps` stands in for its own, -1 where none does.
    """

    lines: pl.DataFrame
    stamps: pl.DataFrame
    at: npt.NDArray[np.int64]

    def beside(self, rows: npt.NDArray[np.intp]) -> pl.DataFrame:
        """Kind, resolution and zone of the stamps that stand in for those of some lines."""
        names = {name: name.replace(*_RENAME[name]) for name in _STAMP[1:]}
        return _gathered(self.stamps, self.at[rows], names)


def neighbours(frame: pl.DataFrame, carry: dict[int, Near], contexts: Mapping[int, Context]) -> Neighbours:
    """The lines with the stamps of their neighbours.

    Stamps of a wall clock and counts since boot do not stand in for one another: a line inherits from the family that
    most stamped lines of its source have. `frame` is sorted by source and line, `carry` holds the last stamps of
    earlier parts and is brought up to date.
    """
    source = frame["source_id"].to_numpy()
    rows = np.arange(len(source))
    starts = np.flatnonzero(np.concatenate([[True], source[1:] != source[:-1]]))
    stops = np.append(starts[1:], len(source))
    group = np.repeat(np.arange(len(starts)), stops - starts)
    stamped = frame["stamp_ns"].is_not_null().to_numpy()
    kinds = _codes(frame["stamp_kind"])
    counted = (kinds == _CODE["monotonic"]) | (kinds == _CODE["relative"])
    mostly = np.array([contexts.get(int(number), Context(0)).counted for number in source[starts]], dtype=np.bool_)
    fits = stamped & (counted == mostly[group])
    before = np.maximum.accumulate(np.where(fits, rows, -1))
    before = np.where(before >= starts[group], before, -1)
    after = np.minimum.accumulate(np.where(fits, rows, len(rows))[::-1])[::-1]
    after = np.where(after < stops[group], after, -1)
    at = np.where(before >= 0, before, after)
    others: list[Near] = []
    for place, start in enumerate(starts.tolist()):
        known = carry.get(int(source[start]))
        if known is None and after[start] < 0 and (found := contexts.get(int(source[start]))) and found.top:
            at[start : stops[place]] = len(rows) + len(others)
            others.append(found.top)
        stop = int(np.searchsorted(before[start : stops[place]] >= 0, True)) + start
        if known is not None and stop > start:
            at[start:stop] = len(rows) + len(others)
            others.append(known)
            before[start:stop] = start
        last = int(before[stops[place] - 1])
        if last >= 0 and fits[last]:
            carry[int(source[start])] = Near(*frame.select(_STAMP).row(last))
    stamps = frame.select(_STAMP)
    if others:
        stamps = stamps.vstack(pl.DataFrame(others, schema=stamps.schema, orient="row"))
    near = _gathered(stamps, at, {"stamp_ns": "near_ns"})["near_ns"]
    follower = _gathered(frame, after, {"stamp_ns": "next_ns"})["next_ns"]
    borrowed = pl.Series("from_next", before < 0) & frame["stamp_ns"].is_null()
    lines = frame.with_columns(pl.coalesce("stamp_ns", near).alias("near_ns"), follower, borrowed)
    return Neighbours(lines, stamps, at)


def within_attempts(frame: pl.DataFrame) -> pl.DataFrame:
    """Take back stamps that lines at the top of a source borrowed from a later attempt."""
    if not frame["from_next"].any():
        return frame.drop("from_next")
    first = pl.col("attempt").filter(pl.col("stamp_ns").is_not_null()).first().over("source_id")
    foreign = pl.col("from_next") & (pl.col("attempt") < first).fill_null(False)
    own = pl.when(foreign).then(None).otherwise(pl.col("near_ns")).alias("near_ns")
    return frame.with_columns(own).drop("from_next")


def _gathered(frame: pl.DataFrame, rows: npt.NDArray[np.int64], names: Mapping[str, str]) -> pl.DataFrame:
    """Columns of other rows under new names, null where the row is -1."""
    wanted = pl.Series(rows, dtype=pl.Int64)
    if (rows < 0).any():
        wanted = wanted.set(pl.Series(rows < 0), None)
    return frame.select(pl.col(name).gather(wanted).alias(new) for name, new in names.items())
