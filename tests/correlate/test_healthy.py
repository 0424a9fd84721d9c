"""A run that went well beside the job: what is new, gone, slower, set differently, and what it prints too."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.correlate.comparison import Comparison
from firstfault.correlate.diagnosis import Diagnosis
from firstfault.correlate.engine import diagnose
from firstfault.correlate.healthy import Healthy

from .timeline_builder import Job


def well(each: float = 1.0, noise: bool = False, nccl: str = "2.20.5") -> Job:
    """Two ranks that complete twelve steps."""
    job = Job(a=2)
    for log in job.ranks():
        log.signal("identity", fact="version-nccl", at=0.1, text=f"NCCL version {nccl}", version=nccl)
        if noise:
            log.error("data-missing", at=0.5)
        log.steps(12, each=each)
        log.say("training finished", at=13 * each)
        log.done(at=13 * each)
    return job


def against(job: Job, healthy: Job, folder: Path, completed: bool = True) -> Diagnosis:
    healthy.write(folder / "healthy.duckdb")
    path = job.write(folder / "t.duckdb")
    return diagnose(path, healthy=Healthy(folder / "healthy.duckdb", "run-41", completed))


def comparison(found: Diagnosis) -> Comparison:
    assert found.comparison is not None
    return found.comparison


def failing(each: float = 1.0) -> Job:
    job = Job(a=2)
    for log in job.ranks():
        log.signal("identity", fact="version-nccl", at=0.1, text="NCCL version 2.21.5", version="2.21.5")
        log.steps(6, each=each)
        log.say("falling back to sockets on device 3", at=6.2 * each)
    job.rank(1).error("cuda-oom", at=7 * each)
    return job


def test_lines_are_told_apart_by_template(tmp_path: Path) -> None:
    changes = {(one.change, one.text) for one in comparison(against(failing(), well(), tmp_path)).templates}
    assert ("new", "falling back to sockets on device 3") in changes
    assert ("gone", "training finished") in changes
    assert not any(text.startswith("step") for _, text in changes)


def test_errors_come_first_among_what_is_new(tmp_path: Path) -> None:
    new = [one for one in comparison(against(failing(), well(), tmp_path)).templates if one.change == "new"]
    assert new[0].entry is not None or new[0].ranks == (0, 1)
    assert {one.ranks for one in new} == {(0, 1), (1,)}


def test_slower_steps_are_seen(tmp_path: Path) -> None:
    timings = {one.name: one for one in comparison(against(failing(each=2.0), well(), tmp_path)).timings}
    assert timings["time between steps"].now == pytest.approx(2.0)
    assert timings["time between steps"].then == pytest.approx(1.0)


def test_versions_that_differ_are_listed(tmp_path: Path) -> None:
    settings = {
        (one.kind, one.name): (one.now, one.then) for one in comparison(against(failing(), well(), tmp_path)).settings
    }
    assert settings["version", "nccl"] == ("2.21.5", "2.20.5")


def test_a_run_like_itself_shows_no_difference(tmp_path: Path) -> None:
    found = comparison(against(well(), well(), tmp_path))
    assert (found.templates, found.timings, found.settings) == ((), (), ())


def test_what_the_healthy_run_prints_too_is_doubted(tmp_path: Path) -> None:
    job = Job(a=2)
    for log in job.ranks():
        log.steps(6)
    job.rank(0).error("data-missing", at=7)
    alone = diagnose(job.write(tmp_path / "alone.duckdb"))
    beside = against(job, well(noise=True), tmp_path)
    assert alone.hypotheses[0].confidence > beside.hypotheses[0].confidence
    assert any("run-41, which went well, prints the same lines" in one.against for one in beside.hypotheses)


def test_what_it_never_prints_speaks_for_a_candidate(tmp_path: Path) -> None:
    found = against(failing(), well(), tmp_path)
    assert found.initiating.ranks == (1,)
    assert any("prints no such line" in reason for reason in found.hypotheses[0].for_)


def test_a_run_without_proof_changes_no_hypothesis(tmp_path: Path) -> None:
    found = against(failing(), well(), tmp_path, completed=False)
    assert not any("went well" in reason for one in found.hypotheses for reason in one.for_ + one.against)
    assert not comparison(found).completed
