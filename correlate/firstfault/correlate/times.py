"""Turns what was printed into moments on the job's aligned clock, with bounds; the one place where stamps get a
meaning.

Clocks are aligned by `align` from shared steps, starts and statements about NTP. A stamp with its own zone is taken as
UTC. A clock that nothing links gives no moment to another host, but two stamps of one clock compare directly.
"""

from __future__ import annotations

from datetime import UTC, datetime

from firstfault.catalog.model import Event
from firstfault.correlate.align import Alignment, Observation, align
from firstfault.correlate.load import Timeline
from firstfault.correlate.model import Moment, Signal, Source

_SECOND = 1_000_000_000
_OPEN_END_NS = 300 * _SECOND


def _utc(stamp_ns: int, line_offset: int | None, source: Source) -> int:
    offset = line_offset if line_offset is not None else source.utc_offset_s
    return stamp_ns - (offset or 0) * _SECOND


def observations(timeline: Timeline) -> list[Observation]:
    """All sync points of a job: steps, starts that all ranks pass together, statements about NTP time."""
    found = [
        Observation(mark.clock, f"{mark.attempt} {mark.key}", mark.stamp_ns, mark.res_ns) for mark in timeline.marks
    ]
    # a stated offset holds about when the job ended: any common moment near the logs keeps drift and bounds honest
    spans = [end for name, (_, end) in timeline.clock_spans.items() if name.startswith("wall:")]
    around = max(spans, default=0)
    for signal in timeline.signals:
        clock = signal.source.clock
        if clock is None:
            continue
        if signal.event is Event.CLOCK and "offset_s" in signal.captures:
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
            stamp = _utc(signal.stamp_ns, signal.utc_offset_s, signal.source)
            key = signal.captures.get("comm_id") or signal.captures.get("name") or ""
            if signal.event is Event.SYNC or signal.fact.startswith("start-rendezvous"):
                found.append(
                    Observation(clock, f"{signal.attempt} {signal.fact} {key}", stamp, max(signal.res_ns, 20_000_000))
                )
    return found


def _stated_offset(signal: Signal) -> float | None:
    """Seconds that a clock is ahead of NTP time, from chrony's or ntpq's words; None where the words are no number."""
    try:
        value = float(signal.captures["offset_s"])
    except ValueError:
        return None
    words = f"{signal.captures.get('state', '')} {signal.text}".lower()
    return -abs(value) if "slow" in words else value


class Times:
    """Moments of signals and sources."""

    def __init__(self, timeline: Timeline) -> None:
        self.alignment: Alignment = align(observations(timeline))
        self._sources = timeline.sources
        clocks = {source.clock for source in timeline.sources.values() if source.clock}
        self._single = next(iter(clocks)) if len(clocks) == 1 else None
        self.zone_known = any(source.utc_offset_s is not None for source in timeline.sources.values()) or any(
            signal.utc_offset_s is not None for signal in timeline.signals
        )

    def of(self, signal: Signal) -> Moment | None:
        """Moment of a signal; an inherited stamp widens the bound by what its resolution says."""
        if signal.stamp_ns is None or signal.stamp_kind in ("monotonic", "relative"):
            return None
        stamp = _utc(signal.stamp_ns, signal.utc_offset_s, signal.source)
        placed = self._place(signal.source, stamp, 0)
        if signal.own_stamp:  # a stamp is cut, not rounded: the event lies within the printed second or millisecond
            return Moment(placed.ns, placed.bound_ns, placed.ns + signal.res_ns) if placed else None
        # no stamped line follows, or only at once: how long after its neighbour it was printed is open
        gap = signal.res_ns if signal.res_ns > _SECOND else _OPEN_END_NS
        return Moment(placed.ns, placed.bound_ns, placed.ns + gap) if placed else None

    def of_source(self, source: Source, stamp_ns: int) -> Moment | None:
        """Moment of a stamp of a source (naive, of that source's clock)."""
        return self._place(source, _utc(stamp_ns, None, source), _SECOND // 1000)

    def _place(self, source: Source, stamp_ns: int, res_ns: int) -> Moment | None:
        if source.clock is None:
            return None
        placed = self.alignment.place(source.clock, stamp_ns)
        if placed is not None:
            return Moment(placed[0], placed[1] + res_ns)
        if source.clock == self.reference:
            return Moment(stamp_ns, res_ns)
        return None

    @property
    def reference(self) -> str | None:
        """The clock that all moments are on."""
        return self.alignment.reference or self._single

    def same_clock_gap(self, one: Signal, other: Signal) -> int | None:
        """Nanoseconds from one signal to another where both stamps come from the same clock, else None."""
        if one.source.clock is None or one.source.clock != other.source.clock:
            return None
        if one.stamp_ns is None or other.stamp_ns is None:
            return None
        return _utc(other.stamp_ns, other.utc_offset_s, other.source) - _utc(one.stamp_ns, one.utc_offset_s, one.source)

    def text(self, moment: Moment | None) -> str | None:
        """ISO 8601 text of a moment, with 'Z' where some stream fixes the zone."""
        if moment is None:
            return None
        return iso(moment.ns, self.zone_known)


def iso(ns: int, zone_known: bool) -> str | None:
    """ISO 8601 text with milliseconds for nanoseconds since 1970, None outside the years 1 to 9999."""
    try:
        moment = datetime.fromtimestamp(ns // _SECOND, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns % _SECOND // 1_000_000:03d}{'Z' if zone_known else ''}"
