"""Candidates from Megatron's rerun state machine, which computes a suspicious step again: in place, and after a restart
on another device.

The last word is printed by the second device, which is the healthy one: "not reproducible on a different GPU" means
that the first device computed wrong values (megatron/core/rerun_state_machine.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_ranks import earliest
from firstfault.correlate.model import Signal

_ENTRY = "sdc-megatron-rerun"
_SAME_HERE = "First rerun: unexpected result is reproducible"
_OTHER_THERE = "Second rerun: unexpected result is not reproducible on a different GPU"
_NOTICED = "Unexpected result "
_VERDICT = "Possible persistent error"
_NEAR = 5
"""Lines between what the second rerun found and the verdict on it."""


def _rank(signal: Signal) -> int | None:
    named = next((number for name in ("rank", "rank2", "rank3") if (number := signal.number(name)) is not None), None)
    return named if named is not None else signal.rank


def _host(view: View, signal: Signal, rank: int | None) -> str | None:
    """The host that computed a result: the one the line names, else the one that wrote it, else that of the rank."""
    named = next((signal.captures[name] for name in ("node", "node2", "node3") if signal.captures.get(name)), None)
    found = named or signal.host or signal.source.host
    if found is None and rank is not None:
        return view.names.host_of(rank, signal.attempt)
    return view.names.canonical(found) if found else None


def wrong_results(view: View) -> Iterator[Candidate]:
    """The device of the first run, where a second one came to another result; in the attempt that noticed it."""
    told = [signal for signal in view.timeline.signals if signal.entry == _ENTRY]
    second = [signal for signal in told if _OTHER_THERE in signal.text]
    suspect = {
        rank
        for signal in second
        for one in (signal, *(verdict for verdict in told if _VERDICT in verdict.text and _follows(signal, verdict)))
        if (rank := _rank(one)) is not None
    }
    if second and not suspect:  # where the second names nobody: the one whose value came again
        suspect = {rank for one in told if _SAME_HERE in one.text and (rank := _rank(one)) is not None}
    if len(suspect) != 1:
        return
    rank = next(iter(suspect))
    told.sort(key=lambda one: (one.attempt, one.place))
    again = [signal for signal in told if _SAME_HERE in signal.text and _rank(signal) in (rank, None)]
    first = [signal for signal in again if signal.attempt == again[0].attempt]
    noticed = [one.attempt for one in view.timeline.signals if _NOTICED in one.text and _rank(one) == rank]
    if not first or view.attempt != min([first[0].attempt, *noticed]):
        return
    hosts = {host for signal in first if (host := _host(view, signal, rank)) is not None}
    if len(hosts) > 1:
        return
    yield Candidate(
        rule="own-error-witnessed",
        cls="silent-data-corruption",
        entry=_ENTRY,
        component="gpu",
        ranks=(rank,),
        hosts=tuple(hosts),
        base=BASE["authored-action"],
        signals=[
            *((signal, "this device comes to the same wrong value again") for signal in first[:2]),
            *((signal, "another device comes to another value") for signal in second[:2]),
        ],
        moment=earliest(view, first),
        for_=[f"rank {rank} got the value twice on one device and another value on a second one"],
    )


def _follows(second: Signal, verdict: Signal) -> bool:
    return second.source is verdict.source and 0 < verdict.line - second.line <= _NEAR
