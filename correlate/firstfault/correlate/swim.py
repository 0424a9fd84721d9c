"""Swim lanes of an attempt: who printed when, who fell silent, and what happened on which lane.

A job of few ranks has a lane for each; beyond, a lane holds a host, or several neighbouring hosts. The place where it
began always has a lane of its own. Lines are counted into buckets by the database, finer around the failure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import duckdb

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.folding import fate_of
from firstfault.correlate.model import MACHINE_EVENTS, Moment, Signal, Source
from firstfault.correlate.picture import Lane, Mark, MarkKind, Swim
from firstfault.correlate.states import RankState
from firstfault.correlate.times import Times

RANK_LANES = 128
"""More ranks than this share lanes by host."""
HOST_LANES = 200
"""More hosts than this share lanes with their neighbours."""
_OWN_LANES = 8
_MACHINE_LANES = 24
_MARKS = 12
_BUCKETS = 60_000
_SECOND = 1_000_000_000
LAUNCHERS = frozenset({Event.EXIT, Event.AGENT_KILL, Event.AGENT_REPORT})
"""What launchers say of a rank: it stands on the lane of that rank, as its end."""
_ENDS = frozenset({MarkKind.KILL, MarkKind.EXIT})
_RATES = {MarkKind.ROOT: 0, MarkKind.ERROR: 1, MarkKind.MACHINE: 2, MarkKind.EXIT: 3, MarkKind.ECHO: 4}


class _Placed:
    """Places stamps on the job's clock; those of a wall clock that nothing links as they are printed, and says so."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self.loose: set[str | None] = set()

    def of(self, signal: Signal) -> int | None:
        """Nanosecond of a signal, None where nothing places it."""
        moment = self._times.of(signal)
        if moment is not None or signal.stamp_ns is None or signal.stamp_kind in ("monotonic", "relative"):
            return moment.ns if moment else None
        return self._printed(signal.source, signal.stamp_ns, signal.utc_offset_s)

    def of_source(self, source: Source, stamp_ns: int) -> int | None:
        """Nanosecond of a stamp of a source."""
        moment = self._times.of_source(source, stamp_ns)
        return moment.ns if moment else self._printed(source, stamp_ns, None)

    def _printed(self, source: Source, stamp_ns: int, offset_s: int | None) -> int | None:
        if not (source.clock or "").startswith("wall:"):
            return None
        self.loose.add(source.clock)
        return stamp_ns - (offset_s if offset_s is not None else source.utc_offset_s or 0) * _SECOND


@dataclass(slots=True)
class _Draft:
    """A lane in the making; times in nanoseconds on the aligned clock."""

    name: str
    ranks: list[int] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    root: bool = False
    spans: list[tuple[int, int]] = field(default_factory=list)
    marks: list[tuple[int, MarkKind, str, str, int]] = field(default_factory=list)


def swim_of(
    con: duckdb.DuckDBPyConnection, view: View, root: Candidate | None, failed: Moment | None
) -> tuple[Swim, int | None]:
    """The lanes of one attempt, and the nanosecond of their origin.

    Without a single stamp that a clock places there are none.
    """
    times, clock = view.times, _Placed(view.times)
    moments = [
        ns
        for state in view.states.values()
        for extent in state.extents
        for stamp in (extent.first_ns, extent.last_ns)
        if stamp is not None and (ns := clock.of_source(extent.source, stamp)) is not None
    ]
    if not moments:
        return Swim(unplaced=len(view.states)), None
    begin, end = min(moments), max(moments)
    if failed is not None and begin - 7 * 24 * 3600 * _SECOND < failed.ns < end + 24 * 3600 * _SECOND:
        begin, end = min(begin, failed.ns), max(end, failed.ns)
    else:
        failed = None
    focus = _focus(begin, end, failed, view.usual_step_ns)
    drafts = _drafts(view, root)
    lane_of = {rank: number for number, draft in enumerate(drafts) for rank in draft.ranks}
    for number, start, stop in _activity(con, view, clock, lane_of, focus, (begin, end), len(drafts)):
        drafts[number].spans.append((start, stop))
    for state in view.states.values():
        drafts[lane_of[state.rank]].marks.extend(_rank_marks(state, clock, root, len(drafts) < len(view.states)))
    machines = _machines(view, clock, root, begin, end)
    placed = [draft for draft in drafts if draft.spans or draft.marks or draft.root]
    lanes = tuple(_lane(draft, view, clock, root, begin) for draft in (*machines, *placed))
    last = max([end, *(mark[0] for draft in (*machines, *placed) for mark in draft.marks)])
    swim = Swim(
        origin=times.text(Moment(begin, 0)),
        until=round((last - begin) / _SECOND, 3),
        focus=(round((focus[0] - begin) / _SECOND, 3), round((max(focus[1], last) - begin) / _SECOND, 3)),
        failed_at=round((failed.ns - begin) / _SECOND, 3) if failed else None,
        lanes=lanes,
        unplaced=len(drafts) - len(placed),
    )
    return swim, begin


def _focus(begin: int, end: int, failed: Moment | None, step_ns: int) -> tuple[int, int]:
    """The stretch around the failure: all that follows it, and enough before to see what was usual."""
    if failed is None:
        return begin, end
    tail = end - failed.ns
    lead = max(tail // 3, min(4 * step_ns, max(tail, 60 * _SECOND)), 2 * _SECOND)
    return max(begin, failed.ns - lead), end


def _drafts(view: View, root: Candidate | None) -> list[_Draft]:
    """Lanes for all ranks of the attempt, in the order of ranks."""
    own = set(root.ranks) if root and len(root.ranks) <= _OWN_LANES else set()
    if len(view.states) <= RANK_LANES:
        own = set(view.states)
    hosts: dict[str, list[int]] = defaultdict(list)
    for state in view.states.values():
        if state.rank not in own:
            hosts[state.host or ""].append(state.rank)
    guilty = set(root.hosts) if root else set()
    named = sorted(hosts.items(), key=lambda item: item[1])
    size = max(1, -(-len(named) // HOST_LANES))
    drafts = [_Draft(f"rank {rank}", [rank]) for rank in sorted(own)]
    block: list[tuple[str, list[int]]] = []
    for item in named:
        if item[0] in guilty:
            drafts.append(_block([item]))
            continue
        block.append(item)
        if len(block) == size:
            drafts.append(_block(block))
            block = []
    if block:
        drafts.append(_block(block))
    for draft in drafts:
        draft.hosts.update(host for rank in draft.ranks if (host := view.states[rank].host))
        draft.root = bool(root) and bool(set(draft.ranks) & set(root.ranks if root else ()))
    return sorted(drafts, key=lambda draft: min(draft.ranks))


def _block(block: list[tuple[str, list[int]]]) -> _Draft:
    ranks = sorted(rank for _, some in block for rank in some)
    first, last = block[0][0] or "host unknown", block[-1][0] or "host unknown"
    return _Draft(first if len(block) == 1 else f"{first} to {last}", ranks)


def _activity(
    con: duckdb.DuckDBPyConnection,
    view: View,
    times: _Placed,
    lane_of: dict[int, int],
    focus: tuple[int, int],
    span: tuple[int, int],
    lanes: int,
) -> Iterable[tuple[int, int, int]]:
    """Stretches with lines: lane, first and last nanosecond, on the aligned clock."""
    sources = view.timeline.sources
    clocks: dict[tuple[str | None, int | None], list[int]] = defaultdict(list)
    shifts: dict[tuple[str | None, int | None], int] = {}
    for source in sorted({e.source.id for state in view.states.values() for e in state.extents}):
        clocks[sources[source].clock, sources[source].utc_offset_s].append(source)
    for state in view.states.values():
        for extent in state.extents:
            key = (extent.source.clock, extent.source.utc_offset_s)
            if extent.last_ns is not None and key not in shifts:
                ns = times.of_source(extent.source, extent.last_ns)
                if ns is not None:
                    shifts[key] = ns - extent.last_ns
    if not shifts:
        return
    buckets = max(24, min(240, _BUCKETS // max(lanes, len(shifts))))
    coarse = max(_SECOND, (span[1] - span[0]) // buckets)
    fine = max(_SECOND // 5, (focus[1] - focus[0]) // buckets)
    cuts = [(source, clocks[key][0], focus[0] - shifts[key]) for key in shifts for source in clocks[key]]
    ranks = sorted(lane_of)
    rows = con.execute(
        """
        WITH cuts AS (
            SELECT unnest($1::INTEGER[]) AS source_id, unnest($2::INTEGER[]) AS clock, unnest($3::BIGINT[]) AS cut
        ),
        lanes AS (SELECT unnest($4::INTEGER[]) AS rank, unnest($5::INTEGER[]) AS lane),
        placed AS (
            SELECT n.lane, c.clock, l.near_ns, l.near_ns >= c.cut AS near,
                   (l.near_ns - c.cut) // CASE WHEN l.near_ns >= c.cut THEN $6 ELSE $7 END AS bucket
            FROM line_rows l JOIN cuts c USING (source_id) JOIN lanes n USING (rank)
            WHERE l.near_ns IS NOT NULL AND coalesce(l.attempt, 0) = $8
        )
        SELECT lane, near, clock, min(near_ns), max(near_ns) FROM placed
        GROUP BY lane, near, clock, bucket ORDER BY lane, near, clock, min(near_ns)
        """,
        [*(list(column) for column in zip(*cuts, strict=True)), ranks, [lane_of[one] for one in ranks], fine, coarse,
         view.attempt],
    ).fetchall()  # fmt: skip
    found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for lane, near, source, first, last in rows:
        one, other = (times.of_source(sources[source], stamp) for stamp in (first, last))
        if one is not None and other is not None:
            found[lane].append((one, max(one, other), fine if near else coarse))
    for lane in sorted(found):
        yield from ((lane, first, last) for first, last in _stretches(sorted(found[lane])))


def _stretches(buckets: list[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Buckets (first and last line, width) joined where nothing is silent for longer than usual on their lane."""
    gaps = sorted(after[0] - before[1] for before, after in pairwise(buckets))
    usual = gaps[len(gaps) // 2] if len(gaps) >= 4 else 0
    start, stop, room = buckets[0]
    for first, last, width in buckets[1:]:
        if first > stop + max(2 * width, 2 * room, 3 * usual):
            yield start, stop
            start, stop = first, last
        stop, room = max(stop, last), width
    yield start, stop


def _rank_marks(
    state: RankState, times: _Placed, root: Candidate | None, shared: bool
) -> list[tuple[int, MarkKind, str, str, int]]:
    """What happened to one rank; of each kind the first."""
    found: list[tuple[int, MarkKind, str, str, int]] = []
    who = f"rank {state.rank}: " if shared else ""
    roots = {id(signal) for signal, _ in root.signals} if root else set()

    def mark(signals: Iterable[Signal], kind: MarkKind, word: str) -> None:
        """The first of them with a stamp of its own; one with its neighbour's only where the lane has no other."""
        listed = [signal for signal in signals if kind in _ENDS or id(signal) not in roots]
        for signal in sorted(listed, key=lambda one: not one.own_stamp):
            ns = times.of(signal)
            if ns is None or (found and not signal.own_stamp):
                continue
            about = "" if signal.own_stamp else " (time of the line before it)"
            said = f"{who}{word}: {_said(signal)}{about}"
            found.append((ns, kind, said, signal.source.path, signal.line))
            return

    for signal, why in root.signals if root else ():
        ns = times.of(signal)
        if signal.rank == state.rank and signal.event not in LAUNCHERS and ns is not None:
            kind = MarkKind.ROOT if root and state.rank in root.ranks else MarkKind.ECHO
            found.append((ns, kind, f"{who}{why}: {_said(signal)}", signal.source.path, signal.line))
    if root and state.rank in root.ranks and not found:
        found.extend(_last_line(state, times, who))
    mark(state.own, MarkKind.ERROR, "an error of its own")
    mark(state.derived, MarkKind.ECHO, "only follows")
    mark(state.secondary, MarkKind.ECHO, "after its peers were lost")
    mark((one.signal for one in state.exits if one.killed), MarkKind.KILL, "ended by its launcher")
    mark((one.signal for one in state.exits if not one.killed), MarkKind.EXIT, f"exit code {state.exit_code}")
    mark(state.completed, MarkKind.DONE, "a good end")
    saved = [signal for signal in state.phases if (signal.fact or "").startswith("checkpoint-end")]
    mark(reversed(saved), MarkKind.SAVED, "checkpoint")
    return found


def _last_line(state: RankState, times: _Placed, who: str) -> Iterator[tuple[int, MarkKind, str, str, int]]:
    """Where a rank fell silent, for a rank that fails without a word."""
    for last in sorted(state.extents, key=lambda one: (one.last_ns or 0, one.lines, one.source.path), reverse=True)[:1]:
        ns = times.of_source(last.source, last.last_ns) if last.last_ns is not None else None
        if ns is not None:
            said = " ".join(last.last_text.split())[:160]
            yield ns, MarkKind.ROOT, f"{who}its last line: {said}", last.source.path, last.last_line


def _said(signal: Signal) -> str:
    text = " ".join((signal.text or signal.captures.get("text", "")).split())
    return text if len(text) <= 160 else text[:159] + "…"


def _machines(view: View, clock: _Placed, root: Candidate | None, begin: int, end: int) -> list[_Draft]:
    """Lanes for what kernels, drivers, switches, schedulers and platforms record."""
    roots = {id(signal): why for signal, why in root.signals} if root else {}
    drafts: dict[str, _Draft] = {}
    room = max(60 * _SECOND, (end - begin) // 10)
    chosen = [
        signal
        for signal, _ in (root.signals if root else ())
        if signal.rank is None and not (root and root.ranks and signal.event in LAUNCHERS)
    ]
    known = {id(signal) for signal in chosen}
    chosen += [
        signal
        for signal in view.signals
        if signal.event in MACHINE_EVENTS and signal.event is not Event.SLOW and id(signal) not in known
        and not signal.weak and signal.rank is None
    ]  # fmt: skip
    for signal in chosen:
        ns = clock.of(signal)
        if ns is None or not begin - room <= ns <= end + room:
            continue
        host = signal.host or signal.source.host
        kind = {"rank": "log", "job": "log", "node": "log"}.get(signal.source.kind, signal.source.kind)
        if signal.event is Event.SCHED_ACTION:
            host, kind = None, "scheduler"
        name = f"{kind} of {view.names.canonical(host)}" if host else kind
        if name == "log":
            name = signal.source.path.rpartition("/")[2]
        if name not in drafts and len(drafts) == _MACHINE_LANES:
            continue
        draft = drafts.setdefault(name, _Draft(name))
        if host:
            draft.hosts.add(view.names.canonical(host))
        why = roots.get(id(signal))
        draft.root = draft.root or why is not None
        mark = MarkKind.ROOT if why is not None else MarkKind.MACHINE
        draft.marks.append(
            (max(begin, ns), mark, f"{why or signal.cls}: {_said(signal)}", signal.source.path, signal.line)
        )
    return sorted(drafts.values(), key=lambda draft: (not draft.root, draft.name))


def _lane(draft: _Draft, view: View, clock: _Placed, root: Candidate | None, begin: int) -> Lane:
    fates = Counter(fate_of(view.states[rank], root) for rank in draft.ranks)
    words = [what if len(draft.ranks) == 1 else f"{count}× {what}" for what, count in sorted(fates.items())]
    kept: dict[tuple[MarkKind, int, int, str], tuple[int, MarkKind, str, str, int]] = {}
    for mark in sorted(draft.marks):
        # many ranks of one lane suffer alike: one mark for each kind and second is enough
        extra = mark[4] if len(draft.ranks) <= 1 else 0
        kept.setdefault((mark[1], mark[0] // _SECOND, extra, mark[3] if extra else ""), mark)
    extents = (extent for rank in draft.ranks for extent in view.states[rank].extents)
    marks = sorted(kept.values(), key=lambda one: (_RATES.get(one[1], 5), one))[:_MARKS]
    return Lane(
        name=draft.name,
        ranks=tuple(draft.ranks),
        hosts=tuple(sorted(draft.hosts)),
        fate=", ".join(words),
        root=draft.root,
        loose=bool(clock.loose) and any(extent.source.clock in clock.loose for extent in extents),
        spans=tuple((round((a - begin) / _SECOND, 3), round((b - begin) / _SECOND, 3)) for a, b in draft.spans),
        marks=tuple(
            Mark(round((at - begin) / _SECOND, 3), kind, what, path, line)
            for at, kind, what, path, line in sorted(marks)
        ),
    )
