"""One batch of lines, of one big source or of many small ones: text, header columns, hits of the catalog.

A batch is worked on without memory of earlier ones, so that its size changes nothing; what spans lines is `source`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.catalog.matcher import Matcher
from firstfault.catalog.model import Event
from firstfault.ingest.extract.records import OPENERS
from firstfault.ingest.extract.rows import TEXT_LIMIT, Own, SignalRow
from firstfault.ingest.formats import Formats, SourceFormat
from firstfault.ingest.frame import Lines, fold, series

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Segment:
    """Lines of one source inside a batch. `first_line` is the 1-based number of the first of them."""

    source: int
    first_line: int
    lines: Lines
    format: SourceFormat
    searched: bool = True


@dataclass(frozen=True, slots=True)
class Batch:
    """The columns of a batch's lines, which of them open a record, and what the catalog says about them."""

    segments: tuple[Segment, ...]
    starts: tuple[int, ...]
    frame: pl.DataFrame
    openers: list[int]
    hits: list[tuple[int, SignalRow]]
    errors: list[tuple[int, SignalRow]]
    formats: Mapping[int, Counter[str]]
    progress: pl.DataFrame


PROGRESS = {"row": pl.Int64, "step": pl.Int64, "epoch": pl.Int64, "rank": pl.Int32}


COLUMNS = (
    "stamp_ns", "stamp_kind", "stamp_res_ns", "utc_offset_s", "collect_ns", "level", "host", "rank", "local_rank",
    "task", "pid", "gpu", "format", "message",
)  # fmt: skip
_PLACE = ("host", "rank", "local_rank", "task", "pid", "gpu")


def read_batch(segments: Sequence[Segment], formats: Formats, matcher: Matcher) -> Batch:
    """Peel and match the lines of a batch."""
    starts, text, ends = _joined(segments)
    part_of = np.repeat(np.arange(len(segments)), [len(part.lines) for part in segments])
    peeled = _peel(fold(series(text, ends)), segments, part_of, formats)
    frame = pl.DataFrame(
        {
            "source": np.array([part.source for part in segments], dtype=np.int32)[part_of],
            "line": np.concatenate([np.arange(len(part.lines), dtype=np.int64) + part.first_line for part in segments]),
            "byte_offset": np.concatenate([part.lines.offsets for part in segments]),
            "byte_length": np.concatenate([part.lines.lengths for part in segments]),
        }
    ).hstack(peeled)
    unsearched = [number for number, part in enumerate(segments) if not part.searched]
    quiet = np.isin(part_of, unsearched) if unsearched else None
    hits, progress = _hits(text, ends, frame, quiet, formats, matcher)
    return Batch(
        tuple(segments), starts, frame, _openers(peeled["message"]), hits, _errors(frame), _formats(frame), progress
    )


def _peel(raw: pl.Series, segments: Sequence[Segment], part_of: Rows, formats: Formats) -> pl.DataFrame:
    """Header columns and messages. Where a message only speaks about a rank or host, that is not who wrote the line."""
    kinds: dict[SourceFormat, int] = {}
    numbers = np.array([kinds.setdefault(part.format, len(kinds)) for part in segments])
    peeled = formats.peel_many(raw, list(kinds), numbers[part_of])
    writer = [pl.when(pl.col("about").fill_null(False)).then(None).otherwise(pl.col(name)).alias(name) for name in _PLACE]
    return peeled.with_columns(writer).select(COLUMNS)


def _joined(segments: Sequence[Segment]) -> tuple[tuple[int, ...], bytes, Rows]:
    """The texts of all segments behind one another: first row of each segment, the text, its line ends."""
    starts, ends, base, rows = [], [], 0, 0
    for segment in segments:
        starts.append(rows)
        ends.append(segment.lines.ends + base)
        base += len(segment.lines.text)
        rows += len(segment.lines)
    text = segments[0].lines.text if len(segments) == 1 else b"".join(part.lines.text for part in segments)
    return tuple(starts), text, np.concatenate(ends)


def _openers(message: pl.Series) -> list[int]:
    rows: list[int] = message.str.contains_any(list(OPENERS)).fill_null(False).arg_true().to_list()
    return rows


def _errors(frame: pl.DataFrame) -> list[tuple[int, SignalRow]]:
    """Signals without an entry for the lines that call themselves errors."""
    wanted = frame["level"].is_in(["ERROR", "FATAL"]).fill_null(False).arg_true().to_numpy()
    return [
        (row, SignalRow(line=0, event="exception", text=message[:TEXT_LIMIT], own=own))
        for row, (own, message) in _owns(frame, wanted).items()
        if message
    ]


def _formats(frame: pl.DataFrame) -> Mapping[int, Counter[str]]:
    """How many lines of each source follow which format."""
    found: dict[int, Counter[str]] = {}
    counts = frame.select("source", "format").drop_nulls().group_by("source", "format", maintain_order=True).len()
    for source, name, count in counts.iter_rows():
        found.setdefault(source, Counter())[name] = count
    return found


def _hits(
    text: bytes,
    ends: Rows,
    frame: pl.DataFrame,
    quiet: npt.NDArray[np.bool_] | None,
    formats: Formats,
    matcher: Matcher,
) -> tuple[list[tuple[int, SignalRow]], pl.DataFrame]:
    at, numbers = matcher.scan(text)
    if not len(at):
        return [], pl.DataFrame(schema=PROGRESS)
    rows = np.searchsorted(ends, at - 1, side="left").astype(np.int64)
    if quiet is not None:
        loud = ~quiet[rows]
        at, numbers, rows = at[loud], numbers[loud], rows[loud]
    parts = _parts(text, at, rows, ends, formats)
    is_progress = np.array([pattern.event is Event.PROGRESS for pattern in matcher.patterns], dtype=bool)[numbers]
    progress = _progress(rows[is_progress], numbers[is_progress], frame, matcher)
    signals: list[tuple[int, SignalRow]] = []
    seen: set[tuple[int, int]] = set()
    rows, numbers, at = rows[~is_progress], numbers[~is_progress], at[~is_progress]
    owns = _owns(frame, np.unique(rows))
    for row, number, end in zip(rows.tolist(), numbers.tolist(), at.tolist(), strict=True):
        if (row, number) in seen:
            continue
        message = parts.get(end) or owns[row][1]
        captures = matcher.confirm(number, message)
        if captures is None:
            continue
        seen.add((row, number))
        signals.append((row, _signal(number, matcher, message, captures, owns[row][0])))
    return signals, progress


def _owns(frame: pl.DataFrame, rows: Rows) -> dict[int, tuple[Own, str]]:
    """What the headers of some rows say, and their messages."""
    columns = frame.select(*Own._fields, "message")[pl.Series(rows)]
    return {row: (Own(*values[:-1]), values[-1] or "") for row, values in zip(rows.tolist(), columns.iter_rows(), strict=True)}


def _parts(text: bytes, at: Rows, rows: Rows, ends: Rows, formats: Formats) -> dict[int, str]:
    """For hits in an update of a line other than its last: the peeled message of that update."""
    if b"\r" not in text:
        return {}
    found: dict[int, str] = {}
    for end, row in zip(at.tolist(), rows.tolist(), strict=True):
        start = int(ends[row - 1]) + 1 if row else 0
        stop = int(ends[row])
        line = text[start:stop].rstrip(b"\r")
        if b"\r" not in line:
            continue
        first = text.rfind(b"\r", start, end) + 1 or start
        last = text.find(b"\r", end, stop)
        found[end] = text[first : last if last >= 0 else stop].decode("utf-8", "replace")
    if not found:
        return found
    peeled = formats.peel_many(pl.Series("raw", list(found.values())))["message"].to_list()
    return dict(zip(found, peeled, strict=True))


def _signal(number: int, matcher: Matcher, message: str, captures: dict[str, str], own: Own) -> SignalRow:
    pattern = matcher.patterns[number]
    entry = pattern.kind == "entry"
    return SignalRow(
        line=0,
        event=str(pattern.event),
        text=message[:TEXT_LIMIT],
        entry=pattern.id if entry else None,
        fact=None if entry else pattern.id,
        cls=pattern.cls,
        role=str(pattern.role) if pattern.role is not None else None,
        weak=pattern.weak,
        pattern=number,
        captures=captures,
        own=own,
    )


def _progress(rows: Rows, numbers: npt.NDArray[np.int32], frame: pl.DataFrame, matcher: Matcher) -> pl.DataFrame:
    """Steps of the lines that a progress pattern may match, taken out column by column."""
    made = []
    for number in np.unique(numbers).tolist():
        wanted = pl.Series("row", np.unique(rows[numbers == number]))
        regex = matcher.patterns[number].regex
        groups = frame["message"].gather(wanted).str.extract_groups(regex).struct.unnest()
        columns = {name: _first(groups, name) for name in ("step", "epoch", "rank")}
        part = pl.DataFrame({"row": wanted, **columns}).cast(PROGRESS, strict=False)
        made.append(part.filter(pl.col("step").is_not_null() | pl.col("epoch").is_not_null()))
    if not made:
        return pl.DataFrame(schema=PROGRESS)
    return pl.concat(made).unique("row", keep="first", maintain_order=True).sort("row")


def _first(groups: pl.DataFrame, name: str) -> pl.Series:
    """The group of a name or of one of its numbered alternatives."""
    names = [column for column in groups.columns if column.rstrip("23") == name]
    if not names:
        return pl.Series(name, [None] * len(groups), dtype=pl.String)
    whole = pl.col(names).str.replace_all(",", "", literal=True)
    return groups.select(pl.coalesce(whole).alias(name))[name]
