"""What is known of one source while its lines come in, batch after batch: counts, open records, signals."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.catalog.model import Event
from firstfault.ingest.extract.batch import Batch
from firstfault.ingest.extract.blocks import Row
from firstfault.ingest.extract.partial import Joined
from firstfault.ingest.extract.records import Failure, RecordReader
from firstfault.ingest.extract.rows import Own, SignalRow
from firstfault.ingest.extract.tracebacks import CHAINS
from firstfault.ingest.problems import Problem, Severity
from firstfault.ingest.stages import stage

T = TypeVar("T")
_BLOCKS = (8, 256)
"""Lines that are taken out of the columns at once: at first few, as most records are short, then more."""
MAX_HITS = 10_000
"""Signals of one pattern in one source; a storm says no more than its beginning."""
PLAIN = -1


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
    owned: list[tuple[int, int, Own]] = field(default_factory=list)
    joined: dict[int, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def quota(self, pattern: int) -> int:
        """How many more signals of a pattern are kept."""
        return max(MAX_HITS - self.counts[pattern], 0)

    def note(self, kind: str, severity: Severity, detail: str, line: int | None = None, count: int = 1) -> None:
        """Add a problem of this source, to the one of the same kind where there is one."""
        for at, known in enumerate(self.problems):
            if known.kind == kind:
                first = min((one for one in (known.line, line) if one is not None), default=None)
                self.problems[at] = replace(known, count=known.count + count, line=first)
                return
        self.problems.append(Problem(self.path, kind, severity, detail, line, count, self.path))


@stage("absorb")
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
    parts = batch.parts[np.searchsorted(batch.parts, start) : np.searchsorted(batch.parts, stop)]
    if len(parts) or reading.joiner.busy:
        reading.joiner.feed(batch.raw[start:stop], segment.first_line, (parts - start).tolist())
    if segment.searched:
        for row, error in _between(batch.errors, start, stop):
            if row not in known and error.text.rstrip() not in CHAINS:
                if state.quota(PLAIN) > 0:
                    state.counts[PLAIN] += 1
                    state.signals.append(replace(error, line=segment.first_line + row - start))
                else:
                    state.folded[PLAIN] += 1
        openers = batch.openers[bisect_left(batch.openers, start) : bisect_left(batch.openers, stop)]
        follow(reading, batch.frame.slice(start, stop - start), [row - start for row in openers])


def join(state: SourceState, lines: Sequence[Joined], batch: Batch) -> None:
    """Put lines that came in parts, read as whole ones in `batch`, in the place of their first parts."""
    found: dict[int, list[SignalRow]] = {}
    for row, hit in batch.hits:
        if hit.fact is None or hit.event != Event.NOISE:
            found.setdefault(row, []).append(hit)
    for row, one in enumerate(lines):
        state.joined[one.lines[0]] = batch.frame["message"][row] or ""
        state.spans.append(one.lines)
        own = Own(*batch.frame.select(Own._fields).row(row))
        state.owned += [(line, line, own) for line in one.lines[1:]]
        hits = {hit.pattern for hit in found.get(row, ())}
        if hits:
            parts = set(one.lines)
            state.signals = [hit for hit in state.signals if hit.line not in parts or hit.pattern not in hits]
            state.signals += [replace(hit, line=one.lines[0]) for hit in found[row]]


def _between(rows: Sequence[tuple[int, T]], start: int, stop: int) -> Sequence[tuple[int, T]]:
    return rows[bisect_left(rows, start, key=itemgetter(0)) : bisect_left(rows, stop, key=itemgetter(0))]


@stage("records")
def follow(reading: RecordReader, frame: pl.DataFrame, openers: Sequence[int]) -> None:
    """Let a record reader see the lines that matter to it: from a line that opens a record until none is open."""
    columns = frame.select(*Own._fields, "line", "message", "format")
    at, seen, block, waiting = 0, 0, 0, iter([*openers, len(frame)])
    opener = next(waiting)
    while at < len(frame):
        if not reading.busy:
            while opener < at:
                opener = next(waiting)
            if opener >= len(frame):
                break
            at = max(at, opener)
        if at > seen:
            _look_back(reading, columns, at)
        block = min(max(block * 2, _BLOCKS[0]), _BLOCKS[1]) if at == seen else _BLOCKS[0]
        for row in _rows(columns.slice(at, block), reading.headers):
            reading.step(row)
            at += 1
            if not reading.busy and at > opener:
                break
        seen = at
    if len(frame) > seen:
        _look_back(reading, columns, len(frame))


def _look_back(reading: RecordReader, columns: pl.DataFrame, at: int) -> None:
    """Show the reader the two lines above a place that it jumps to."""
    rows = tuple(_rows(columns.slice(max(at - 2, 0), min(at, 2)), reading.headers))
    reading.last = (*reading.last, *rows)[-2:]


def _rows(columns: pl.DataFrame, headers: frozenset[str]) -> Iterator[Row]:
    for *values, line, message, form in columns.iter_rows():
        own = Own(*values)
        yield Row(
            line, (own.rank, own.local_rank, own.task, own.host, own.pid), message or "", form in headers, own, form
        )
