"""What is known of one source while its lines come in, batch after batch: counts, open records, signals."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.catalog.matcher import Matcher
from firstfault.catalog.model import Event
from firstfault.ingest.extract.batch import Batch
from firstfault.ingest.extract.records import CHAINS, HEAD, TABLE, Failure, RecordReader, Row
from firstfault.ingest.extract.rows import TEXT_LIMIT, About, Own, SignalRow
from firstfault.ingest.problems import Problem, Severity

T = TypeVar("T")
_BLOCK = 256
_MAX_HITS = 10_000
"""Signals of one pattern in one source; a storm says no more than its beginning."""
_PLAIN = -1
_GENERIC = "python-traceback"


@dataclass(slots=True)
class SourceState:
    """One source. `number` is its number while it is read; final numbers follow when all paths are known."""

    number: int
    path: str
    root: int
    mtime_ns: int
    head: bytes = b""
    kind: str | None = None
    reader: str | None = None
    lines: int = 0
    bytes: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    format_why: str = ""
    digest: str = ""
    signals: list[SignalRow] = field(default_factory=list)
    counts: Counter[int] = field(default_factory=Counter)
    folded: Counter[int] = field(default_factory=Counter)
    folded_lines: list[npt.NDArray[np.int64]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    spans: list[list[int]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def quota(self, pattern: int) -> int:
        """How many more signals of a pattern are kept."""
        return max(_MAX_HITS - self.counts[pattern], 0)

    def note(self, kind: str, severity: Severity, detail: str, line: int | None = None, count: int = 1) -> None:
        """Add a problem of this source, to the one of the same kind where there is one."""
        for at, known in enumerate(self.problems):
            if known.kind == kind:
                first = min((one for one in (known.line, line) if one is not None), default=None)
                self.problems[at] = replace(known, count=known.count + count, line=first)
                return
        self.problems.append(Problem(self.path, kind, severity, detail, line, count, self.path))


def absorb(state: SourceState, reading: RecordReader, batch: Batch, part: int) -> None:
    """Add the lines of one segment of a batch to its source."""
    segment = batch.segments[part]
    start = batch.starts[part]
    stop = start + len(segment.lines)
    state.lines += len(segment.lines)
    known = set()
    for row, hit in _between(batch.hits, start, stop):
        known.add(row)
        if hit.fact is not None and hit.event == Event.NOISE:
            continue
        if state.quota(hit.pattern) > 0:
            state.counts[hit.pattern] += 1
            state.signals.append(replace(hit, line=segment.first_line + row - start))
        else:
            state.folded[hit.pattern] += 1
    beyond = batch.folded.filter(pl.col("row").is_between(start, stop - 1))
    if len(beyond):
        known.update(beyond["row"].to_list())
        state.folded.update(beyond["pattern"].to_list())
        state.folded_lines.append(beyond["row"].unique().to_numpy() + (segment.first_line - start))
    if segment.searched:
        for row, error in _between(batch.errors, start, stop):
            if row not in known and error.text.rstrip() not in CHAINS:
                if state.quota(_PLAIN) > 0:
                    state.counts[_PLAIN] += 1
                    state.signals.append(replace(error, line=segment.first_line + row - start))
                else:
                    state.folded[_PLAIN] += 1
        openers = batch.openers[bisect_left(batch.openers, start) : bisect_left(batch.openers, stop)]
        if openers or reading.busy:
            follow(reading, batch.frame.slice(start, stop - start), [row - start for row in openers])


def _between(rows: Sequence[tuple[int, T]], start: int, stop: int) -> Sequence[tuple[int, T]]:
    return rows[bisect_left(rows, start, key=itemgetter(0)) : bisect_left(rows, stop, key=itemgetter(0))]


def follow(reading: RecordReader, frame: pl.DataFrame, openers: Sequence[int]) -> None:
    """Let a record reader see the lines that matter to it: from a line that opens a record until none is open."""
    columns = frame.select(*Own._fields, "line", "message", "format")
    at, waiting = 0, iter([*openers, len(frame)])
    opener = next(waiting)
    while at < len(frame):
        if not reading.busy:
            while opener < at:
                opener = next(waiting)
            if opener >= len(frame):
                break
            at = max(at, opener)
        for row in _rows(columns.slice(at, _BLOCK)):
            reading.step(row)
            at += 1
            if not reading.busy and at > opener:
                break


def _rows(columns: pl.DataFrame) -> Iterator[Row]:
    for *values, line, message, form in columns.iter_rows():
        own = Own(*values)
        yield Row(line, (own.rank, own.local_rank, own.task, own.host, own.pid), message or "", form is not None, own)


def settle(state: SourceState, matcher: Matcher) -> None:
    """The source is read: join signals with the records they stand in.

    Inside a record only the line with the exception speaks: frames quote source code, and a table repeats itself.
    """
    said: dict[int, list[SignalRow]] = {}
    for signal in state.signals:
        said.setdefault(signal.line, []).append(signal)
    said = {line: _distinct(signals, matcher) for line, signals in said.items()}
    by_line = {line: list(signals) for line, signals in said.items()}
    state.failures = [_trimmed(failure, said) for failure in state.failures]
    for failure in state.failures:
        for line in failure.lines:
            if line <= failure.line or failure.table:
                by_line.pop(line, None)
            elif line in by_line:
                by_line[line] = [one for one in by_line[line] if one.entry != _GENERIC]
    ends = np.array([failure.line for failure in state.failures], dtype=np.int64)
    folded = {line for lines in state.folded_lines for line in ends[np.isin(ends, lines)].tolist()}
    for failure in sorted(state.failures, key=lambda one: (one.line, one.item)):
        entries = [one for one in said.get(failure.line, []) if one.entry is not None and one.entry != _GENERIC]
        made = by_line.setdefault(failure.line, [])
        if failure.item:
            made.append(_item(failure, entries, matcher))
        elif entries:
            made += [_inside(signal, failure) for signal in entries]
        elif failure.line not in folded:
            made.append(_traceback(failure, matcher))
    state.signals = [one for line in sorted(by_line) for one in by_line[line] if not _bare_head(one)]
    state.failures, state.folded_lines = [], []
    for pattern, count in sorted(state.folded.items()):
        name = "errors that no entry explains" if pattern == _PLAIN else f"lines of {matcher.patterns[pattern].id}"
        detail = f"{count} more {name} than the {_MAX_HITS} that are signals"
        state.problems.append(Problem(state.path, "folded", Severity.NOTICE, detail, None, count, state.path))


def _distinct(signals: list[SignalRow], matcher: Matcher) -> list[SignalRow]:
    """One signal for each entry and fact of a line; the entry for any exception only where no other speaks."""
    found: dict[tuple[str | None, str | None, int], list[SignalRow]] = {}
    for signal in signals:
        named = signal.entry is not None or signal.fact is not None
        found.setdefault((signal.entry, signal.fact, 0 if named else len(found)), []).append(signal)
    if any(one.entry is not None and one.entry != _GENERIC and not one.weak for one in signals):
        found = {key: same for key, same in found.items() if key[0] != _GENERIC}
    return [best_of(same, matcher) or same[0] for same in found.values()]


def _trimmed(failure: Failure, said: Mapping[int, list[SignalRow]]) -> Failure:
    """The failure without the lines behind its exception from the first that says something of its own."""
    if failure.table or failure.item:
        return failure
    foreign = [
        line
        for line in failure.lines
        if line > failure.line and any(one.entry != _GENERIC for one in said.get(line, ()))
    ]
    if not foreign:
        return failure
    return replace(failure, lines=[line for line in failure.lines if line < foreign[0]])


def _bare_head(signal: SignalRow) -> bool:
    """Whether a signal stands on the head of a traceback, which says nothing by itself."""
    return signal.entry == _GENERIC and HEAD in signal.text


def _inside(signal: SignalRow, failure: Failure) -> SignalRow:
    """A signal of the catalog on the line of an exception."""
    captures = {**failure.captures, **signal.captures}
    return replace(signal, first_line=failure.lines[0], last_line=failure.lines[-1], captures=captures)


def _traceback(failure: Failure, matcher: Matcher) -> SignalRow:
    """The signal of a traceback that no entry knows. A launcher's own exception only reports its children's."""
    own = failure.captures["exception"].rpartition(".")[2] != TABLE
    generic = next((pattern for pattern in matcher.patterns if pattern.id == _GENERIC), None)
    role = generic.role if generic is not None else None
    return SignalRow(
        line=failure.line,
        event="exception" if own else "agent-report",
        text=failure.text[:TEXT_LIMIT],
        entry=_GENERIC if own else None,
        cls="python-exception" if own else None,
        role=str(role) if own and role is not None else None,
        first_line=failure.lines[0],
        last_line=failure.lines[-1],
        captures=failure.captures,
        own=failure.own,
    )


def _item(failure: Failure, entries: list[SignalRow], matcher: Matcher) -> SignalRow:
    """One failure of a launcher's table: about a rank, not written by it."""
    captures = failure.captures
    best = best_of(entries, matcher)
    if best is None and "exception" in captures:
        best = _traceback(failure, matcher)
    return SignalRow(
        line=failure.line,
        event="agent-report",
        text=failure.text[:TEXT_LIMIT],
        entry=best.entry if best else None,
        cls=best.cls if best else None,
        role=best.role if best else None,
        weak=best.weak if best else False,
        first_line=failure.lines[0],
        last_line=failure.lines[-1],
        captures={**(best.captures if best else {}), **captures},
        own=failure.own,
        about=About(
            rank=_int(captures.get("rank")),
            local_rank=_int(captures.get("local_rank")),
            host=(captures.get("host") or "").partition(".")[0] or None,
            **_when(captures.get("time")),
        ),
    )


def _when(text: str | None) -> dict[str, Any]:
    """The time of a failure as a launcher's table prints it: naive, whole seconds."""
    try:
        moment = datetime.strptime(text or "", "%Y-%m-%d_%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return {}
    return {"stamp_ns": int(moment.timestamp()) * 1_000_000_000, "stamp_kind": "full", "stamp_res_ns": 1_000_000_000}


def best_of(signals: Iterable[SignalRow], matcher: Matcher) -> SignalRow | None:
    """The signal that speaks for its line."""
    found = {signal.pattern: signal for signal in signals if signal.pattern >= 0}
    return found[matcher.best(found)] if found else None


def _int(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
