"""Candidates that are only slow: ranks and devices that are measured slower than their peers, who wait for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import duckdb

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_machines import host_of_signal, usable
from firstfault.correlate.from_ranks import earliest
from firstfault.correlate.model import Signal
from firstfault.correlate.timings import Slow, stragglers
from firstfault.correlate.window import Window


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
        yield Candidate(
            rule="straggler",
            cls="straggler",
            entry=None,
            component="rank" if len(ranks) == 1 else "host",
            ranks=ranks,
            hosts=view.names.rank_hosts(ranks, view.attempt),
            base=BASE["straggler"] + 0.4,
            signals=[(signal, f"its own {name} takes {one.own_s:.3g} s") for one in slow[:4] for signal in one.signals],
            for_=[f"{name} takes {worst.own_s:.3g} s on {where} and {worst.others_s:.3g} s on the others, who wait"],
        )
        return


def slow_places(view: View, window: Window) -> Iterator[Candidate]:
    """Devices and ranks that are measured slower than the others."""
    places: dict[tuple[str | None, int | None], list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if usable(signal, Event.SLOW) and not window.stale(signal):
            host = host_of_signal(view, signal)
            rank = signal.rank
            gpu = signal.number("gpu")
            if rank is None and gpu is not None and host is not None:
                rank = view.names.rank_of_gpu(host, gpu)
            places[(host, rank)].append(signal)
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
