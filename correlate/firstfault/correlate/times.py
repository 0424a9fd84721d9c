"""Turns what was printed into moments on the job's aligned clock, with bounds; the one place where stamps get a
meaning.

Clocks are aligned by `align` from shared steps, starts, dump signals and statements about NTP. A stamp with its own
zone is taken as UTC, one without by the zone that `zones` finds for its clock. A clock that nothing links gives no
moment to another host, but two stamps of one clock compare directly.
"""

from __future__ import annotations

from datetime import UTC, datetime

from firstfault.correlate.align import Alignment, align
from firstfault.correlate.load import StepMark, Timeline
from firstfault.correlate.model import Moment, Signal, Source
from firstfault.correlate.sync_points import Zones, mark_utc, observations, utc
from firstfault.correlate.zones import naive_zones

_SECOND = 1_000_000_000
_OPEN_END_NS = 300 * _SECOND


class Times:
    """Moments of signals and sources."""

    def __init__(self, timeline: Timeline) -> None:
        self.zones: Zones = naive_zones(timeline)
        self.alignment: Alignment = align(observations(timeline, self.zones))
        self._sources = timeline.sources
        self._moments: dict[Signal, Moment | None] = {}
        clocks = {source.clock for source in timeline.sources.values() if source.clock}
        self._single = next(iter(clocks)) if len(clocks) == 1 else None
        self.zone_known = (
            bool(self.zones)
            or any(source.utc_offset_s is not None for source in timeline.sources.values())
            or any(signal.utc_offset_s is not None for signal in timeline.signals)
        )

    def of(self, signal: Signal) -> Moment | None:
        """Moment of a signal; an inherited stamp widens the bound by what its resolution says."""
        if signal not in self._moments:
            self._moments[signal] = self._moment(signal)
        return self._moments[signal]

    def _moment(self, signal: Signal) -> Moment | None:
        if signal.stamp_ns is None or signal.stamp_kind in ("monotonic", "relative"):
            return None
        stamp = utc(signal.stamp_ns, signal.utc_offset_s, signal.source, self.zones)
        placed = self._place(signal.source, stamp, 0)
        if signal.own_stamp:  # a stamp is cut, not rounded: the event lies within the printed second or millisecond
            return Moment(placed.ns, placed.bound_ns, placed.ns + signal.res_ns) if placed else None
        # no stamped line follows, or only at once: how long after its neighbour it was printed is open
        gap = signal.res_ns if signal.res_ns > _SECOND else _OPEN_END_NS
        return Moment(placed.ns, placed.bound_ns, placed.ns + gap) if placed else None

    def of_source(self, source: Source, stamp_ns: int) -> Moment | None:
        """Moment of a stamp of a source (naive, of that source's clock)."""
        return self._place(source, utc(stamp_ns, None, source, self.zones), _SECOND // 1000)

    def in_utc(self, stamp_ns: int, source: Source, line_offset_s: int | None = None) -> int:
        """A stamp in UTC as far as its zone is known, on its own clock."""
        return utc(stamp_ns, line_offset_s, source, self.zones)

    def of_mark(self, mark: StepMark) -> int | None:
        """Aligned nanoseconds of a common step, None where its clock is linked to nothing."""
        stamp = mark_utc(mark, self.zones)
        placed = self.alignment.place(mark.clock, stamp)
        if placed is None and mark.clock == self.reference:
            return stamp
        return placed[0] if placed else None

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
        first, second = (utc(s.stamp_ns or 0, s.utc_offset_s, s.source, self.zones) for s in (one, other))
        return second - first

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
