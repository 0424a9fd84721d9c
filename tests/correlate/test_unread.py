"""What a log that is not among the files may hold: suspicions that it could explain convict nobody, the same ones with
that log do.
"""

from __future__ import annotations

import pytest

from .timeline_builder import Job, Log


def accused(job: Job) -> tuple[int, ...] | None:
    found = job.best()
    return found.ranks if found else None


@pytest.mark.parametrize(("missing", "expected"), [(None, (1,)), (3, None)])
def test_an_error_that_may_follow_from_another_one(missing: int | None, expected: tuple[int, ...] | None) -> None:
    """r1's NCCL fails in a call of CUDA, which it also does when its peer's device fails; the others print nothing."""
    job = Job(a=4)
    for log in job.ranks(*([] if missing is None else [missing])):
        log.steps(8)
    job.rank(1).signal("init-failure", "nccl-unhandled-cuda", "cuda-library-error", "ambiguous", at=9)
    assert accused(job) == expected


@pytest.mark.parametrize(("missing", "expected"), [(None, ()), (3, None)])
def test_an_error_of_all_that_were_read(missing: int | None, expected: tuple[int, ...] | None) -> None:
    """Each rank meets NaN behind the common all-reduce: whose it was, only the log that is missing would tell."""
    job = Job(a=2, b=2)
    for log in job.ranks(*([] if missing is None else [missing])):
        log.steps(8).error("loss-nan-or-diverged", at=9)
    job.launcher("a").exit(0, 1, at=10)
    assert accused(job) == expected


@pytest.mark.parametrize(("streams", "expected"), [(("stderr",), (1,)), (("stdout",), None)])
def test_an_abort_whose_error_stream_is_not_here(streams: tuple[str, ...], expected: tuple[int, ...] | None) -> None:
    """r1 is aborted: its standard error would say by whom."""
    job = Job(a=2, b=2)
    for rank in range(4):
        for stream in streams if rank == 1 else ("stdout", "stderr"):
            log = job.log(f"{job.host(rank)}/{rank}/{stream}.log", "rank", job.host(rank), rank, stream=stream)
            log.steps(8)
        if rank != 1:
            log.lost("a", at=9.5)
    job.launcher("a").exit(1, -6, at=9.4)
    assert accused(job) == expected


def wants_id(log: Log) -> None:
    """The error of a rank that got no identifier from rank 0."""
    reason = {"pg_ranks": 0, "reason": "Socket Timeout"}
    log.signal("absent", "data-main-process-slow", "collective-rank-absent", "collateral", at=610, **reason)
    log.signal("init-failure", "pgnccl-uniqueid-get", "nccl-init-failure", "collateral", at=610)


@pytest.mark.parametrize(
    ("hosts", "root", "expected"),
    [
        ({"a": 4}, "silent", (0,)),
        ({"a": 4, "b": 4}, "silent", None),
        ({"a": 4, "b": 4}, "busy", (0,)),
        ({"a": 4}, "waiting", None),
    ],
)
def test_a_root_that_gave_no_identifier_may_wait_itself(
    hosts: dict[str, int], root: str, expected: tuple[int, ...] | None
) -> None:
    """a's ranks wait for rank 0, which says nothing, what it is busy with, or that it lost somebody; of b, where there
    is one, nothing was read.
    """
    job = Job(**hosts)
    for rank in range(1, 4):
        wants_id(job.rank(rank).say("start", at=1))
    log = job.rank(0).say("start", at=1)
    if root == "busy":
        log.phase("tokenising the corpus", at=2)
    elif root == "waiting":
        log.lost(None, at=605)
    assert accused(job) == expected


@pytest.mark.parametrize(("waiting", "expected"), [(False, ("a",)), (True, None)])
def test_a_store_whose_host_gave_up_itself(waiting: bool, expected: tuple[str, ...] | None) -> None:
    """The launchers of b and c lose the store on a; there r0 has waited in vain for clients, or nothing happened."""
    job = Job(a=1, b=1, c=1, d=1)
    for log in job.ranks(3):
        log.say("start", at=1)
    if waiting:
        job.rank(0).signal("init-failure", "tcpstore-clients-missing", "rendezvous-timeout", "collateral", at=601)
    for host in ("b", "c", "d"):
        job.launcher(host).signal(
            "store-lost", "tcpstore-recv-0-bytes", "store-lost", "collateral", at=602, peer=job.address("a")
        )
    found = job.best()
    assert (found.hosts if found else None) == expected


@pytest.mark.parametrize(("logged", "expected"), [(True, (0, 1)), (False, None)])
def test_exit_codes_of_several_ranks_without_a_log(logged: bool, expected: tuple[int, ...] | None) -> None:
    """Python ends with 1 after any exception, also after that of a peer lost."""
    job = Job(a=2, b=2)
    for log in job.ranks(*(() if logged else (0, 1))):
        log.steps(8)
    if not logged:
        job.identities.extend({"rank": rank, "host": "a", "how": "launcher-table"} for rank in (0, 1))
    job.log("sbatch.out", "job", None).signal(
        "exit", "slurm-task-exit", "teardown-echo", "collateral", at=9, tasks="0,1", exitcode=1, host="a"
    )
    assert accused(job) == expected


@pytest.mark.parametrize(("reports", "expected"), [(True, ("a",)), (False, ())])
def test_a_launcher_told_to_end_while_the_other_had_gone(reports: bool, expected: tuple[str, ...]) -> None:
    """a's launcher is told to end, b's ranks lose theirs; b's own launcher reports that, or had gone without a word."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.launcher("a").signal("signal-received", "elastic-death-signal", "teardown-echo", "ambiguous", at=9)
    job.launcher("a").kill(0, 1, at=9.1)
    for rank in (2, 3):
        job.rank(rank).lost("a", at=9.5)
    agent = job.launcher("b").say("starting workers", at=0)
    if reports:
        agent.exit(2, 1, at=10)
    (found,) = [one for one in job.judge().ranked.open if one.rule == "unauthored-signal"]
    assert found.hosts == expected


@pytest.mark.parametrize(("missing", "expected"), [((), (0,)), ((3,), None)])
def test_slowness_ends_no_connection(missing: tuple[int, ...], expected: tuple[int, ...] | None) -> None:
    """r0 works longest while the others wait, and some lose a connection: r3 may have ended, where its log is not
    here.
    """
    job = Job(a=2, b=2)
    for log in job.ranks(*missing):
        for step in range(1, 31):
            own = 400 if log.rank == 0 else 100
            log.step(step, step, text=f"step {step} compute {own} ms comm {500 - own} ms")
        if log.rank == 2:
            log.lost("a", at=31)
    assert accused(job) == expected


@pytest.mark.parametrize(("error", "expected"), [(None, (2, 3)), (9, None)])
def test_who_is_missing_after_the_others_had_failed(error: float | None, expected: tuple[int, ...] | None) -> None:
    """r0 and r1 name those that did not come to a last barrier; had they failed before, these may have left."""
    job = Job(a=1, b=1, c=1, d=1)
    for log in job.ranks(2, 3):
        log.steps(8)
        if error is not None:
            log.signal("exception", "tpu-core-halted", "accelerator-fault", "ambiguous", at=error)
        log.signal("absent", "jax-barrier-absent", "collective-rank-absent", "collateral", at=310, ranks="2,3")
    assert accused(job) == expected


@pytest.mark.parametrize(("missing", "expected"), [((), ("b",)), ((6, 7), None)])
def test_a_port_that_came_back_while_the_log_of_a_host_is_missing(
    missing: tuple[int, ...], expected: tuple[str, ...] | None
) -> None:
    """b's port reports an error; connections to an address that nothing places break; d's log may be missing."""
    job = Job(a=2, b=2, c=2, d=2)
    for log in job.ranks(*missing):
        log.steps(8)
    job.rank(2).signal("link-fault", "ib-port-error", "ib-link-failure", "ambiguous", at=9)
    for rank in (0, 4):
        job.rank(rank).signal(
            "peer-loss", "ib-wc-12", "ib-completion-error", "collateral", at=11, peer="10.9.9.9", status=12
        )
    found = job.best()
    assert (found.hosts if found else None) == expected


@pytest.mark.parametrize(("kills", "expected"), [(True, (2,)), (False, None)])
def test_a_launcher_that_names_one_child_only(kills: bool, expected: tuple[int, ...] | None) -> None:
    """a's launcher reports r3, and names those that it ended, or not: then it says nothing of r2. Nothing tells how
    many ranks there are.
    """
    job = Job(a=4)
    job.world = None
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1, 3):
        job.rank(rank).lost("10.9.9.9", at=9)
    agent = job.launcher("a")
    if kills:
        agent.kill(0, 1, at=9.5)
    agent.exit(3, 1, at=10)
    assert accused(job) == expected


@pytest.mark.parametrize(("missing", "expected"), [((), (1,)), ((2, 3), None)])
def test_set_up_that_fails_for_all_that_were_read(missing: tuple[int, ...], expected: tuple[int, ...] | None) -> None:
    """r0 and r1 cannot set up a communicator, r1 in other words: it may be the host that is not here."""
    job = Job(a=2, b=2)
    for log in job.ranks(*missing):
        log.say("start", at=1)
    job.rank(0).signal("init-failure", "nccl-invalid-usage", "config-invalid", "ambiguous", at=9)
    job.rank(1).signal(
        "init-failure", "nccl-no-interface", "network-interface-misconfigured", "initiating", at=9, uncaught=True
    )
    job.launcher("a").exit(1, 1, at=10)
    assert accused(job) == expected


@pytest.mark.parametrize(("told_at", "expected"), [(12, (0,)), (8, None)])
def test_an_error_behind_the_word_that_the_host_is_ended(told_at: float, expected: tuple[int, ...] | None) -> None:
    """Both launchers are told to end, by their own logs; r0 fails to save a last checkpoint before or after that."""
    job = Job(a=1, b=1)
    for log in job.ranks():
        log.steps(7)
    job.rank(0).error("disk-full", at=10)
    for host in job.names:
        job.launcher(host).signal("signal-received", "elastic-death-signal", "teardown-echo", "ambiguous", at=told_at)
    assert accused(job) == expected


@pytest.mark.parametrize(("others", "expected"), [((), (2,)), ((1,), None)])
def test_the_traceback_of_one_rank_alone(others: tuple[int, ...], expected: tuple[int, ...] | None) -> None:
    """Somebody shows one rank's traceback; beside the log of another rank, that of the third is missing."""
    job = Job()
    job.world = None
    for rank in others:
        job.log(f"rank{rank}.log", "rank", None, rank).steps(7)
    job.log("rank2.log", "rank", None, 2).steps(7).error("python-exception", at=8, uncaught=True)
    assert accused(job) == expected
