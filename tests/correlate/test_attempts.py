"""Attempts: each start of the workers is judged by itself, the job by the first that lost progress."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.correlate.diagnosis import Verdict

from .timeline_builder import Job


def fails(job: Job, attempt: int, culprit: int, begin: float, cls: str = "cuda-oom") -> None:
    """In one attempt a rank fails after three steps and its peers lose it."""
    for number in range(len(job.hosts)):
        log = job.rank(number, attempt)
        for step in (1, 2, 3):
            log.step(step, begin + step)
        if number == culprit:
            log.error(cls, at=begin + 4)
        else:
            log.lost(job.host(culprit), at=begin + 4.5)
    job.launcher(job.host(culprit), attempt).exit(culprit, 1, at=begin + 5)


def completes(job: Job, attempt: int, begin: float) -> None:
    """In one attempt all ranks finish."""
    for number in range(len(job.hosts)):
        log = job.rank(number, attempt)
        for step in (4, 5, 6):
            log.step(step, begin + step)
        log.done(at=begin + 7)
    for host in job.names:
        job.launcher(host, attempt).success(at=begin + 8)


def test_the_first_attempt_that_failed_gives_the_root(tmp_path: Path) -> None:
    """
    attempt 0  r3 out of memory
    attempt 1  r1 a file is missing
    """
    job = Job(a=2, b=2)
    fails(job, 0, 3, 0)
    fails(job, 1, 1, 100, "data-missing")
    found = job.diagnose(tmp_path)
    assert (found.verdict, found.failure.cls, found.initiating.ranks) == (Verdict.IDENTIFIED, "cuda-oom", (3,))
    assert [(one.attempt, one.failure.cls, one.initiating.ranks) for one in found.attempts] == [
        (0, "cuda-oom", (3,)),
        (1, "data-missing", (1,)),
    ]


def test_an_error_of_one_attempt_explains_nothing_in_another() -> None:
    job = Job(a=2, b=2)
    fails(job, 0, 3, 0)
    fails(job, 1, 3, 100)
    for attempt in (0, 1):
        states = job.judge(attempt).view.states
        assert {rank: len(state.own) for rank, state in states.items()} == {0: 0, 1: 0, 2: 0, 3: 1}


def test_a_job_whose_last_attempt_completed_did_not_fail(tmp_path: Path) -> None:
    job = Job(a=2, b=2)
    fails(job, 0, 3, 0)
    completes(job, 1, 100)
    found = job.diagnose(tmp_path)
    assert found.verdict is Verdict.NO_FAILURE
    assert [one.verdict for one in found.attempts] == [Verdict.IDENTIFIED, Verdict.NO_FAILURE]


def test_a_later_attempt_that_is_cut_off_hides_no_failure(tmp_path: Path) -> None:
    """Attempt 1 only begins: nothing says how it ended, the root stays that of attempt 0."""
    job = Job(a=2, b=2)
    fails(job, 0, 3, 0)
    for number in range(4):
        job.rank(number, 1).step(4, 104)
    found = job.diagnose(tmp_path)
    assert (found.verdict, found.initiating.ranks) == (Verdict.IDENTIFIED, (3,))


def test_a_job_without_a_line_has_one_attempt(tmp_path: Path) -> None:
    job = Job(a=1)
    job.launcher("a").say("nothing to see", at=1)
    found = job.diagnose(tmp_path)
    assert (found.verdict, len(found.attempts)) == (Verdict.UNDETERMINED, 1)


def test_a_kernel_line_belongs_to_the_attempt_that_ran_at_its_time() -> None:
    """
    attempt 0  from   0 s  r3 out of memory
    attempt 1  from 1000 s r1 loses its device 300 s after the start, which the kernel of a tells
    """
    job = Job(a=2, b=2)
    fails(job, 0, 3, 0)
    completes(job, 1, 1000)
    job.kernel("a").xid(79, at=1300, bus_id=job.bus(1))
    job.rank(0, 1).step(9, 1310)
    assert [one.rule for one in job.judge(0).ranked.open + job.judge(0).ranked.explained if "device" in one.rule] == []
    assert [one.cls for one in job.judge(1).ranked.open] == ["gpu-fell-off-bus"]


def test_a_fault_right_after_a_restart_may_be_why_it_was_restarted() -> None:
    """The driver may tell of a fault minutes late: 60 s into attempt 1 it still belongs to attempt 0."""
    job = Job(a=2, b=2)
    fails(job, 0, 3, 0)
    completes(job, 1, 100)
    job.kernel("b").xid(79, at=160, bus_id=job.bus(3))
    assert "gpu-fell-off-bus" in {one.cls for one in job.judge(0).ranked.open}


def test_the_last_state_that_a_scheduler_lists_is_the_last_attempts(tmp_path: Path) -> None:
    """sacct lists a requeued job once for each start, in order; its stamps are on a clock that nothing links."""
    job = Job(a=2)
    for attempt, begin in ((0, 0), (1, 1000)):
        for number in (0, 1):
            job.rank(number, attempt).step(1 + 5 * attempt, begin).step(2 + 5 * attempt, begin + 1)
    told = job.scheduler()
    told.signal(
        "sched-action", "slurm-preempted", "preempted", "initiating", fact="slurm-state", jobid=7, state="PREEMPTED"
    )
    told.signal("completion", fact="complete-scheduler-slurm-state", jobid=7, state="COMPLETED")
    found = job.diagnose(tmp_path)
    assert found.verdict is Verdict.NO_FAILURE
    assert [one.failure.cls for one in found.attempts] == ["preempted", None]


@pytest.mark.parametrize("begin", [200, 2000], ids=["beside", "later"])
def test_agents_that_count_differently_are_brought_together_by_time(begin: int) -> None:
    """b's workers fail once more, before a's have started again: what b calls its third start is a's second, where it
    ran at the same time.
    """
    job = Job(a=1, b=1)
    fails(job, 0, 1, 0)
    job.rank(1, 1).error("data-missing", at=100)
    for rank, attempt in ((0, 1), (1, 2)):
        log = job.rank(rank, attempt)
        for step in (4, 5, 6):
            log.step(step, (begin if rank else 200) + step)
        log.done(at=(begin if rank else 200) + 7)
    found = job.correlate()
    last = found.attempts[-1].view.states
    assert sorted(rank for rank, state in last.items() if state.extents) == ([0, 1] if begin == 200 else [1])
    assert bool(found.attempts[-1].healthy) == (begin == 200)


def test_an_attempt_of_which_only_its_good_end_is_told() -> None:
    """The ranks of the second start print nothing that names them; the driver says that the job succeeded."""
    job = Job(a=1, b=1)
    fails(job, 0, 1, 0)
    log = job.log("driver.log", "job", None)
    log.attempt = 1
    log.signal("completion", at=50, fact="complete-scheduler-ray")
    assert [bool(one.healthy) for one in job.correlate().attempts] == [False, True]
