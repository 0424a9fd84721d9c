"""Numbers the starts of a job alike on all hosts, where agents started their workers anew a different number of times.

torch's agents count by themselves: one that started workers again while another still waited for the first ones to end
is one number ahead from then on (torch/distributed/elastic/agent/server/api.py: the count of an agent rises with
each of its own failures). What ran at the same time belongs together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from firstfault.correlate.load import Timeline
from firstfault.correlate.times import Times

Numbers: TypeAlias = Mapping[int, int]
"""For each number of a start that its own agent gave, that of the whole job."""


def numbered_alike(timeline: Timeline, times: Times) -> Timeline:
    """The same timeline with the attempts of hosts that count less in the numbers of the one that counts most; as it
    is where all count alike, or where the times of some start fit none.
    """
    spans = _spans(timeline, times)
    most = max(map(len, spans.values()), default=0)
    fewer = {rank: own for rank, own in spans.items() if len(own) < most}
    if most < 2 or not fewer:
        return timeline
    reference = spans[min(rank for rank, own in spans.items() if len(own) == most)]
    found: dict[int, Numbers] = {}
    for rank, own in fewer.items():
        numbers = _fitting(own, reference)
        if numbers and any(old != new for old, new in numbers.items()):
            found[rank] = numbers
    return _renumbered(timeline, found) if found else timeline


def _spans(timeline: Timeline, times: Times) -> dict[int, dict[int, tuple[int, int]]]:
    """First and last stamp of each start of each rank, in UTC as far as zones are known; clocks as they were.

    Clocks are aligned by steps of the same number of start, which is what is in question here.
    """
    spans: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    for extent in timeline.extents:
        if extent.first_ns is None or extent.last_ns is None:
            continue
        first, last = (times.in_utc(stamp, extent.source) for stamp in (extent.first_ns, extent.last_ns))
        known = spans[extent.rank].get(extent.attempt, (first, last))
        spans[extent.rank][extent.attempt] = (min(first, known[0]), max(last, known[1]))
    return spans


def _fitting(own: Mapping[int, tuple[int, int]], reference: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """The number of the reference that each start ran beside for most of the shorter of both; empty where one has none,
    or where they do not follow each other in the same order.
    """
    found: dict[int, int] = {}
    for number, (first, last) in sorted(own.items()):
        shared = {
            other: min(last, until) - max(first, since)
            for other, (since, until) in reference.items()
            if other > max(found.values(), default=-1)
        }
        best = max(shared, key=lambda other: (shared[other], -other), default=None)
        if best is None:
            return {}
        since, until = reference[best]
        if shared[best] < 0 or 2 * shared[best] < min(last - first, until - since):
            return {}
        found[number] = best
    return found


def _renumbered(timeline: Timeline, ranks: Mapping[int, Numbers]) -> Timeline:
    """A timeline in which the given ranks, and hosts all of whose ranks agree, count by other numbers."""
    hosts: dict[str, list[Numbers | None]] = defaultdict(list)
    clocks: dict[str, list[Numbers | None]] = defaultdict(list)
    for extent in timeline.extents:
        if extent.source.host:
            hosts[extent.source.host].append(ranks.get(extent.rank))
        if extent.source.clock:
            clocks[extent.source.clock].append(ranks.get(extent.rank))

    def of(rank: int | None, host: str | None, attempt: int) -> int:
        numbers = ranks.get(rank) if rank is not None else _agreed(hosts.get(host or "", []))
        return numbers.get(attempt, attempt) if numbers else attempt

    return replace(
        timeline,
        signals=tuple(
            signal
            if signal.id in timeline.unplaced
            else replace(signal, attempt=of(signal.rank, signal.host or signal.source.host, signal.attempt))
            for signal in timeline.signals
        ),
        extents=tuple(replace(one, attempt=of(one.rank, None, one.attempt)) for one in timeline.extents),
        progress=tuple(
            replace(one, attempt=of(one.rank, one.host or one.source.host, one.attempt)) for one in timeline.progress
        ),
        identities=tuple(
            one if one.attempt is None else replace(one, attempt=of(one.rank, one.host, one.attempt))
            for one in timeline.identities
        ),
        marks=tuple(
            replace(one, attempt=(_agreed(clocks.get(one.clock, [])) or {}).get(one.attempt, one.attempt))
            for one in timeline.marks
        ),
    )


def _agreed(said: list[Numbers | None]) -> Numbers | None:
    """What all say alike."""
    return said[0] if said and all(one == said[0] for one in said) else None
