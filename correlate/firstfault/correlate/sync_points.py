"""Sync points: what several clocks saw happen at one moment, as the logs show it.

Steps and starts that all ranks pass together, what a host's clock is known to be off by, and the signal by which the
first watchdog that fires makes all ranks dump their state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import sqrt

from firstfault.catalog.model import Event
from firstfault.correlate.align import Observation
from firstfault.correlate.load import StepMark, Timeline
from firstfault.correlate.model import Signal, Source

_SECOND = 1_000_000_000
_POLL_NS = _SECOND
_MANY_MARKS = 6

Zones = Mapping[str, int]


def utc(stamp_ns: int, line_offset_s: int | None, source: Source, zones: Zones) -> int:
    """A stamp in UTC, as far as the line, its source or its clock's zone tell; otherwise as printed."""
    offset = line_offset_s if line_offset_s is not None else source.utc_offset_s
    if offset is None:
        offset = zones.get(source.clock or "", 0)
    return stamp_ns - offset * _SECOND


def mark_utc(mark: StepMark, zones: Zones) -> int:
    """The stamp of a common step in UTC, likewise."""
    return mark.stamp_ns - (0 if mark.zoned else zones.get(mark.clock, 0)) * _SECOND


def observations(timeline: Timeline, zones: Zones) -> list[Observation]:
    """All sync points of a job: steps, starts that all ranks pass together, statements about NTP time."""
    found = [
        Observation(mark.clock, f"{mark.attempt} {mark.key}", mark_utc(mark, zones), mark.res_ns)
        for mark in timeline.marks
    ]
    # a stated offset holds about when the job ended: any common moment near the logs keeps drift and bounds honest
    spans = [end for name, (_, end) in timeline.clock_spans.items() if name.startswith("wall:")]
    around = max(spans, default=0)
    # what follows no server states an offset of nothing to nothing
    free = {
        one.source.clock
        for one in timeline.facts(Event.CLOCK)
        if one.fact == "clock-not-synchronized" or one.captures.get("state") == "unsynchronised"
    }
    for signal in timeline.signals:
        clock = signal.source.clock
        if clock is None:
            continue
        if signal.event is Event.CLOCK and "offset_s" in signal.captures and clock not in free:
            offset = _stated_offset(signal)
            if offset is not None:
                event = f"ntp {clock}"
                found.append(Observation(clock, event, around + round(offset * _SECOND), 50_000_000))
                found.append(Observation("ntp", event, around, 50_000_000))
        elif (
            signal.event in (Event.SYNC, Event.START)
            and signal.own_stamp
            and signal.stamp_ns is not None
            and signal.fact
        ):
            stamp = utc(signal.stamp_ns, signal.utc_offset_s, signal.source, zones)
            key = signal.captures.get("comm_id") or signal.captures.get("name") or ""
            if signal.event is Event.SYNC or signal.fact.startswith("start-rendezvous"):
                found.append(
                    Observation(clock, f"{signal.attempt} {signal.fact} {key}", stamp, max(signal.res_ns, 20_000_000))
                )
    found.extend(_dump_signals(timeline, zones))
    return found


def _stated_offset(signal: Signal) -> float | None:
    """Seconds that a clock is ahead of NTP time, from chrony's or ntpq's words; None where the words are no number."""
    try:
        value = float(signal.captures["offset_s"])
    except ValueError:
        return None
    words = f"{signal.captures.get('state', '')} {signal.text}".lower()
    return -abs(value) if "slow" in words else value


def _dump_signals(timeline: Timeline, zones: Zones) -> Iterator[Observation]:
    """The moment at which a rank told the others to dump, by each clock that shows no row of common steps.

    The rank leaves a note in the store when its watchdog fires; the others look there once a second, each in its own
    phase (ProcessGroupNCCL.cpp, heartbeat monitor), and say whose note they found.
    """
    marks: dict[str, int] = defaultdict(int)
    for mark in timeline.marks:
        marks[mark.clock] += 1
    told: dict[tuple[int, int], dict[str, list[Signal]]] = defaultdict(lambda: defaultdict(list))
    fired: dict[tuple[int, int], Signal] = {}
    for signal in timeline.signals:
        clock = signal.source.clock
        if clock is None or signal.rank is None or not signal.own_stamp or signal.stamp_ns is None:
            continue
        if signal.event is Event.DUMP_SIGNAL and (writer := signal.number("peer_rank")) is not None:
            if writer != signal.rank:
                told[(signal.attempt, writer)][clock].append(signal)
            else:
                fired.setdefault((signal.attempt, writer), signal)
        elif signal.event is Event.COLL_TIMEOUT:
            fired.setdefault((signal.attempt, signal.rank), signal)
    for (attempt, writer), clocks in sorted(told.items()):
        event = f"{attempt} dump by {writer}"
        seen = {}
        for clock, signals in clocks.items():
            first: dict[int, Signal] = {}
            for signal in signals:
                first.setdefault(signal.rank or 0, signal)
            stamps = [utc(one.stamp_ns or 0, one.utc_offset_s, one.source, zones) for one in first.values()]
            seen[clock] = note_moment(stamps, max(one.res_ns for one in first.values()))
        own = fired.get((attempt, writer))
        if own is not None and own.source.clock is not None and own.stamp_ns is not None:
            clock = own.source.clock
            stamp = utc(own.stamp_ns, own.utc_offset_s, own.source, zones) + own.res_ns // 2
            if clock not in seen or own.res_ns < seen[clock][1]:
                seen[clock] = (stamp, own.res_ns)
        if all(marks[clock] >= _MANY_MARKS for clock in seen):
            continue
        for clock, (stamp, res) in sorted(seen.items()):
            yield Observation(clock, event, stamp, res)


def note_moment(stamps_ns: list[int], res_ns: int) -> tuple[int, int]:
    """When a note was left that some readers found within a second, each at a time of its own: the moment and its
    resolution, in nanoseconds.

    Readers find it at times that lie evenly in the second after it, so it was left half a second before their middle:
    that of the first and the last where stamps are fine, their mean where they are cut to seconds.
    """
    count = len(stamps_ns)
    if res_ns * 4 <= _POLL_NS:
        middle = (min(stamps_ns) + max(stamps_ns)) // 2 + res_ns // 2
        spread = 1 / sqrt(2 * (count + 1) * (count + 2))
    else:
        middle = sum(stamps_ns) // count + res_ns // 2
        spread = sqrt(1 / 12 / count + (res_ns / _POLL_NS) ** 2 / 12 / count)
    return middle - _POLL_NS // 2, round(3.4 * spread * _POLL_NS)
