"""One stretch of one clock: the steps that end it, the line through its sync points, and the bound of what that tells.

Residuals come from `align`: the stamp less the time of the event, in seconds, in the order of the events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MAX_DRIFT = 500e-6
_USUAL_DRIFT = 40e-6
_WANDER = 20e-6
_LEAST_NOISE_S = 0.001


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
    first_s: float
    last_s: float

    def true_time(self, stamp_s: float) -> float:
        """Time on the reference clock for a stamp, both in seconds from the base."""
        return self.middle_s + (stamp_s - self.offset_s - self.middle_s) / (1.0 + self.slope)

    def bound(self, true_s: float) -> float:
        """Half width in seconds of what the alignment knows at a time: 95 in 100 errors lie inside."""
        near = (2.0 + 4.0 / max(self.points, 1)) * self.noise_s / max(1.0, self.points**0.5)
        # between its sync points a clock is seen; beyond them its drift may change
        beyond = _WANDER * max(0.0, self.first_s - true_s, true_s - self.last_s)
        drift = 2.2 * (self.slope_error * abs(true_s - self.middle_s) + beyond)
        return float(near + self.noise_s + 0.6 * self.resolution_s + drift)


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


def cuts(true: Floats, residual: Floats, resolution: float, depth: int = 3) -> list[float]:
    """True times of all steps of one clock, in order."""
    cut = _find_step(true, residual, resolution) if depth else None
    if cut is None:
        return []
    first = true < cut
    return [
        *cuts(true[first], residual[first], resolution, depth - 1),
        cut,
        *cuts(true[~first], residual[~first], resolution, depth - 1),
    ]


def _spread(values: Floats) -> float:
    """Standard deviation by the median of absolute deviations."""
    return float(np.median(np.abs(values - np.median(values)))) * 1.4826 if len(values) else 0.0


def _close_together(values: Floats, resolution: float) -> NDArray[np.bool_]:
    """The values around the third that lies closest together: lines that are printed late lie apart, even where they
    are the most.
    """
    ordered = np.sort(values)
    reach = max(len(values) // 3, 2)
    widths = ordered[reach:] - ordered[:-reach]
    start = int(np.argmin(widths))
    width = max(float(widths[start]), resolution, 2 * _LEAST_NOISE_S)
    return np.asarray(np.abs(values - (ordered[start] + ordered[start + reach]) / 2) <= 3 * width)


def _centre(values: Floats, resolution: float) -> float:
    """Median; of stamps cut to whole seconds the mean of what lies near it, because they fall on few values."""
    if not len(values):
        return 0.0
    median = float(np.median(values))
    near = values[np.abs(values - median) <= 1.01 * resolution]
    return median if resolution < 0.1 or not len(near) else float(np.mean(near))  # the middle of two may be near none


def fit(true: Floats, residual: Floats, offset: float, resolution: float, from_s: float, usual: float) -> Segment:
    """Offset, drift and noise of one stretch of one clock; `usual` is the noise of all clocks together.

    The drift is a line through the points that lie within three deviations, drawn towards zero by how little it is
    known.
    """
    n = len(true)
    slope, error, middle = 0.0, _USUAL_DRIFT, float(np.median(true)) if n else 0.0
    rest = residual
    if n >= 6:
        keep = _close_together(residual, resolution)
        for _ in range(4):
            x, y = true[keep], residual[keep]
            middle = float(np.mean(x))
            around = float(np.sum((x - middle) ** 2))
            rise = float(np.sum((x - middle) * (y - np.mean(y)))) / around if around > 0 else 0.0
            rest = residual - rise * (true - middle)
            sigma = max(_spread(rest[keep]), 0.3 * resolution, _LEAST_NOISE_S)
            inside = np.abs(rest - np.median(rest[keep])) <= 3 * sigma + 0.5 * resolution
            if inside.sum() < 6 or (inside == keep).all():
                break
            keep = inside
        if around > 0 and abs(rise) < _MAX_DRIFT:
            measured = sigma / around**0.5
            weight = _USUAL_DRIFT**2 / (_USUAL_DRIFT**2 + measured**2)
            slope, error = weight * rise, weight**0.5 * measured
        rest = (residual - slope * (true - middle))[keep]
    centre = _centre(rest, resolution)
    # few points tell little of their own noise: that of all clocks counts as four more
    noise = float(np.hypot(_spread(rest) * n**0.5, usual * 2) / (n + 4) ** 0.5)
    first, last = (float(true[0]), float(true[-1])) if n else (middle, middle)
    return Segment(
        from_s, offset + centre, slope, middle, max(noise, _LEAST_NOISE_S), error, resolution, n, first, last
    )


def exact(segment: Segment) -> Segment:
    """The reference's own segment: its clock is right by definition; what it is not sure of counts with the others."""
    return Segment(-np.inf, 0.0, 0.0, segment.middle_s, 0.0, 0.0, 0.0, segment.points, -np.inf, np.inf)


def covering(frame: tuple[Segment, ...], segment: Segment) -> Segment:
    """The reference's segment at the middle of another clock's."""
    return [one for one in frame if one.from_s <= segment.middle_s][-1] if len(frame) > 1 else frame[0]


def against(segment: Segment, frame: Segment, itself: bool) -> Segment:
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
        first_s=seen(segment.first_s),
        last_s=seen(segment.last_s),
    )
