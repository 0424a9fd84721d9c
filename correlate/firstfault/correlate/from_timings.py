"""Candidates that are only slow: ranks and devices that are measured slower than their peers, who wait for them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import duckdb

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_machines import host_of_signal, usable
from firstfault.correlate.from_ranks import earliest
from firstfault.correlate.model import Signal, parse_ranks, rank_ranges
from firstfault.correlate.timings import RATIO, Slow, stragglers
from firstfault.correlate.window import Window

_THROUGHPUT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(?:TF)?/(\d{1,7})\b")
_NAMED = re.compile(r"\brank=(\d{1,7})\b")
_REPORTS = 2
_TWICE = 2.0


def measured_stragglers(con: duckdb.DuckDBPyConnection, view: View) -> Iterator[Candidate]:
    """One rank, or all ranks of one host, that the timings which ranks print show as slow."""
    kinds: dict[str, list[Slow]] = defaultdict(list)
    for one in stragglers(con, view.timeline.sources, view.attempt):
        kinds[one.name].append(one)
    by_ratio = sorted(kinds.items(), key=lambda item: (-max(one.own_s / one.others_s for one in item[1]), item[0]))
    for name, slow in by_ratio:
        ranks = tuple(one.rank for one in slow)
        host = view.names.host_of(ranks[0], view.attempt)
        whole = host is not None and set(ranks) == set(view.names.ranks_of_host(host, view.attempt))
        if len(ranks) > 1 and not whole:
            continue
        worst = max(slow, key=lambda one: (one.own_s, -one.rank))
        where = f"rank {worst.rank}" if len(ranks) == 1 else f"the ranks of {host}"
        candidate = Candidate(
            rule="straggler",
            cls="straggler",
            entry=None,
            component="rank" if len(ranks) == 1 else "host",
            ranks=ranks,
            hosts=view.names.rank_hosts(ranks, view.attempt),
            base=BASE["straggler"] + 0.4,
            signals=[(signal, f"its own {name} takes {one.own_s:.3g} s") for one in slow[:4] for signal in one.signals],
            for_=[f"{name} takes {worst.own_s:.3g} s on {where} and {worst.others_s:.3g} s on the others, who wait"],
            # also a run that ends well has failed its owner where a rank takes twice the time while the others wait
            outweighs_completion=all(one.waits_shown and one.own_s >= _TWICE * one.others_s for one in slow),
        )
        _somebody_ended(view, candidate)
        yield candidate
        return


def _somebody_ended(view: View, candidate: Candidate) -> None:
    """Who is slow closes no connection: where ranks lost one, somebody ended, and may be one whose log is not here."""
    lost = any(signal.event is Event.PEER_LOSS for state in view.states.values() for signal in state.derived)
    unread = view.unread()
    if lost and unread:
        candidate.base -= 1.8
        candidate.against.append("ranks lost a connection, so somebody ended, which slowness does not explain")
        candidate.missing = f"the log of rank {rank_ranges(unread)}, with its error stream"


_POWER = "gpu-thermal-or-power"


def blame_power(candidates: list[Candidate]) -> None:
    """Name the reason of a straggler whose own host shows, in a record without a date, that its devices are held back.

    Such a record alone may be of any day; that ranks of that host alone are slow in this run is the second witness.
    """
    for slow in candidates:
        if slow.rule != "straggler" or slow.cls != "straggler" or len(slow.hosts) != 1:
            continue
        for held in candidates:
            if held is not slow and held.cls == _POWER and held.hosts == slow.hosts and held.signals:
                slow.cls, slow.entry = _POWER, held.entry
                slow.signals[1:1] = [(signal, "what holds its devices back") for signal, _ in held.signals[:3]]
                slow.for_.append(f"{slow.hosts[0]} itself shows that its devices are held back")
                break


def megatron_reports(view: View) -> Iterator[Candidate]:
    """Ranks that Megatron's straggler detector finds far below the fastest, in each of its last reports.

    Some rank is always the slowest; only a gap that stays with the same ranks is a straggler.
    """
    fastest = [_throughputs(one, "MxEtpt/Rnk: ") for one in view.signals if one.fact == "slow-megatron-extremes"]
    reports = [one for one in view.signals if one.fact == "slow-megatron-bottom"] or [
        one for one in view.signals if one.fact == "slow-megatron-extremes"
    ]
    reports.sort(key=lambda one: one.place)
    tops = [max(values.values()) for values in fastest if values]
    if not tops or len(reports) < _REPORTS:
        return
    below = [
        {rank for rank, value in _throughputs(one, ": ").items() if value * RATIO < max(tops)}
        if one.fact == "slow-megatron-bottom"
        else {rank for rank, value in _throughputs(one, "MnEtpt/Rnk: ").items() if value * RATIO < max(tops)}
        for one in reports
    ]
    last = below[-_REPORTS:]
    ranks = set.intersection(*last) if reports[-1].fact == "slow-megatron-bottom" else set.union(*last)
    if not ranks or not all(last):
        return
    numbers = tuple(sorted(ranks))
    host = view.names.host_of(numbers[0], view.attempt)
    of_host = set(view.names.ranks_of_host(host, view.attempt)) if host else set()
    if len(numbers) > 1 and not ranks <= of_host:
        return
    since = next(i for i in range(len(below)) if all(one & ranks for one in below[i:]))
    yield Candidate(
        rule="straggler",
        cls="straggler",
        entry="straggler-report",
        component="rank" if len(numbers) == 1 else "host",
        ranks=numbers,
        hosts=view.names.rank_hosts(numbers, view.attempt),
        base=BASE["straggler"] + 0.4,
        signals=[(one, "these ranks fall far behind the fastest") for one in reports[since : since + 4]],
        moment=earliest(view, reports[since : since + 1]),
        for_=[f"{len(reports) - since} reports in a row show them below {1 / RATIO:.0%} of the fastest rank"],
    )


def _throughputs(signal: Signal, behind: str) -> dict[int, float]:
    """Throughput of each rank that a report lists, `377.00/37` and `373.19TF/33`, by rank."""
    text = signal.text.partition(behind)[2]
    found = {}
    for value, rank in _THROUGHPUT.findall(text if signal.fact == "slow-megatron-bottom" else text.split("|")[0]):
        found[int(rank)] = float(value)
    return found


def _last_reported(
    view: View,
    reported: dict[tuple[int, ...], list[Signal]],
    places: dict[tuple[str | None, int | None], list[Signal]],
) -> Candidate:
    """The ranks that a detector names in its last report; what a later report does not repeat has passed."""
    ranks, signals = max(reported.items(), key=lambda item: (max(one.place for one in item[1]), item[0]))
    for key, listed in sorted(places.items(), key=lambda item: (item[0][0] or "", item[0][1] or -1)):
        if key[1] is None and listed[0].entry == signals[0].entry:
            signals = [*signals, *places.pop(key)]
    return Candidate(
        rule="straggler",
        cls=signals[0].cls or "straggler",
        entry=signals[0].entry,
        component="rank",
        ranks=ranks,
        hosts=view.names.rank_hosts(ranks, view.attempt),
        base=BASE["straggler"],
        signals=[(one, "a detector's last report") for one in signals[:6]],
        moment=earliest(view, signals),
    )


def slow_places(view: View, window: Window) -> Iterator[Candidate]:
    """Devices and ranks that are measured slower than the others."""
    places: dict[tuple[str | None, int | None], list[Signal]] = defaultdict(list)
    reported: dict[tuple[int, ...], list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if usable(signal, Event.SLOW) and not window.stale(signal):
            host = host_of_signal(view, signal)
            rank = signal.rank
            gpu = signal.number("gpu")
            if rank is None and gpu is not None and host is not None:
                rank = view.names.rank_of_gpu(host, gpu)
            listed = signal.captures.get("ranks")
            named = {int(number) for number in _NAMED.findall(listed or "")} or parse_ranks(listed or "")
            if named:
                reported[tuple(sorted(named))].append(signal)
            elif listed is not None:
                continue  # a list that names nobody accuses nobody, least of all the rank that prints it
            else:
                places[(host, rank)].append(signal)
    if reported:
        yield _last_reported(view, reported, places)
    for (host, rank), signals in sorted(places.items(), key=lambda item: (item[0][0] or "", item[0][1] or -1)):
        ranks = (rank,) if rank is not None else ()
        yield Candidate(
            rule="straggler",
            cls=signals[0].cls or "straggler",
            entry=signals[0].entry,
            component="gpu" if signals[0].cls == "gpu-thermal-or-power" else "rank",
            ranks=ranks,
            hosts=view.names.rank_hosts(ranks, view.attempt) or ((host,) if host else ()),
            base=BASE["straggler"],
            signals=[(one, "measured slower than its peers") for one in signals[:6]],
            moment=earliest(view, signals),
        )
