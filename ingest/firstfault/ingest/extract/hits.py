"""Hits of the catalog in the text of a batch: candidates to lines, exact patterns on messages, captures.

Only lines with a hit are looked at, and those of one pattern together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.catalog.columns import for_polars
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.model import Event
from firstfault.catalog.quoting import quoting
from firstfault.ingest.extract.rows import TEXT_LIMIT, Own, SignalRow
from firstfault.ingest.formats import Formats
from firstfault.ingest.frame import piece
from firstfault.ingest.stages import count, stage

Rows = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Marks = npt.NDArray[np.bool_]

FOLDED = {"row": pl.Int64, "pattern": pl.Int32}
Quota = Callable[[int, int], int]
"""How many more signals of a pattern a source may have."""

_NUMBER_BITS = 24
PROGRESS = {"row": pl.Int64, "step": pl.Int64, "epoch": pl.Int64, "rank": pl.Int32}


@dataclass(frozen=True, slots=True)
class Searched:
    """The lines of a batch as they are searched: text, line ends, columns, which lines may be of several pieces."""

    text: bytes
    ends: Rows
    frame: pl.DataFrame
    several: Marks | None
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
        self.entry = np.array([pattern.kind == "entry" for pattern in matcher.patterns], dtype=bool)


def find(lines: Searched, quiet: Marks | None, formats: Formats, patterns: Patterns) -> Hits:
    """What the catalog says about the lines of a batch. Lines that `quiet` marks are not searched."""
    matcher = patterns.matcher
    at, numbers = _candidates(lines, matcher)
    rows = np.searchsorted(lines.ends, at - 1, side="left").astype(np.int64)
    if quiet is not None:
        loud = ~quiet[rows]
        at, numbers, rows = at[loud], numbers[loud], rows[loud]
    if not len(at):
        return Hits([], pl.DataFrame(schema=PROGRESS), pl.DataFrame(schema=FOLDED))
    at, numbers, rows = _once(at, numbers, rows, lines.several)
    texts = _Texts(lines, rows, at, formats)
    stepping = patterns.progress[numbers]
    first, again, last = _chosen(rows << _NUMBER_BITS | numbers, stepping, texts.split)
    texts.read(np.concatenate([first, last]))
    progress = _progress(texts, last, numbers, matcher)
    held = _reported(_confirmed(texts, first, again, numbers, matcher), patterns.entry[numbers])
    beyond = _beyond(lines, rows[held.hits], numbers[held.hits])
    storm = held.hits[beyond]
    folded = pl.DataFrame({"row": rows[storm], "pattern": numbers[storm]}, schema=FOLDED).sort("row", "pattern")
    return Hits(_signals(texts, held.where(~beyond), numbers, matcher), progress, folded)


@stage("scan")
def _candidates(lines: Searched, matcher: Matcher) -> tuple[Rows, Numbers]:
    count("scan", len(lines.text))
    return matcher.scan(lines.text, lines.ends)


def _once(at: Rows, numbers: Numbers, rows: Rows, several: Marks | None) -> tuple[Rows, Numbers, Rows]:
    """The hits, those of a pattern on a line of one piece as one, whose place says nothing."""
    if several is None:
        apart = np.empty(0, dtype=np.int64)
        pairs = _distinct(rows << _NUMBER_BITS | numbers)
    else:
        split = several[rows]
        apart = np.flatnonzero(split)
        pairs = _distinct(rows[~split] << _NUMBER_BITS | numbers[~split])
    whole, which = pairs >> _NUMBER_BITS, (pairs & ((1 << _NUMBER_BITS) - 1)).astype(np.int32)
    if not len(apart):
        return np.zeros(len(pairs), dtype=np.int64), which, whole
    order = np.argsort(np.concatenate((whole, rows[apart])), kind="stable")
    places = np.concatenate((np.zeros(len(pairs), dtype=np.int64), at[apart]))
    return (
        places[order],
        np.concatenate((which, numbers[apart]))[order],
        np.concatenate((whole, rows[apart]))[order],
    )


def _distinct(values: Rows) -> Rows:
    """Sorted and without doubles, many times faster than `np.unique`."""
    values = np.sort(values)
    return values[np.append(np.ones(1, dtype=np.bool_), values[1:] != values[:-1])] if len(values) else values


def _chosen(pairs: Rows, stepping: Marks, split: Marks) -> tuple[Rows, Rows, Rows]:
    """Of the hits of a pattern on a line: the first, further ones in other pieces of the line, of progress the last."""
    if not split.any():  # each hit is the only one of its pattern on its line
        return np.flatnonzero(~stepping), np.empty(0, dtype=np.int64), np.flatnonzero(stepping)
    once = np.zeros(len(pairs), dtype=np.bool_)
    once[np.unique(pairs, return_index=True)[1]] = True
    final = np.zeros(len(pairs), dtype=np.bool_)
    final[len(pairs) - 1 - np.unique(pairs[::-1], return_index=True)[1]] = True
    return np.flatnonzero(once & ~stepping), np.flatnonzero(~once & split & ~stepping), np.flatnonzero(final & stepping)


class _Texts:
    """Hits and the texts they stand in: the message of the line, or of its piece where the line has several."""

    def __init__(self, lines: Searched, rows: Rows, at: Rows, formats: Formats) -> None:
        self.lines, self.rows, self.at = lines, rows, at
        self._formats = formats
        self.split = lines.several[rows] if lines.several is not None else np.zeros(len(rows), dtype=np.bool_)
        self._pieces: dict[int, bytes | None] = {}
        self._read: dict[bytes, str] = {}

    def of(self, hits: Rows) -> pl.Series:
        """The texts of these hits."""
        self.read(hits)
        texts = self.lines.frame["message"].gather(pl.Series(self.rows[hits])).fill_null("")
        parts = [(place, self._piece(int(hits[place]))) for place in np.flatnonzero(self.split[hits]).tolist()]
        told = [(place, self._read[part]) for place, part in parts if part is not None]
        return texts.scatter([place for place, _ in told], [text for _, text in told]) if told else texts

    def read(self, hits: Rows) -> None:
        """Take the headers off the pieces that these hits stand in, all together."""
        parts = (self._piece(hit) for hit in hits[self.split[hits]].tolist())
        new = list(dict.fromkeys(part for part in parts if part is not None and part not in self._read))
        if new:
            raw = pl.Series("raw", [part.decode("utf-8", "replace") for part in new])
            self._read |= zip(new, self._formats.peel_many(raw)["message"].to_list(), strict=True)

    def likely(self, hits: Rows, numbers: Numbers, matcher: Matcher) -> Rows:
        """The hits whose pieces may hold the pattern, by a look at them as they stand in the log."""
        keep = np.ones(len(hits), dtype=np.bool_)
        parts = [self._piece(hit) for hit in hits.tolist()]
        # a quoted text is written in another way than it is read
        plain = np.array(
            [part is not None and b"\\" not in part and b'{"' not in part for part in parts], dtype=np.bool_
        )
        texts = pl.Series([part.decode("utf-8", "replace") if part is not None else "" for part in parts])
        for number, mine in _by_pattern(numbers[hits]):
            keep[mine] = ~plain[mine] | matcher.exact(number).may_hold(texts.gather(mine))
        return hits[keep]

    def _piece(self, hit: int) -> bytes | None:
        if hit not in self._pieces:
            row, ends = int(self.rows[hit]), self.lines.ends
            start = int(ends[row - 1]) + 1 if row else 0
            self._pieces[hit] = piece(self.lines.text, start, int(ends[row]), int(self.at[hit]), self.lines.bound)
        return self._pieces[hit]


@dataclass(frozen=True, slots=True)
class _Held:
    """Hits whose texts hold the whole pattern, by place, and those texts."""

    hits: Rows
    messages: pl.Series

    def where(self, mask: Marks) -> _Held:
        return _Held(self.hits[mask], self.messages.filter(pl.Series(mask)))


@stage("confirm")
def _confirmed(texts: _Texts, first: Rows, again: Rows, numbers: Numbers, matcher: Matcher) -> _Held:
    """What the exact patterns hold, each once a line; other pieces of a line are asked where the first says no."""
    pairs = texts.rows << _NUMBER_BITS | numbers
    held = _held(texts, first, numbers, matcher)
    again = texts.likely(again[~np.isin(pairs[again], pairs[held.hits])], numbers, matcher)
    if not len(again):
        return held
    more = _held(texts, again, numbers, matcher)
    once = np.sort(np.unique(pairs[more.hits], return_index=True)[1])
    hits = np.concatenate([held.hits, more.hits[once]])
    order = np.argsort(hits)
    return _Held(hits[order], pl.concat([held.messages, more.messages.gather(once)]).gather(order))


def _reported(held: _Held, entry: Marks) -> _Held:
    """Without what lines only quote: no entry speaks for those."""
    quoted = entry[held.hits]
    if quoted.any():
        quoted[quoted] = quoting(held.messages.filter(pl.Series(quoted)))
    return held.where(~quoted)


def _held(texts: _Texts, hits: Rows, numbers: Numbers, matcher: Matcher) -> _Held:
    """Those of the hits whose texts hold the whole pattern."""
    messages = texts.of(hits)
    return _Held(hits, messages).where(_hold(texts, hits, messages, numbers, matcher))


def _hold(texts: _Texts, hits: Rows, messages: pl.Series, numbers: Numbers, matcher: Matcher) -> Marks:
    """Which of the hits do so. Hits on a line that is not split stand in one text."""
    rows = texts.rows[hits]
    unlike = np.append(np.ones(1, dtype=np.bool_), (rows[1:] != rows[:-1]) | texts.split[hits[1:]])[: len(hits)]
    return matcher.hold(numbers[hits], messages.filter(pl.Series(unlike)), np.cumsum(unlike) - 1)


def _by_pattern(numbers: Numbers) -> Iterator[tuple[int, Rows]]:
    """The places of each pattern."""
    order = np.argsort(numbers, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        if len(mine):
            yield int(numbers[mine[0]]), mine


def _beyond(lines: Searched, rows: Rows, numbers: Numbers) -> Marks:
    """Which of the rows that a pattern matches are beyond what is left of its quota in their source."""
    beyond = np.zeros(len(rows), dtype=np.bool_)
    sources = lines.frame["source"].gather(pl.Series(rows)).to_numpy()
    for number, mine in _by_pattern(numbers):
        for source in np.unique(sources[mine]).tolist():
            own = mine[sources[mine] == source]
            beyond[own[lines.quota(source, number) :]] = True
    return beyond


@stage("signals")
def _signals(texts: _Texts, held: _Held, numbers: Numbers, matcher: Matcher) -> list[tuple[int, SignalRow]]:
    """Signals by row, of one row the one that speaks for it first."""
    rows = texts.rows[held.hits]
    own, messages = owns(texts.lines.frame, rows), held.messages.to_list()
    found: list[SignalRow | None] = [None] * len(rows)
    for number, mine in _by_pattern(numbers[held.hits]):
        captures = matcher.exact(number).captures(held.messages.gather(mine))
        for place, said in zip(mine.tolist(), captures, strict=True):
            found[place] = _signal(number, matcher, messages[place], said, own[place])
    made = list(zip(rows.tolist(), filter(None, found), strict=True))
    return sorted(made, key=lambda one: (one[0], matcher.precedence(one[1].pattern)))


def owns(frame: pl.DataFrame, rows: Rows) -> list[Own]:
    """What the headers of some rows say."""
    return [Own(*values) for values in frame.select(Own._fields)[pl.Series(rows, dtype=pl.Int64)].iter_rows()]


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


@stage("progress")
def _progress(texts: _Texts, hits: Rows, numbers: Numbers, matcher: Matcher) -> pl.DataFrame:
    """Steps of the lines that a progress pattern may match, taken out column by column. `hits` has one for each."""
    made = [pl.DataFrame(schema=PROGRESS)]
    held = _held(texts, hits, numbers, matcher)
    for number, mine in _by_pattern(numbers[held.hits]):
        own = held.hits[mine]
        groups = (
            held.messages.gather(mine).str.extract_groups(for_polars(matcher.patterns[number].regex)).struct.unnest()
        )
        columns = {name: _first(groups, name) for name in ("step", "epoch", "rank")}
        part = pl.DataFrame({"row": texts.rows[own], **columns}).cast(pl.Schema(PROGRESS), strict=False)
        made.append(part.filter(pl.col("step").is_not_null() | pl.col("epoch").is_not_null()))
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
