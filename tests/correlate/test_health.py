"""A job is healthy only where somebody with the right to say so says that it ended well, after all that went wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.correlate.diagnosis import Verdict

from .timeline_builder import Job


def finished() -> Job:
    """All ranks print eight steps and that they are done."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8).done(at=9)
    return job


def verdict(job: Job, folder: Path) -> Verdict:
    return job.diagnose(folder).verdict


def test_the_word_of_every_rank_is_a_proof(tmp_path: Path) -> None:
    assert verdict(finished(), tmp_path) is Verdict.NO_FAILURE


def test_the_word_of_every_launcher_is_a_proof(tmp_path: Path) -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for host in ("a", "b"):
        job.launcher(host).success(at=10)
    assert verdict(job, tmp_path) is Verdict.NO_FAILURE


def test_the_word_of_the_scheduler_is_a_proof(tmp_path: Path) -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.scheduler().signal("completion", at=12, fact="complete-scheduler-slurm-state", state="COMPLETED", exitcode=0)
    assert verdict(job, tmp_path) is Verdict.NO_FAILURE


@pytest.mark.parametrize("missing", [0, 3])
def test_one_rank_without_a_word_leaves_a_gap(missing: int, tmp_path: Path) -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
        if log.rank != missing:
            log.done(at=9)
    assert verdict(job, tmp_path) is Verdict.UNDETERMINED


def test_one_rank_without_a_log_leaves_a_gap(tmp_path: Path) -> None:
    job = Job(a=2, b=2)
    for log in job.ranks(3):
        log.steps(8).done(at=9)
    assert verdict(job, tmp_path) is Verdict.UNDETERMINED


def test_a_hint_of_one_rank_is_no_proof(tmp_path: Path) -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.rank(0).signal("completion", at=9, fact="complete-hint-reached")
    assert verdict(job, tmp_path) is Verdict.UNDETERMINED


def test_noise_of_a_rank_that_goes_after_it_is_done_changes_nothing(tmp_path: Path) -> None:
    """
    r0-3  1..8 done, then the connection to rank 0 that has gone
    """
    job = finished()
    for log in job.ranks(0):
        log.lost("a", at=9.5)
    for host in ("a", "b"):
        job.launcher(host).success(at=11)
    assert verdict(job, tmp_path) is Verdict.NO_FAILURE


def test_a_failure_after_the_word_of_completion_is_a_failure(tmp_path: Path) -> None:
    """All ranks say done; then r3 dies while it saves, and its launcher reports it."""
    job = finished()
    job.rank(3).error("disk-full", at=12)
    job.launcher("a").success(at=10)
    job.launcher("b").exit(3, 1, at=13)
    found = job.diagnose(tmp_path)
    assert found.verdict is not Verdict.NO_FAILURE


def test_an_exit_code_contradicts_a_launcher_of_another_node(tmp_path: Path) -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.launcher("a").success(at=10)
    job.launcher("b").exit(3, 1, at=10)
    assert verdict(job, tmp_path) is not Verdict.NO_FAILURE
