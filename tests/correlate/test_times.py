"""Which lines say something about clocks, and what a stamp is worth."""

from __future__ import annotations

import pytest

from firstfault.correlate.model import Moment

from .timeline_builder import BASE_NS, SECOND, Job


def offsets(job: Job) -> dict[str, float | None]:
    """Offset of each clock in seconds against the reference, None where nothing links it."""
    alignment = job.correlate().times.alignment
    return {
        name: round(one.segments[-1].offset_s, 2) if one.component == 0 else None
        for name, one in alignment.clocks.items()
    }


def test_common_steps_link_clocks() -> None:
    job = Job(skew={"b": 400.0}, a=1, b=1)
    for log in job.ranks():
        log.steps(8)
    assert offsets(job) == {"wall:a": 0.0, "wall:b": pytest.approx(400.0, abs=0.01)}


def test_steps_of_different_attempts_are_different_events() -> None:
    """
    a  attempt 0: steps 1-3 from 0
    b  attempt 1: steps 1-3 from 100
    """
    job = Job(a=1, b=1)
    job.rank(0).steps(3)
    for step in (1, 2, 3):
        job.rank(1, 1).step(step, 100 + step)
    assert set(offsets(job).values()) == {0.0, None}


def test_a_common_start_links_clocks() -> None:
    job = Job(skew={"b": 30.0}, a=1, b=1)
    for log in job.ranks():
        log.signal("sync", at=1, fact="sync-process-group")
    assert offsets(job) == {"wall:a": 0.0, "wall:b": pytest.approx(30.0, abs=0.05)}


def test_statements_about_ntp_time_link_clocks() -> None:
    """chronyc on both hosts: a is exact, b is 12.5 s fast."""
    job = Job(skew={"b": 12.5}, a=1, b=1)
    for log in job.ranks():
        log.say("begins", at=1)
    job.log("a/chrony.txt", "status", "a").signal("clock", at=None, fact="clock-chrony", offset_s="0.000", state="fast")
    job.log("b/chrony.txt", "status", "b").signal("clock", at=None, fact="clock-chrony", offset_s="12.5", state="fast")
    found = offsets(job)
    assert found["wall:b"] is not None
    assert found["wall:a"] is not None
    assert found["wall:b"] - found["wall:a"] == pytest.approx(12.5, abs=0.2)


def test_a_dump_signal_links_clocks() -> None:
    """All ranks see the signal within a second: without any common step it is the only link."""
    job = Job(skew={"b": 400.0}, a=1, b=1)
    for log in job.ranks():
        log.say("begins", at=1).dump_signal(0, at=610)
    assert offsets(job) == {"wall:a": 0.0, "wall:b": pytest.approx(400.0, abs=1.0)}


def test_a_line_without_a_stamp_lies_somewhere_after_its_neighbour() -> None:
    job = Job(a=1, b=1)
    for log in job.ranks():
        log.steps(8)
    job.rank(0).lost("b", at=None)
    found = job.correlate()
    signal = next(one for one in found.timeline.signals if one.event == "peer-loss")
    moment = found.times.of(signal)
    assert moment is not None
    assert abs(moment.ns - (BASE_NS + 8 * SECOND)) < SECOND
    assert moment.end_ns > BASE_NS + 60 * SECOND


def test_whole_seconds_are_as_coarse_as_they_are() -> None:
    job = Job(a=1, b=1)
    for log in job.ranks():
        log.resolution = 1.0
        log.steps(8)
    job.rank(0).lost("b", at=9.4)
    found = job.correlate()
    signal = next(one for one in found.timeline.signals if one.event == "peer-loss")
    moment = found.times.of(signal)
    assert moment is not None
    assert moment.ns - moment.bound_ns <= BASE_NS + 9.4 * SECOND <= moment.end_ns
    assert moment.end_ns - moment.ns >= SECOND


@pytest.mark.parametrize(
    ("one", "other", "before"),
    [
        (Moment(0, 10), Moment(30, 10), True),
        (Moment(0, 10), Moment(20, 10), False),
        (Moment(0, 10), Moment(30, 25), False),
        (Moment(0, 10, 100), Moment(30, 10), False),
        (Moment(30, 10), Moment(0, 10), False),
    ],
)
def test_order_needs_a_gap_between_the_bounds(one: Moment, other: Moment, before: bool) -> None:
    assert one.surely_before(other) is before
