"""What is no failure after all, and what only looks like one: outlived, forced, told, mutual, unordered."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.correlate.diagnosis import Verdict

from .timeline_builder import Job


def waiting(job: Job, *but: int) -> Job:
    """All ranks but some wait to the limit."""
    for log in job.ranks(*but):
        log.steps(8).timeout(9, at=610, enqueued=9, completed=8)
    return job


def test_a_fault_that_the_job_outlived_is_not_its_root() -> None:
    """Device of r3 faults at 5; all ranks take 40 steps more."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(200)
    job.kernel("b").xid(48, at=5, bus_id=job.bus(3))
    assert job.best() is None


def test_a_fault_with_which_the_steps_end_is() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(200)
    job.kernel("b").xid(48, at=200.5, bus_id=job.bus(3))
    assert job.accused() == ("gpu-ecc-uncorrectable", (3,), ("b",))


def test_a_child_that_its_launcher_killed_by_force_was_frozen() -> None:
    """r1 ignores SIGTERM, gets SIGKILL, and its launcher's table says -9; the others had timed out before."""
    job = Job(a=2, b=2)
    waiting(job, 1)
    job.rank(1).steps(8)
    job.launcher("a").exit(0, 1, at=611).kill(1, at=612)
    job.launcher("a").kill(1, at=642, by="SIGKILL").listed(1, -9)
    accused = job.accused()
    assert accused is not None
    assert accused[:2] == ("collective-rank-absent", (1,))


def test_a_child_that_died_by_sigkill_was_killed() -> None:
    job = Job(a=2, b=2)
    waiting(job, 1)
    job.rank(1).steps(8)
    job.launcher("a").exit(1, -9, at=8.5)
    accused = job.accused()
    assert accused is not None
    assert accused[:2] == ("process-killed", (1,))


def test_what_a_rank_raises_when_its_launcher_was_told_to_end_is_no_beginning() -> None:
    job = Job(a=2)
    for rank in (0, 1):
        job.merged("a").steps(8, rank=rank)
    job.merged("a").signal("signal-received", "elastic-death-signal", None, "ambiguous", at=9, signal_no=15)
    job.merged("a").error("cuda-illegal-memory-access", at=9.5, rank=1)
    assert job.best() is None


def test_losses_that_both_ends_outlive_are_the_network_between() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in range(4):
        job.rank(rank).lost("b" if job.host(rank) == "a" else "a", at=30 + rank / 100)
    assert job.accused() == ("nccl-socket-failure", (), ())


def test_a_rank_that_lost_nobody_is_not_outlived() -> None:
    """r3 says nothing: it may be the one that died."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1, 2):
        job.rank(rank).lost("b" if job.host(rank) == "a" else "a", at=30)
    accused = job.accused()
    assert accused is None or accused[0] != "nccl-socket-failure"


def test_two_deaths_that_nothing_orders_are_not_decided(tmp_path: Path) -> None:
    """An OOM kill of r3 on b, a device fault of r0 on a; no event links the clocks."""
    job = Job(a=2, b=2)
    for rank in range(4):
        job.rank(rank).say("hello", at=1)
    job.kernel("b").oom_kill(job.pid(3), at=30)
    job.launcher("b").exit(3, -9, at=31)
    job.kernel("a").xid(79, at=12, bus_id=job.bus(0))
    job.rank(0).error("cuda-illegal-memory-access")
    job.launcher("a").exit(0, 1, at=13)
    found = job.diagnose(tmp_path)
    assert found.verdict is Verdict.UNDETERMINED
    assert any("nothing orders them" in one for one in found.refusals)


def test_the_host_of_a_store_that_all_launchers_lost() -> None:
    job = Job(a=1, b=1, c=1)
    for log in job.ranks():
        log.steps(8)
    for host in ("b", "c"):
        job.launcher(host).signal(
            "store-lost", "tcpstore-recv-0-bytes", "store-lost", "collateral", at=30, peer=job.address("a")
        )
    assert job.accused() == ("store-lost", (), ("a",))


def test_a_store_that_one_launcher_lost_is_not_gone() -> None:
    job = Job(a=1, b=1, c=1)
    for log in job.ranks():
        log.steps(8)
    job.launcher("b").signal(
        "store-lost", "tcpstore-recv-0-bytes", "store-lost", "collateral", at=30, peer=job.address("a")
    )
    assert job.best() is None


def test_a_size_that_does_not_fit_names_no_rank() -> None:
    """r1 received more than it expects: it or its sender called something else."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.rank(1).signal(
        "desync", "collective-mismatch-detail", "collective-desync", "initiating", at=9, text="Received data size"
    )
    job.rank(0).lost("a", at=9.5)
    assert job.accused() == ("collective-desync", (), ())


def test_a_hang_that_every_rank_reports_is_not_decided() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8).signal("hang", "pgnccl-heartbeat-stuck", "collective-rank-absent", "ambiguous", at=600)
    assert job.best() is None


def test_a_warning_about_an_error_is_not_the_error() -> None:
    """r1 logs an exception as a warning and goes on in silence; r3 falls silent in what the others wait for."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.rank(1).error("data-missing", at=8.2)
    job.signals[-1]["level"] = "WARN"
    best = job.judge().ranked.best
    assert best is None


def kill_beside_an_error(kill_at: float | None) -> Job:
    """The kernel of a killed some python; r1 of a raised an exception and exited with 1."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.rank(1).error("data-missing", at=8.2)
    job.launcher("a").exit(1, 1, at=9)
    for rank in (2, 3):
        job.rank(rank).lost("a", at=9.5)
    kernel = job.kernel("a")
    kernel.signal(
        "oom-kill", "host-oom-kernel", "host-oom-kill", "initiating", at=kill_at, process="python", victim_pid=77
    )
    return job


def test_an_undated_kill_of_some_process_does_not_outdo_an_error() -> None:
    accused = kill_beside_an_error(None).accused()
    assert accused is None or accused[0] != "host-oom-kill"


@pytest.mark.parametrize(
    ("listed", "accused"),
    [("[2]", (2,)), ("{StragglerId(rank=2, node='b')}", (2,)), ("[]", None)],
)
def test_a_list_of_slow_ranks_accuses_those_that_it_names(listed: str, accused: tuple[int, ...] | None) -> None:
    """Rank 0 prints the detector's report of all ranks."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.rank(0).signal("slow", "straggler-report", "straggler", "initiating", at=9, ranks=listed)
    found = job.best()
    assert (found.ranks if found else None) == accused
