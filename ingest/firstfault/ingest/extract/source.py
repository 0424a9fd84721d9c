"""What is known of one source while its lines come in, batch after batch: counts, open records, signals."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, TypeVar

import polars as pl

from firstfault.catalog.matcher import Matcher
from firstfault.ingest.extract.batch import Batch
from firstfault.ingest.extract.records import HEAD, TABLE, Failure, RecordReader, Row, merged
from firstfault.ingest.extract.rows import TEXT_LIMIT, About, Own, RecordRow, SignalRow
from firstfault.ingest.problems import Problem, Severity

T = TypeVar("T")
_BLOCK = 256
_MAX_PLAIN = 5000


@dataclass(slots=True)
class SourceState:
    """One source. `number` is its number inside the worker; paths get their final numbers when all are known."""

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
    digest: str = ""
    identified: bool = False
    signals: list[SignalRow] = field(default_factory=list)
    records: list[RecordRow] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    plain: int = 0
    reading: RecordReader = field(default_factory=RecordReader)


def absorb(state: SourceState, batch: Batch, part: int) -> None:
    """Add the lines of one segment of a batch to its source."""
    segment = batch.segments[part]
    start = batch.starts[part]
    stop = start + len(segment.lines)
    state.lines += len(segment.lines)
    known = set()
    for row, hit in _between(batch.hits, start, stop):
        state.signals.append(replace(hit, line=segment.first_line + row - start))
        known.add(row)
    for row, error in _between(batch.errors, start, stop):
        if row in known:
            continue
        state.plain += 1
        if state.plain <= _MAX_PLAIN:
            state.signals.append(replace(error, line=segment.first_line + row - start))
    if segment.searched:
        openers = batch.openers[bisect_left(batch.openers, start) : bisect_left(batch.openers, stop)]
        if openers or state.reading.busy:
            _records(state, batch.frame.slice(start, stop - start), [row - start for row in openers])


def _between(rows: Sequence[tuple[int, T]], start: int, stop: int) -> Sequence[tuple[int, T]]:
    return rows[bisect_left(rows, start, key=itemgetter(0)) : bisect_left(rows, stop, key=itemgetter(0))]


def _records(state: SourceState, frame: pl.DataFrame, openers: list[int]) -> None:
    columns = frame.select(*Own._fields, "line", "message", "format")
    at, waiting = 0, iter([*openers, len(frame)])
    opener = next(waiting)
    while at < len(frame):
        if not state.reading.busy:
            while opener < at:
                opener = next(waiting)
            # the two lines before a head may say that it belongs to an earlier one
            at = max(at, opener - 2)
            if opener >= len(frame):
                break
        for _ in state.reading.feed(_rows(columns.slice(at, _BLOCK))):
            at += 1
            if not state.reading.busy and at > opener:
                break


def _rows(columns: pl.DataFrame) -> Iterator[Row]:
    for *values, line, message, form in columns.iter_rows():
        own = Own(*values)
        yield Row(line, (own.rank, own.local_rank, own.task, own.host, own.pid), message or "", form is not None, own)


def settle(state: SourceState, matcher: Matcher) -> None:
    """The source is read: join signals with the records they stand in.

    Inside a record only the line with the exception speaks: frames quote source code, and a table repeats itself.
    """
    reading = state.reading
    reading.finish()
    said: dict[int, list[SignalRow]] = {}
    for signal in state.signals:
        said.setdefault(signal.line, []).append(signal)
    by_line = {line: list(signals) for line, signals in said.items()}
    for failure in reading.failures:
        for line in failure.lines:
            by_line.pop(line, None)
    for failure in sorted(reading.failures, key=lambda one: (one.line, one.item)):
        own = said.get(failure.line, [])
        entries = [signal for signal in own if signal.entry is not None and signal.entry != "python-traceback"]
        made = by_line.setdefault(failure.line, [])
        if failure.item:
            made.append(_item(failure, entries, matcher))
        elif entries:
            made += [_inside(signal, failure) for signal in entries]
        else:
            made.append(_traceback(failure))
    state.signals = [signal for line in sorted(by_line) for signal in by_line[line] if HEAD not in signal.text[:200] or signal.entry != "python-traceback"]
    state.records = [RecordRow(tuple(lines)) for lines in reading.spans]
    if state.plain > _MAX_PLAIN:
        left = state.plain - _MAX_PLAIN
        detail = f"{left} more lines of level ERROR that no entry explains are in `lines` only"
        state.problems.append(Problem(state.path, "folded", Severity.NOTICE, detail, count=left, source=state.path))


def _inside(signal: SignalRow, failure: Failure) -> SignalRow:
    """A signal of the catalog on the line of an exception."""
    return replace(
        signal,
        first_line=failure.lines[0],
        last_line=failure.lines[-1],
        captures=merged(signal.captures, failure.captures),
    )


def _traceback(failure: Failure) -> SignalRow:
    """The signal of a traceback whose exception no entry knows. A launcher's own exception only reports its children's."""
    known = failure.captures["exception"].rpartition(".")[2] != TABLE
    return SignalRow(
        line=failure.line,
        event="exception" if known else "agent-report",
        text=failure.text[:TEXT_LIMIT],
        entry="python-traceback" if known else None,
        cls="python-exception" if known else None,
        role="initiating" if known else None,
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
        best = _traceback(failure)
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
        captures=merged(best.captures, captures) if best else captures,
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
