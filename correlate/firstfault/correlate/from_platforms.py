"""Candidates from who runs the job: nodes that are declared lost, what schedulers and platforms did, launchers that
were told to end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from firstfault.catalog.model import Event, Role
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.exits import step_is_ended
from firstfault.correlate.from_machines import host_of_signal, usable
from firstfault.correlate.from_ranks import earliest
from firstfault.correlate.model import Signal, short_host
from firstfault.correlate.pods import never_ran, ranks_of_pod, replica_of
from firstfault.correlate.window import Window


def lost_nodes(view: View, window: Window) -> Iterator[Candidate]:
    """Nodes that a scheduler, a platform or their own kernel declares lost."""
    hosts: dict[str, list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if not usable(signal, Event.NODE_LOST) or window.stale(signal) or _before_the_run(view, signal):
            continue
        host = host_of_signal(view, signal)
        for name in (signal.captures.get("hosts") or host or "").replace(",", " ").split():
            hosts[view.names.canonical(name)].append(signal)
    unknown = [host for host in hosts if not view.names.ranks_of_host(host, view.attempt)]
    for host, signals in sorted(hosts.items()):
        ranks = view.names.ranks_of_host(host, view.attempt) or (_left_over(view) if unknown == [host] else ())
        of_the_job = any(one.source.kind in ("launcher", "job", "node", "rank") for one in signals)
        if view.states and not ranks and view.names.all_hosts() and not of_the_job:
            continue
        waited = [rank for rank in ranks if _waited_on(view, rank)]
        yield Candidate(
            rule="node-lost",
            cls=signals[0].cls or "host-down",
            entry=signals[0].entry,
            component="host",
            ranks=ranks,
            hosts=(host,),
            base=BASE["node-lost"]
            - (2.0 if waited else 0.0)
            - (0.6 if all(one.role is Role.AMBIGUOUS for one in signals) else 0.0),
            against=[f"ranks {waited[0]} and others of it went on to wait like everybody else"] if waited else [],
            signals=[(one, "the platform's word on this node") for one in signals[:6]],
            moment=earliest(view, signals),
        )


def _before_the_run(view: View, signal: Signal) -> bool:
    """Whether a node went down and came back before its ranks printed their first line, by the node's own clock."""
    host = host_of_signal(view, signal)
    starts = [
        extent.first_ns
        for state in view.states.values()
        for extent in state.extents
        if extent.first_ns is not None and state.host == host and extent.source.clock == signal.source.clock
    ]
    return signal.stamp_ns is not None and bool(starts) and signal.stamp_ns < min(starts)


def _left_over(view: View) -> tuple[int, ...]:
    """The ranks that nothing places, where they are as many as every known host has."""
    hosts = {host: len(view.names.ranks_of_host(host, view.attempt)) for host in view.names.all_hosts()}
    without = tuple(state.rank for state in view.states.values() if state.host is None)
    return without if set(hosts.values()) == {len(without)} else ()


_FOR_A_TAINT = frozenset({"TaintManagerEviction", "DeletionByTaintManager"})
"""Reasons of the controller that evicts for taints; the node controller taints a node that is not ready."""
_OF_ONE_HOST = frozenset({"pod-evicted", "preempted"})


def _for_lost_node(view: View, action: Signal, lost: list[Signal]) -> bool:
    """Whether a pod was evicted because its toleration for a node that had been lost before ran out.

    A node that is taken is tainted first, and is lost afterwards.
    """
    if action.captures.get("reason") not in _FOR_A_TAINT:
        return False
    host, moment = host_of_signal(view, action), view.times.of(action)
    for one in lost:
        if host is None or host_of_signal(view, one) != host:
            continue
        before = view.times.of(one)
        if one.line < action.line if one.source is action.source else bool(moment and before and before < moment):
            return True
    return False


def authored_actions(view: View, window: Window) -> Iterator[Candidate]:
    """Actions of a scheduler or platform that state their reason."""
    actions: dict[tuple[str, str | None], list[Signal]] = defaultdict(list)
    pods = {pod for one in view.signals if (pod := one.captures.get("pod"))}
    gone = {host for one in view.signals if one.event is Event.NODE_LOST and (host := host_of_signal(view, one))}
    own = {pod for pod in pods if view.names.ranks_of_host(pod, view.attempt)}
    lost = [one for one in view.signals if usable(one, Event.NODE_LOST)]
    for signal in view.signals:
        if usable(signal, Event.SCHED_ACTION) and not window.stale(signal):
            pod = signal.captures.get("pod")
            if own and pod is not None and pod not in own and not never_ran(view, signal):
                continue  # a list of events holds the pods of other jobs, too
            if _for_lost_node(view, signal, lost):
                continue
            of_a_host = signal.source.host is not None and signal.source.kind not in ("scheduler", "events", "job")
            node = signal.captures.get("node") or signal.captures.get("instance")
            ours = node is not None and (not view.states or bool(view.names.ranks_of_host(node, view.attempt)))
            of_a_host = of_a_host or ours
            taken = signal.captures.get("instance")
            of_a_host = of_a_host or (taken is not None and view.names.canonical(taken) in gone)
            placed = pod or signal.cls == "pod-evicted" or (signal.cls == "preempted" and of_a_host)
            place = host_of_signal(view, signal) if placed else None
            actions[(signal.cls or "cancelled-by-user", place)].append(signal)
    _place_notices(view, actions)
    for cls, host in sorted(actions, key=str):
        # who takes a machine evicts its pods
        if cls == "preempted" and host is not None and ("pod-evicted", host) in actions:
            actions[cls, host].extend(actions.pop(("pod-evicted", host)))
    for (cls, host), signals in sorted(actions.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        ranks = view.names.ranks_of_host(host, view.attempt) if host else ()
        if host and len(ranks) == len(view.states):
            ranks = ranks if cls == "pod-evicted" else ()
        sure = [one for one in signals if one.role is Role.INITIATING]
        first = (sure or signals)[0]
        candidate = Candidate(
            rule="authored-action" if sure else "unauthored-action",
            cls=cls,
            entry=first.entry,
            component="scheduler" if not ranks else "host",
            ranks=ranks,
            hosts=(host,) if host and (ranks or host in gone or (cls in _OF_ONE_HOST and not view.states)) else (),
            base=BASE["authored-action"]
            if sure
            else BASE["own-error-ambiguous"]
            - (1.3 if _after_echoes(view, signals) or _by_srun(view, signals) else 0.0)
            - (0.6 if not view.timeline.progress else 0.0),
            signals=[(one, "the scheduler's or platform's own words") for one in (sure or signals)[:6]],
            moment=earliest(view, sure or signals),
        )
        if host and all(never_ran(view, one) for one in signals):
            candidate.rule, candidate.base = "never-ran", BASE["never-ran"]
            candidate.ranks, candidate.hosts, candidate.component = ranks_of_pod(view, host), (host,), "host"
            candidate.for_.append(f"{host} never printed a line, and its brothers never made a step")
        named = {pod for one in signals if (pod := one.captures.get("pod"))}
        if cls in _OF_ONE_HOST and not candidate.hosts and len(named) == 1:
            (pod,) = named
            if (of_pod := replica_of(view, pod)) is not None:
                candidate.ranks, candidate.hosts, candidate.component = of_pod, (short_host(pod),), "host"
        _long_silent(view, candidate)
        lived = [rank for rank in ranks if _waited_on(view, rank)]
        if lived:
            candidate.base -= 2.0
            candidate.against.append(f"rank {lived[0]} of it went on to wait like everybody else")
        yield candidate


def _place_notices(view: View, actions: dict[tuple[str, str | None], list[Signal]]) -> None:
    """A notice that one machine will be taken, printed by that machine's own rank, places what else tells of it."""
    notices = actions.get(("preempted", None), [])
    heard = {
        host
        for one in notices
        if one.rank is not None and (host := view.names.host_of(one.rank, view.attempt)) is not None
    }
    if len(heard) == 1 and len(view.names.all_hosts()) > 1:
        actions[("preempted", heard.pop())].extend(actions.pop(("preempted", None)))


def _long_silent(view: View, candidate: Candidate) -> None:
    """A job that had been silent for long when it was ended had hung before: the end is not what failed first."""
    if candidate.moment is None or candidate.cls not in ("time-limit", "cancelled-by-user"):
        return
    ends = [ns for state in view.logged() if (ns := state.last_progress_ns(view.times)) is not None]
    if not ends:
        return
    silent = candidate.moment.ns - max(ends)
    usual = view.usual_step_ns
    if silent > max(15 * 60 * 1_000_000_000, 20 * usual):
        candidate.base -= 2.6
        candidate.against.append(f"the job had made no progress for {silent / 60e9:.0f} minutes when it was ended")
        candidate.missing = "what the ranks waited for since then: py-spy stacks or flight-recorder dumps of all ranks"


def _waited_on(view: View, rank: int) -> bool:
    """Whether a rank lost or awaited its peers like the others: then it was still there."""
    state = view.states.get(rank)
    return state is not None and any(one.event in (Event.COLL_TIMEOUT, Event.PEER_LOSS) for one in state.derived)


_BY_HAND = (1, 2)
"""Signals of a terminal: it was closed (SIGHUP), or somebody pressed ctrl-c (SIGINT)."""


def signalled_launchers(view: View, window: Window) -> Iterator[Candidate]:
    """A launcher that was told to end while another one lived on: the signal came from outside and began it.

    Where every launcher was told, it is a scheduler or a user ending the whole job, and only their record says which.
    """
    told: dict[str, list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if signal.event is Event.SIGNAL_RECEIVED and signal.rank is None and not signal.weak:
            host = host_of_signal(view, signal)
            if host:
                told[host].append(signal)
    hosts = {host for rank in view.states if (host := view.names.host_of(rank, view.attempt))}
    spared = hosts - set(told)
    # a launcher whose log is not here may have been told as well
    speaking = {one.host for one in view.exits if one.host} | {
        view.names.canonical(source.host)
        for source in view.timeline.sources.values()
        if source.host and source.kind in ("launcher", "node")
    }
    lived = {state.host for state in view.states.values() if state.derived or state.exits or state.completed}
    # a launcher that reports nothing of ranks that failed was gone before them
    lived -= {state.host for state in view.states.values() if state.derived} - {one.host for one in view.exits}
    every_host = all(state.host is not None for state in view.states.values())
    for host, signals in sorted(told.items()):
        alone = len(told) == 1 and bool(spared) and spared <= speaking and spared <= lived and every_host
        by_hand = any(one.number("signal_no") in _BY_HAND for one in signals)
        unhurt = not any(state.own or state.derived for state in view.states.values() if state.host == host)
        candidate = Candidate(
            rule="unauthored-signal",
            cls="cancelled-by-user",
            entry=signals[0].entry,
            component="launcher",
            ranks=(),
            hosts=(host,) if alone or view.names.all_hosts() == (host,) else (),
            base=BASE["own-error-ambiguous"] + 0.5
            if (alone and unhurt) or (by_hand and unhurt)
            else BASE["unauthored-signal"],
            signals=[(one, "this launcher was told to end") for one in signals[:3]],
            moment=earliest(view, signals),
            for_=[f"only the launcher of {host} was told to end, the others lost its ranks"] if alone else [],
            missing="who sent the signal: the scheduler's record of the job, or the shell history of that host",
        )
        _long_silent(view, candidate)
        if by_hand and not view.timeline.progress:
            candidate.base -= 1.5
            candidate.against.append("nothing shows that the job was making progress when it was ended")
        yield candidate


def _by_srun(view: View, signals: list[Signal]) -> bool:
    """Whether a step was cancelled behind srun's own word that it ends it, for a task that had failed."""
    ending = step_is_ended(view.timeline.signals)
    return all(one.line > ending.get(one.source.id, one.line) for one in signals)


def _after_echoes(view: View, signals: list[Signal]) -> bool:
    """Whether ranks had lost or awaited their peers before a scheduler's action that names no reason."""
    moments = [moment for signal in signals if (moment := view.times.of(signal)) is not None]
    for state in view.states.values():
        for echo in state.derived:
            if echo.event is Event.SIGNAL_RECEIVED:
                continue
            when = view.times.of(echo)
            if any(one.source is echo.source and one.line > echo.last_line for one in signals):
                return True
            if when is not None and any(when.surely_before(moment) for moment in moments):
                return True
    return False
