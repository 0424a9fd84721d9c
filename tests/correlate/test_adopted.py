"""Errors and ranks that lines name only in part: an error without a rank, a cause of a whole host in different words,
ranks that reports alone name, members that did not come.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .timeline_builder import Job


def shared(ranks: int = 4) -> Job:
    """A job whose ranks print in one log, three of which wait ten minutes for r2."""
    job = Job(a=ranks)
    log = job.log("job.log", "job", "a")
    for rank in range(ranks):
        log.steps(8, rank=rank)
    return job


@pytest.mark.parametrize(("at", "expected"), [(9, "cuda-illegal-memory-access"), (620, "collective-rank-absent")])
def test_an_error_without_a_rank_is_that_of_the_only_silent_one(at: float, expected: str) -> None:
    """An error that no line ties to a rank stands before the others' time-outs, or behind them."""
    job = shared()
    log = job.logs["job.log"]
    early, late = at < 600, at > 600
    if early:
        log.error("cuda-illegal-memory-access", at=at)
    for rank in (0, 1, 3):
        log.timeout(9, at=609, enqueued=9, completed=8, rank=rank)
    if late:
        log.error("cuda-illegal-memory-access", at=at)
    found = job.best()
    assert found is not None
    assert (found.cls, found.ranks) == (expected, (2,))


@pytest.mark.parametrize(("odd", "expected"), [(3, (2, 3)), (1, (2,))])
def test_one_cause_of_a_host_in_different_words(odd: int, expected: tuple[int, ...]) -> None:
    """r2 finds no device and r3 a driver that is too old, both of b; or a rank of another host does."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.say("start", at=1)
    job.rank(2).signal("init-failure", "cuda-no-device", "cuda-driver-mismatch", "initiating", at=5)
    job.rank(odd).signal("init-failure", "env-driver-too-old", "cuda-driver-mismatch", "initiating", at=6)
    for rank in {0, 1, 3} - {odd}:
        job.rank(rank).lost("b", at=9)
    job.launcher("b").exit(2, 1, at=8)
    best = job.judge().ranked.open[0]
    assert best.ranks == expected


@pytest.mark.parametrize(("listed", "expected"), [("1-7", (0,)), ("2-7", ())])
def test_tasks_of_srun_are_ranks_where_all_are_named(listed: str, expected: tuple[int, ...]) -> None:
    """Nothing names a rank but srun's reports: task 0 ended by itself, the others were ended."""
    job = Job()
    job.world = None
    log = job.log("slurm-1.out", "job", None).say("start", at=1).error("disk-full", at=9)
    log.signal("exit", "slurm-task-exit", "teardown-echo", "ambiguous", at=10, tasks="0", exitcode=1, host="n1")
    log.signal("agent-kill", "slurm-step-aborted", "teardown-echo", "collateral", at=10)
    log.signal(
        "exit", "slurm-task-exit", "teardown-echo", "ambiguous", at=11, tasks=listed, signal="Terminated", host="n1"
    )
    found = job.best()
    assert found is not None
    assert (found.cls, found.ranks) == ("disk-full", expected)


def test_ranks_that_only_watchdogs_and_a_report_name() -> None:
    """Lines bear hosts alone; the watchdogs of r0, r1 and r3 and the report on r2 tell of four ranks on two hosts."""
    job = Job()
    job.world = None
    log = job.log("merged.log", "text", None)
    for rank in (0, 1, 3):
        log.timeout(9, at=609, pg_rank=rank)
        job.signals[-1]["host"] = "ab"[rank // 2]
    log.signal("absent", "pgnccl-desync-report", "collective-rank-absent", "ambiguous", at=610, pg_ranks=2, seq=9)
    found = job.best()
    assert found is not None
    assert (found.cls, found.ranks) == ("collective-rank-absent", (2,))


@pytest.mark.parametrize(("joined", "expected"), [(3, (3,)), (2, None)])
def test_members_that_did_not_come_to_the_first_barrier(joined: int, expected: tuple[int, ...] | None) -> None:
    """Three ranks wait, and each says that three had come, or two: then the count is of another moment."""
    job = Job(a=2, b=2)
    for rank in range(3):
        job.rank(rank).say("start", at=1).signal(
            "init-failure", "tcpstore-wait-timeout", "rendezvous-timeout", "collateral", at=1801,
            rank=rank, joined=joined, world_size=4, key="store_based_barrier_key:1",
        )  # fmt: skip
    found = job.best()
    assert (found.ranks if found else None) == expected


@pytest.mark.parametrize(("path", "cls"), [("store-svc.log", "store-lost"), ("notes.log", "host-oom-kill")])
def test_the_store_itself_says_that_it_failed(path: str, cls: str) -> None:
    """All hosts lose a store that is none of them; an error in a log of its name, or in one of another name."""
    job = Job(a=1, b=1)
    for rank in (0, 1):
        job.rank(rank).steps(8).signal(
            "store-lost", "tcpstore-broken-pipe", "store-lost", "collateral", at=12, peer="store-svc"
        )
    job.log(path, "text", None).signal("exception", "host-memory-error", "host-oom-kill", "initiating", at=9)
    found = job.best()
    assert found is not None
    assert (found.cls, found.hosts) == (cls, ("store-svc",) if cls == "store-lost" else ())


@pytest.mark.parametrize(
    ("pod", "ranks", "hosts"),
    [
        ("asr-workers-0-2-c9l0d", (4, 5), ("asr-workers-0-2-c9l0d",)),
        ("tts-workers-0-2-c9l0d", (), ()),
    ],
    ids=["of the same set", "of another"],
)
def test_an_evicted_pod_without_a_line_has_the_ranks_of_its_index(
    pod: str, ranks: tuple[int, ...], hosts: tuple[str, ...]
) -> None:
    """Pods 0 and 1 of a set carry two ranks each and lose their peers; an event tells of the eviction of a pod 2."""
    job = Job(**{"asr-workers-0-0-b7x2k": 2, "asr-workers-0-1-mm4qz": 2})
    job.world = None
    for log in job.ranks():
        log.steps(8).lost("10.9.9.9", at=9)
    job.log("events.txt", "events", None, attempt=None).signal(
        "sched-action", "k8s-evicted", "pod-evicted", "initiating", at=8, pod=pod
    )
    best = next((one for one in job.judge().ranked.open if one.cls == "pod-evicted"), None)
    assert ((best.ranks, best.hosts) if best else ((), ())) == (ranks, hosts)


@pytest.mark.parametrize(("died", "expected"), [(("b",), ("b",)), (("a", "b"), None)])
def test_a_fault_without_a_date_on_the_only_host_where_something_died(
    died: tuple[str, ...], expected: tuple[str, ...] | None
) -> None:
    """b's kernel log bears no date; srun saw a task of b abort, or tasks of both hosts."""
    job = Job()
    job.world = None
    job.log("b/dmesg.log", "kernel", "b", attempt=None).xid(79, at=None, bus_id="0000:2b:00")
    log = job.log("slurm-1.out", "job", None).say("start")
    for number, host in enumerate(died):
        log.signal("exit", "slurm-task-exit", "teardown-echo", "ambiguous", tasks=number, signal="Aborted", host=host)
    found = job.best()
    assert (found.hosts if found else None) == expected


@pytest.mark.parametrize(("count", "expected"), [(3, ()), (1, (1, 3)), (2, (1, 3))])
def test_errors_that_ray_folds_are_those_of_all_where_there_are_as_many(count: int, expected: tuple[int, ...]) -> None:
    """r1 of a and r3 of b print an error, the second for itself and others: with it all four, or two, or three."""
    job = Job(a=2, b=2)
    log = job.log("driver.log", "job", None)
    for rank in range(4):
        log.say("start", at=1, rank=rank)
    text = "torch.OutOfMemoryError: CUDA out of memory."
    log.signal("exception", "cuda-oom", "cuda-oom", "initiating", at=9, rank=1, text=text)
    folded = f"{text} [repeated {count}x across cluster]"
    log.signal("exception", "cuda-oom", "cuda-oom", "initiating", at=9, rank=3, text=folded)
    found = job.best()
    assert found is not None
    assert (found.cls, found.ranks) == ("cuda-oom", expected)


@pytest.mark.parametrize(("named", "ranks"), [("n2", (2, 3)), (None, ())])
def test_a_node_that_is_lost_has_the_ranks_that_nothing_places(named: str | None, ranks: tuple[int, ...]) -> None:
    """srun places tasks 0 and 1 on n1, and says that n2 failed; or it names no other host."""
    job = Job()
    job.world = None
    log = job.log("slurm-1.out", "job", None)
    for rank in range(4):
        log.steps(8, rank=rank)
    if named:
        log.signal("node-lost", "slurm-node-fail", "host-down", "initiating", at=9, hosts=named)
    log.signal(
        "exit", "slurm-task-exit", "teardown-echo", "ambiguous", at=11, tasks="0-1", signal="Terminated", host="n1"
    )
    best = next((one for one in job.judge().ranked.open if one.cls == "host-down"), None)
    assert (best.ranks if best else ()) == ranks


@pytest.mark.parametrize(("last", "expected"), [(9, (2,)), (8, ())])
def test_whose_last_step_alone_has_a_loss_that_is_none(last: int, expected: tuple[int, ...]) -> None:
    """All ranks stop at a gradient; r2's step 9 has no loss, and the others print that step, too, or not."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(last if log.rank != 2 else 8)
    log = job.rank(2).signal(
        "numeric", "nan-generic", "loss-nan-or-diverged", "ambiguous", at=9, text="step 9 loss nan"
    )
    job.progress.append((log, len(log.lines), 2, 0, 9, 9))
    for log in job.ranks():
        log.error("loss-nan-or-diverged", at=10)
    found = job.best()
    assert found is not None
    assert (found.cls, found.ranks) == ("loss-nan-or-diverged", expected)


@pytest.mark.parametrize(("host", "cls"), [("b", "gpu-thermal-or-power"), ("a", "straggler")])
def test_a_slow_rank_on_the_host_whose_devices_are_held_back(host: str, cls: str) -> None:
    """r2 of b works longer than the others, who wait; a record without a date shows a brake on b, or on a."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        for step in range(1, 31):
            own = 400 if log.rank == 2 else 100
            log.step(step, step, text=f"step {step} compute {own} ms comm {500 - own} ms")
    job.log(f"{host}/nvidia-smi-q.txt", "status", host, attempt=None).signal(
        "node-fault", "gpu-thermal-slowdown", "gpu-thermal-or-power", "initiating"
    )
    best = job.judge().ranked.open[0]
    assert (best.cls, best.ranks) == (cls, (2,))


def test_a_dumped_stack_is_that_of_the_rank_with_its_process_id() -> None:
    """The file of the dump is named after nothing, and its host is unknown."""
    job = Job(a=1, b=1)
    for log in job.ranks():
        log.steps(3)
    job.log("dump.txt", "text", "dump", attempt=None).signal("phase", fact="stack", pid=job.pid(1), function="sub")
    assert [one.fact for one in job.judge().view.states[1].phases] == ["stack"]


def test_what_several_ranks_say_alike_does_not_hide_the_rest(tmp_path: Path) -> None:
    """Four ranks of b raise the same, which its kernel explains: one of theirs is cited, then the kernel's line."""
    job = Job(a=4, b=4)
    for log in job.ranks():
        log.steps(8)
    for rank in range(4, 8):
        job.rank(rank).error("disk-full", at=9)
    job.kernel("b").signal("io-error", "disk-full", "disk-full", "initiating", at=9)
    for rank in range(4):
        job.rank(rank).lost("b", at=10)
    found = job.diagnose(tmp_path)
    assert "b/dmesg.log" in [one.path for one in found.evidence[:2]]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (("2.20.5", "2.19.3", "2.19.3"), ("nccl-version-mismatch", ("a",))),
        (("2.19.4", "2.19.3", "2.19.3"), ("config-invalid", ())),
    ],
    ids=["another release", "another correction of it"],
)
def test_lists_of_packages_tell_whose_nccl_is_the_odd_one(
    versions: tuple[str, ...], expected: tuple[str, tuple[str, ...]]
) -> None:
    """All ranks fail in the set-up in words that other causes have, too; each host's log begins with its packages."""
    job = Job(a=2, b=2, c=2)
    for host, version in zip(job.names, versions, strict=True):
        job.merged(host).say("accelerate==0.29.3").say(f"nvidia-nccl-cu12=={version}")
    for log in job.ranks():
        log.say("start", at=1).signal("init-failure", "nccl-invalid-usage", "config-invalid", "ambiguous", at=9)
    best = job.judge().ranked.open[0]
    assert (best.cls, best.hosts) == expected


def test_a_rendezvous_that_nobody_placed_accuses_no_host() -> None:
    """Logs of the agents bear no host, so that any of the hosts that other logs name may have come."""
    job = Job(a=1, b=1)
    for host in job.names:
        job.kernel(host).say("boot", at=0)
    for number in range(2):
        job.log(f"agent{number}.log", "launcher", None).signal(
            "init-failure", "elastic-rdzv-timeout", "rendezvous-timeout", "ambiguous", at=610
        )
    assert all(not one.hosts for one in job.judge().ranked.open if one.cls == "rendezvous-timeout")


def test_the_own_lines_of_a_rank_are_cited_before_what_others_quote() -> None:
    """The log of host a, which comes first, quotes the error of r1; b's own log holds it, too."""
    job = Job(a=1, b=1)
    quoted = job.rank(0).steps(8)
    quoted.signal("exception", "disk-quota", "disk-full", "initiating", at=9, rank=1)
    quoted.lines[-1].rank = 0
    job.rank(1).steps(8).signal("exception", "disk-quota", "disk-full", "initiating", at=9)
    best = job.judge().ranked.open[0]
    assert best.signals[0][0].source.path == "b/rank1.log"


def test_how_a_rank_came_to_another_collective_is_cited(tmp_path: Path) -> None:
    """r2 says that its epoch is finished and calls a barrier, where the others reduce."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
        if log.rank == 2:
            log.phase("epoch 0 finished", at=8.5)
        log.timeout(9, at=609, enqueued=9, completed=8, op="BARRIER" if log.rank == 2 else "ALLREDUCE")
    found = job.diagnose(tmp_path)
    assert found.initiating.ranks == (2,)
    assert "epoch 0 finished" in [one.text for one in found.evidence[:2]]
