"""Candidates from the network: adapters that report their own failure, and the host that others lost their
connections to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from firstfault.catalog.model import Event, Role
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_machines import host_of_signal, usable
from firstfault.correlate.from_ranks import REACH, earliest, told_to_end
from firstfault.correlate.from_waits import nobody_died
from firstfault.correlate.model import Signal
from firstfault.correlate.states import is_echo
from firstfault.correlate.window import Fit, Window


def link_faults(view: View, window: Window) -> Iterator[Candidate]:
    """Ports, links and adapters that report their own failure, by host."""
    ends = _ends(view, unclosed=True)
    hosts: dict[str | None, list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if usable(signal, Event.LINK_FAULT) and not window.stale(signal):
            host = (
                view.names.host_of(signal.rank, view.attempt)
                if signal.rank is not None
                else host_of_signal(view, signal)
            )
            hosts[host].append(signal)
    for host, signals in sorted(hosts.items(), key=lambda item: item[0] or ""):
        sure = [one for one in signals if one.role is Role.INITIATING]
        ranks = tuple(sorted({one.rank for one in signals if one.rank is not None}))
        first = (sure or signals)[0]
        cls = first.cls or "ib-link-failure"
        if cls == "ib-link-failure" and not (first.entry or "").startswith("ib-") and _over_tcp(view):
            cls = "nccl-socket-failure"
        # a port that goes down for a moment breaks no connection by itself
        felt = any(
            one.event is Event.PEER_LOSS and "closed by" not in one.text
            for state in view.states.values()
            for one in state.derived
        )
        # connections that break while every launcher is told to end break because of that
        ended = set(view.names.all_hosts()) <= told_to_end(view)
        doubtful = BASE["own-error-ambiguous"] - (0.0 if felt and not ended else 0.6)
        if not _in_time(view, window, signals, _VERY_LATE_NS):
            doubtful -= 1.0
        if view.host_unread():  # a port that came back breaks nothing, and another one may have gone for good there
            doubtful -= 0.6
        far = ends.get(host or "", {}) or _unknown_end(view, ends, host)
        end = (len(far) >= 2 or _touches_all(view, host)) and not ended
        dropped = felt and not ended and _dropped_packets(view, window, signals)
        apart = not dropped and not ended and _between(view, window, signals)
        yield Candidate(
            rule="link-fault",
            cls=cls,
            entry=first.entry,
            component="network",
            ranks=ranks,
            hosts=(host,) if host else (),
            base=BASE["link-fault"]
            if sure or end
            else BASE["dropped-packets"] + (0.0 if dropped else _OTHER_ZONE)
            if dropped or apart
            else doubtful,
            signals=[(one, "the adapter's own report") for one in sorted(sure or signals, key=lambda o: o.place)[:6]],
            moment=earliest(view, sure or signals),
            for_=["the connections of several other hosts with it broke, and no others"]
            if end
            else ["its kernel drops packets, no process had failed by itself, and connections broke"]
            if dropped or apart
            else [],
        )


_DROPS = frozenset({"host-conntrack-full", "host-firewall-changed"})


_OTHER_ZONE = 1.2
"""What a record is worth less that fits the run in another time zone only (`from_machines.doubt_zone`)."""


def _between(view: View, window: Window, signals: list[Signal]) -> bool:
    """Whether a host's filter changed about then, by another zone, and what broke lies between live hosts."""
    changed = any(one.entry in _DROPS and window.fit(one) is Fit.SHIFTED for one in signals)
    return changed and next(nobody_died(view), None) is not None


_LATE_NS = 60 * 1_000_000_000
_VERY_LATE_NS = 10 * _LATE_NS
"""How far two hosts' clocks may differ, and how late a driver may notice."""


def _in_time(view: View, window: Window, signals: list[Signal], delay_ns: int) -> list[Signal]:
    """Those lines that do not lie surely behind the first loss, by stamps that fit the run as they are printed."""
    lost = [
        stamp for state in view.states.values() for one in state.derived if (stamp := _printed(view, one)) is not None
    ]
    first = min(lost, default=None)
    if first is None:
        return signals
    return [
        one
        for one in signals
        if window.fit(one) is not Fit.INSIDE or (_printed(view, one) or first) <= first + delay_ns
    ]


def _printed(view: View, signal: Signal) -> int | None:
    """A stamp as printed, in UTC as far as its zone is known: what `Window.fit` compares."""
    if signal.stamp_ns is None or signal.stamp_kind in ("monotonic", "relative"):
        return None
    return view.times.in_utc(signal.stamp_ns, signal.source, signal.utc_offset_s)


def _dropped_packets(view: View, window: Window, signals: list[Signal]) -> bool:
    """Whether a kernel said during the run that it drops packets, while no rank failed for a reason of its own.

    What a library calls a system error is how it tells of a connection that broke.
    """
    drops = [one for one in signals if one.entry in _DROPS and window.fit(one) is Fit.INSIDE]
    own = [one for state in view.states.values() for one in state.own]
    # what a host starts after it came back had broken nothing
    return bool(_in_time(view, window, drops, _LATE_NS)) and all(
        one.role is Role.AMBIGUOUS and (one.cls or "") in REACH for one in own
    )


def _touches_all(view: View, host: str | None) -> bool:
    """Whether every connection of InfiniBand that broke is one with this host, to or from several others."""
    others: set[str] = set()
    for signal in view.signals:
        if signal.event is not Event.PEER_LOSS or signal.weak or not (signal.cls or "").startswith("ib-"):
            continue
        peer = signal.captures.get("peer") or signal.captures.get("peer_host") or signal.captures.get("peer_ip")
        own = view.names.host_of(signal.rank, view.attempt) if signal.rank is not None else None
        own = own or host_of_signal(view, signal)
        end = (view.names.host_of_address(peer) or peer) if peer else None
        if own is None or end is None or host is None or host not in (own, end):
            return False
        others.add(end if own == host else own)
    return len(others) >= 2


def _over_tcp(view: View) -> bool:
    """Whether all connections that broke were sockets: then it is their adapter that failed, whatever its driver."""
    lost = [one for state in view.states.values() for one in state.derived if one.event is Event.PEER_LOSS]
    sockets = [one for one in lost if (one.entry or "").startswith(("nccl-socket", "gloo"))]
    return bool(sockets) and not any((one.cls or "").startswith("ib-") for one in lost)


def _ends(view: View, unclosed: bool = False) -> dict[str, dict[str, list[Signal]]]:
    """Where broken connections led: by host, by the host that lost them.

    `unclosed` leaves out those that the other end closed: its kernel does so for a process that ends, no link does.
    Most of them must lead to a host, or be those that it lost itself, for it to be their common end.
    """
    ends: dict[str, dict[str, list[Signal]]] = defaultdict(lambda: defaultdict(list))
    counts: Counter[int | None] = Counter()
    for signal in view.signals:
        peer = signal.captures.get("peer") or signal.captures.get("peer_host") or signal.captures.get("peer_ip")
        if (
            not is_echo(signal)
            or signal.event is not Event.PEER_LOSS
            or not peer
            or signal.captures.get("status") == "5"
            or (unclosed and "closed by" in signal.text)
        ):
            continue
        counts[signal.rank] += 1
        if signal.rank is not None and counts[signal.rank] > 6:
            continue
        host = view.names.host_of_address(peer)
        own = view.names.host_of(signal.rank, view.attempt) if signal.rank is not None else None
        own = own or host_of_signal(view, signal)
        end = host or peer  # an address that no line ties to a host is still one place
        if own and end != own:
            ends[end][own].append(signal)
    total = sum(len(signals) for one in ends.values() for signals in one.values())
    lost = Counter(own for one in ends.values() for own, signals in one.items() for _ in signals)
    return {
        host: printers
        for host, printers in ends.items()
        if sum(len(signals) for signals in printers.values()) + lost[host] >= 0.8 * total
    }


def _unknown_end(view: View, ends: dict[str, dict[str, list[Signal]]], host: str | None) -> dict[str, list[Signal]]:
    """Who lost one address that no line ties to a host, if it can be that host's: it lost nothing there itself."""
    if view.host_unread():
        return {}  # it is as well that of a host whose log is not here
    unknown = [address for address in ends if view.names.host_of_address(address) is None]
    return ends[unknown[0]] if host and len(unknown) == 1 == len(ends) and host not in ends[unknown[0]] else {}


def common_ends(view: View, window: Window) -> Iterator[Candidate]:
    """The host that connections from several other hosts broke to, before anybody was seen to die.

    A process that died draws the same star, so without InfiniBand's own completion codes it stays a suspicion.
    """
    ends = _ends(view)
    for host, printers in sorted(ends.items()):
        if len(printers) < 2 or view.names.host_of_address(host) is None:
            continue
        signals = [signal for _, listed in sorted(printers.items()) for signal in listed]
        first = signals[0]
        fabric = first.cls in ("ib-completion-error", "ib-link-failure")
        dead = any(
            state.own or state.exit_code in (-9, -11, -7) for state in view.states.values() if state.host == host
        )
        yield Candidate(
            rule="peer-common-end",
            cls=first.cls if fabric and first.cls else "nccl-socket-failure",
            entry=first.entry,
            component="network",
            ranks=(),
            hosts=(host,),
            base=BASE["peer-common-end"] + (1.2 if fabric and not dead else 0.0),
            signals=[(one, f"lost its connection to {host}") for one in signals[:6]],
            moment=earliest(view, signals),
            for_=[f"{len(signals)} connections from {len(printers)} other hosts broke, all to {host}"],
            missing=f"port counters and the kernel log of {host}, and whether a process of {host} had ended before",
        )
