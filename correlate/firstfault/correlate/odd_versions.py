"""Versions that ranks print of one library, compared: who runs another one than most.

Where a failure is a mismatch of versions, every rank raises it, and only this comparison says whose software is the
odd one. Two halves of a job are no majority and no minority.
"""

from __future__ import annotations

from collections import Counter

from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.model import Signal

_COMPARED = {
    "nccl-version-mismatch": ("version-nccl", "version-net-plugin"),
    "cuda-driver-mismatch": ("version-driver", "version-cuda-driver"),
}
"""Class of a failure, and the facts whose values must agree for it not to happen."""


def odd_ranks(view: View, fact: str) -> dict[int, Signal]:
    """Ranks that print another version than most do, with the line that prints it; empty where all agree.

    Ranks that print none share what another rank of their host prints.
    """
    printed: dict[int, Signal] = {}
    by_host: dict[str, Signal] = {}
    for signal in view.timeline.signals:
        if signal.fact != fact or "version" not in signal.captures:
            continue
        host = view.names.canonical(signal.host) if signal.host else None
        if signal.rank is not None:
            printed.setdefault(signal.rank, signal)
            host = view.names.host_of(signal.rank, view.attempt) or host
        if host:
            by_host.setdefault(host, signal)
    for rank in view.states:
        host = view.names.host_of(rank, view.attempt)
        if rank not in printed and host in by_host:
            printed[rank] = by_host[host]
    counts = Counter(signal.captures["version"] for signal in printed.values())
    if len(counts) < 2:
        return {}
    usual, most = counts.most_common(1)[0]
    if 2 * most <= len(printed):
        return {}
    return {rank: signal for rank, signal in sorted(printed.items()) if signal.captures["version"] != usual}


def place(view: View, candidate: Candidate) -> Candidate:
    """Put a mismatch of versions that all ranks raise on those who run the odd one."""
    for fact in _COMPARED.get(candidate.cls, ()):
        odd = odd_ranks(view, fact)
        if not odd or (candidate.ranks and not set(candidate.ranks) - set(odd)):
            continue
        one = next(iter(odd.values()))
        candidate.ranks = tuple(odd)
        candidate.hosts = view.names.rank_hosts(candidate.ranks, view.attempt)
        candidate.common = False
        candidate.component = "host" if len(candidate.hosts) == 1 else "rank"
        candidate.signals[:0] = [(signal, "the odd version") for _, signal in sorted(odd.items())[:2]]
        candidate.for_[:] = [f"all of them raise it, and only the odd ones run version {one.captures['version']}"]
        return candidate
    return candidate
