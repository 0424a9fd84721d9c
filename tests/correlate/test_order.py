"""Two failures: ordered where something orders them, left open where nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.correlate.diagnosis import Verdict

from .timeline_builder import Job


def two_failures(first_at: float, second_at: float, linked: bool = True, **more: object) -> Job:
    """
    r1 (a)  out of memory at `first_at`
    r3 (b)  a file is missing at `second_at`
    the clock of b is 400 s ahead
    """
    job = Job(skew={"b": 400.0}, a=2, b=2)
    for log in job.ranks():
        if linked:
            log.steps(8)
        else:
            log.say("begins", at=1)
    job.rank(1).error("cuda-oom", at=first_at)
    job.rank(3).error("data-missing", at=second_at)
    job.launcher("a").exit(1, 1, at=first_at + 1).kill(0, at=first_at + 1)
    job.launcher("b").exit(3, 1, at=second_at + 1).kill(2, at=second_at + 1)
    return job


def test_aligned_clocks_order_two_failures() -> None:
    assert two_failures(9, 20).accused() == ("cuda-oom", (1,), ("a",))
    assert two_failures(20, 9).accused() == ("data-missing", (3,), ("b",))


def test_printed_times_do_not_order_two_failures() -> None:
    """By what is printed b's failure comes 400 s later, and yet it was first."""
    assert two_failures(9.0, 8.5).accused() == ("data-missing", (3,), ("b",))


def test_within_the_bounds_nothing_is_ordered(tmp_path: Path) -> None:
    found = two_failures(9.0, 9.002).diagnose(tmp_path)
    assert found.verdict is Verdict.UNDETERMINED
    assert {one.ranks for one in found.hypotheses[:2]} == {(1,), (3,)}
    assert found.missing_fact


def test_clocks_that_nothing_links_order_nothing(tmp_path: Path) -> None:
    found = two_failures(9, 300, linked=False).diagnose(tmp_path)
    assert found.verdict is Verdict.UNDETERMINED
    assert {clock.offset_seconds for clock in found.clocks} <= {0.0, None}


def test_two_failures_on_one_host_are_ordered_by_its_own_clock() -> None:
    """No clock needs to be aligned."""
    job = Job(a=3, b=1)
    for log in job.ranks():
        log.say("begins", at=1)
    job.rank(1).error("cuda-oom", at=9)
    job.rank(2).error("data-missing", at=40)
    for rank in (0, 3):
        job.rank(rank).lost("a", at=9.5)
    assert job.accused() == ("cuda-oom", (1,), ("a",))


def test_a_later_failure_is_told_beside_the_root(tmp_path: Path) -> None:
    found = two_failures(9, 20).diagnose(tmp_path)
    assert (found.verdict, found.initiating.ranks) == (Verdict.IDENTIFIED, (1,))
    assert [one.initiating.ranks for one in found.also] in ([], [(3,)])
    assert any(one.ranks == (3,) for one in found.hypotheses)


@pytest.mark.parametrize("skew", [0.0, 3600.0, -5 * 3600.0 - 17.3])
def test_the_clock_of_a_host_never_decides(skew: float) -> None:
    job = Job(skew={"b": skew}, a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.rank(3).error("cuda-oom", at=9)
    for log in job.ranks(3):
        log.lost("b", at=9.5)
    assert job.accused() == ("cuda-oom", (3,), ("b",))


def test_an_error_while_others_had_long_waited_is_not_what_they_wait_for() -> None:
    """
    r0,1  [#9 from 9 ............ 600 s] time-out at 609
    r3    counters: 8 at 611
    r2    a traceback at 612, when all is over
    """
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1):
        job.rank(rank).timeout(9, at=609, enqueued=9, completed=8)
    job.rank(3).counters(8, 8, at=611)
    job.rank(2).timeout(9, at=609, enqueued=9, completed=8).error("python-exception", at=612)
    assert job.accused() == ("collective-rank-absent", (3,), ("b",))
