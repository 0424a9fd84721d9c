"""Candidates from absence: who never came to the collective that the others wait in.

Absence is evidence only where presence would have shown: a rank that was killed before it was due to speak proves
nothing, nor does a rank without a log (refusals 2, 7 and 12 of the causal model).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import log2

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.collectives import Collective
from firstfault.correlate.model import Moment, Signal, parse_ranks

_SECOND = 1_000_000_000


def waiting_moment(view: View) -> Moment | None:
    """When the first rank that waits to the limit began to wait: the time of its line less what it says it waited."""
    if view.waiting_since is not None:
        return view.waiting_since[0]
    starts = []
    for one in view.collectives:
        for signal in one.waiters.values():
            moment = view.times.of(signal)
            waited = signal.number("elapsed_ms") or signal.number("timeout_ms") or 0
            if moment is not None and signal.own_stamp:
                starts.append(Moment(moment.ns - waited * 1_000_000, moment.bound_ns))
    view.waiting_since = (min(starts, default=None),)
    return view.waiting_since[0]


def _place(view: View, ranks: tuple[int, ...]) -> tuple[str, ...]:
    return view.names.rank_hosts(ranks, view.attempt)


def _last_lines(view: View, ranks: tuple[int, ...]) -> list[tuple[Signal, str]]:
    """What silent ranks said last: the phase they had begun."""
    found = []
    for rank in ranks[:8]:
        state = view.states.get(rank)
        if state and state.phases:
            last = max(state.phases, key=lambda one: (one.stamp_ns or 0, one.line))
            found.append((last, f"the last thing that rank {rank} says it began"))
    return found


def absentees(
    view: View, rule: str, ranks: tuple[int, ...], base: float, cls: str = "collective-rank-absent"
) -> Candidate:
    """A candidate that argues from what some ranks did not do; many who are only silent weigh less."""
    penalty = log2(len(ranks)) if len(ranks) > 1 and rule in ("mute", "behind", "unlogged") else 0.0
    return Candidate(
        rule=rule,
        cls=cls,
        entry="pgnccl-watchdog-timeout" if cls == "collective-rank-absent" else None,
        component="rank",
        ranks=ranks,
        hosts=_place(view, ranks),
        base=base - penalty,
        signals=_last_lines(view, ranks),
        moment=waiting_moment(view),
    )


def absent_by_counters(view: View) -> Iterator[Candidate]:
    """Ranks whose own counters, or whose flight recorder, show that they never enqueued what the others wait in."""
    blocked = chains(view)
    for one in view.collectives:
        # who waits in another operation is behind: it waits for somebody itself
        absent = {rank: signal for rank, signal in one.absent.items() if blocked.get(rank, one) is one}
        if not absent or not one.waiters:
            continue
        members = one.group.members or frozenset({*one.absent, *one.waiters})
        ranks = tuple(sorted(absent))
        rule = "absent" if len(ranks) <= max(1, len(members) // 2) else "behind"
        recorded = all(signal.source.kind == "flight-recorder" for signal in absent.values())
        candidate = absentees(
            view, rule, ranks, BASE["nothing-enqueued"] if recorded and rule == "absent" else BASE[rule]
        )
        for rank, signal in sorted(absent.items())[:4]:
            candidate.signals.insert(
                0,
                (
                    signal,
                    f"rank {rank} had enqueued {signal.captures.get('last_enqueued')}, the others wait in #{one.seq}",
                ),
            )
        candidate.for_.append(f"{len(one.waiters)} ranks wait in {one.label}; rank {numbers(ranks)} never enqueued it")
        yield candidate


def last_member(view: View) -> Iterator[Candidate]:
    """The one member of a group that nobody saw in the operation which all its other members wait in, where it lived
    long enough to be told of their time-out: it says nothing of a wait of its own.
    """
    for one in view.collectives:
        rest = one.group.members - set(one.waiters) - set(one.passed)
        if one.seq is None or one.odd or len(one.waiters) < 3 or len(rest) != 1:
            continue
        state = view.states.get(next(iter(rest)))
        if state is None or state.own or state.secondary or not state.extents or state.half_read:
            continue
        told = [signal for signal in state.derived if signal.event is Event.DUMP_SIGNAL]
        if not told or len(told) != len(state.derived):
            continue
        candidate = absentees(view, "last-member", (state.rank,), BASE["last-member"])
        candidate.signals.insert(0, (told[0], f"rank {state.rank} was told of the time-out, and tells of no wait"))
        candidate.for_.append(f"all {len(one.waiters)} other members wait in {one.label}")
        yield candidate


def numbers(ranks: tuple[int, ...]) -> str:
    """Numbers for people, the first eight of them."""
    return ", ".join(map(str, ranks[:8])) + (" ..." if len(ranks) > 8 else "")


def named_absent(view: View) -> Iterator[Candidate]:
    """Ranks that a report names as missing: monitoredBarrier on rank 0, desync debug, RAS."""
    votes: dict[tuple[int, ...], list[Signal]] = {}
    for signal in view.signals:
        if signal.event is not Event.ABSENT or signal.weak:
            continue
        listed = (
            signal.captures.get("ranks")
            or signal.captures.get("pg_ranks")
            or signal.captures.get("comm_ranks")
            or signal.captures.get("peer_rank")
        )
        ranks = tuple(rank for rank in parse_ranks(listed or "") if rank in view.states)
        if ranks and len(ranks) < max(2, len(view.states)):
            votes.setdefault(ranks, []).append(signal)
    for ranks, signals in sorted(votes.items()):
        rest = tuple(sorted(set(view.states) - set(ranks)))
        if len(rest) < len(ranks) and rest in votes:
            continue  # each part waits for the other in an operation of its own: the smaller part is the odd one
        candidate = absentees(view, "named-absent", ranks, BASE["named-absent"])
        candidate.entry = signals[0].entry
        candidate.signals = [(signal, "names who did not come") for signal in signals[:4]] + candidate.signals
        _doubt_root(view, candidate)
        if all(_had_failed(view, signal) for signal in signals):
            candidate.base -= 2.2
            candidate.against.append("those that name them had failed themselves before")
        yield candidate


def _had_failed(view: View, signal: Signal) -> bool:
    """Whether a rank had raised an error of its own before a line: who is missing after that may have left for it."""
    state = view.states.get(signal.rank) if signal.rank is not None else None
    return state is not None and any(
        error.source is signal.source and error.last_line < signal.first_line for error in (*state.own, *state.survived)
    )


def missing_members(view: View) -> Iterator[Candidate]:
    """Ranks that did not come to the barrier behind the set-up of the process group: each that waited says how many had
    come, and they are as many as say so (torch/distributed/distributed_c10d.py, _store_based_barrier).
    """
    waits: dict[str, dict[int, Signal]] = defaultdict(dict)
    for signal in view.signals:
        if signal.event is Event.INIT_FAILURE and "joined" in signal.captures and "world_size" in signal.captures:
            rank = signal.number("rank")
            rank = signal.rank if rank is None else rank
            if rank is not None and signal.number("world_size") == len(view.states):
                waits[signal.captures.get("key", "")].setdefault(rank, signal)
    for _, came in sorted(waits.items()):
        joined = {signal.number("joined") for signal in came.values()}
        absent = tuple(sorted(set(view.states) - set(came)))
        if joined != {len(came)} or not absent or len(absent) > len(came):
            continue
        candidate = absentees(view, "named-absent", absent, BASE["named-absent"])
        first = min(came.values(), key=lambda one: one.place)
        candidate.cls, candidate.entry = first.cls or "rendezvous-timeout", first.entry
        candidate.signals = [(one, f"rank {rank} came, with {len(came)} of all") for rank, one in sorted(came.items())][
            :6
        ]
        candidate.for_.append(f"{len(came)} ranks came to the barrier and all of them say so, the others did not")
        yield candidate


_ID_OF_ROOT = "data-main-process-slow"
"""Whoever waits for NCCL's identifier names the group's first rank, whoever it is that this one waits for itself
(ProcessGroupNCCL.cpp, broadcastUniqueNCCLID).
"""


def _doubt_root(view: View, candidate: Candidate) -> None:
    """A root that published no identifier may have waited for a rank itself: where it says that it lost or awaited
    somebody, or where it says nothing and the log of some rank is not here.
    """
    if candidate.entry != _ID_OF_ROOT:
        return
    roots = [view.states[rank] for rank in candidate.ranks]
    known = view.names.world is not None
    unread = view.unread()
    if any(one.event is not Event.TEARDOWN for state in roots for one in state.derived):
        candidate.against.append(f"rank {roots[0].rank} lost or awaited somebody itself")
    elif (unread or not known) and not any(state.phases for state in roots):
        said = f"the log of rank {numbers(unread)} is not here" if unread else "nothing says how many ranks there were"
        candidate.against.append(f"rank {roots[0].rank} may have waited for another rank itself, and {said}")
    else:
        return
    candidate.base -= 2.0
    candidate.missing = (
        f"the log of rank {numbers(unread)}" if unread else "the logs of all hosts of the job"
    ) + f", and the stack (py-spy) of rank {roots[0].rank} at that time"


def nobody_missing(view: View) -> Iterator[Candidate]:
    """A collective that every member entered alike: nobody is left to blame, the fabric stays as a suspicion."""
    blocked = chains(view)
    for one in view.collectives:
        members = one.group.members
        if one.seq is None or not one.waiters or one.odd or one.absent:
            continue
        if all(blocked.get(rank, one) is not one for rank in one.waiters):
            continue  # all of them wait in another operation, which they entered before
        if members and members <= set(one.waiters):
            candidate = absentees(view, "fabric", (), BASE["fabric"], "collective-slow")
            candidate.component = "network"
            candidate.signals = [
                (signal, f"rank {rank} waits in {one.label}") for rank, signal in sorted(one.waiters.items())[:4]
            ]
            candidate.for_.append(f"all {len(members)} members wait in {one.label} with the same operation")
            candidate.missing = (
                f"whether the kernel of {one.label} had started on every GPU and with which sizes "
                "(flight-recorder dumps or py-spy of all ranks), and the kernel logs and port counters of the hosts"
            )
            yield candidate


def nobody_died(view: View) -> Iterator[Candidate]:
    """Every rank lost a connection, and none failed by itself: both ends of each lived, so it broke between them.

    Who dies prints no loss of a peer; who waits to a limit may wait for anybody.
    """
    states = list(view.states.values())
    hosts = {state.host for state in states}
    if len(states) < 4 or None in hosts or len(hosts) < 2 or len(states) < (view.names.world or 0):
        return
    lost: list[Signal] = []
    for state in states:
        if state.own or state.completed or state.timeouts:
            return
        first = next((one for one in state.derived if one.event is Event.PEER_LOSS), None)
        if first is None or first is not state.derived[0]:
            return
        lost.append(first)
    pairs = {(state.host, _peer_host(view, one)) for state, one in zip(states, lost, strict=True)}
    if not all(peer is not None and peer != host and (peer, host) in pairs for host, peer in pairs):
        return
    fabric = [one for one in lost if one.cls in ("ib-completion-error", "ib-link-failure")]
    candidate = absentees(view, "between", (), BASE["between"], "nccl-socket-failure")
    candidate.cls = (fabric[0].cls if fabric else None) or "nccl-socket-failure"
    candidate.entry = None
    candidate.component = "network"
    candidate.signals = [(signal, f"rank {signal.rank} lost its peer") for signal in lost[:6]]
    candidate.moment = min((moment for one in lost if (moment := view.times.of(one)) is not None), default=None)
    candidate.for_.append(f"all {len(states)} ranks lost a connection to another host, and each end outlived it")
    candidate.missing = "what lies between the hosts: firewall, switch and conntrack logs, and port counters"
    yield candidate


def _peer_host(view: View, signal: Signal) -> str | None:
    captures = signal.captures
    peer = captures.get("peer") or captures.get("peer_host") or captures.get("peer_ip")
    return view.names.host_of_address(peer) if peer else None


def unlogged(view: View) -> Iterator[Candidate]:
    """Ranks of which no line was read, where the others wait."""
    waiting = any(one.waiters for one in view.collectives) or any(state.derived for state in view.states.values())
    world = view.names.world or 0
    missing = sorted({*range(world), *view.states} - {state.rank for state in view.logged()})
    if waiting and missing:
        candidate = absentees(view, "unlogged", tuple(missing), BASE["unlogged"])
        candidate.missing = (
            f"the log of rank {numbers(tuple(missing))} (its tail, or its last enqueued and completed numbers)"
        )
        yield candidate


def chains(view: View) -> dict[int, Collective]:
    """For each waiting rank the collective that it is really blocked in: the one it entered first, by its own clock."""
    blocked: dict[int, tuple[int, Collective]] = {}
    for one in view.collectives:
        for rank, signal in one.waiters.items():
            stamp, waited = signal.stamp_ns, signal.number("elapsed_ms")
            onset = stamp - waited * 1_000_000 if stamp is not None and waited is not None else 1 << 62
            if rank not in blocked or onset < blocked[rank][0]:
                blocked[rank] = (onset, one)
    return {rank: one for rank, (_, one) in blocked.items()}
