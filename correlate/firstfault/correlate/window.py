"""The span of an attempt, and whether a machine's line lies surely outside it.

A kernel log without a zone may be read in any zone, so a line is stale only where no whole quarter of an hour between
-14 h and +14 h brings it near the run. A line with uptime only is placed by its boot time, or not at all.
"""

from __future__ import annotations

from enum import Enum

from firstfault.catalog.model import Event
from firstfault.correlate.load import Timeline
from firstfault.correlate.model import Moment, Signal
from firstfault.correlate.states import RankState
from firstfault.correlate.times import Times

_SECOND = 1_000_000_000
_ZONES_NS = 14 * 3600 * _SECOND
_BEFORE_NS = 15 * 60 * _SECOND
_AFTER_NS = 60 * 60 * _SECOND


class Fit(Enum):
    """How a machine's line lies to the run: within it, within it in another time zone only, outside, not known."""

    INSIDE = "inside"
    SHIFTED = "shifted"
    STALE = "stale"
    UNKNOWN = "unknown"


class Window:
    """First and last moment of an attempt's ranks, as the ranks print them."""

    def __init__(self, timeline: Timeline, times: Times, states: dict[int, RankState]) -> None:
        self._times = times
        first: list[int] = []
        last: list[int] = []
        for state in states.values():
            for extent in state.extents:
                for stamp, into in ((extent.first_ns, first), (extent.last_ns, last)):
                    if stamp is not None:
                        into.append(times.in_utc(stamp, extent.source))
        if not first:
            for source in timeline.sources.values():
                span = timeline.clock_spans.get(source.clock or "")
                if span and source.kind in ("rank", "node", "job", "launcher"):
                    first.append(span[0])
                    last.append(span[1])
        self.first_ns = min(first, default=None)
        self.last_ns = max(last, default=None)
        self._boot: dict[str, int] = {}
        for signal in timeline.facts(Event.CLOCK):
            if signal.source.host and (boot := signal.captures.get("boot_epoch")):
                try:
                    self._boot[signal.source.host] = round(float(boot) * _SECOND)
                except ValueError:
                    continue

    def moment(self, signal: Signal) -> Moment | None:
        """Moment of a machine's line where a clock or a boot time places it."""
        if signal.stamp_kind == "monotonic":
            boot = self._boot.get(signal.source.host or "")
            if boot is None or signal.stamp_ns is None:
                return None
            return Moment(boot + signal.stamp_ns, 2 * _SECOND)
        return self._times.of(signal)

    def fit(self, signal: Signal) -> Fit:
        """How a machine's line lies to the run."""
        if self.first_ns is None or self.last_ns is None or signal.rank is not None:
            return Fit.UNKNOWN
        if signal.stamp_kind == "monotonic" or signal.stamp_ns is None:
            placed = self.moment(signal)
            if placed is None:
                return Fit.UNKNOWN
            stamp = placed.ns
        else:
            stamp = self._times.in_utc(signal.stamp_ns, signal.source, signal.utc_offset_s)
            aligned = self._times.of(signal)
            if aligned is not None and aligned.bound_ns < _BEFORE_NS:
                stamp = aligned.ns
        if self.first_ns - _BEFORE_NS <= stamp <= self.last_ns + _AFTER_NS:
            return Fit.INSIDE
        if stamp + _ZONES_NS < self.first_ns - _BEFORE_NS or stamp - _ZONES_NS > self.last_ns + _AFTER_NS:
            return Fit.STALE
        return Fit.SHIFTED

    def stale(self, signal: Signal) -> bool:
        """Whether a line lies surely before or after the run."""
        return self.fit(signal) is Fit.STALE
