"""Simulated clocks of hosts and the sync points that their logs would show, with the truth kept beside them.

A host's clock is off by minutes, may stand in another time zone, drifts, and may be set while the job runs. Lines are
printed a little after the event, sometimes seconds after it where output is buffered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from firstfault.correlate.align import Alignment, Observation, align
from firstfault.correlate.sync_points import note_moment

ZONES_S = (0, 3600, -5 * 3600, 5 * 3600 + 1800, 8 * 3600)
YEAR_S = 365 * 86400
START_S = 1_780_000_000.0
JITTER_S = 0.005
LOCAL_RANKS = 8


@dataclass(frozen=True, slots=True)
class Situation:
    """What hosts print, and how badly."""

    name: str
    printers: int = 1  # ranks of a host that print each step
    steps: int = 40
    step_s: float = 2.0
    resolution_s: float = 0.001
    only_first: bool = False  # only the first host prints steps; all print the two lines of the start
    dump: bool = False  # the dump signal is seen by every rank within a second
    late: float = 0.0  # share of lines that are printed up to five seconds late
    wrong: float = 0.0  # share of lines that name a step up to five steps off
    set_clock: bool = False  # one host's clock is set by 2 to 60 s while the job runs
    year_off: int = 0  # hosts whose stamps are read in another year
    exact: bool = False  # step times do not wander against whole seconds


@dataclass(frozen=True, slots=True)
class HostClock:
    """What one host's clock shows at a true time."""

    name: str
    offset_s: float
    drift: float
    set_at_s: float = float("inf")
    set_by_s: float = 0.0

    def reading(self, true_s: float) -> float:
        """The clock's reading in seconds; the epoch is the start of the job."""
        own = true_s * (1.0 + self.drift) + self.offset_s
        return own + (self.set_by_s if true_s >= self.set_at_s else 0.0)

    def stamp_ns(self, true_s: float, resolution_s: float) -> int:
        """The reading as a log prints it, cut to its resolution."""
        unit = round(resolution_s * 1e9)
        return round((START_S + self.reading(true_s)) * 1e9) // unit * unit


SITUATIONS = (
    Situation("all ranks print, ms stamps", printers=8),
    Situation("one rank of each host prints"),
    Situation("rank 0 only, lines of the start, dump signal", only_first=True, dump=True),
    Situation("dump signal only", steps=0, dump=True),
    Situation("1 s stamps, step = 2 s (no dither)", resolution_s=1.0, exact=True),
    Situation("1 s stamps, step = 3.7 s (dithers)", resolution_s=1.0, step_s=3.7),
    Situation("20 % of lines late by 0-5 s", late=0.2),
    Situation("40 % of lines late by 0-5 s", late=0.4),
    Situation("30 % of steps wrong by up to 5", wrong=0.3),
    Situation("one clock is set by 2-60 s mid-run", set_clock=True),
    Situation("3 of 8 hosts are read a year off", year_off=3),
    Situation("10 steps only", steps=10),
)


@dataclass(frozen=True, slots=True)
class Errors:
    """Absolute errors in seconds of all hosts but the reference at one moment, and the bounds that were stated."""

    error_s: tuple[float, ...]
    bound_s: tuple[float, ...]


def make_clocks(chance: np.random.Generator, situation: Situation, hosts: int) -> list[HostClock]:
    """Clocks with random offsets, zones and drifts."""
    length = max(situation.steps, 1) * situation.step_s
    clocks = []
    for number in range(hosts):
        offset = float(chance.uniform(-300, 300)) + float(chance.choice(ZONES_S))
        if number < situation.year_off:
            offset -= YEAR_S
        at, by = float("inf"), 0.0
        if situation.set_clock and number == hosts // 2:
            at = float(chance.uniform(0.2, 0.8)) * length
            by = float(chance.uniform(2, 60)) * float(chance.choice((-1, 1)))
        clocks.append(HostClock(f"wall:node-{number:02d}", offset, float(chance.uniform(-50e-6, 50e-6)), at, by))
    return clocks


def step_times(chance: np.random.Generator, situation: Situation) -> list[float]:
    """True times at which all ranks pass a step."""
    wander = 0.0 if situation.exact else 0.02 * situation.step_s
    lengths = situation.step_s + chance.uniform(-wander, wander, size=situation.steps)
    return [float(at) for at in np.cumsum(lengths)]


@dataclass(frozen=True, slots=True)
class Seen:
    """One line about one common event: who prints it, what it names, and when, in true time."""

    clock: HostClock
    local: int
    kind: str  # step, barrier, fired (the watchdog of the first rank), told (a rank that found its note)
    name: str
    at_s: float


def lines_of(
    chance: np.random.Generator, situation: Situation, clocks: list[HostClock], times: list[float]
) -> Iterator[Seen]:
    """What all hosts print of all sync points."""
    end = times[-1] if times else 0.0
    for number, clock in enumerate(clocks):
        if situation.only_first:
            for name, at in (("rendezvous", -30.0), ("init", -20.0)):
                yield Seen(clock, 0, "barrier", name, at + float(chance.exponential(4 * JITTER_S)))
        if not situation.only_first or number == 0:
            for step, at in enumerate(times):
                for local in range(situation.printers):
                    late = float(chance.uniform(0, 5)) if chance.random() < situation.late else 0.0
                    named = step
                    if chance.random() < situation.wrong:
                        named += int(chance.choice((-1, 1))) * int(chance.integers(1, 6))
                    yield Seen(clock, local, "step", str(named), at + late + float(chance.exponential(JITTER_S)))
        if situation.dump:
            if number == 0:
                yield Seen(clock, 0, "fired", "dump", end + 20.0)
            for local in range(1 if number == 0 else 0, LOCAL_RANKS):  # each rank asks the store once a second
                yield Seen(clock, local, "told", "dump", end + 20.0 + float(chance.uniform(0, 1)))


def observe(
    chance: np.random.Generator, situation: Situation, clocks: list[HostClock], times: list[float]
) -> Iterator[Observation]:
    """The same as observations."""
    unit = round(situation.resolution_s * 1e9)
    told: dict[str, list[int]] = defaultdict(list)
    fired: set[str] = set()
    for seen in lines_of(chance, situation, clocks, times):
        stamp = seen.clock.stamp_ns(seen.at_s, situation.resolution_s)
        if seen.kind == "told":
            told[seen.clock.name].append(stamp)
            continue
        if seen.kind == "fired":
            fired.add(seen.clock.name)
        yield Observation(seen.clock.name, f"{seen.kind if seen.kind == 'step' else ''} {seen.name}", stamp, unit)
    for clock, stamps in told.items():
        if clock not in fired:
            yield Observation(clock, " dump", *note_moment(stamps, unit))


def aligned(seed: int, situation: Situation, hosts: int = 8) -> tuple[Alignment, list[HostClock], list[float]]:
    """One simulated job: its alignment, its true clocks, the true times of its steps."""
    chance = np.random.default_rng(seed)
    clocks = make_clocks(chance, situation, hosts)
    times = step_times(chance, situation)
    return align(observe(chance, situation, clocks, times)), clocks, times


def errors_at(alignment: Alignment, clocks: list[HostClock], true_s: float, resolution_s: float) -> Errors:
    """How far each clock's placed stamp lies from the reference's, for one moment."""
    by_name = {clock.name: clock for clock in clocks}
    reference = by_name[alignment.reference or ""]
    # an exact stamp: the bound of a coarse stamp is not the alignment's
    origin = alignment.place(reference.name, round((START_S + reference.reading(true_s)) * 1e9))
    assert origin is not None
    error, bound = [], []
    for clock in clocks:
        if clock is reference:
            continue
        placed = alignment.place(clock.name, round((START_S + clock.reading(true_s)) * 1e9))
        if placed is None:
            error.append(float("inf"))
            bound.append(float("inf"))
        else:
            error.append(abs(placed[0] - origin[0]) / 1e9)
            bound.append(placed[1] / 1e9)
    return Errors(tuple(error), tuple(bound))


MOMENTS = ("mid-run", "last step", "660 s later")


Aligner = Callable[[int, Situation, int], tuple[Alignment, list[HostClock], list[float]]]


def measure(situation: Situation, seeds: range, hosts: int = 8, how: Aligner = aligned) -> dict[str, Errors]:
    """Errors and bounds of many jobs, by the moment that is placed."""
    found: dict[str, Errors] = {name: Errors((), ()) for name in MOMENTS}
    for seed in seeds:
        alignment, clocks, times = how(seed, situation, hosts)
        end = times[-1] if times else 20.0
        for name, at in zip(MOMENTS, (end / 2, end, end + 660.0), strict=True):
            one = errors_at(alignment, clocks, at, situation.resolution_s)
            found[name] = Errors(found[name].error_s + one.error_s, found[name].bound_s + one.bound_s)
    return found
