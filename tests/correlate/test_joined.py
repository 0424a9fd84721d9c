"""What a machine or a store reports, joined to ranks by who suffers: the one that hung, all of a host, everybody."""

from __future__ import annotations

from .timeline_builder import Job


def running(**hosts: int) -> Job:
    """All ranks print eight steps of a second."""
    job = Job(**hosts)
    for log in job.ranks():
        log.steps(8)
    return job


def waiting_for(job: Job, *missing: int) -> None:
    """All but some ranks wait ten minutes in the next collective."""
    for log in job.ranks(*missing):
        log.timeout(8, at=609, enqueued=8, completed=7)


def fault(job: Job, host: str, at: float = 8.5) -> None:
    """The driver of a host reports a fault and names no device that a rank is known to have."""
    job.kernel(host).signal(
        "node-fault", "xid-119", "gpu-gsp-timeout", "initiating", at, xid=119, bus_id="0000:ff:00.0"
    )


def test_a_fault_of_an_unknown_device_lies_on_the_only_rank_of_its_host_that_says_nothing() -> None:
    """
    a   r0 r1 wait, r2 silent; the driver of a reports a fault
    b   r3-5 wait
    """
    job = running(a=3, b=3)
    waiting_for(job, 2)
    fault(job, "a")
    assert job.accused() == ("gpu-gsp-timeout", (2,), ("a",))


def test_a_fault_of_an_unknown_device_of_another_host_lies_on_no_rank() -> None:
    job = running(a=3, b=3)
    waiting_for(job, 2)
    fault(job, "b")
    assert job.accused() != ("gpu-gsp-timeout", (2,), ("a",))


def test_a_fault_of_an_unknown_device_where_two_ranks_say_nothing_names_neither() -> None:
    job = running(a=3, b=3)
    waiting_for(job, 1, 2)
    fault(job, "a")
    found = job.accused()
    assert found is None or found[0] != "gpu-gsp-timeout" or not found[1]


def not_ready(job: Job, host: str, times: int) -> None:
    """A host's log holds the error of a device driver that is not there, so many times, without a rank."""
    for _ in range(times):
        job.merged(host).signal(
            "node-fault", "fabricmanager-down", "gpu-nvlink-error", "initiating", text="Error 802: not yet initialized"
        )


def test_an_error_printed_once_for_each_rank_of_a_host_lies_on_all_of_them() -> None:
    """
    a   r0 r1 wait for the store
    b   r2 r3 cannot start; the host's log says so twice
    """
    job = Job(a=2, b=2)
    for rank in (0, 1):
        job.rank(rank).steps(1).store_lost(at=600)
    not_ready(job, "b", 2)
    for rank in (2, 3):
        job.launcher("b").exit(rank, 1, at=5)
    assert job.accused() == ("gpu-nvlink-error", (2, 3), ("b",))


def test_an_error_printed_once_lies_on_its_host() -> None:
    job = Job(a=2, b=2)
    for rank in (0, 1):
        job.rank(rank).steps(1).store_lost(at=600)
    not_ready(job, "b", 1)
    found = job.accused()
    assert found is None or found[1] == ()


def lost_store(job: Job, *hosts: str) -> None:
    """A launcher of each host loses the store on a host of its own."""
    for host in hosts:
        job.launcher(host).signal("store-lost", "tcpstore-recv-0-bytes", "store-lost", "collateral", 9, peer="login2")


def test_a_store_outside_the_job_that_goes_down_began_it() -> None:
    job = running(a=2, b=2)
    job.kernel("login2").signal("node-lost", "host-reboot", "host-down", "ambiguous", 8.5)
    lost_store(job, "a", "b")
    assert job.accused() == ("store-lost", (), ("login2",))


def test_a_store_outside_the_job_of_which_nothing_is_known_accuses_nobody() -> None:
    job = running(a=2, b=2)
    lost_store(job, "a", "b")
    assert job.accused() is None


def test_of_two_exceptions_the_one_that_was_surely_earlier_began_it() -> None:
    """
    r1    1..8 exception
    r3    1..8            exception, two minutes later
    """
    job = running(a=2, b=2)
    job.rank(1).error("python-exception", at=9, exception="KeyError")
    job.launcher("a").kill(0, at=9.5).exit(1, 1, at=9.9)
    job.rank(3).error("python-exception", at=130, exception="ValueError")
    job.launcher("b").kill(2, at=130.5).exit(3, 1, at=131)
    assert job.accused() == ("python-exception", (1,), ("a",))


def test_of_two_exceptions_at_once_neither_is_told() -> None:
    job = running(a=2, b=2)
    job.rank(1).error("python-exception", at=9, exception="KeyError")
    job.launcher("a").kill(0, at=9.5).exit(1, 1, at=9.9)
    job.rank(3).error("python-exception", at=9, exception="ValueError")
    job.launcher("b").kill(2, at=9.5).exit(3, 1, at=9.9)
    assert job.accused() is None


def killed_unit(job: Job, host: str) -> None:
    """A service manager kills all processes of a session of a host."""
    job.kernel(host).signal(
        "oom-kill", "host-oom-kernel", "host-oom-kill", "initiating", 8.5, text="session-7.scope: killed 9 process(es)"
    )


def test_who_kills_a_whole_session_killed_all_ranks_of_its_host() -> None:
    """
    a   r0 r1 wait
    b   r2 r3 say nothing more; the service manager of b killed a session
    """
    job = running(a=2, b=2)
    waiting_for(job, 2, 3)
    killed_unit(job, "b")
    assert job.accused() == ("host-oom-kill", (2, 3), ("b",))


def test_a_killed_session_of_a_host_whose_ranks_still_wait_killed_none_of_them() -> None:
    job = running(a=2, b=2)
    waiting_for(job, 2)
    killed_unit(job, "b")
    found = job.accused()
    assert found is None or found[1] != (2, 3)


def both_ends(job: Job) -> None:
    """Rank 3 raises the error of a broken link; the driver of its host names the device of another rank."""
    waiting_for(job, 2, 3)
    job.rank(3).signal("cuda-error", "cuda-nvlink", "gpu-nvlink-error", "initiating", 8.6)


def test_of_both_ends_of_a_link_the_driver_names_the_one() -> None:
    job = running(a=2, b=2)
    both_ends(job)
    job.kernel("b").signal("node-fault", "xid-74", "gpu-nvlink-error", "initiating", 8.5, xid=74, bus_id=job.bus(2))
    found = job.accused()
    assert found is not None
    assert found[1:] == ((2,), ("b",))


def test_a_link_error_without_a_word_of_the_driver_is_of_the_rank_that_raised_it() -> None:
    job = running(a=2, b=2)
    both_ends(job)
    found = job.accused()
    assert found is not None
    assert found[1] == (3,)
