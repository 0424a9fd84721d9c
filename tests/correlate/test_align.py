"""Alignment of clocks on simulated jobs whose true clocks are known: errors stay small and inside the stated bounds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from firstfault.correlate.align import Observation, align
from firstfault.correlate.clock_fit import fit

from .simulator.clocks import (
    MOMENTS,
    SITUATIONS,
    START_S,
    HostClock,
    Situation,
    aligned,
    errors_at,
    make_clocks,
    measure,
    observe,
    step_times,
)

SEEDS = range(24)
BY_NAME = {one.name: one for one in SITUATIONS}
LIMITS_MS = {
    "all ranks print, ms stamps": (1, 2, 20),
    "one rank of each host prints": (4, 6, 60),
    "rank 0 only, lines of the start, dump signal": (80, 80, 120),
    "dump signal only": (400, 400, 400),
    "1 s stamps, step = 2 s (no dither)": (900, 900, 900),
    "1 s stamps, step = 3.7 s (dithers)": (120, 120, 140),
    "20 % of lines late by 0-5 s": (6, 8, 70),
    "40 % of lines late by 0-5 s": (1300, 1300, 1300),
    "30 % of steps wrong by up to 5": (6, 8, 70),
    "one clock is set by 2-60 s mid-run": (5, 6, 60),
    "3 of 8 hosts are read a year off": (4, 6, 60),
    "10 steps only": (6, 8, 80),
}
"""95th percentile of the error mid-run, at the last step and 660 s later."""


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.name)
def test_errors_are_small_and_inside_their_bounds(situation: Situation) -> None:
    for (moment, one), limit in zip(measure(situation, SEEDS).items(), LIMITS_MS[situation.name], strict=True):
        error, bound = np.array(one.error_s), np.array(one.bound_s)
        assert np.percentile(error, 95) * 1e3 <= limit, moment
        assert np.mean(error <= bound) >= 0.94, moment


def test_every_situation_has_its_limits() -> None:
    assert set(LIMITS_MS) == set(BY_NAME)
    assert {len(one) for one in LIMITS_MS.values()} == {len(MOMENTS)}


def test_a_bound_is_of_use_where_lines_are_plenty() -> None:
    """A bound that covers everything because it is huge orders nothing."""
    one = measure(BY_NAME["one rank of each host prints"], SEEDS)
    assert np.median(one["last step"].bound_s) < 0.02
    long = measure(Situation("an hour of steps", steps=1800), range(4))
    assert np.median(long["last step"].bound_s) < 0.03


@pytest.mark.parametrize("hosts", [2, 3])
def test_few_hosts_align_as_well(hosts: int) -> None:
    one = measure(BY_NAME["one rank of each host prints"], SEEDS, hosts)["last step"]
    assert np.percentile(one.error_s, 95) < 0.01
    assert np.mean(np.array(one.error_s) <= np.array(one.bound_s)) >= 0.94


def test_the_order_of_observations_decides_nothing() -> None:
    situation = BY_NAME["20 % of lines late by 0-5 s"]
    chance = np.random.default_rng(5)
    clocks = make_clocks(chance, situation, 8)
    seen = list(observe(chance, situation, clocks, step_times(chance, situation)))
    shuffled = seen.copy()
    random.Random(1).shuffle(shuffled)
    assert align(shuffled) == align(seen)


@pytest.mark.parametrize("shift_s", [3600.0, -7 * 3600.0 + 13.7, 0.25])
def test_a_shifted_clock_only_shifts_its_own_offset(shift_s: float) -> None:
    situation = BY_NAME["one rank of each host prints"]
    before, clocks, times = aligned(3, situation)
    victim = next(clock for clock in clocks if clock.name != before.reference)
    moved = [HostClock(one.name, one.offset_s + (shift_s if one is victim else 0.0), one.drift) for one in clocks]

    def seen(of: list[HostClock]) -> list[Observation]:
        chance = np.random.default_rng(11)
        return list(observe(chance, situation, of, times))

    one, other = align(seen(clocks)), align(seen(moved))
    for clock in clocks:
        a, b = (alignment.clocks[clock.name].segments[-1].offset_s for alignment in (one, other))
        assert b - a == pytest.approx(shift_s if clock is victim else 0.0, abs=0.005)


def test_the_reference_keeps_its_own_stamps() -> None:
    alignment, clocks, times = aligned(7, BY_NAME["one rank of each host prints"])
    reference = next(clock for clock in clocks if clock.name == alignment.reference)
    stamp = reference.stamp_ns(times[-1], 0.001)
    placed = alignment.place(reference.name, stamp)
    assert placed is not None
    assert abs(placed[0] - stamp) < 1_000


def test_clocks_without_a_common_event_are_not_compared() -> None:
    """
    h0  a---b---c
    h1  a---b---c
    h2              x---y      nobody else saw x or y
    """
    seen = [
        Observation(f"wall:h{host}", event, (100 + number * 10 + host) * 10**9, 10**6)
        for host in (0, 1)
        for number, event in enumerate("abc")
    ] + [Observation("wall:h2", event, 500 * 10**9, 10**6) for event in "xy"]
    alignment = align(seen)
    assert alignment.reference == "wall:h0"
    assert alignment.place("wall:h2", 500 * 10**9) is None
    placed = alignment.place("wall:h1", 111 * 10**9)
    assert placed is not None
    assert abs(placed[0] - 110 * 10**9) <= placed[1]


def test_a_chain_of_pairs_links_its_ends() -> None:
    """h0 and h2 share no event, h1 shares one with each."""
    seen = [
        Observation("wall:h0", "a", 100 * 10**9, 10**6),
        Observation("wall:h1", "a", 160 * 10**9, 10**6),
        Observation("wall:h1", "b", 170 * 10**9, 10**6),
        Observation("wall:h2", "b", 10 * 10**9, 10**6),
    ]
    alignment = align(seen)
    offset = {name: one.segments[0].offset_s for name, one in alignment.clocks.items()}
    assert offset["wall:h1"] - offset["wall:h0"] == pytest.approx(60, abs=0.1)
    assert offset["wall:h2"] - offset["wall:h1"] == pytest.approx(-160, abs=0.1)


def test_nothing_is_aligned_without_observations() -> None:
    assert align([]).place("wall:h0", 1) is None


def test_a_stamp_that_a_clock_showed_twice_is_bounded_by_both() -> None:
    """
    true   0 ......... 40 ......... 80
    h0     0 ......... 40 ......... 80
    h4     0 ......... 40|10 ...... 50     set back by 30 s: its stamps 10 to 40 mean two moments
    """
    situation = Situation("set back")
    clocks = [HostClock(f"wall:h{n}", 0.0, 0.0, 41.0 if n == 4 else float("inf"), -30.0) for n in range(8)]
    chance = np.random.default_rng(2)
    alignment = align(observe(chance, situation, clocks, step_times(chance, situation)))
    placed = alignment.place("wall:h4", round((START_S + 20.0) * 1e9))
    assert placed is not None
    for true_s in (20.0, 50.0):
        assert abs(placed[0] - (START_S + true_s) * 1e9) <= placed[1]
    alone = alignment.place("wall:h4", round((START_S + 45.0) * 1e9))
    assert alone is not None
    assert abs(alone[0] - (START_S + 75.0) * 1e9) <= alone[1] < 0.1e9


def test_late_lines_at_the_end_are_no_step_of_the_clock() -> None:
    situation = Situation("the last three steps are late on one host")
    clocks = [HostClock(f"wall:h{n}", 0.0, 0.0) for n in range(3)]
    chance = np.random.default_rng(4)
    times = step_times(chance, situation)
    seen = list(observe(chance, situation, clocks, times))
    late = {f"step {step}": 0.8 + 0.9 * number for number, step in enumerate(range(37, 40))}
    moved = [
        Observation(one.clock, one.event, one.stamp_ns + round(late.get(one.event, 0.0) * 1e9), one.res_ns)
        if one.clock == "wall:h1"
        else one
        for one in seen
    ]
    alignment = align(moved)
    assert all(len(one.segments) == 1 for one in alignment.clocks.values())
    assert max(errors_at(alignment, clocks, times[-1], 0.001).error_s) < 0.02


def test_stamps_of_whole_seconds_that_lie_far_apart_have_a_middle() -> None:
    """Two points, a minute apart: near their median lies none of them."""
    found = fit(np.array([0.0, 1.0]), np.array([-30.0, 30.0]), 0.0, 1.0, 0.0, 1.0)
    assert found.offset_s == pytest.approx(0.0, abs=30.0)
