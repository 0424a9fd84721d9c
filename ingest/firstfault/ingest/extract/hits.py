"""Hits of the catalog in the text of a batch: candidates to lines, exact patterns on messages, captures.

Patterns of progress are answered column by column, all others line by line; only lines with a hit are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.catalog.matcher import Matcher
from firstfault.catalog.model import Event
from firstfault.ingest.extract.rows import TEXT_LIMIT, Own, SignalRow
from firstfault.ingest.formats import Formats
from firstfault.ingest.frame import piece

Rows = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]

FOLDED = {"row": pl.Int64, "pattern": pl.Int32}
Quota = Callable[[int, int], int]
"""How many more signals of a pattern a source may have."""

_MANY = 64
PROGRESS = {"row": pl.Int64, "step": pl.Int64, "epoch": pl.Int64, "rank": pl.Int32}


@dataclass(frozen=True, slots=True)
class Searched:
    """The lines of a batch as they are searched: text, line ends, and their columns."""

    text: bytes
    ends: Rows
    frame: pl.DataFrame
    bound: int
    quota: Quota


@dataclass(frozen=True, slots=True)
class Hits:
    """Signals by row, progress of rows, and the rows of storms: what matches, but not what it says."""

    signals: list[tuple[int, SignalRow]]
    progress: pl.DataFrame
    folded: pl.DataFrame


class Patterns:
    """The matcher with what the search asks of its patterns as arrays."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self.progress = np.array([pattern.event is Event.PROGRESS for pattern in matcher.patterns], dtype=bool)


def find(lines: Searched, quiet: npt.NDArray[np.bool_] | None, formats: Formats, patterns: Patterns) -> Hits:
    """What the catalog says about the lines of a batch. Lines that `quiet` marks are not searched."""
    at, numbers = patterns.matcher.scan(lines.text)
    rows = np.searchsorted(lines.ends, at - 1, side="left").astype(np.int64)
    if quiet is not None:
        loud = ~quiet[rows]
        at, numbers, rows = at[loud], numbers[loud], rows[loud]
    if not len(at):
        return Hits([], pl.DataFrame(schema=PROGRESS), pl.DataFrame(schema=FOLDED))
    stepping = patterns.progress[numbers]
    progress = _progress(lines, at[stepping], rows[stepping], numbers[stepping], formats, patterns.matcher)
    at, rows, numbers = at[~stepping], rows[~stepping], numbers[~stepping]
    pieces = _pieces(lines, at, rows, formats)
    folded = np.zeros(len(rows), dtype=bool)
    if not pieces:
        keep, folded = _likely(lines, rows, numbers, patterns.matcher)
        storm = pl.DataFrame({"row": rows[folded], "pattern": numbers[folded]}, schema=FOLDED)
        keep &= ~folded
        at, rows, numbers = at[keep], rows[keep], numbers[keep]
    else:
        storm = pl.DataFrame(schema=FOLDED)
    return Hits(
        _signals(lines, at, rows, numbers, pieces, patterns.matcher), progress, storm.unique().sort("row", "pattern")
    )


def owns(frame: pl.DataFrame, rows: Rows) -> dict[int, tuple[Own, str]]:
    """What the headers of some rows say, and their messages."""
    columns = frame.select(*Own._fields, "message")[pl.Series(rows, dtype=pl.Int64)]
    values = zip(rows.tolist(), columns.iter_rows(), strict=True)
    return {row: (Own(*found[:-1]), found[-1] or "") for row, found in values}


def _signals(
    lines: Searched, at: Rows, rows: Rows, numbers: Numbers, pieces: dict[int, str], matcher: Matcher
) -> list[tuple[int, SignalRow]]:
    own = owns(lines.frame, np.unique(rows))
    seen: set[tuple[int, int]] = set()
    found: list[tuple[int, SignalRow]] = []
    for end, row, number in zip(at.tolist(), rows.tolist(), numbers.tolist(), strict=True):
        if (row, number) in seen:
            continue
        message = pieces.get(end)
        if message is None:
            message = own[row][1]
        captures = matcher.confirm(number, message)
        if captures is not None:
            seen.add((row, number))
            found.append((row, _signal(number, matcher, message, captures, own[row][0])))
    return found


def _likely(
    lines: Searched, rows: Rows, numbers: Numbers, matcher: Matcher
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which candidates match, as far as the column engine looked, and which of those are beyond a source's quota.

    It looks at the patterns with very many candidates; the exact pattern decides on all that stay.
    """
    keep = np.ones(len(rows), dtype=bool)
    folded = np.zeros(len(rows), dtype=bool)
    for number in np.flatnonzero(np.bincount(numbers) > _MANY).tolist():
        mine = np.flatnonzero(numbers == number)
        try:
            found = lines.frame["message"].gather(pl.Series(rows[mine])).str.contains(matcher.patterns[number].regex)
        except pl.exceptions.ComputeError:
            continue
        keep[mine] = found.fill_null(False).to_numpy()
        mine = mine[keep[mine]]
        folded[mine] = _beyond(lines, rows[mine], number)
    return keep, folded


def _beyond(lines: Searched, rows: Rows, number: int) -> npt.NDArray[np.bool_]:
    """Of the rows that match one pattern, those beyond what is left of the quota of their source."""
    sources = lines.frame["source"].gather(pl.Series(rows)).to_numpy()
    beyond = np.zeros(len(rows), dtype=bool)
    for source in np.unique(sources).tolist():
        mine = np.flatnonzero(sources == source)
        distinct = np.unique(rows[mine], return_inverse=True)[1]
        beyond[mine] = distinct >= lines.quota(source, number)
    return beyond


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


def _pieces(lines: Searched, at: Rows, rows: Rows, formats: Formats) -> dict[int, str]:
    """By the end of a hit: the message of the piece it stands in, for lines of several pieces or beyond the bound."""
    lengths = np.diff(lines.ends, prepend=-1)
    if b"\r" not in lines.text and b"%|" not in lines.text and not (lengths > lines.bound).any():
        return {}
    found: dict[int, str] = {}
    for end, row in zip(at.tolist(), rows.tolist(), strict=True):
        start = int(lines.ends[row - 1]) + 1 if row else 0
        part = piece(lines.text, start, int(lines.ends[row]), end, lines.bound)
        if part is not None:
            found[end] = part.decode("utf-8", "replace")
    if not found:
        return found
    messages = formats.peel_many(pl.Series("raw", list(found.values())))["message"].to_list()
    return dict(zip(found, messages, strict=True))


def _progress(
    lines: Searched, at: Rows, rows: Rows, numbers: Numbers, formats: Formats, matcher: Matcher
) -> pl.DataFrame:
    """Steps of the lines that a progress pattern may match, taken out column by column; of a bar the last update."""
    made = []
    for number in np.unique(numbers).tolist():
        mine = numbers == number
        wanted, last = np.unique(rows[mine][::-1], return_index=True)
        ends = at[mine][::-1][last]
        messages = lines.frame["message"].gather(pl.Series(wanted))
        if pieces := _pieces(lines, ends, wanted, formats):
            places = np.searchsorted(ends, np.array(list(pieces), dtype=np.int64))
            messages = messages.scatter(pl.Series(places), pl.Series(list(pieces.values())))
        groups = messages.str.extract_groups(matcher.patterns[number].regex).struct.unnest()
        columns = {name: _first(groups, name) for name in ("step", "epoch", "rank")}
        part = pl.DataFrame({"row": wanted, **columns}).cast(pl.Schema(PROGRESS), strict=False)
        made.append(part.filter(pl.col("step").is_not_null() | pl.col("epoch").is_not_null()))
    if not made:
        return pl.DataFrame(schema=PROGRESS)
    return pl.concat(made).unique("row", keep="first", maintain_order=True).sort("row")


def with_headers(progress: pl.DataFrame, steps: pl.Series) -> pl.DataFrame:
    """Progress with the steps that stand in headers and so in no message."""
    rows = steps.is_not_null().arg_true()
    if not len(rows):
        return progress
    found = pl.DataFrame({"row": rows, "step": steps.gather(rows)}).cast(pl.Int64)
    both = pl.concat([found, progress], how="diagonal").select(list(PROGRESS))
    return both.unique("row", keep="first", maintain_order=True).sort("row")


def _first(groups: pl.DataFrame, name: str) -> pl.Series:
    """The group of a name or of one of its numbered alternatives."""
    names = [column for column in groups.columns if column.rstrip("23") == name]
    if not names:
        return pl.Series(name, [None] * len(groups), dtype=pl.String)
    plain = pl.col(names).str.replace_all(",", "", literal=True)
    return groups.select(pl.coalesce(plain).alias(name))[name]
