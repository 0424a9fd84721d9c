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
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDS = 8
_MAX_DRIFT = 500e-6
_USUAL_DRIFT = 40e-6
_LEAST_DRIFT_ERROR = 20e-6
_LEAST_NOISE_S = 0.001


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
        """Half width in seconds of what the alignment knows at a time: 95 in 100 errors lie inside."""
        near = (2.0 + 4.0 / max(self.points, 1)) * self.noise_s / max(1.0, self.points**0.5)
        drift = 2.2 * self.slope_error * (true_s - self.middle_s)
        return float(near + self.noise_s + 0.55 * self.resolution_s + abs(drift))


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
    """True time at which a residual series jumps by more than twenty times its noise, None where it does not.

    Lines that are late by seconds scatter; after a clock was set, all of them are off by the same.
    """
    n = len(residual)
    if n < 8:
        return None
    sums = np.concatenate(([0.0], np.cumsum(residual)))
    split = np.arange(4, n - 3)
    left, right = sums[split] / split, (sums[n] - sums[split]) / (n - split)
    best = int(split[np.argmax(np.abs(right - left) * np.sqrt(split * (n - split)))])
    before, after = residual[:best], residual[best:]
    gap = abs(float(np.median(after) - np.median(before)))
    noise = max(_spread(before), _spread(after))
    if gap > max(15 * noise, 5 * resolution, 0.5):
        return float((true[best - 1] + true[best]) / 2)
    return None


def _cuts(true: Floats, residual: Floats, resolution: float, depth: int = 3) -> list[float]:
    """True times of all steps of one clock, in order."""
    cut = _find_step(true, residual, resolution) if depth else None
    if cut is None:
        return []
    first = true < cut
    return [
        *_cuts(true[first], residual[first], resolution, depth - 1),
        cut,
        *_cuts(true[~first], residual[~first], resolution, depth - 1),
    ]


def _spread(values: Floats) -> float:
    """Standard deviation by the median of absolute deviations."""
    return float(np.median(np.abs(values - np.median(values)))) * 1.4826 if len(values) else 0.0


def _centre(values: Floats, resolution: float) -> float:
    """Median; of stamps cut to whole seconds the trimmed mean, because they fall on few values."""
    if not len(values):
        return 0.0
    if resolution < 0.1:
        return float(np.median(values))
    rest = np.sort(values)[len(values) // 5 : len(values) - len(values) // 5]
    return float(np.mean(rest))


def _fit(true: Floats, residual: Floats, offset: float, resolution: float, from_s: float, usual: float) -> Segment:
    """Offset, drift and noise of one stretch of one clock; `usual` is the noise of all clocks together.

    The drift is a line through the points that lie within three deviations, drawn towards zero by how little it is
    known.
    """
    n = len(true)
    slope, error, middle = 0.0, _USUAL_DRIFT, float(np.median(true)) if n else 0.0
    rest = residual
    if n >= 6:
        keep = np.ones(n, dtype=bool)
        for _ in range(4):
            x, y = true[keep], residual[keep]
            middle = float(np.mean(x))
            around = float(np.sum((x - middle) ** 2))
            rise = float(np.sum((x - middle) * (y - np.mean(y)))) / around if around > 0 else 0.0
            rest = residual - rise * (true - middle)
            sigma = max(_spread(rest), 0.3 * resolution, _LEAST_NOISE_S)
            inside = np.abs(rest - np.median(rest)) <= 3 * sigma + 0.5 * resolution
            if inside.sum() < 6 or (inside == keep).all():
                break
            keep = inside
        if around > 0 and abs(rise) < _MAX_DRIFT:
            measured = sigma / around**0.5
            weight = _USUAL_DRIFT**2 / (_USUAL_DRIFT**2 + measured**2)
            slope, error = weight * rise, max(weight**0.5 * measured, _LEAST_DRIFT_ERROR)
        rest = residual - slope * (true - middle)
    centre = _centre(rest, resolution)
    # few points tell little of their own noise: that of all clocks counts as four more
    noise = float(np.hypot(_spread(rest) * n**0.5, usual * 2) / (n + 4) ** 0.5)
    return Segment(from_s, offset + centre, slope, middle, max(noise, _LEAST_NOISE_S), error, resolution, n)


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
    rest = (stamp - x[event] - theta[clock])[shared[event]]
    free = max(1, len(rest) - int(shared.sum()) - len(names) + 1)
    usual = float(np.median(np.abs(rest))) * 1.4826 * (len(rest) / free) ** 0.5 if len(rest) else 0.0
    fitted: dict[str, Aligned] = {}
    for number, name in enumerate(names):
        mine = np.flatnonzero((clock == number) & shared[event])
        mine = mine[np.argsort(x[event[mine]], kind="stable")]
        true, residual = x[event[mine]], stamp[mine] - x[event[mine]] - theta[number]
        bounds = [-np.inf, *_cuts(true, residual, float(first[number])), np.inf]
        segments = tuple(
            _fit(true[inside], residual[inside], float(theta[number]), float(first[number]), low, usual)
            for low, high in pairwise(bounds)
            if (inside := (true >= low) & (true < high)).any() or len(bounds) == 2
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
    reference = names[min(inside, key=lambda number: (len(fitted[names[number]].segments), -counts[number], names[number]))]
    frame = fitted[reference].segments
    alone = any(one.component == main and len(one.segments) < len(frame) for one in fitted.values())
    clocks = {}
    for name, one in fitted.items():
        if name == reference and not alone:
            segments: tuple[Segment, ...] = (replace(frame[-1], from_s=-np.inf, offset_s=0.0, slope=0.0, slope_error=0.0),)
        else:
            segments = tuple(
                _against(segment, frame[-1] if alone else _covering(frame, segment), name == reference)
                for segment in one.segments
            )
        clocks[name] = Aligned(name, 0 if one.component == main else one.component + 1, segments, one.how)
    return Alignment(reference, base, clocks)


def _covering(frame: tuple[Segment, ...], segment: Segment) -> Segment:
    """The reference's segment at the middle of another clock's."""
    return [one for one in frame if one.from_s <= segment.middle_s][-1] if len(frame) > 1 else frame[0]


def _against(segment: Segment, frame: Segment, itself: bool) -> Segment:
    """A segment against the reference's clock instead of the common one; what is not known of either adds up."""

    def seen(true_s: float) -> float:
        return true_s + frame.offset_s + frame.slope * (true_s - frame.middle_s)

    middle = seen(segment.middle_s)
    return Segment(
        from_s=seen(segment.from_s) if np.isfinite(segment.from_s) else segment.from_s,
        offset_s=segment.middle_s + segment.offset_s - middle,
        slope=(1.0 + segment.slope) / (1.0 + frame.slope) - 1.0,
        middle_s=middle,
        noise_s=segment.noise_s if itself else float(np.hypot(segment.noise_s, frame.noise_s)),
        slope_error=float(np.hypot(segment.slope_error, frame.slope_error)),
        resolution_s=float(np.hypot(segment.resolution_s, 0.0 if itself else frame.resolution_s)),
        points=segment.points,
    )
