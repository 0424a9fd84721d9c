"""Collectives that somebody waits in: one object for each (attempt, process group, sequence number), joined from every
witness.

Witnesses are watchdog lines and their counters, dump-signal lines, flight-recorder records, reports of monitoredBarrier
and of desync debug, and time-outs of gloo, which name no collective. The counters say who is absent, never why: a rank
blocked inside the launch of an operation has not bumped its counter either (ProcessGroupNCCL.cpp).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from firstfault.catalog.model import Event
from firstfault.correlate.model import Signal, parse_ranks
from firstfault.correlate.names import Names
from firstfault.correlate.operations import Call, call_of, odd_ranks, usual_call
from firstfault.correlate.states import RankState

WORLD = "world"
_SANE = 1 << 62


@dataclass(slots=True)
class Group:
    """A process group: its members where something says them, and each member's counters (last enqueued, last
    completed).
    """

    key: str
    members: frozenset[int]
    how: str
    counters: dict[int, tuple[int, int | None, Signal]] = field(default_factory=dict)


@dataclass(slots=True)
class Collective:
    """One operation that ranks wait in."""

    group: Group
    seq: int | None
    waiters: dict[int, Signal] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    absent: dict[int, Signal] = field(default_factory=dict)
    passed: dict[int, Signal] = field(default_factory=dict)
    odd: dict[int, Signal] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name for people: 'ALLREDUCE #413 of world'."""
        name = usual_call(self.calls).op if self.calls else "collective"
        return f"{name}{f' #{self.seq}' if self.seq is not None else ''} of {self.group.key}"


def group_key(signal: Signal) -> str:
    """Name of the process group that a line is about, 'world' for the default group and for lines that name none."""
    captures = signal.captures
    desc = captures.get("pg_desc", "")
    if desc == "default_pg":
        return WORLD
    name = captures.get("pg_guid") or captures.get("pg_name")
    if name is None or (name == "0" and not desc):
        return WORLD
    if name in ("default_pg", "0"):
        return WORLD
    return name


def _line_key(signal: Signal) -> tuple[int, int]:
    return (signal.source.id, signal.line)


def read_collectives(
    signals: list[Signal], states: dict[int, RankState], names: Names
) -> tuple[dict[str, Group], list[Collective]]:
    """Groups and waited-in collectives of one attempt; collectives sorted by group and sequence number."""
    members = _members(signals, names)
    groups: dict[str, Group] = {}

    named = _named_waits(signals)

    def group_of(signal: Signal, rank: int) -> Group:
        key = _split_key(group_key(_naming(signal, rank, named)), rank, members)
        if key not in groups:
            inside, how = members.get(key, (frozenset(), "unknown"))
            if key == WORLD:
                inside, how = frozenset(names.ranks), "every rank"
            groups[key] = Group(key, inside, how)
        return groups[key]

    same_line: dict[tuple[int, int], list[Signal]] = defaultdict(list)
    for signal in signals:
        same_line[_line_key(signal)].append(signal)
    found: dict[tuple[str, int | None], Collective] = {}
    for signal in signals:
        rank = signal.rank
        if rank is None or rank not in states or signal in states[rank].survived:
            continue
        enqueued, completed = signal.number("last_enqueued"), signal.number("last_completed")
        if enqueued is not None and enqueued < _SANE:
            group = group_of(signal, rank)
            done = completed if completed is not None and completed < _SANE else None
            before = group.counters.get(rank)
            if before is None or before[0] <= enqueued:
                group.counters[rank] = (enqueued, done, signal)
        waits = signal.event is Event.COLL_TIMEOUT or (
            signal.event is Event.COLL_STATE and signal.captures.get("state") in ("scheduled", "started")
        )
        if waits:
            group = group_of(signal, rank)
            seq = signal.number("seq")
            one = found.setdefault((group.key, seq), Collective(group, seq))
            first = one.waiters.get(rank)
            if first is None or _detail(signal) > _detail(first):
                one.waiters[rank] = signal
            if call := call_of(signal):
                one.calls.setdefault(rank, call)
    for one in found.values():
        _settle(one)
    return groups, [found[key] for key in sorted(found, key=lambda k: (k[0], -1 if k[1] is None else k[1]))]


_NEAR_LINES = 60


def _names_group(signal: Signal) -> bool:
    return any(signal.captures.get(name) for name in ("pg_guid", "pg_name", "pg_desc", "pg_id"))


def _named_waits(signals: list[Signal]) -> dict[tuple[int, int, str], list[Signal]]:
    """Lines that name both group and sequence number of a wait, by source, rank and number."""
    found: dict[tuple[int, int, str], list[Signal]] = defaultdict(list)
    for signal in signals:
        if signal.rank is not None and signal.captures.get("seq") and _names_group(signal):
            found[(signal.source.id, signal.rank, signal.captures["seq"])].append(signal)
    return found


def _naming(signal: Signal, rank: int, named: dict[tuple[int, int, str], list[Signal]]) -> Signal:
    """The watchdog's first line names no group; what it prints next of the same operation does."""
    if _names_group(signal) or signal.event is not Event.COLL_TIMEOUT:
        return signal
    near = named.get((signal.source.id, rank, signal.captures.get("seq", "")), [])
    closest = min(near, key=lambda one: (abs(one.line - signal.line), one.line), default=None)
    return closest if closest is not None and abs(closest.line - signal.line) <= _NEAR_LINES else signal


def _detail(signal: Signal) -> tuple[int, int, int]:
    """Prefer the line with the time waited, then the one with more captures, then the earlier."""
    return ("elapsed_ms" in signal.captures, len(signal.captures), -signal.line)


_PAIRWISE = frozenset({"SEND", "RECV", "COALESCED"})
"""Operations of two ranks, as ProcessGroupNCCL prints them (OpType, c10d/Work.cpp): the ends of one differ."""


def _settle(one: Collective) -> None:
    """Who is absent, who has passed, who called something else, by the counters and the operations of the group."""
    if one.seq is not None:
        for rank, (enqueued, completed, signal) in sorted(one.group.counters.items()):
            if rank in one.waiters:
                continue
            if completed is not None and completed >= one.seq:
                one.passed[rank] = signal
            elif enqueued < one.seq:
                one.absent[rank] = signal
    # without a sequence number the waits of different operations lie together: nothing to compare; and where one sends
    # another receives, of as much as that pair exchanges
    pairwise = all(call.op in _PAIRWISE for call in one.calls.values())
    if one.seq is not None and len(one.calls) >= 3 and not pairwise:
        one.odd = {rank: one.waiters[rank] for rank in odd_ranks(one.calls) if rank in one.waiters}


def _members(signals: list[Signal], names: Names) -> dict[str, tuple[frozenset[int], str]]:
    """Members of each process group: as flight recorders list them, else from pairs of global and group rank."""
    stated: dict[str, tuple[frozenset[int], str]] = {}
    pairs: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for signal in signals:
        key = group_key(signal)
        if key == WORLD:
            continue
        listed = signal.captures.get("pg_ranks") if signal.event is Event.COLL_STATE else None
        if listed:
            stated[key] = (frozenset(parse_ranks(listed)), "flight recorder")
        pg_rank = signal.number("pg_rank")
        if signal.rank is not None and pg_rank is not None:
            pairs[key].add((signal.rank, pg_rank))
    world = names.world or (max(names.ranks) + 1 if names.ranks else 0)
    for key, known in pairs.items():
        if key not in stated:
            stated.update(_infer(key, known, world))
    return stated


def _infer(key: str, pairs: set[tuple[int, int]], world: int) -> dict[str, tuple[frozenset[int], str]]:
    """Members from (global rank, group rank) pairs: base + stride * group rank, one group or equal blocks of one name.

    Only shapes that all pairs agree with are taken; anything else stays unknown.
    """
    largest = max(group_rank for _, group_rank in pairs)
    size = next((d for d in range(largest + 1, world + 1) if world % d == 0), 0)
    if size <= 1:
        return {}
    strides = {(a - b) // (p - q) for a, p in pairs for b, q in pairs if p > q and a > b and (a - b) % (p - q) == 0}
    for stride in sorted(strides) or [1]:
        bases: dict[int, set[int]] = defaultdict(set)
        for rank, group_rank in pairs:
            bases[rank - stride * group_rank].add(group_rank)
        if any(base < 0 for base in bases):
            continue
        shapes = {base: frozenset(base + stride * i for i in range(size)) for base in bases}
        total = [rank for shape in shapes.values() for rank in shape]
        if len(total) != len(set(total)) or max(total) >= world:
            continue
        if len(shapes) == 1:
            return {key: (next(iter(shapes.values())), "group ranks")}
        return {f"{key}@{base}": (shape, "group ranks") for base, shape in sorted(shapes.items())}
    return {}


def _split_key(key: str, rank: int, members: dict[str, tuple[frozenset[int], str]]) -> str:
    """The block of a group name that several disjoint groups share."""
    if key in members or key == WORLD:
        return key
    for other, (inside, _) in members.items():
        if other.startswith(f"{key}@") and rank in inside:
            return other
    return key
