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

from firstfault.correlate.clock_fit import Floats, Segment, against, covering, cuts, exact, fit

Ints = NDArray[np.int64]

_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Observation:
    """One clock's stamp of one event: nanoseconds as printed (UTC where the zone is known), and the resolution."""

    clock: str
    event: str
    stamp_ns: int
    res_ns: int


@dataclass(frozen=True, slots=True)
class Aligned:
    """One clock: its segments in order of true time, and its component: clocks of one component can be compared."""

    clock: str
    component: int
    segments: tuple[Segment, ...]
    how: str

    def place(self, stamp_s: float) -> tuple[float, float]:
        """Time on the reference clock and its bound.

        After a clock was set back its stamps repeat: the later stretch is taken, and the bound reaches the other.
        """
        if len(self.segments) == 1:
            only = self.segments[0]
            true = only.true_time(stamp_s)
            return true, only.bound(true)
        ends = [*(one.from_s for one in self.segments[1:]), float("inf")]
        found = [
            (true, one.bound(true))
            for one, end in zip(self.segments, ends, strict=True)
            if one.from_s <= (true := one.true_time(stamp_s)) < end
        ]
        if not found:  # the clock was set forward past this stamp
            true = self.segments[-1].true_time(stamp_s)
            found = [(true, self.segments[-1].bound(true))]
        true, bound = found[-1]
        return true, max(bound, *(abs(true - other) + wide for other, wide in found))


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
        true, bound = one.place((stamp_ns - self.base_ns) / 1e9)
        return self.base_ns + round(true * 1e9), round(bound * 1e9)


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


def _grouped_cluster(values: Floats, groups: Ints, count: int) -> Floats:
    """Middle of the third of each group that lies closest together: lines that are late by seconds lie apart."""
    order = np.lexsort((values, groups))
    sorted_values, sorted_groups = values[order], groups[order]
    starts = np.searchsorted(sorted_groups, np.arange(count))
    sizes = np.searchsorted(sorted_groups, np.arange(count), side="right") - starts
    reach = np.where(sizes > 3, sizes // 3, np.maximum(sizes - 1, 0))[sorted_groups]
    here = np.arange(len(sorted_values))
    ends = here + reach
    whole = ends < (starts + sizes)[sorted_groups]
    width = np.where(whole, sorted_values[np.where(whole, ends, 0)] - sorted_values, np.inf)
    best = np.lexsort((here, width, sorted_groups))
    chosen = best[np.clip(np.searchsorted(sorted_groups, np.arange(count)), 0, max(len(best) - 1, 0))]
    middle = (sorted_values[chosen] + sorted_values[np.clip(chosen + reach[chosen], 0, len(here) - 1)]) / 2
    return np.where(sizes > 0, middle, np.nan)


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
    if float(first.max()) < 0.1:
        for _ in range(_ROUNDS // 2):
            x = _grouped_cluster(stamp - theta[clock], event, len(events))
            theta = _grouped_median(stamp - x[event], clock, len(names))
    shared = np.bincount(event, minlength=len(events)) > 1
    rest = (stamp - x[event] - theta[clock])[shared[event]]
    free = max(1, len(rest) - int(shared.sum()) - len(names) + 1)
    usual = float(np.median(np.abs(rest))) * 1.4826 * (len(rest) / free) ** 0.5 if len(rest) else 0.0
    fitted: dict[str, Aligned] = {}
    for number, name in enumerate(names):
        mine = np.flatnonzero((clock == number) & shared[event])
        mine = mine[np.argsort(x[event[mine]], kind="stable")]
        true, residual = x[event[mine]], stamp[mine] - x[event[mine]] - theta[number]
        bounds = [-np.inf, *cuts(true, residual, float(first[number])), np.inf]
        segments = tuple(
            fit(true[inside], residual[inside], float(theta[number]), float(first[number]), low, usual)
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

    def steadiest(number: int) -> tuple[int, int, str]:
        return (len(fitted[names[number]].segments), -int(counts[number]), names[number])

    reference = names[min(inside, key=steadiest)]
    frame = fitted[reference].segments
    alone = any(one.component == main and len(one.segments) < len(frame) for one in fitted.values())
    clocks = {}
    for name, one in fitted.items():
        if name == reference and not alone:
            segments: tuple[Segment, ...] = (exact(frame[-1]),)
        else:
            segments = tuple(
                against(segment, frame[-1] if alone else covering(frame, segment), name == reference)
                for segment in one.segments
            )
        clocks[name] = Aligned(name, 0 if one.component == main else one.component + 1, segments, one.how)
    return Alignment(reference, base, clocks)
