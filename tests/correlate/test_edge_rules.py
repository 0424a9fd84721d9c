"""Each rule of the causal graph: one small job in which it joins two places, one like it in which it must not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from firstfault.correlate.graph import rules

from .edges_of_collectives import CASES, Pairs, a_member_died, fires, running, silent, waiting_in_one
from .timeline_builder import Job

# lost-peer, peer-is-root


def peers_are_lost(to: str) -> Job:
    """
    r0,1  1..8  connection lost to a peer on `to`
    r3    1..8 out of memory (on b)
    """
    job = running(a=2, b=2, c=1)
    job.rank(3).error("cuda-oom", at=9)
    for rank in (0, 1):
        job.rank(rank).lost(to, at=9.5)
    return job


@fires("lost-peer", ("rank:0", "host:b"), ("rank:1", "host:b"))
def peers_of_b_are_lost() -> Job:
    return peers_are_lost("b")


@silent("lost-peer")
def nobody_names_a_peer() -> Job:
    job = running(a=2, b=2)
    job.rank(3).error("cuda-oom", at=9)
    job.rank(0).lost(None, at=9.5)
    return job


@fires("peer-is-root", ("host:b", "rank:3"))
def the_lost_host_carries_the_root() -> Job:
    return peers_are_lost("b")


@silent("peer-is-root")
def the_lost_host_carries_another_rank() -> Job:
    return peers_are_lost("c")


# told-by


@fires("told-by", ("rank:1", "rank:0"), ("rank:2", "rank:0"))
def two_are_told_to_dump() -> Job:
    job = waiting_in_one()
    job.rank(1).dump_signal(0, at=610.5)
    job.rank(2).dump_signal(0, at=610.6)
    return job


@silent("told-by")
def a_dump_without_a_source() -> Job:
    job = waiting_in_one()
    job.rank(0).dump_signal(0, at=610.5)
    job.rank(1).dump_signal(None, at=610.5)
    return job


# ended-by-launcher, launcher-saw


def one_dies_and_one_is_ended() -> Job:
    """
    r2    1..8 .............. SIGTERM by the launcher of b
    r3    1..8 killed (-9)
    """
    job = running(a=2, b=2)
    job.launcher("b").exit(3, -9, at=10).kill(2, at=10)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=9.5)
    return job


@fires("ended-by-launcher", ("rank:2", "launcher:b"))
def a_child_is_ended() -> Job:
    return one_dies_and_one_is_ended()


@silent("ended-by-launcher")
def every_child_ends_by_itself() -> Job:
    job = running(a=2, b=2)
    job.launcher("b").exit(3, -9, at=10).listed(2, 1)
    return job


@fires("launcher-saw", ("launcher:b", "rank:3"))
def a_child_is_seen_to_fail() -> Job:
    return one_dies_and_one_is_ended()


@silent("launcher-saw")
def a_child_failed_after_the_first() -> Job:
    """Only the first failure of a launcher's table is one that it saw by itself; the root lies elsewhere."""
    job = running(a=2, b=2)
    job.rank(3).error("cuda-oom", at=9)
    job.launcher("a").listed(0, 1).listed(1, 1)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=9.5)
    return job


# machines


@fires("killed-by-memory", ("rank:3", "machine:host-oom-kill b"))
def the_kernel_kills_a_rank() -> Job:
    job = one_dies_and_one_is_ended()
    job.kernel("b").oom_kill(job.pid(3), at=9)
    return job


@silent("killed-by-memory")
def the_kernel_kills_another_program() -> Job:
    job = one_dies_and_one_is_ended()
    job.kernel("b").oom_kill(77, at=9, process="postgres")
    return job


@fires("device-failed", ("rank:3", "machine:gpu-fell-off-bus b"))
def a_device_of_a_rank_fails() -> Job:
    job = one_dies_and_one_is_ended()
    job.kernel("b").xid(79, at=9, bus_id=job.bus(3))
    return job


@silent("device-failed")
def a_device_of_nobody_fails() -> Job:
    job = one_dies_and_one_is_ended()
    job.kernel("a").xid(79, at=9, bus_id="0000:f0:00.0")
    return job


@fires("link-failed", ("rank:3", "machine:ib-link-failure b"))
def an_adapter_of_a_rank_fails() -> Job:
    job = running(a=2, b=2)
    job.rank(3).signal("link-fault", "ib-fatal-event", "ib-link-failure", "initiating", at=9, hca="mlx5_0", port=1)
    for log in job.ranks(3):
        log.lost("b", at=9.5)
    return job


@silent("link-failed")
def an_adapter_is_only_mentioned() -> Job:
    job = one_dies_and_one_is_ended()
    job.kernel("a").signal("link-fault", "host-nic-link-down", "ib-link-failure", "context", at=9, ifname="eth7")
    return job


@fires("storage-failed", ("rank:3", "machine:filesystem-io-error b"))
def the_file_system_of_a_rank_stalls() -> Job:
    """
    b  nfs: server not responding
    r3 1..8                         silent, the others wait for it
    """
    job = running(a=2, b=2)
    job.kernel("b").signal(
        "io-stall", "fs-nfs-not-responding", "filesystem-io-error", "initiating", at=9, server="store-1"
    )
    job.rank(3).error("disk-full", at=12)
    for rank in (0, 1, 2):
        job.rank(rank).timeout(7, at=610, enqueued=7, completed=6)
    return job


@silent("storage-failed")
def no_file_system_stalls() -> Job:
    return a_member_died()


# lost-store, scheduler, hosts


@fires("lost-store", ("rank:2", "launcher:a"), ("rank:3", "launcher:a"))
def the_store_goes_with_the_first_host() -> Job:
    job = running(a=2, b=2)
    job.rank(0).error("cuda-oom", at=9)
    for rank in (2, 3):
        job.rank(rank).store_lost(at=9.5)
    return job


@silent("lost-store")
def the_store_stays() -> Job:
    return peers_are_lost("b")


@fires(
    "ended-by-scheduler",
    *((f"rank:{rank}", "scheduler:preempted") for rank in range(4)),
)
def the_scheduler_preempts() -> Job:
    job = running(a=2, b=2)
    job.scheduler().signal("sched-action", "slurm-preempted", "preempted", "initiating", at=9, jobid=12)
    for log in job.ranks():
        log.signal("signal-received", "elastic-death-signal", "teardown-echo", "ambiguous", at=9.2)
    return job


@silent("ended-by-scheduler")
def signals_without_an_author() -> Job:
    job = running(a=2, b=2)
    for log in job.ranks():
        log.signal("signal-received", "elastic-death-signal", "teardown-echo", "ambiguous", at=9.2)
    return job


@fires("host-lost", ("rank:2", "host:b"), ("rank:3", "host:b"))
def a_node_is_declared_lost() -> Job:
    job = running(a=2, b=2)
    job.scheduler().signal("node-lost", "slurm-node-fail", "host-down", "initiating", at=60, node="b")
    for rank in (0, 1):
        job.rank(rank).timeout(7, at=610, enqueued=7, completed=6)
    return job


@silent("host-lost")
def a_foreign_node_is_declared_lost() -> Job:
    job = a_member_died()
    job.scheduler().signal("node-lost", "slurm-node-fail", "host-down", "initiating", at=60, node="z99")
    return job


# all together


@fires("same-error-everywhere", *((f"rank:{rank}", "job:loss-nan-or-diverged") for rank in range(4)))
def all_see_nan() -> Job:
    job = running(a=2, b=2)
    for log in job.ranks():
        log.error("loss-nan-or-diverged", at=9)
    return job


@silent("same-error-everywhere")
def one_sees_nan() -> Job:
    job = running(a=2, b=2)
    job.rank(1).error("loss-nan-or-diverged", at=9)
    for log in job.ranks(1):
        log.lost("a", at=9.5)
    return job


@fires("follows-root", ("rank:1", "rank:3"))
def one_fails_later_for_no_reason_of_its_own() -> Job:
    """
    r3  1..8 out of memory
    r1  1..8               torn down, without a word on by whom
    """
    job = running(a=2, b=2)
    job.rank(3).error("cuda-oom", at=9)
    job.rank(1).teardown(at=10)
    return job


@silent("follows-root")
def one_names_the_lost_peer() -> Job:
    return peers_are_lost("b")


# the tests


@pytest.mark.parametrize(
    ("rule", "make", "expected"),
    [pytest.param(rule, make, expected, id=f"{rule}-{make.__name__}") for rule, make, expected, _ in CASES],
)
def test_rule(rule: str, make: Callable[[], Job], expected: Pairs) -> None:
    assert {(effect, cause) for effect, name, cause in make().edges() if name == rule} == expected


def test_every_rule_has_a_firing_and_a_silent_job() -> None:
    assert {rule for rule, _, _, fire in CASES if fire} == set(rules())
    assert {rule for rule, _, _, fire in CASES if not fire} == set(rules())
