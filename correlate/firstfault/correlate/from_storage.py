"""Candidates from file systems that stall or fail, with the processes that the kernel saw wait for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_machines import host_of_signal, usable
from firstfault.correlate.from_ranks import earliest
from firstfault.correlate.model import Signal
from firstfault.correlate.window import Window


def _stalled_rank(view: View, signal: Signal) -> int | None:
    """The rank whose process the kernel reports as blocked."""
    pid = signal.number("victim_pid") or signal.number("pid")
    return view.names.rank_of_pid(host_of_signal(view, signal), pid) if pid is not None else None


_SHORT_STALL_NS = 300 * 1_000_000_000
"""A stall that lasted longer is felt: by loaders, checkpoints and those who wait for them."""


def storage(view: View, window: Window) -> Iterator[Candidate]:
    """File systems that stall or fail, by server or path; no rank is blamed for them."""
    places: dict[tuple[str, str], list[Signal]] = defaultdict(list)
    recoveries = _recoveries(view)
    for signal in view.signals:
        if _recovered(view, signal, recoveries):
            continue
        own = signal.event is Event.IO_ERROR and signal.rank is None
        if (usable(signal, Event.IO_STALL) or (own and usable(signal, Event.IO_ERROR))) and not window.stale(signal):
            places[(signal.cls or "", signal.captures.get("server") or signal.captures.get("path") or "")].append(
                signal
            )
    for (cls, _), signals in sorted(_with_waiters(view, places).items()):
        hosts = {host for one in signals if (host := host_of_signal(view, one))}
        first = signals[0]
        stuck = {rank for one in signals if (rank := _stalled_rank(view, one)) is not None}
        ranks = tuple(sorted(stuck)) if len(stuck) <= max(1, len(view.states) // 4) else ()
        yield Candidate(
            rule="io-stall",
            cls=cls or "filesystem-io-error",
            entry=first.entry,
            component="storage",
            ranks=ranks,
            hosts=view.names.rank_hosts(ranks, view.attempt) if ranks else (tuple(hosts) if len(hosts) == 1 else ()),
            base=BASE["io-stall"] + (0.6 if ranks else 0.0),  # the kernel names the process that waits
            signals=[(one, "the file system's own report") for one in signals[:6]],
            moment=earliest(view, signals),
        )


def _recoveries(view: View) -> dict[tuple[str, str], list[Signal]]:
    """Of each source, the lines that say that a server answers again, in their order."""
    found: dict[tuple[str, str], list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if signal.event is Event.RECOVERED:
            found[signal.source.path, signal.captures.get("server", "")].append(signal)
    return {key: sorted(signals, key=lambda one: one.line) for key, signals in found.items()}


def _recovered(view: View, signal: Signal, recoveries: Mapping[tuple[str, str], list[Signal]]) -> bool:
    """Whether the server of a stall answered again, and soon where both times are known."""
    later = recoveries.get((signal.source.path, signal.captures.get("server", "-")), ())
    again = next((one for one in later if one.line > signal.line), None)
    if again is None:
        return False
    lost, back = view.times.of(signal), view.times.of(again)
    return lost is None or back is None or back.ns - lost.ns <= _SHORT_STALL_NS


def _with_waiters(view: View, places: Mapping[tuple[str, str], list[Signal]]) -> dict[tuple[str, str], list[Signal]]:
    """Reports of blocked processes, which name no server, joined with the one server of their class on their hosts."""
    joined = {key: list(signals) for key, signals in places.items()}
    for (cls, place), waiting in places.items():
        hosts = {host_of_signal(view, one) for one in waiting}
        servers = [
            key
            for key, signals in places.items()
            if key[0] == cls and key[1] and hosts & {host_of_signal(view, one) for one in signals}
        ]
        if not place and len(servers) == 1 and None not in hosts:
            joined[servers[0]] += joined.pop((cls, place))
    return joined
