"""What the word of launchers about the end of processes is worth: an abort without a word, a death without a name, two
deaths at once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .timeline_builder import Job, Log


def running(**hosts: int) -> Job:
    """All ranks print eight steps of a second."""
    job = Job(**hosts)
    for log in job.ranks():
        log.steps(8)
    return job


ABORTED = ("process-segfault", (3,), ("b",))


def test_an_abort_without_a_word_that_all_others_lose_began_it() -> None:
    """
    r0-2  1..8   lost b
    r3    1..8   abort
    """
    job = running(a=2, b=2)
    job.launcher("b").kill(2, at=8.9).exit(3, -6, at=9)
    for log in job.ranks(3):
        log.lost("b", at=9.5)
    assert job.accused() == ABORTED


def test_an_abort_that_others_then_wait_for_began_it() -> None:
    """
    r0-1  1..8   [ALLREDUCE #8 ..... 600 s] time-out
    r3    1..8   abort; its launcher ends r2
    """
    job = running(a=2, b=2)
    job.launcher("b").kill(2, at=8.9).exit(3, -6, at=9)
    for rank in (0, 1):
        job.rank(rank).timeout(8, at=609, enqueued=8, completed=7)
    assert job.accused() == ABORTED


def test_an_abort_behind_a_time_out_is_the_watchdogs() -> None:
    """
    r0-1  1..8   [ALLREDUCE #8 ..... 600 s] time-out
    r3    1..8                                abort, and its own words are not among the logs
    """
    job = running(a=2, b=2)
    for rank in (0, 1):
        job.rank(rank).timeout(8, at=609, enqueued=8, completed=7)
    job.launcher("b").kill(2, at=670).exit(3, -6, at=671)
    assert job.accused() != ABORTED


def test_an_abort_behind_a_long_silence_may_be_the_watchdogs() -> None:
    job = running(a=2, b=2)
    job.launcher("b").kill(2, at=608).exit(3, -6, at=609)
    assert job.accused() is None


def test_an_abort_of_a_rank_without_a_log_may_be_the_watchdogs() -> None:
    job = Job(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).steps(8)
    job.launcher("b").kill(2, at=8.9).signal(
        "exit", "elastic-worker-failed", "teardown-echo", "collateral", 9, local_rank=1, exitcode=-6
    )
    assert job.accused() is None


def _fails(launcher: Log, at: float, local_rank: int, code: int) -> None:
    """The launcher's word about a child of which there is no log."""
    launcher.signal(
        "exit", "elastic-worker-failed", "teardown-echo", "collateral", at, local_rank=local_rank, exitcode=code
    )


def test_of_two_ranks_without_logs_the_aborted_one_need_not_have_begun_it() -> None:
    """
    r0    no log, exit code 1
    r1,2  1..8  lost a peer
    r3    no log, aborted
    """
    job = Job(a=2, b=2)
    for rank in (1, 2):
        job.rank(rank).steps(8).lost("a", at=9)
    _fails(job.launcher("a").kill(1, at=9.1), 10, 0, 1)
    _fails(job.launcher("b").kill(2, at=9.5), 9.6, 1, -6)
    assert job.accused() != ABORTED


def test_an_abort_without_a_log_may_be_that_of_a_watchdog_that_took_others_down() -> None:
    job = Job(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).steps(8).lost("b", at=9)
    job.rank(0).teardown(at=9.1)
    _fails(job.launcher("b").kill(2, at=9.5), 9.6, 1, -6)
    assert job.accused() is None


def test_two_aborts_without_a_word_accuse_nobody() -> None:
    job = running(a=2, b=2)
    job.launcher("a").kill(0, at=8.9).exit(1, -6, at=9)
    job.launcher("b").kill(2, at=8.9).exit(3, -6, at=9)
    assert job.accused() is None


def test_what_follows_an_abort_in_the_next_attempt_is_not_its_cause() -> None:
    """
    r3    1..8 abort | restart: nobody comes together
    """
    job = running(a=2, b=2)
    job.launcher("b").kill(2, at=8.9).exit(3, -6, at=9)
    job.rank(0).lost("b", at=9.2)
    for rank in range(4):
        job.rank(rank, attempt=1).error("python-exception", at=40)
    assert job.accused() == ABORTED


@pytest.mark.parametrize(("gap", "accused"), [(0.3, None), (60.0, ("process-killed", (1,), ("a",)))])
def test_two_kills_on_two_hosts_are_ordered_only_where_the_launchers_can_tell(
    gap: float, accused: tuple[str, tuple[int, ...], tuple[str, ...]] | None
) -> None:
    """
    r1    1..8 SIGKILL
    r3    1..8        SIGKILL    at once, or much later
    """
    job = running(a=2, b=2)
    job.launcher("a").kill(0, at=9).exit(1, -9, at=9.4)
    job.launcher("b").kill(2, at=9 + gap).exit(3, -9, at=9.4 + gap)
    assert job.accused() == accused


def test_a_launcher_reports_a_death_only_when_the_others_have_left() -> None:
    """
    a   ends r0 at 9.0, reports r1 at 24 (r0 took its time)
    b   ends r2 at 9.2, reports r3 at 10
    """
    job = running(a=2, b=2)
    job.launcher("a").kill(0, at=9.0).exit(1, -9, at=24)
    job.launcher("b").kill(2, at=9.2).exit(3, -9, at=10)
    assert job.accused() is None


def unnamed(job: Job, host: str, code: int, at: float) -> None:
    """A launcher's word about one of its children, without which one."""
    job.launcher(host).signal("exit", "ds-launcher-exit", "teardown-echo", "collateral", at, exitcode=code)


def test_a_death_without_a_name_lies_on_its_host() -> None:
    """
    r0-1  1..8   lost b
    r2-3  1..8             one of them ended by signal 11, the other was ended
    """
    job = running(a=2, b=2)
    job.launcher("b").kill(2, 3, at=8.9)
    unnamed(job, "b", -11, at=9)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=9.5)
    assert job.accused() == ("process-segfault", (), ("b",))


def test_a_death_without_a_name_of_ranks_that_all_lost_their_peers_accuses_nobody() -> None:
    job = running(a=2, b=2)
    for log in job.ranks():
        log.lost(None, at=9)
    job.launcher("b").kill(2, 3, at=9.3)
    unnamed(job, "b", -11, at=9.5)
    assert job.accused() is None


def test_a_later_kill_on_another_host_is_told_beside_the_first(tmp_path: Path) -> None:
    job = running(a=2, b=2)
    job.launcher("a").kill(0, at=9).exit(1, -9, at=9.4)
    job.launcher("b").kill(2, at=69).exit(3, -9, at=69.4)
    found = job.diagnose(tmp_path)
    assert found.initiating.ranks == (1,)
    assert [(one.failure.cls, one.initiating.ranks) for one in found.also] == [("process-killed", (3,))]


def test_an_end_that_srun_reports_after_it_terminated_the_step_is_no_cause() -> None:
    """Task 1 fails by itself, the step is terminated, and task 3 dies of SIGSEGV on the way out."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.rank(1).error("python-exception", at=9)
    srun = job.log("slurm.out", "job", None)
    srun.signal("exit", "slurm-task-exit", None, "ambiguous", at=10, host="a", tasks="1", exitcode="1")
    srun.signal("agent-kill", "slurm-step-aborted", None, "collateral", at=10, stepid="7.0")
    srun.signal("exit", "slurm-task-exit", None, "ambiguous", at=11, host="b", tasks="3", signal="Segmentation fault")
    found = job.best()
    assert found is not None
    assert found.ranks == (1,)


@pytest.mark.parametrize("crashed", [True, False])
def test_whom_composer_ends_behind_the_rank_that_crashed_was_not_killed_by_somebody(crashed: bool) -> None:
    job = Job(a=4)
    for log in job.ranks():
        log.steps(8)
    launcher = job.log("composer.log", "launcher", "a")
    if crashed:
        launcher.signal("exit", "composer-rank-crashed", None, "ambiguous", at=9, ranks="2", exitcode="1")
    launcher.signal(
        "exit", "composer-rank-crashed", None, "ambiguous", at=39, ranks="3", exitcode="-9", child_pid="304"
    )
    found = job.best()
    assert found is not None
    assert found.ranks == ((2,) if crashed else (3,))


def test_a_worker_of_vllm_that_was_suddenly_gone_is_an_end() -> None:
    """The executor names the worker; the container ends with 0 all the same."""
    job = Job(a=4)
    log = job.merged("a")
    for rank in range(4):
        log.say(f"rank {rank} serves", at=1, rank=rank)
    log.signal("exit", "vllm-worker-died", None, "ambiguous", at=9, ranks="2", state="died unexpectedly")
    log.signal("completion", fact="complete-scheduler-container", at=12)
    found = job.best()
    assert found is not None
    assert found.ranks == (2,)
    assert not job.judge().healthy
