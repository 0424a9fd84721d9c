"""Clock alignment: offset, drift and steps of every clock against a reference clock, each with a stated bound.

An observation says that one clock showed one stamp when an event happened that others saw too (a step of the training
loop, a rendezvous, a statement about NTP time). The model is t = X_e + theta_d + noise. It is solved by a median
polish, which half of the observations may contradict; noise is positive for late lines, so an event counts once per
clock, by its earliest stamp. Clocks with no shared event stay without an offset: only causal edges speak about them.

Sources: least-squares and bounds of Duda et al. 1987 and Jezequel and Jard 1996 for the problem, median polish of Tukey
for the solution.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDS = 8
_MAX_PPM = 500e-6
_FLOOR_PPM = 20e-6


@dataclass(frozen=True, slots=True)
class Observation:
    """One clock's stamp of one event: nanoseconds as printed (UTC where the zone is known), and the resolution."""

    clock: str
    event: str
    stamp_ns: int
    res_ns: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of one clock between steps: stamp - true = offset + slope * (true - middle), in seconds."""

    from_s: float
    offset_s: float
    slope: float
    middle_s: float
    noise_s: float
    slope_error: float
    resolution_s: float
    points: int

    def true_time(self, stamp_s: float) -> float:
        """Time on the reference clock for a stamp, both in seconds from the base."""
        return self.middle_s + (stamp_s - self.offset_s - self.middle_s) / (1.0 + self.slope)

    def bound(self, true_s: float) -> float:
        """Half width in seconds of what the alignment knows at a time."""
        spread = 2.5 * self.noise_s / max(1.0, self.points**0.5) + 0.55 * self.resolution_s + self.noise_s
        return float((spread**2 + (self.slope_error * (true_s - self.middle_s)) ** 2) ** 0.5)


@dataclass(frozen=True, slots=True)
class Aligned:
    """One clock: its segments in order of true time, and its component: clocks of one component can be compared."""

    clock: str
    component: int
    segments: tuple[Segment, ...]
    how: str

    def segment_at(self, stamp_s: float) -> Segment:
        """The segment that a stamp belongs to: the last one that had begun."""
        chosen = self.segments[0]
        for segment in self.segments[1:]:
            if segment.true_time(stamp_s) >= segment.from_s:
                chosen = segment
        return chosen


@dataclass(frozen=True, slots=True)
class Alignment:
    """All clocks, the reference, and the base that keeps seconds small."""

    reference: str | None
    base_ns: int
    clocks: dict[str, Aligned] = field(default_factory=dict)

    def place(self, clock: str, stamp_ns: int) -> tuple[int, int] | None:
        """Nanoseconds on the reference clock and the bound, None where the clock is not linked to the reference."""
        one = self.clocks.get(clock)
        if one is None or one.component != 0:
            return None
        stamp = (stamp_ns - self.base_ns) / 1e9
        segment = one.segment_at(stamp)
        true = segment.true_time(stamp)
        return self.base_ns + round(true * 1e9), round(segment.bound(true) * 1e9)


def _grouped_median(values: Floats, groups: Ints, count: int) -> Floats:
    """Median of `values` per group number; NaN for empty groups."""
    order = np.lexsort((values, groups))
    sorted_values, sorted_groups = values[order], groups[order]
    starts = np.searchsorted(sorted_groups, np.arange(count))
    ends = np.searchsorted(sorted_groups, np.arange(count), side="right")
    sizes = ends - starts
    low = sorted_values[np.clip(starts + (sizes - 1) // 2, 0, max(len(values) - 1, 0))]
    high = sorted_values[np.clip(starts + sizes // 2, 0, max(len(values) - 1, 0))]
    return np.where(sizes > 0, (low + high) / 2, np.nan)


def _components(event: Ints, clock: Ints, clocks: int, stamp: Floats) -> tuple[Ints, Floats]:
    """Component and first offset of each clock, by spreading from the clock with the most observations."""
    events = int(event.max()) + 1
    theta = np.full(clocks, np.nan)
    component = np.full(clocks, -1, dtype=np.int64)
    counts = np.bincount(clock, minlength=clocks)
    for number in range(clocks):
        open_clocks = np.flatnonzero(component < 0)
        if not len(open_clocks):
            break
        start = open_clocks[np.argmax(counts[open_clocks])]
        theta[start], component[start] = 0.0, number
        while True:
            known = component[clock] == number
            x = _grouped_median((stamp - theta[clock])[known], event[known], events)
            reachable = (component[clock] < 0) & ~np.isnan(x[event])
            if not reachable.any():
                break
            found = _grouped_median((stamp - x[event])[reachable], clock[reachable], clocks)
            fresh = np.flatnonzero(~np.isnan(found) & (component < 0))
            theta[fresh], component[fresh] = found[fresh], number
    return component, theta


def _find_step(true: Floats, residual: Floats, resolution: float) -> float | None:
    """True time at which a residual series jumps by more than twenty times its noise, None where it does not."""
    n = len(residual)
    if n < 8:
        return None
    sums = np.concatenate(([0.0], np.cumsum(residual)))
    split = np.arange(3, n - 2)
    left, right = sums[split] / split, (sums[n] - sums[split]) / (n - split)
    best = int(split[np.argmax(np.abs(right - left) * np.sqrt(split * (n - split)))])
    before, after = residual[:best], residual[best:]
    gap = float(np.median(after) - np.median(before))
    noise = float(np.median(np.abs(np.concatenate((before - np.median(before), after - np.median(after))))))
    if abs(gap) > max(20 * noise, 5 * resolution, 0.5):
        return float((true[best - 1] + true[best]) / 2)
    return None


def _fit(true: Floats, residual: Floats, offset: float, resolution: float, from_s: float) -> Segment:
    """Offset, drift and noise of one stretch of one clock."""
    n = len(true)
    middle = float(np.median(true)) if n else 0.0
    centre = float(np.median(residual)) if n else 0.0
    slope, slope_error = 0.0, 100e-6
    spread = float(np.median(np.abs(residual - centre))) * 1.4826 if n else resolution
    if n >= 6 and (third := n // 3) >= 2:
        span = float(np.median(true[-third:]) - np.median(true[:third]))
        rise = float(np.median(residual[-third:]) - np.median(residual[:third]))
        if span > 0:
            error = max(1.2533 * spread * (2 / third) ** 0.5, 0.3 * resolution / third**0.5) / span
            slope_error = float(min(max(error, _FLOOR_PPM), 100e-6))
            if abs(rise / span) > 2 * error and abs(rise / span) < _MAX_PPM:
                slope = rise / span
    rest = residual - centre - slope * (true - middle)
    centre += float(np.median(rest)) if n else 0.0
    spread = float(np.median(np.abs(rest - np.median(rest)))) * 1.4826 if n else resolution
    return Segment(from_s, offset + centre, slope, middle, spread, slope_error, resolution, n)


def align(observations: Iterable[Observation]) -> Alignment:
    """Place all clocks that share events; the reference is the clock with the most of them (ties: the lower name)."""
    earliest: dict[tuple[str, str], Observation] = {}
    for one in observations:
        key = (one.event, one.clock)
        if key not in earliest or one.stamp_ns < earliest[key].stamp_ns:
            earliest[key] = one
    if not earliest:
        return Alignment(None, 0)
    rows = [earliest[key] for key in sorted(earliest)]
    names = sorted({row.clock for row in rows})
    events = {name: number for number, name in enumerate(sorted({row.event for row in rows}))}
    index = {name: number for number, name in enumerate(names)}
    base = min(row.stamp_ns for row in rows)
    event = np.array([events[row.event] for row in rows], dtype=np.int64)
    clock = np.array([index[row.clock] for row in rows], dtype=np.int64)
    stamp = np.array([(row.stamp_ns - base) / 1e9 for row in rows])
    resolution = np.array([row.res_ns / 1e9 for row in rows])
    component, theta = _components(event, clock, len(names), stamp)
    x = np.zeros(len(events))
    for _ in range(_ROUNDS):
        x = _grouped_median(stamp - theta[clock], event, len(events))
        theta = _grouped_median(stamp - x[event], clock, len(names))
    first = _grouped_median(resolution, clock, len(names))
    shared = np.bincount(event, minlength=len(events)) > 1
    fitted: dict[str, Aligned] = {}
    for number, name in enumerate(names):
        mine = np.flatnonzero((clock == number) & shared[event])
        mine = mine[np.argsort(x[event[mine]], kind="stable")]
        true, residual = x[event[mine]], stamp[mine] - x[event[mine]] - theta[number]
        cut = _find_step(true, residual, float(first[number]))
        bounds = [-np.inf, *([cut] if cut is not None else []), np.inf]
        segments = tuple(
            _fit(true[inside], residual[inside], float(theta[number]), float(first[number]), low)
            for low, high in pairwise(bounds)
            if (inside := (true >= low) & (true < high)).any() or cut is None
        )
        how = f"{len(mine)} shared events" if len(mine) else "no shared event"
        fitted[name] = Aligned(name, int(component[number]), segments, how)
    return _relative(fitted, names, component, clock, base)


def _relative(fitted: dict[str, Aligned], names: list[str], component: Ints, clock: Ints, base: int) -> Alignment:
    """Choose the reference and express every clock of its component against it."""
    counts = np.bincount(clock, minlength=len(names))
    sizes = np.bincount(component)
    main = int(np.argmax(sizes))
    inside = [number for number in range(len(names)) if component[number] == main and names[number].startswith("wall:")]
    inside = inside or [number for number in range(len(names)) if component[number] == main]
    reference = names[min(inside, key=lambda number: (-counts[number], names[number]))]
    anchor = fitted[reference].segments[-1]
    clocks = {}
    for name, one in fitted.items():
        # the reference's own drift stays in everyone's slope: only differences of clocks can be seen
        segments = tuple(
            Segment(
                segment.from_s,
                segment.offset_s - anchor.offset_s,
                segment.slope,
                segment.middle_s,
                segment.noise_s,
                segment.slope_error,
                segment.resolution_s,
                segment.points,
            )
            for segment in one.segments
        )
        clocks[name] = Aligned(name, 0 if one.component == main else one.component + 1, segments, one.how)
    return Alignment(reference, base, clocks)
