"""What lines that just came in say: signs of failure, progress, good ends. The same patterns and records as an ingest.

A line that may be a sign opens a window over what its file prints next, so that a traceback is judged by its end; the
window is judged once its file is quiet for a moment, or after `PATIENCE` seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firstfault.catalog import Catalog, load_catalog
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.model import Event, Role
from firstfault.ingest.extract.batch import Segment, read_batch
from firstfault.ingest.extract.hits import Patterns
from firstfault.ingest.extract.records import RecordReader
from firstfault.ingest.extract.rows import SignalRow
from firstfault.ingest.extract.settle import settle
from firstfault.ingest.extract.source import SourceState, absorb
from firstfault.ingest.formats import Formats, SourceFormat
from firstfault.ingest.frame import Chunk, Lines, frame
from firstfault.ingest.identity_paths import PathClaims, claims_of
from firstfault.live.follow import Growth, Key

PATIENCE = 0.75
_BOUND = 65536
_QUOTA = 20
"""Signals of one pattern that one look at one file takes."""
_WINDOW = 256 << 10
_SAMPLE = 200
_SIGNS = (Role.INITIATING, Role.AMBIGUOUS, Role.COLLATERAL)


@dataclass(frozen=True, slots=True)
class Sign:
    """A line that looks like a failure, or like what follows one. `rank` is global, None where nothing says it."""

    path: str
    line: int
    text: str
    entry: str
    cls: str | None
    title: str
    role: str
    rank: int | None
    local_rank: int | None
    host: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """How far a rank, or a log whose rank nothing says, is."""

    who: str
    step: int


@dataclass(slots=True)
class Seen:
    """What one look brought."""

    lines: int = 0
    signs: list[Sign] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    completed: bool = False


@dataclass(slots=True)
class _Source:
    claims: PathClaims
    form: SourceFormat
    sampled: int = 0


@dataclass(slots=True)
class _Window:
    path: str
    first_line: int
    data: bytes
    opened: float
    grown: float


class LogReader:
    """Reads growths of logs with the patterns of a catalog."""

    def __init__(self, catalogs: Sequence[Path] = ()) -> None:
        self.catalog: Catalog = load_catalog(catalogs)
        self._patterns = Patterns(Matcher.load(self.catalog))
        self._formats = Formats()
        self._sources: dict[Key, _Source] = {}
        self._windows: dict[Key, _Window] = {}

    def read(self, growths: Sequence[Growth], now: float) -> Seen:
        """What these growths say, and what windows say that are ripe now (`now` in seconds of any steady clock)."""
        seen = Seen()
        if growths:
            self._batch(growths, now, seen)
        grown = {growth.key for growth in growths}
        for key, window in list(self._windows.items()):
            if key not in grown or now - window.opened >= PATIENCE or len(window.data) > _WINDOW:
                del self._windows[key]
                seen.signs += self._judge(key, window)
        return seen

    def _batch(self, growths: Sequence[Growth], now: float, seen: Seen) -> None:
        framed = [frame(Chunk(growth.data, 0)) for growth in growths]
        segments = [
            Segment(number, growth.first_line, lines, self._source(growth, lines).form)
            for number, (growth, lines) in enumerate(zip(growths, framed, strict=True))
        ]
        batch = read_batch(segments, self._formats, self._patterns, _BOUND, lambda source, pattern: _QUOTA)
        opened: dict[int, int] = {}
        sources = batch.frame["source"]
        for row, hit in batch.hits:
            number = int(sources[row])
            if hit.event == Event.COMPLETION and not (hit.fact or "").startswith("complete-hint"):
                seen.completed = True
            elif _is_sign(hit):
                opened.setdefault(number, row - batch.starts[number])
        for row in batch.openers:
            number = int(sources[row])
            opened[number] = min(opened.get(number, row), row - batch.starts[number])
        for number, growth in enumerate(growths):
            self._open(growth, framed[number], opened.get(number), now)
        for row, step, own in batch.progress.select("row", "step", "rank").iter_rows():
            if step is not None:
                number = int(sources[row])
                rank = own if own is not None else batch.frame["rank"][row]
                seen.steps.append(Step(self._who(growths[number], rank), step))
        seen.lines += len(batch.frame)

    def _source(self, growth: Growth, lines: Lines) -> _Source:
        source = self._sources.get(growth.key)
        if source is None or growth.fresh:
            source = self._sources[growth.key] = _Source(claims_of(growth.path), self._sniff(growth, lines))
        elif source.sampled < _SAMPLE:
            source.form = self._sniff(growth, lines)
        source.sampled += len(lines)
        return source

    def _sniff(self, growth: Growth, lines: Lines) -> SourceFormat:
        ends = lines.ends[:_SAMPLE].tolist()
        starts = [0, *(end + 1 for end in ends[:-1])]
        sample = [
            lines.text[a : min(b, a + 4096)].decode("utf-8", "replace") for a, b in zip(starts, ends, strict=True)
        ]
        return self._formats.sniff(sample, growth.path)

    def _open(self, growth: Growth, lines: Lines, row: int | None, now: float) -> None:
        """Let the window of a file grow, or open one at a row."""
        window = self._windows.get(growth.key)
        if window is not None and not growth.fresh:
            window.data += growth.data
            window.grown = now
        elif row is not None:
            data = growth.data[int(lines.offsets[row]) :]
            self._windows[growth.key] = _Window(growth.path, growth.first_line + row, data, now, now)

    def _judge(self, key: Key, window: _Window) -> list[Sign]:
        source = self._sources[key]
        state, records = SourceState(0, window.path, 0, 0), RecordReader()
        segment = Segment(0, window.first_line, frame(Chunk(window.data, 0)), source.form)
        batch = read_batch([segment], self._formats, self._patterns, _BOUND, lambda source, pattern: _QUOTA)
        absorb(state, records, batch, 0)
        records.finish()
        state.failures, state.spans = records.failures, records.spans
        settle(state, self._patterns.matcher)
        return [self._sign(window.path, source.claims, one) for one in state.signals if _is_sign(one)]

    def _sign(self, path: str, claims: PathClaims, one: SignalRow) -> Sign:
        entry = self.catalog.entries.get(one.entry or "")
        own, about = one.owner or one.own, one.about
        rank = about.rank if about is not None and about.rank is not None else own.rank
        local = own.local_rank if own.local_rank is not None else claims.local_rank
        host = (about.host if about is not None else None) or own.host
        return Sign(
            path=path,
            line=one.line,
            text=one.text.strip(),
            entry=one.entry or "",
            cls=one.cls,
            title=entry.title if entry is not None else one.entry or "",
            role=one.role or "",
            rank=rank if rank is not None else claims.rank,
            local_rank=local,
            host=host,
        )

    def _who(self, growth: Growth, rank: int | None) -> str:
        claims = self._sources[growth.key].claims
        known = rank if rank is not None else claims.rank
        return f"rank {known}" if known is not None else growth.path


def _is_sign(one: SignalRow) -> bool:
    return one.entry is not None and one.role in _SIGNS and not one.weak
