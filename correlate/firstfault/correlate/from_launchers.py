"""Candidates that belong to no rank: launchers that could not start, rendezvous that nobody joined, configuration
common to all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from firstfault.catalog.model import FALLBACK_ENTRIES, Event, Role
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_machines import host_of_signal
from firstfault.correlate.from_ranks import earliest, error_kind, root_error
from firstfault.correlate.model import Signal
from firstfault.correlate.states import echo_lines_of, is_own_error, is_plain_echo

_LAUNCHER_CLASSES = frozenset(
    {
        "port-in-use",
        "master-unreachable",
        "rendezvous-timeout",
        "agent-failure",
        "store-lost",
        "network-interface-misconfigured",
    }
)

_AGAIN = 3


def ownerless_errors(view: View) -> Iterator[Candidate]:
    """Errors whose rank nothing tells, by kind."""
    loose: list[Signal] = []
    echo_lines = echo_lines_of(view.signals)
    for signal in view.signals:
        if is_plain_echo(signal, echo_lines):
            continue
        if signal.rank is None and is_own_error(signal) and view.later_steps.get(signal.id, (0, 0))[1] < 3:
            loose.append(signal)
    kinds: dict[tuple[str, str, str], list[Signal]] = defaultdict(list)
    for episode in _episodes(loose):
        kinds[error_kind(root_error(episode))].append(root_error(episode))
    for _, signals in sorted(kinds.items()):
        found = _from_errors(view, signals)
        yield _of_rank_zero(view, found) if len(kinds) == 1 else found
    if {cls for cls, _, _ in kinds} <= {"rendezvous-timeout"}:
        yield from _never_reached(view)


_WANTS_ID = re.compile(
    r"\[(\d{1,7})\] is setting up NCCL communicators? and retr(?:ie|ei)ving ncclUniqueIds? from \[0\]"
)
"""ProcessGroupNCCL.cpp: broadcastUniqueNCCLID; the number is the rank in the group."""


def _of_rank_zero(view: View, candidate: Candidate) -> Candidate:
    """Put the only error that no rank owns on rank 0, where the others got no identifier from it before anything ran.

    A number in the upper half of the job exists only in the group of all, where it is the rank.
    """
    waiting = {
        int(match[1])
        for signal in view.signals
        if signal.entry == "pgnccl-uniqueid-get"
        for match in [_WANTS_ID.search(signal.text or "") or _WANTS_ID.search(signal.captures.get("text", ""))]
        if match
    }
    first = view.states.get(0)
    size = view.names.world or len(view.states)
    if first is None or first.own or candidate.common or candidate.component != "job":
        return candidate
    if 0 in waiting or 2 * max(waiting, default=0) < size:
        return candidate
    if len(candidate.hosts) > 1 or (candidate.hosts and first.host not in (None, *candidate.hosts)):
        return candidate
    candidate.ranks, candidate.component = (0,), "rank"
    candidate.hosts = candidate.hosts or view.names.rank_hosts((0,), view.attempt)
    candidate.base += 0.5
    candidate.for_.append(f"{len(waiting)} other ranks got no identifier from rank 0, and none of them raised it")
    return candidate


def _never_reached(view: View) -> Iterator[Candidate]:
    """Warnings that a launcher cannot reach the others, again and again, where nothing ever ran and it says no more.

    Once such a warning is harmless; a host that prints little else never came to the rendezvous.
    """
    if any(state.extents for state in view.states.values()):
        return
    warned: dict[tuple[str, str], list[Signal]] = defaultdict(list)
    for signal in view.signals:
        host = host_of_signal(view, signal)
        if signal.weak and signal.event is Event.INIT_FAILURE and signal.cls in _LAUNCHER_CLASSES and host:
            warned[host, signal.cls or ""].append(signal)
    warning = {host for host, _ in warned}
    everybody = len(warning) > 1 and warning == set(view.names.all_hosts())
    if everybody and len({cls for _, cls in warned}) == 1 and all(len(one) >= _AGAIN for one in warned.values()):
        yield from _nobody_reaches(view, warned)
    if len(warning) != 1:
        return
    (host, cls), signals = max(warned.items(), key=lambda item: (len(item[1]), item[0]))
    if len(signals) >= _AGAIN:
        yield Candidate(
            rule="own-error-ambiguous",
            cls=cls,
            entry=signals[0].entry,
            component="launcher",
            ranks=(),
            hosts=(host,),
            base=BASE["own-error-ambiguous"],
            signals=[(one, f"the launcher of {host} warns again and again") for one in signals[:6]],
            moment=earliest(view, signals),
            for_=[f"{len(signals)} times, and no rank ever printed a line"],
        )


def _nobody_reaches(view: View, warned: dict[tuple[str, str], list[Signal]]) -> Iterator[Candidate]:
    """The same warning again and again on every host: what all of them try to reach is not there."""
    signals = [one for _, listed in sorted(warned.items()) for one in listed]
    yield Candidate(
        rule="own-error-ambiguous",
        cls=signals[0].cls or "master-unreachable",
        entry=signals[0].entry,
        component="job",
        ranks=(),
        hosts=(),
        base=BASE["own-error-ambiguous"],
        signals=[(listed[0], f"the launcher of {host} warns again and again") for (host, _), listed in warned.items()],
        moment=earliest(view, signals),
        for_=[f"{len(signals)} times on {len(warned)} hosts, and no rank ever printed a line"],
    )


def lost_stores(view: View) -> Iterator[Candidate]:
    """The host of the store that the launchers of all others lost, where no rank failed and none lost a peer.

    Its own ranks may go on for a while: it is the process that holds the store which is gone.
    """
    others = _hosts_of_ranks(view)
    for server, hosts in _losers(view, launchers_only=True):
        if any(state.derived and state.host == server for state in view.states.values()):
            continue  # a rank there waited for somebody, and gave up
        if server not in hosts and others - {server} <= set(hosts):
            signals = [one for _, listed in sorted(hosts.items()) for one in listed]
            reason = f"the launchers of all {len(hosts)} other hosts lost it, and no rank had failed"
            yield _lost(view, server, signals, BASE["lost-store"], reason)


def lost_own_store(view: View) -> Iterator[Candidate]:
    """The host of a store that every host lost, its own launcher among them: the store was a process of its own, and it
    ended while its host went on.
    """
    every = _hosts_of_ranks(view) or set(view.names.all_hosts())
    for server, hosts in _losers(view, launchers_only=False, own_too=True):
        agents = [one for one in view.signals if one.entry == _AGENT_LOST and host_of_signal(view, one) == server]
        if server in hosts and every <= set(hosts) and agents:
            signals = [*agents[:2], *(listed[0] for _, listed in sorted(hosts.items()))]
            reason = f"the launcher of {server} itself lost it, and so did all {len(hosts)} hosts"
            yield _lost(view, server, signals, BASE["exit-code"], reason)


_AGENT_LOST = "elastic-rdzv-connection"


def lost_outside_store(view: View) -> Iterator[Candidate]:
    """The host of a store that carries no rank, which the ranks or launchers of every host lost, and which says itself
    that it went down.

    Without a word of its own it may as well have been cut off: then it is a suspicion.
    """
    carrying = _hosts_of_ranks(view)
    for server, hosts in _losers(view, launchers_only=False):
        if server in carrying or not carrying <= set(hosts):
            continue
        own = [one for one in view.timeline.signals if _goes_down(view, one, server)]
        failed = [one for one in view.timeline.signals if _of_server(view, one, server)]
        signals = [listed[0] for _, listed in sorted(hosts.items())]
        reason = f"all {len(hosts)} hosts lost the store on {server}, which carries no rank"
        base = BASE["launcher-error" if own else "peer-common-end"]
        candidate = _lost(view, server, signals, BASE["authored-action"] if failed else base, reason)
        if failed:  # its own word is no echo
            candidate.rule = "launcher-error"
        candidate.signals[:0] = [(one, "the host of the store goes down") for one in own[:3]]
        candidate.signals[:0] = [(one, "what the store itself raised") for one in failed[:3]]
        pods = {pod for one in own if one.event is Event.SCHED_ACTION and (pod := _pod_of(one))}
        if len(pods) == 1:
            candidate.hosts = tuple(pods)
        candidate.moment = earliest(view, [*own, *failed, *signals])
        candidate.missing = f"the log of the store on {server} and its kernel log"
        yield candidate


_SERVICE = re.compile(r"(?:-(?:service|svc|client|headless|server)){1,3}$")
_POD = re.compile(r"\b[Pp]od/([a-z0-9][a-z0-9.-]{0,200})")
_ENDED = frozenset({"k8s-deleted", "k8s-evicted", "k8s-preempted", "k8s-probe-failed", "k8s-emptydir-limit"})
_REPLICA = re.compile(r"(?:-\d{1,4}|-[a-z0-9]{8,10}-[a-z0-9]{5})$")


def _goes_down(view: View, signal: Signal, server: str) -> bool:
    """Whether a line says that the host of a store, or the pod behind the service of that name, was ended."""
    if signal.event is Event.NODE_LOST:
        return not signal.weak and host_of_signal(view, signal) == server
    pod = _pod_of(signal) if signal.event is Event.SCHED_ACTION and signal.entry in _ENDED else None
    return pod is not None and (pod == server or _REPLICA.sub("", pod) == _SERVICE.sub("", server[:250]))


def _of_server(view: View, signal: Signal, server: str) -> bool:
    """Whether a line is an error in the log of the store's own process: that of its host, or one of its name."""
    stem = signal.source.path.rpartition("/")[2].partition(".")[0]
    named = signal.source.host is not None and view.names.canonical(signal.source.host) == server
    return is_own_error(signal) and signal.rank is None and (named or stem == server)


def _pod_of(signal: Signal) -> str | None:
    """The pod that an event is about, also where the line is a row of a list."""
    named = _POD.search(signal.text[:500])
    return signal.captures.get("pod") or (named[1] if named else None)


def _hosts_of_ranks(view: View) -> set[str]:
    return {host for rank in view.states if (host := view.names.host_of(rank, view.attempt))}


def _losers(view: View, *, launchers_only: bool, own_too: bool = False) -> list[tuple[str, dict[str, list[Signal]]]]:
    """For each store that two hosts or more lost, what each of them says; none where a rank failed or waited."""
    if any(state.own or state.timeouts for state in view.states.values()):
        return []
    lost: dict[str, dict[str, list[Signal]]] = defaultdict(lambda: defaultdict(list))
    for signal in view.signals:
        peer = signal.captures.get("peer") or signal.captures.get("server")
        if signal.event is not Event.STORE_LOST or signal.weak or not peer:
            continue
        if launchers_only and signal.rank is not None:
            continue
        server = view.names.host_of_address(peer) or (None if launchers_only else view.names.canonical(peer))
        host = view.names.host_of(signal.rank, view.attempt) if signal.rank is not None else None
        host = host or host_of_signal(view, signal)
        if server and host and (server != host or own_too):
            lost[server][host].append(signal)
    return [(server, hosts) for server, hosts in sorted(lost.items()) if len(hosts) > 1]


def _lost(view: View, server: str, signals: list[Signal], base: float, reason: str) -> Candidate:
    return Candidate(
        rule="lost-store",
        cls="store-lost",
        entry=signals[0].entry,
        component="launcher",
        ranks=(),
        hosts=(server,),
        base=base,
        signals=[(one, f"lost the store on {server}") for one in signals[:6]],
        moment=earliest(view, signals),
        for_=[reason],
    )


def _episodes(signals: list[Signal]) -> Iterator[list[Signal]]:
    """Errors of one log that stand close together: what one process prints of one failure."""
    episode: list[Signal] = []
    for signal in sorted(signals, key=lambda one: one.place):
        if episode and (signal.source is not episode[-1].source or signal.first_line > episode[-1].last_line + 40):
            yield episode
            episode = []
        episode.append(signal)
    if episode:
        yield episode


def _never_joined(view: View) -> list[str]:
    """Hosts with logs but without a word of a launcher: whoever prints that the rendezvous timed out had come to it."""
    came = {host_of_signal(view, one) for one in view.signals if one.cls in _LAUNCHER_CLASSES}
    if None in came:  # whose log that is may be any of them
        return []
    silent = [host for host in view.names.all_hosts() if host not in came]
    if silent:
        return silent
    # the scheduler's list of the job's nodes holds those of which nothing else was collected
    told = (one.host for one in view.timeline.identities if one.how == "host-list" and one.host)
    listed = {view.names.canonical(host) for host in told}
    present = {host for host in came if host is not None} | set(view.names.all_hosts())
    return sorted(listed - present) if present and present < listed else []


def _from_errors(view: View, signals: list[Signal]) -> Candidate:
    signals = sorted(signals, key=lambda one: one.place)
    first = signals[0]
    hosts = sorted({host for one in signals if (host := host_of_signal(view, one))})
    cls = first.cls or "python-exception"
    launcher = cls in _LAUNCHER_CLASSES or first.source.kind == "launcher"
    ambiguous = all(one.role is Role.AMBIGUOUS for one in signals)
    fallback = first.entry is None or first.entry in FALLBACK_ENTRIES
    if ambiguous:
        rule = "own-error-ambiguous"
    elif launcher and not fallback:
        rule = "launcher-error"
    else:
        rule = "own-error"
    every = view.names.all_hosts()
    if cls == "rendezvous-timeout":
        hosts = _never_joined(view)
    candidate = Candidate(
        rule=rule,
        cls=cls,
        entry=first.entry,
        component="launcher" if launcher else "job",
        ranks=(),
        hosts=tuple(hosts) if len(hosts) == 1 or (len(hosts) < len(every)) else (),
        base=BASE[rule] - (0.4 if fallback and rule == "own-error" else 0.0),
        signals=[
            (one, "an error of the launcher" if launcher else "an error whose rank the log does not tell")
            for one in signals[:6]
        ],
        moment=earliest(view, signals),
    )
    copies = len({(one.source.id, one.line) for one in signals})
    world = len(view.states)
    if world > 1 and world <= copies <= 3 * world and first.event is not Event.NODE_FAULT:
        candidate.common = True
        candidate.for_.append(f"it is printed {copies} times, as often as there are ranks")
    return candidate
