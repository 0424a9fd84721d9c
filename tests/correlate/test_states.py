"""What is taken for a rank's own failure: survived exceptions, secondary errors, errors common to many."""

from __future__ import annotations

import pytest

from .timeline_builder import Job


def running(**hosts: int) -> Job:
    """All ranks print eight steps of a second."""
    job = Job(**hosts)
    for log in job.ranks():
        log.steps(8)
    return job


def lose(job: Job, host: str, *but: int, at: float = 9.5) -> Job:
    """All ranks but some lose their connection to a host."""
    for log in job.ranks(*but):
        log.lost(host, at=at)
    return job


# survived exceptions


def test_later_steps_in_the_own_log_show_that_an_error_was_survived() -> None:
    job = Job(a=2)
    job.rank(0).steps(8)
    job.rank(1).steps(3).error("python-exception", at=3.2).steps(8, first=4)
    state = job.judge().view.states[1]
    assert (len(state.own), len(state.survived)) == (0, 1)


def test_one_later_step_of_a_neighbour_in_a_merged_log_shows_nothing() -> None:
    """
    a.log  r0 s7 | r1 s7 | r1 error | r0 s8        r0 may end the step that was under way
    """
    job = Job(a=2)
    log = job.merged("a")
    for step in range(1, 8):
        log.step(step, step, rank=0).step(step, step + 0.01, rank=1)
    log.error("cuda-oom", at=7.5, rank=1).step(8, 8, rank=0)
    state = job.judge().view.states[1]
    assert (len(state.own), len(state.survived)) == (1, 0)


def test_many_later_steps_of_the_rank_in_a_merged_log_show_it() -> None:
    """
    a.log  r0 s3 | r1 s3 | r1 error | r0 s4 | r1 s4 ... r1 s8
    """
    job = Job(a=2)
    log = job.merged("a")
    for step in range(1, 9):
        log.step(step, step, rank=0).step(step, step + 0.01, rank=1)
        if step == 3:
            log.error("python-exception", at=3.2, rank=1)
    state = job.judge().view.states[1]
    assert (len(state.own), len(state.survived)) == (0, 1)


def test_where_one_rank_speaks_for_all_its_many_later_steps_count() -> None:
    """Only rank 0 prints steps, in the log that all share; rank 1 prints a traceback at step 3 and nothing after."""
    job = Job(a=2)
    log = job.merged("a")
    for step in range(1, 9):
        log.step(step, step, rank=0)
        if step == 3:
            log.error("python-exception", at=3.2, rank=1)
    state = job.judge().view.states[1]
    assert (len(state.own), len(state.survived)) == (0, 1)


def test_steps_in_another_log_of_the_rank_count_by_its_clock() -> None:
    """stderr has the traceback at 3.2, stdout has steps until 20."""
    job = Job(a=2)
    job.rank(0).steps(20)
    job.rank(1).steps(20)
    job.log("a/rank1.err", "rank", "a", 1).error("python-exception", at=3.2)
    state = job.judge().view.states[1]
    assert (len(state.own), len(state.survived)) == (0, 1)


def test_the_steps_of_the_job_show_that_all_its_ranks_went_on() -> None:
    """Rank 3 prints no steps, but a traceback at 3.2; the others print steps until 20: they have them only with it."""
    job = Job(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).steps(20)
    job.rank(3).say("begins", at=0.5).error("python-exception", at=3.2)
    state = job.judge().view.states[3]
    assert (len(state.own), len(state.survived)) == (0, 1)


def test_two_more_steps_of_the_job_show_nothing() -> None:
    """The others may end what is under way."""
    job = Job(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).steps(20)
    job.rank(3).say("begins", at=0.5).error("python-exception", at=18.5)
    state = job.judge().view.states[3]
    assert (len(state.own), len(state.survived)) == (1, 0)


def test_a_word_of_completion_behind_an_error_shows_it() -> None:
    job = Job(a=2)
    job.rank(0).steps(8)
    job.rank(1).error("python-exception", at=3.2).done(at=9)
    assert len(job.judge().view.states[1].survived) == 1


def test_a_wait_that_was_begun_after_an_error_shows_it() -> None:
    """
    r1  ! at 3   [#9 from 10 ......... 600 s] time-out at 610
    """
    job = Job(a=4)
    for rank in range(4):
        log = job.rank(rank).say("begins", at=0.5)
        if rank == 1:
            log.error("data-missing", at=3)
        if rank in (1, 2):
            log.timeout(9, at=610, waited=600)
    assert len(job.judge().view.states[1].survived) == 1


def test_who_came_to_the_common_wait_did_not_fail_before_it() -> None:
    """
    r0-2  [#9 ......... 600 s] time-out; in the log of r1 stands a traceback without a time
    r3    [#9, another size ...]
    """
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.say("begins", at=0.5)
    job.rank(1).error("python-exception", at=None)
    for log in job.ranks():
        log.timeout(9, at=610, numel=7 if log.rank == 3 else 8)
    assert job.accused() == ("collective-desync", (3,), ("b",))


# secondary errors


def test_an_error_behind_the_launchers_kill_in_a_merged_log_is_secondary() -> None:
    """
    a.log  r1 exited with 1 | SIGTERM to r0 | traceback of r0, without a time
    """
    job = Job(a=2, b=2)
    for rank in (2, 3):
        job.rank(rank).steps(8).lost("a", at=9.5)
    log = job.merged("a")
    for step in range(1, 9):
        log.step(step, step, rank=0).step(step, step + 0.01, rank=1)
    log.kill(0, at=9).error("data-missing", at=None, rank=0)
    log.exit(1, 1, at=9.5)
    state = job.judge().view.states[0]
    assert (len(state.own), len(state.secondary)) == (0, 1)


@pytest.mark.parametrize("own_first", [True, False])
def test_the_order_in_the_log_tells_an_error_from_its_echo(own_first: bool) -> None:
    job = running(a=1, b=1)
    log = job.rank(1)
    if own_first:
        log.error("cuda-oom", at=9).lost("a", at=9.1)
    else:
        log.lost("a", at=9).error("cuda-oom", at=9.1)
    state = job.judge().view.states[1]
    assert (len(state.own), len(state.secondary)) == ((1, 0) if own_first else (0, 1))


def test_an_echo_in_another_log_does_not_make_an_error_secondary() -> None:
    """Order holds inside a log; two logs of a rank have none, whatever their stamps say."""
    job = running(a=1, b=1)
    job.log("b/rank1.err", "rank", "b", 1).error("cuda-oom", at=9)
    job.rank(1).lost("a", at=8.9)
    assert len(job.judge().view.states[1].own) == 1


def test_one_exception_among_echoes_is_the_lead() -> None:
    """
    r0-2  lost their peer on b
    r3    a traceback that nobody knows more about
    """
    job = lose(running(a=2, b=2), "b", 3)
    job.rank(3).error("python-exception", at=9)
    assert job.accused() == ("python-exception", (3,), ("b",))


# errors common to many


def test_what_all_raise_is_a_cause_of_the_job() -> None:
    job = running(a=2, b=2)
    for log in job.ranks():
        log.error("data-missing", at=9)
    assert job.accused() == ("data-missing", (), ())


def test_what_all_ranks_of_one_host_raise_belongs_to_the_host() -> None:
    """
    a  r0,1  lost b
    b  r2,3  a file is missing
    """
    job = lose(running(a=2, b=2), "b", 2, 3)
    for rank in (2, 3):
        job.rank(rank).error("data-missing", at=9)
    found = job.best()
    assert found is not None
    assert (found.component, found.ranks, found.hosts) == ("host", (2, 3), ("b",))


def test_some_of_many_ranks_are_blamed_by_number() -> None:
    job = lose(running(a=4, b=4), "b", 6)
    job.rank(6).error("data-missing", at=9)
    assert job.accused() == ("data-missing", (6,), ("b",))


@pytest.mark.xfail(strict=True, reason="what all ranks raise counts as common however far apart in time")
def test_one_rank_long_before_the_others_is_first() -> None:
    """
    r1    out of memory at 9
    r0-7  (all) out of memory at 60, while they unwind
    """
    job = running(a=4, b=4)
    job.rank(1).error("cuda-oom", at=9)
    for log in job.ranks(1):
        log.error("cuda-oom", at=60)
    found = job.best()
    assert found is None or found.ranks != ()
