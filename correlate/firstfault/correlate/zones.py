"""The zone of stamps that name none, where another log of the same clock does name its own.

The kernel's journal prints `+08:00`, a training program beside it the bare local time, or UTC where it runs in a
container. Both readings are tried: the one that brings the two logs together is taken, and none where both or neither
do.
"""

from __future__ import annotations

from collections import defaultdict

from firstfault.correlate.load import Timeline

_SECOND = 1_000_000_000
_SLACK_NS = 15 * 60 * _SECOND


def naive_zones(timeline: Timeline) -> dict[str, int]:
    """Seconds east of UTC of the stamps without a zone, by clock; only clocks for which the logs settle it."""
    stated: dict[str, set[int]] = defaultdict(set)
    points: dict[str, list[int]] = defaultdict(list)
    naive: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for signal in timeline.signals:
        clock = signal.source.clock
        offset = signal.utc_offset_s if signal.utc_offset_s is not None else signal.source.utc_offset_s
        if clock is None or offset is None or signal.stamp_ns is None or not signal.own_stamp:
            continue
        stated[clock].add(offset)
        points[clock].append(signal.stamp_ns - offset * _SECOND)
    for extent in timeline.extents:
        clock = extent.source.clock
        if clock is None or extent.first_ns is None or extent.last_ns is None:
            continue
        offset = extent.source.utc_offset_s
        if offset is None:
            naive[clock].append((extent.first_ns, extent.last_ns))
        else:
            stated[clock].add(offset)
            points[clock] += (extent.first_ns - offset * _SECOND, extent.last_ns - offset * _SECOND)
    found = {}
    for clock, offsets in stated.items():
        if len(offsets) != 1 or clock not in naive:
            continue
        offset = next(iter(offsets))
        low, high = min(first for first, _ in naive[clock]), max(last for _, last in naive[clock])

        def near(shift: int, low: int = low, high: int = high, clock: str = clock) -> bool:
            first, last = low - shift * _SECOND - _SLACK_NS, high - shift * _SECOND + _SLACK_NS
            return any(first <= point <= last for point in points[clock])

        local, utc = near(offset), near(0)
        if offset != 0 and local != utc:
            found[clock] = offset if local else 0
    return found
