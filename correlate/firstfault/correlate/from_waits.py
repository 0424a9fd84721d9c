"""Candidates from absence: who never came to the collective that the others wait in, who called something else, which
host fell silent.

Absence is evidence only where presence would have shown: a rank that was killed before it was due to speak proves
nothing, nor does a rank without a log (refusals 2, 7 and 12 of the causal model).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log2

from firstfault.catalog.model import Event, Role
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.collectives import WORLD, Collective
from firstfault.correlate.exits import Exit
from firstfault.correlate.from_ranks import told_to_end
from firstfault.correlate.model import Moment, Signal, parse_ranks
from firstfault.correlate.states import RankState

_SECOND = 1_000_000_000
_FINGERPRINT = re.compile(
    r"Rank (\d{1,9}) is running collective: CollectiveFingerPrint\((?:SequenceNumber=\d{1,20}, ?)?"
    r"(OpType=\w{1,40}(?:, TensorShape=\[[\d, ]{0,300}\])?(?:, TensorDtypes=\w{0,40})?)"
)


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


def _absentees(
    view: View, rule: str, ranks: tuple[int, ...], base: float, cls: str = "collective-rank-absent"
) -> Candidate:
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
        candidate = _absentees(
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
        candidate.for_.append(f"{len(one.waiters)} ranks wait in {one.label}; rank {_list(ranks)} never enqueued it")
        yield candidate


def _list(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks[:8])) + (" ..." if len(ranks) > 8 else "")


def odd_operations(view: View) -> Iterator[Candidate]:
    """Ranks that called another operation, or the same with another size, than the rest of the group."""
    for one in view.collectives:
        if not one.odd:
            continue
        ranks = tuple(sorted(one.odd))
        candidate = _absentees(view, "odd-operation", ranks, BASE["odd-operation"], "collective-desync")
        candidate.entry = None
        usual = Counter(one.ops.values()).most_common(1)[0][0]
        candidate.signals = [
            (signal, f"rank {rank} called {one.ops[rank]}, the others {usual}")
            for rank, signal in sorted(one.odd.items())[:4]
        ]
        candidate.for_.append(f"in {one.label} rank {_list(ranks)} called {one.ops[ranks[0]]}, the others {usual}")
        yield candidate
    yield from _fingerprints(view)
    yield from _raised_desync(view)


def _raised_desync(view: View) -> Iterator[Candidate]:
    """A library that found two calls of different sizes: it says that they differ, not which of the two is the odd
    one.
    """
    raised = [
        signal
        for signal in view.signals
        if signal.event is Event.DESYNC
        and signal.role is Role.INITIATING
        and not signal.weak
        and signal.rank is not None
        and "CollectiveFingerPrint" not in signal.text
    ]
    if not raised:
        return
    ranks = sorted({signal.rank for signal in raised if signal.rank is not None})
    candidate = _absentees(view, "raised-desync", (), BASE["raised-desync"], "collective-desync")
    candidate.entry = raised[0].entry
    candidate.component = "job"
    candidate.moment = min((moment for one in raised if (moment := view.times.of(one)) is not None), default=None)
    candidate.signals = [(signal, "its call does not fit what its peer sent") for signal in raised[:4]]
    candidate.for_.append(f"rank {_list(tuple(ranks))} received what does not fit its call")
    candidate.missing = (
        f"which collective each rank was in (py-spy stacks or flight-recorder dumps); rank {ranks[0]} and the rank "
        "that sends to it called different ones"
    )
    yield candidate


def _fingerprints(view: View) -> Iterator[Candidate]:
    seen: dict[int, str] = {}
    lines: dict[int, Signal] = {}
    every: list[Signal] = []
    for signal in view.signals:
        if signal.event is not Event.DESYNC or "CollectiveFingerPrint" not in signal.text:
            continue
        every.append(signal)
        for match in _FINGERPRINT.finditer(signal.text):
            seen.setdefault(int(match[1]), match[2])
            lines.setdefault(int(match[1]), signal)
        if signal.rank is not None:
            lines[signal.rank] = signal
    votes = Counter(seen.values())
    if len(votes) < 2:
        return
    (top, most), *others = votes.most_common()
    rest = sum(count for _, count in others)
    if most <= rest:
        ranks: tuple[int, ...] = ()
        base = BASE["own-error-ambiguous"]
    else:
        ranks = tuple(sorted(rank for rank, print_ in seen.items() if print_ != top))
        base = BASE["odd-operation"] + 0.6
    candidate = _absentees(view, "odd-operation", ranks, base, "collective-desync")
    candidate.entry = every[0].entry
    evidence = [lines[rank] for rank in ranks if rank in lines] + every
    candidate.signals = [(signal, "compares what two ranks called") for signal in dict.fromkeys(evidence)][:6]
    candidate.moment = min((m for s in every if (m := view.times.of(s)) is not None), default=None)
    if ranks:
        candidate.for_.append(f"{most} ranks called the same, rank {_list(ranks)} something else")
    else:
        candidate.missing = (
            "which of the two operations the step should have called at that point "
            "(its source, or a flight recorder of a sister group)"
        )
    yield candidate


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
        candidate = _absentees(view, "named-absent", ranks, BASE["named-absent"])
        candidate.entry = signals[0].entry
        candidate.signals = [(signal, "names who did not come") for signal in signals[:4]] + candidate.signals
        yield candidate


def mute_ranks(view: View) -> Iterator[Candidate]:
    """Ranks that say nothing of a failure while all others do, and that had the time to."""
    told = [one for one in view.signals if one.event is Event.SIGNAL_RECEIVED and one.rank is None]
    echoing = [
        state for state in view.states.values() if state.derived or (state.secondary and not _ended(state, told))
    ]
    mute = [state for state in view.logged() if state.silent]
    if not echoing or not mute:
        return
    by_host: dict[str | None, list[RankState]] = {}
    for state in mute:
        by_host.setdefault(state.host, []).append(state)
    silent = silent_hosts(view, by_host)
    yield from silent
    covered = {rank for one in silent for rank in one.scope_ranks}
    tiers: dict[int, list[RankState]] = {}
    for state in mute:
        if state.rank not in covered:
            tiers.setdefault(_tier(view, state, echoing), []).append(state)
    best = max(tiers, default=0)
    if best <= 0:
        return
    chosen = tiers[best]
    if len(chosen) > max(1, len(view.logged()) // 2):
        return
    ranks = tuple(sorted(state.rank for state in chosen))
    left_early = best == 3
    candidate = _absentees(view, "mute", ranks, BASE["mute"] + (0.4 if left_early else 0.2 if best == 2 else 0.0))
    unread = tuple(state.rank for state in view.states.values() if not state.logged)
    if best == 1 and unread:
        candidate.base -= 1.0
        candidate.against.append(f"rank {_list(unread)} left no log at all")
        candidate.missing = f"the log of rank {_list(unread)}, and the launchers': which process ended first, and how"
    elif best == 1 and told_to_end(view):
        candidate.base -= 1.0
        candidate.against.append("launchers were told to end from outside, and whoever they end need not say a word")
        candidate.missing = "who sent the signal: the scheduler's record of the job (sacct, slurmctld, kubelet events)"
    for state in chosen[:6]:
        extent = state.last_extent(view.times)
        if extent:
            candidate.for_.append(f"rank {state.rank} prints nothing after {extent.source.path}:{extent.last_line}")
        for end in state.exits[:1]:
            candidate.support(end.signal, "it was still there when its launcher ended it")
    _died_unnamed(view, candidate)
    _somebody_left_first(view, candidate)
    for one in view.collectives:
        for rank, signal in sorted(one.waiters.items())[:2]:
            candidate.support(signal, f"rank {rank} waits in {one.label}")
    if not candidate.signals:
        for state in echoing[:2]:
            candidate.support(
                state.derived[0] if state.derived else state.secondary[0], f"rank {state.rank} lost or awaited a peer"
            )
    yield candidate


def _ended(state: RankState, told: list[Signal]) -> bool:
    """Whether all that a rank raised stands behind its launcher's word that it was told to end."""
    return all(
        any(one.source is error.source and one.line < error.first_line for one in told) for error in state.secondary
    )


def _unnamed_death(view: View, host: str | None) -> Exit | None:
    """A launcher's report that a child of a host died by a signal, without saying which."""
    forced = any(one.forced and one.host == host for one in view.exits)
    for one in view.exits:
        if one.signal.attempt != view.attempt or one.ranks or one.killed or one.host != host:
            continue
        if forced and one.died_by == 9:  # the launcher's own doing
            continue
        # a scheduler lists every task it ended itself; only a launcher's word about one child tells of a death
        if "tasks" in one.signal.captures or "task" in one.signal.captures:
            continue
        if one.died_by in (9, 11, 7, 4):
            return one
    return None


def _died_unnamed(view: View, candidate: Candidate) -> None:
    """A death without a name, and one rank of that host that says nothing: that one."""
    if len(candidate.ranks) != 1 or len(candidate.hosts) != 1:
        return
    one = _unnamed_death(view, candidate.hosts[0])
    if one is None:
        return
    candidate.rule = "killed-by-signal"
    candidate.cls = "process-killed" if one.died_by == 9 else "process-segfault"
    candidate.entry = "process-sigkill" if one.died_by == 9 else "process-segfault"
    candidate.base = BASE["killed-by-signal"] + 0.6
    candidate.signals.insert(0, (one.signal, f"its launcher saw a child of {one.host} die by signal {one.died_by}"))


def _somebody_left_first(view: View, candidate: Candidate) -> None:
    """A rank that ended by itself and had lost nobody is what the others wait for, rather than one that just stands
    still.
    """
    for state in view.states.values():
        lost = any(one.event in (Event.PEER_LOSS, Event.COLL_TIMEOUT, Event.STORE_LOST) for one in state.derived)
        by_itself = any(one.code not in (None, 0) and not one.killed for one in state.exits)
        if state.rank not in candidate.ranks and by_itself and not lost:
            candidate.base -= 1.5
            candidate.against.append(f"rank {state.rank} ended by itself and had lost nobody before")
            return


def _tier(view: View, state: RankState, echoing: list[RankState]) -> int:
    """How well a silent rank fits: 3 left early by itself, 2 alive when the others had already given up, 1 just silent,
    0 killed first.
    """
    siblings = [other for other in view.states.values() if other.host == state.host and other.rank != state.rank]
    reported = [other for other in siblings if other.exits]
    if not state.exits:
        if state.completed:
            return 3
        # a report that names no rank may be about this one
        nameless = any(not one.ranks and one.host == state.host for one in view.exits)
        return 3 if reported and state.host is not None and not nameless else 1
    if not state.killed:
        return 1 if state.exit_code == 0 else 0
    kill = next((one.signal for one in state.exits if one.killed), None)
    logged = view.logged()
    few = sum(one.silent for one in logged) <= max(1, len(logged) // 8)
    for other in echoing:
        # of a death NCCL tells only those that have a socket to it: where several are silent, they had nothing to say
        if not few and not other.timeouts and any((one.entry or "").startswith("nccl") for one in other.derived):
            continue
        for signal in other.derived[:3]:
            if not signal.own_stamp:
                continue  # how long after its neighbour it was printed is open
            gap = view.times.same_clock_gap(signal, kill) if kill else None
            if gap is None and kill is not None:
                said, ended = view.times.of(signal), view.times.of(kill)
                gap = ended.ns - ended.bound_ns - said.end_ns if said and ended else None
            if gap is not None and signal.event is Event.COLL_TIMEOUT and gap >= 0:
                return 2
            if gap is not None and gap > 2 * _SECOND:
                return 2
    waited = [other for other in echoing if other.timeouts]
    if waited and len(waited) >= len(echoing) / 2:
        return 2
    return 1 if _unnamed_death(view, state.host) else 0


def silent_hosts(view: View, mute_by_host: dict[str | None, list[RankState]]) -> list[Candidate]:
    """Hosts all of whose logged ranks stop together while ranks elsewhere wait, and of which nothing follows."""
    found = []
    hosts = {state.host for state in view.logged() if state.host}
    for host, states in sorted(mute_by_host.items(), key=lambda item: item[0] or ""):
        of_host = [state for state in view.logged() if state.host == host]
        if host is None or len(hosts) < 2 or len(states) != len(of_host):
            continue
        if any(state.exits or state.completed for state in states):
            continue
        elsewhere = [
            state
            for state in view.states.values()
            if state.host not in (host, None) and (state.derived or state.secondary)
        ]
        # who prints no steps while others of its host do has been silent since its start
        speaking = [state for state in states if state.progress is not None] or states
        ends = [ns for state in speaking if (ns := _last_ns(view, state)) is not None]
        steps = {state.last_step for state in states if state.last_step is not None}
        together = len(ends) >= 1 and max(ends) - min(ends) <= 3 * _SECOND and len(steps) <= 1
        others = {state.host for state in view.logged() if state.host not in (host, None)}
        if not elsewhere or not together or {state.host for state in elsewhere} != others:
            continue
        if _speaks_later(view, host, max(ends)) or not _waits_for(view, elsewhere, max(ends)):
            continue
        if _closed_its_end(view, host, elsewhere):
            continue
        ranks = view.names.ranks_of_host(host, view.attempt)
        alone = len(of_host) == 1
        candidate = Candidate(
            rule="silent-host",
            cls="host-down",
            entry="host-silent" if not alone else None,
            component="host",
            ranks=ranks,
            hosts=(host,),
            base=BASE["silent-host"] - (1.0 if alone else 0.0),
            signals=[],
            moment=Moment(max(ends), _SECOND),
            scope_ranks=tuple(state.rank for state in of_host),
            missing=f"the scheduler's state of {host} or its kernel log after that moment "
            "(crash, reboot or loss of the network)",
        )
        candidate.for_.append(
            f"all {len(of_host)} logged ranks of {host} stop within {(max(ends) - min(ends)) / 1e9:.1f} s"
            + (f" at step {steps.copy().pop()}" if steps else "")
            + " and nothing of that host follows"
        )
        for state in elsewhere[:3]:
            signal = state.derived[0] if state.derived else state.secondary[0]
            candidate.support(signal, f"rank {state.rank} on {state.host} waits for or lost its peers")
        found.append(candidate)
    # several hosts that end alike were ended: a crash of one would leave the others waiting
    return found if len(found) == 1 else []


def _last_ns(view: View, state: RankState) -> int | None:
    """Aligned time of a rank's last line; of the last line of the log that it shares with the ranks of its host."""
    own = state.last_ns(view.times)
    if own is not None or state.shared_log is None or state.shared_log.host is None:
        return own
    _, stamp, _ = view.timeline.ends.get(state.shared_log.id, (0, None, ""))
    moment = view.times.of_source(state.shared_log, stamp) if stamp is not None else None
    return moment.ns if moment else None


def _waits_for(view: View, elsewhere: list[RankState], after_ns: int) -> bool:
    """Whether ranks elsewhere went on to wait: a dead host sends nothing, a connection that breaks at once tells of a
    death.
    """
    for state in elsewhere:
        for signal in (*state.derived, *state.secondary):
            if signal.event is Event.COLL_TIMEOUT:
                return True
            moment = view.times.of(signal)
            if moment is not None and moment.ns > after_ns + 5 * _SECOND + moment.bound_ns:
                return True
    return False


def _closed_its_end(view: View, host: str, elsewhere: list[RankState]) -> bool:
    """Whether a host closed a connection: its kernel did so for a process that ended, so the host itself was alive."""
    for state in elsewhere:
        for signal in state.derived:
            peer = signal.captures.get("peer") or signal.captures.get("peer_host") or signal.captures.get("peer_ip")
            closed = signal.event is Event.PEER_LOSS and "closed by" in signal.text
            if closed and peer and (view.names.host_of_address(peer) or peer) == host:
                return True
    return False


def _speaks_later(view: View, host: str, after_ns: int) -> bool:
    """Whether any log of a host has a line well after a moment (its launcher, its kernel)."""
    for signal in view.signals:
        if signal.host is None or view.names.canonical(signal.host) != host or signal.event is Event.CLOCK:
            continue
        moment = view.times.of(signal)
        if signal.event in (Event.AGENT_KILL, Event.AGENT_REPORT, Event.EXIT):
            return True
        if moment is not None and moment.ns > after_ns + 5 * _SECOND + moment.bound_ns:
            return True
    return False


def ran_out_of_data(view: View) -> Iterator[Candidate]:
    """Ranks that came to the end of their data while others still had batches: their last collectives do not match."""
    ended: dict[int, Signal] = {}
    for state in view.states.values():
        last = max((one for one in state.phases), key=lambda one: (one.stamp_ns or 0, one.line), default=None)
        if last is not None and last.fact == "phase-epoch-end":
            ended[state.rank] = last
    others = [state for state in view.logged() if state.rank not in ended]
    suffering = [state for state in others if state.derived or state.secondary or state.killed]
    if not ended or not suffering or len(ended) >= len(view.logged()):
        return
    if not any(state.progress is not None or state.phases for state in others):
        return  # who prints nothing of its progress would not say that its data ended
    if any(one.fact == "phase-epoch-end" and _later(one, ended) for state in others for one in state.phases):
        return
    candidate = _absentees(view, "ran-out", tuple(sorted(ended)), BASE["odd-operation"], "uneven-inputs")
    candidate.entry = "uneven-inputs-hang"
    candidate.signals = [(signal, f"rank {rank} has no batch left") for rank, signal in sorted(ended.items())[:6]]
    candidate.for_.append(f"rank {_list(candidate.ranks)} came to the end of the data, {len(suffering)} others had not")
    yield candidate


def _later(signal: Signal, ended: dict[int, Signal]) -> bool:
    return any((signal.stamp_ns or 0) >= (other.stamp_ns or 0) for other in ended.values())


def stuck_in_completed(view: View) -> Iterator[Candidate]:
    """Ranks that wait in what the others completed: their own operation, or their own device, is the odd one."""
    for one in view.collectives:
        if one.passed and one.waiters and len(one.waiters) <= len(one.passed):
            ranks = tuple(sorted(one.waiters))
            candidate = _absentees(view, "stuck-in-completed", ranks, BASE["stuck-in-completed"], "collective-desync")
            candidate.signals = [
                (signal, f"rank {rank} waits in #{one.seq}") for rank, signal in sorted(one.waiters.items())[:3]
            ]
            candidate.signals += [
                (signal, f"rank {rank} completed it") for rank, signal in sorted(one.passed.items())[:2]
            ]
            yield candidate


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
            candidate = _absentees(view, "fabric", (), BASE["fabric"], "collective-slow")
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
    candidate = _absentees(view, "between", (), BASE["between"], "nccl-socket-failure")
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
    missing = sorted(set(range(world)) - {state.rank for state in view.logged()})
    if waiting and missing:
        candidate = _absentees(view, "unlogged", tuple(missing), BASE["unlogged"])
        candidate.missing = (
            f"the log of rank {_list(tuple(missing))} (its tail, or its last enqueued and completed numbers)"
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


def is_world(one: Collective) -> bool:
    """Whether a collective is one of all ranks."""
    return one.group.key == WORLD
