"""Candidates from silence: ranks and hosts that stop while the others lose or await somebody.

Silence is evidence only where a word was due: a rank that was ended before it had to speak proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_ends import unnamed_death
from firstfault.correlate.from_ranks import told_to_end
from firstfault.correlate.from_waits import absentees, numbers
from firstfault.correlate.model import Moment, Signal, parse_ranks
from firstfault.correlate.states import RankState

_SECOND = 1_000_000_000


def mute_ranks(view: View) -> Iterator[Candidate]:
    """Ranks that say nothing of a failure while all others do, and that had the time to."""
    told = [one for one in view.signals if one.event is Event.SIGNAL_RECEIVED and one.rank is None]
    echoing = [
        state for state in view.states.values() if state.derived or (state.secondary and not _ended(state, told))
    ]
    waiting = {rank for one in view.collectives for rank in one.waiters}
    mute = [state for state in view.logged() if state.silent and state.rank not in waiting]
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
    candidate = absentees(view, "mute", ranks, BASE["mute"] + (0.4 if left_early else 0.2 if best == 2 else 0.0))
    unread = view.unread()
    # who lost a connection lost it to somebody that ended, and a rank that merely stands still closes nothing
    resets = not any(state.timeouts for state in echoing)
    if unread and (best == 1 or (best == 2 and (resets or view.host_unread()))):
        candidate.base -= 1.4
        candidate.against.append(f"rank {numbers(unread)} left no log at all")
        candidate.missing = f"the log of rank {numbers(unread)}, and the launchers': which process ended first, and how"
    elif best == 1 and resets and view.names.world is None:
        candidate.base -= 1.4
        candidate.against.append(
            "a connection broke because somebody ended, and nothing says how many ranks there were"
        )
        candidate.missing = "the number of ranks and their logs, and the launchers': which process ended first, and how"
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


def _died_unnamed(view: View, candidate: Candidate) -> None:
    """A death without a name, and one rank of that host that says nothing: that one."""
    if len(candidate.ranks) != 1 or len(candidate.hosts) != 1:
        return
    one = unnamed_death(view, candidate.hosts[0])
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
        # one that names those it ended, or all that had failed, would have named this one
        whole = len(reported) == len(siblings) or any(other.killed for other in siblings)
        return 3 if reported and whole and state.host is not None and not nameless else 1
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
    return 1 if unnamed_death(view, state.host) or _unnamed_exit(view, state.host) else 0


def _unnamed_exit(view: View, host: str | None) -> bool:
    """Whether a launcher saw a child of a host end by itself with an exit code, without saying which."""
    return any(
        one.signal.attempt == view.attempt and one.host == host and not one.ranks and not one.killed
        for one in view.exits
        if (one.code or 0) > 0 and "tasks" not in one.signal.captures and "task" not in one.signal.captures
    )


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
        if _closed_its_end(view, host, elsewhere) or _partly_seen(view, {state.rank for state in of_host}):
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


def _partly_seen(view: View, ranks: set[int]) -> bool:
    """Whether a report of who is missing leaves some of these out: those came, so their host was there."""
    for signal in view.signals:
        if signal.event is Event.ABSENT and not signal.weak:
            listed = signal.captures.get("ranks") or signal.captures.get("peer_rank") or ""
            if (missing := ranks & set(parse_ranks(listed))) and missing != ranks:
                return True
    return False


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
        # an error without a stamp: its process ended soon after it, by its launcher's clock
        for end in state.exits:
            moment = view.times.of(end.signal) if end.signal.own_stamp and not end.killed else None
            if moment is not None and moment.ns > after_ns + 6 * _SECOND + moment.bound_ns:
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
    # where nobody elsewhere gave up by itself, the first who closed was on this host
    first = [state.derived[0] for state in elsewhere if state.derived]
    return bool(first) and all(one.event is Event.PEER_LOSS and "losed by peer" in one.text for one in first)


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
