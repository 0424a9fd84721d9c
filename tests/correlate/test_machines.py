"""What machines, devices and schedulers report, joined to ranks by identity: process ids, bus addresses, host names."""

from __future__ import annotations

import pytest

from .timeline_builder import Job


def killed(by: int = -9) -> Job:
    """
    r3  1..8, its launcher on b reports the signal; r0, r1 lose b
    """
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.launcher("b").exit(3, by, at=9.2).kill(2, at=9.4)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=9.5)
    return job


# out of memory


def test_an_oom_kill_is_joined_by_process_id() -> None:
    job = killed()
    job.kernel("b").oom_kill(job.pid(3), at=9)
    assert job.accused() == ("host-oom-kill", (3,), ("b",))


def test_an_oom_kill_is_joined_by_the_only_killed_rank() -> None:
    """In a container the kernel's process id is another one than the launcher's."""
    job = killed()
    job.kernel("b").oom_kill(912345, at=9)
    assert job.accused() == ("host-oom-kill", (3,), ("b",))


def test_an_oom_kill_of_one_of_two_killed_ranks_is_not_guessed() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.launcher("b").exit(3, -9, at=9.2).listed(2, -9)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=9.5)
    job.kernel("b").oom_kill(912345, at=9)
    found = job.best()
    assert found is None or (found.hosts == ("b",) and found.ranks in ((), (2, 3)))


def test_an_oom_kill_of_another_program_says_nothing() -> None:
    job = killed()
    job.kernel("b").oom_kill(77, at=9, process="postgres")
    assert job.accused() == ("process-killed", (3,), ("b",))


def test_an_oom_kill_on_another_host_says_nothing_of_the_killed_rank() -> None:
    job = killed()
    job.kernel("a").oom_kill(77, at=9, process="postgres")
    assert job.accused() == ("process-killed", (3,), ("b",))


def test_an_oom_kill_long_before_the_run_is_stale() -> None:
    job = killed()
    job.kernel("b").oom_kill(912345, at=-5 * 86400)
    assert job.accused() == ("process-killed", (3,), ("b",))


# devices


def test_a_fault_is_joined_by_bus_address() -> None:
    """Device 11:00 on b is that of r3; the kernel writes the address in another form."""
    job = killed(-6)
    job.rank(3).error("cuda-illegal-memory-access", at=9)
    job.kernel("b").xid(79, at=8.9, bus_id="00000000:11:00.0".replace("00000000", "0000"))
    assert job.accused() == ("gpu-fell-off-bus", (3,), ("b",))


def test_a_fault_is_joined_by_process_id() -> None:
    job = killed(-6)
    job.rank(3).error("cuda-illegal-memory-access", at=9)
    job.kernel("b").xid(48, at=8.9, pid=job.pid(3))
    assert job.accused() == ("gpu-ecc-uncorrectable", (3,), ("b",))


def test_the_same_bus_address_on_another_host_is_another_device() -> None:
    """r1 on a and r3 on b both drive a device 11:00."""
    job = killed(-11)
    job.kernel("a").xid(79, at=9.6, bus_id=job.bus(1))
    found = job.judge().ranked
    assert [one.ranks for one in (*found.open, *found.explained) if one.rule == "device-fault"] == [(1,)]
    assert found.best is not None
    assert found.best.ranks == (3,)


def test_a_fault_that_a_program_causes_itself_does_not_blame_the_device() -> None:
    """Xid 13 is the driver's echo of the illegal access."""
    job = killed(-6)
    job.rank(3).error("cuda-illegal-memory-access", at=9)
    job.kernel("b").xid(13, at=8.9, pid=job.pid(3))
    found = job.best()
    assert found is not None
    assert (found.cls, found.ranks) == ("cuda-illegal-memory-access", (3,))


def test_a_fault_before_the_run_is_stale() -> None:
    job = killed(-11)
    job.kernel("b").xid(79, at=-3 * 86400, bus_id=job.bus(2))
    assert job.accused() == ("process-segfault", (3,), ("b",))


def undated(job: Job, host: str, rank: int) -> None:
    """Xid 79 in a kernel log that shows the uptime only."""
    job.kernel(host).xid(79, at=8.9, bus_id=job.bus(rank))
    job.signals[-1]["kind"] = "monotonic"


def test_an_undated_fault_of_a_device_whose_rank_completed_is_no_failure() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks(3):
        log.steps(8).done(at=9)
    undated(job, "a", 1)
    assert job.best() is None


def test_an_undated_fault_of_a_rank_that_waited_and_aborted_like_the_others_is_no_cause() -> None:
    """r1 of a: its watchdog fires as everybody's, and its launcher sees the abort that follows from it."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8).timeout(9, at=608, enqueued=9, completed=8)
    job.launcher("a").exit(1, -6, at=609).kill(0, at=610)
    undated(job, "a", 1)
    found = job.best()
    assert found is None or found.cls != "gpu-fell-off-bus"


def test_an_undated_fault_of_a_process_of_this_run_counts() -> None:
    """All of b are silent, so that silence says nothing; the kernel names the process of r3."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=9.5)
    job.kernel("b").xid(13, at=0, pid=job.pid(3))
    job.signals[-1]["kind"] = "monotonic"
    found = job.best()
    assert found is not None
    assert (found.rule, found.ranks) == ("device-fault", (3,))


def test_an_undated_fault_counts_where_its_rank_fell_silent() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 2, 3):
        job.rank(rank).timeout(9, at=610, enqueued=9, completed=8)
    undated(job, "a", 1)
    assert job.accused() == ("gpu-fell-off-bus", (1,), ("a",))


# schedulers


@pytest.mark.parametrize(
    ("entry", "cls"),
    [
        ("slurm-preempted", "preempted"),
        ("slurm-time-limit", "time-limit"),
        ("slurm-cancelled-by", "cancelled-by-user"),
    ],
)
def test_an_action_with_an_author_is_the_root(entry: str, cls: str) -> None:
    """
    scheduler  ends the job at 9
    a, b       SIGTERM at 9.2
    """
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8).signal("signal-received", "elastic-death-signal", "teardown-echo", "ambiguous", at=9.2)
    job.scheduler().signal("sched-action", entry, cls, "initiating", at=9, jobid=7)
    assert job.accused() == (cls, (), ())


def test_a_cancellation_without_a_reason_follows_a_failure_before_it() -> None:
    """
    r3   out of memory at 9
    job  'CANCELLED' at 40, by whom it does not say
    """
    job = killed(1)
    job.rank(3).error("cuda-oom", at=9)
    job.scheduler().signal("sched-action", "slurm-cancelled", "cancelled-by-user", "ambiguous", at=40, jobid=7)
    assert job.accused() == ("cuda-oom", (3,), ("b",))


def test_an_evicted_pod_is_named_with_its_ranks() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.log("events.txt", "events", None, clock="wall:api").signal(
        "sched-action", "k8s-evicted", "pod-evicted", "initiating", at=9, pod="b"
    )
    for rank in (0, 1):
        job.rank(rank).lost("b", at=9.5)
    assert job.accused() == ("pod-evicted", (2, 3), ("b",))


# nodes, links, storage


def test_a_lost_node_is_named_with_its_ranks() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.scheduler().signal("node-lost", "slurm-node-fail", "host-down", "initiating", at=200, node="b")
    for rank in (0, 1):
        job.rank(rank).timeout(9, at=610, enqueued=9, completed=8)
    assert job.accused() == ("host-down", (2, 3), ("b",))


def test_a_lost_node_of_another_job_says_nothing() -> None:
    job = killed(-11)
    job.scheduler().signal("node-lost", "slurm-node-fail", "host-down", "initiating", at=8, node="z99")
    assert job.accused() == ("process-segfault", (3,), ("b",))


def test_a_node_whose_ranks_went_on_to_wait_was_not_lost_first() -> None:
    """All ranks of b timed out like everybody else, r1 never came; then the scheduler lost b."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 2, 3):
        job.rank(rank).timeout(9, at=610, enqueued=9, completed=8)
    job.rank(1).counters(8, 8, at=611)
    job.scheduler().signal("node-lost", "slurm-node-fail", "host-down", "initiating", at=900, node="b")
    found = job.accused()
    assert found is None or found[1] == (1,)


def test_a_common_end_with_a_completion_code_is_the_network_of_that_host() -> None:
    """
    r0 (a), r1 (b)  IB retries to c exceeded; r2 (c) lives on and says nothing of an error
    """
    job = Job(a=1, b=1, c=1)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1):
        job.rank(rank).signal(
            "peer-loss", "ib-wc-12", "ib-completion-error", "ambiguous", at=30, peer=job.address("c"), status=12
        )
    job.rank(2).step(9, 31)
    found = job.judge().ranked.open[0]
    assert (found.rule, found.cls, found.hosts, found.ranks) == ("peer-common-end", "ib-completion-error", ("c",), ())


def test_a_link_that_says_so_itself_is_the_root() -> None:
    """
    b       mlx5: port error at 8.8
    r0,1    IB retries to b exceeded at 30
    """
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.kernel("b").signal("link-fault", "ib-port-error", "ib-link-failure", "initiating", at=8.8, hca="mlx5_0", port=1)
    for rank in (0, 1):
        job.rank(rank).signal(
            "peer-loss", "ib-wc-12", "ib-completion-error", "ambiguous", at=30, peer=job.address("b"), status=12
        )
    assert job.accused() == ("ib-link-failure", (), ("b",))


def test_a_port_that_goes_down_for_a_moment_breaks_nothing_by_itself() -> None:
    """A port of a flaps; r3 on b never came, and no connection was lost."""
    job = Job(a=2, b=2)
    for log in job.ranks(3):
        log.steps(8).timeout(9, at=610, enqueued=9, completed=8)
    job.kernel("a").signal("link-fault", "mlx5-link-down", "ib-link-failure", "ambiguous", at=5, ifname="ens1")
    assert job.best() is None


def test_a_port_that_came_back_is_the_root_where_the_others_lost_its_host() -> None:
    """A port of c flaps, and the connections of a and of b to c break."""
    job = Job(a=1, b=1, c=1)
    for log in job.ranks():
        log.steps(8)
    job.kernel("c").signal("link-fault", "mlx5-link-down", "ib-link-failure", "ambiguous", at=9, ifname="ens1")
    for rank in (0, 1):
        job.rank(rank).signal(
            "peer-loss", "ib-wc-12", "ib-completion-error", "ambiguous", at=30, peer=job.address("c"), status=12
        )
    assert job.accused() == ("ib-link-failure", (), ("c",))


def test_a_server_that_stalls_several_hosts_blames_no_host() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for host in ("a", "b"):
        job.kernel(host).signal(
            "io-stall", "fs-nfs-not-responding", "filesystem-io-error", "initiating", at=9, server="store-1"
        )
    job.rank(0).timeout(9, at=610, enqueued=9, completed=8)
    assert job.accused() == ("filesystem-io-error", (), ())


def test_a_process_that_the_kernel_finds_waiting_for_a_server_is_the_rank_that_stalls() -> None:
    """
    b       nfs: not responding at 3, OK at 4; not responding at 20; r3's process blocked at 30
    r0-2    wait for r3
    """
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    kernel = job.kernel("b")
    kernel.signal("io-stall", "fs-nfs-not-responding", "filesystem-io-error", "initiating", at=3, server="store-1")
    kernel.signal(
        "io-stall", "fs-nfs-not-responding", "filesystem-io-error", "initiating", at=4, server="store-1", weak=True,
        text="nfs: server store-1 OK",
    )  # fmt: skip
    kernel.signal("io-stall", "fs-nfs-not-responding", "filesystem-io-error", "initiating", at=20, server="store-1")
    kernel.signal("io-stall", "host-hung-task", "filesystem-io-error", "initiating", at=30, pid=job.pid(3))
    for rank in (0, 1, 2):
        job.rank(rank).timeout(9, at=610, enqueued=9, completed=8)
    assert job.accused() == ("filesystem-io-error", (3,), ("b",))


# what only looks like Python


def test_a_drivers_word_that_looks_like_an_exception_is_none() -> None:
    """'LustreError: ...' begins a line of the kernel; the same word in a log of the job is an exception."""
    accused = []
    for kind in ("kernel", "node"):
        job = Job(a=2, b=2)
        job.log("b.log", kind, "b").signal(
            "exception", "python-traceback", "python-exception", "ambiguous", at=9, text="LustreError: 11-0: rc = -107"
        )
        found = job.best()
        accused.append(found.hosts if found else None)
    assert accused == [None, ("b",)]
