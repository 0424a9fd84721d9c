"""Errors whose line names no rank: given to a rank by process id, device or the one exit that fits, or left alone."""

from __future__ import annotations

from .timeline_builder import Job


def shared_log(*exits: tuple[int, int], errors: int = 1, **hosts: int) -> Job:
    """
    a.log  steps of all its ranks, then tracebacks without a prefix, then the launcher's words
    """
    job = Job(**(hosts or {"a": 4}))
    log = job.merged("a")
    mine = [rank for rank, (host, _) in enumerate(job.hosts) if host == "a"]
    for step in range(1, 4):
        for rank in mine:
            log.step(step, step, rank=rank)
    for _ in range(errors):
        log.error("data-missing", at=9)
    for number, (rank, code) in enumerate(exits):
        if number == 0:
            log.exit(rank, code, at=10)
        else:
            log.listed(rank, code)
    return job


def test_the_only_exit_owns_the_error() -> None:
    assert shared_log((2, 1)).accused() == ("data-missing", (2,), ("a",))


def test_one_error_of_two_exits_is_not_guessed() -> None:
    found = shared_log((2, 1), (3, 1)).best()
    assert found is None or found.ranks in ((), (2, 3))


def test_as_many_errors_as_exits_belong_to_them() -> None:
    found = shared_log((2, 1), (3, 1), errors=2).best()
    assert found is not None
    assert (found.cls, found.ranks) == ("data-missing", (2, 3))


def test_a_killed_rank_owns_no_error() -> None:
    """An exit by SIGTERM or SIGKILL raised nothing."""
    found = shared_log((2, -15)).best()
    assert found is None or found.ranks != (2,)


def test_a_process_id_owns_the_error() -> None:
    job = Job(a=4)
    log = job.merged("a")
    for step in range(1, 4):
        for rank in range(4):
            log.step(step, step, rank=rank)
    log.signal("exception", "data-file-missing", "data-missing", "initiating", at=9, writer=job.pid(1))
    assert job.accused() == ("data-missing", (1,), ("a",))


def test_a_device_owns_its_memory_error() -> None:
    """'GPU 2' of the only host is local rank 2."""
    job = Job(a=4)
    log = job.merged("a")
    for step in range(1, 4):
        for rank in range(4):
            log.step(step, step, rank=rank)
    log.signal("exception", "cuda-oom", "cuda-oom", "initiating", at=9, gpu=2)
    assert job.accused() == ("cuda-oom", (2,), ("a",))


def test_a_device_of_an_unknown_host_owns_nothing() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.log("all.log", "job", None).signal("exception", "cuda-oom", "cuda-oom", "initiating", at=9, gpu=1)
    found = job.best()
    assert found is None or found.ranks == ()
