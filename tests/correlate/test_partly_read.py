"""What may not be concluded where a log, a host or half of a group is missing: each with what would allow it."""

from __future__ import annotations

import pytest

from .timeline_builder import Job


@pytest.mark.parametrize("known", [True, False])
def test_an_error_of_a_rank_that_its_launcher_ended_is_doubted_where_another_rank_may_be_why(known: bool) -> None:
    """r1 of b raises an exception of no known kind and is ended by its launcher, whose log is missing; of r3 of the
    same host nothing is known, unless the launcher names r2 as the one that ended by itself.
    """
    job = Job(a=2, b=2)
    for log in job.ranks(3):
        log.steps(8)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=9.5)
    job.rank(2).error("python-exception", at=9.2, uncaught=True)
    if known:
        job.launcher("b").exit(2, 1, at=9.4)
    else:
        job.rank(2).kill(2, at=9.4)
    found = job.best()
    assert (found.ranks if found else None) == ((2,) if known else None)


def test_who_sends_and_who_receives_do_not_differ() -> None:
    """Stages of a pipeline: r0 sends, the others receive, all in the same number of their group."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8).timeout(9, at=609, enqueued=9, completed=8, op="SEND" if log.rank == 0 else "RECV")
    found = job.best()
    assert found is None or found.cls != "collective-desync"


@pytest.mark.parametrize(("hosts", "accused"), [({"a": 4}, (0, 2)), ({"a": 4, "b": 4}, None)])
def test_silent_ranks_are_not_convicted_where_a_host_left_no_log(
    hosts: dict[str, int], accused: tuple[int, ...] | None
) -> None:
    """Half of a's ranks reach their limit, its launcher ends the other half; of b, where there is one, nothing was
    read.
    """
    job = Job(**hosts)
    for rank in range(4):
        log = job.rank(rank).steps(8)
        if rank % 2:
            log.timeout(9, at=609, enqueued=9, completed=8)
    job.launcher("a").exit(1, -6, at=610).kill(0, 2, at=611)
    found = job.best()
    assert (found.ranks if found else None) == accused


def test_the_first_ranks_of_all_hosts_are_a_group_of_their_own() -> None:
    """r0, r4 and r8 lead their hosts and gather among themselves; of host d nothing was read."""
    job = Job(a=4, b=4, c=4, d=4)
    for rank in range(12):
        op = "ALLREDUCE" if rank % 4 else "GATHER"
        job.rank(rank).steps(8).timeout(9, at=609, enqueued=9, completed=8, op=op)
    found = job.best()
    assert found is None or found.cls != "collective-desync"


def test_a_host_whose_peers_say_only_that_it_closed_was_alive() -> None:
    """All that was read of a falls silent; b lost a peer that closed, under an address that nobody knows."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (2, 3):
        job.rank(rank).lost(None, at=25)
        job.signals[-1]["text"] = "Connection closed by peer [127.0.0.1]:6043"
    found = job.best()
    assert found is None or found.cls != "host-down"


def _recorded(job: Job, rank: int, *, op: str = "ALLREDUCE", seq: int = 9) -> None:
    """A flight recorder's word that a rank had called an operation, which had not ended; of sizes it tells more than
    the watchdog does.
    """
    log = job.log(f"fr/{rank}.json", "flight-recorder", job.host(rank), rank)
    more = {"op": op, "numel_in": 1024, "shape": "[[32, 32]]", "dtype": '["Float"]', "last_enqueued": seq}
    log.signal("coll-state", fact="coll-state-record", at=610, state="scheduled", seq=seq, **more)


def test_a_watchdog_and_a_recorder_tell_of_one_call_in_other_words() -> None:
    """r0 and r1 have only their logs, r2 to r5 only their dumps, and all wait in the same operation."""
    job = Job(a=6)
    for rank in (0, 1):
        job.rank(rank).steps(8).timeout(9, at=609, enqueued=9, completed=8)
    for rank in range(2, 6):
        _recorded(job, rank)
    assert job.best() is None


def test_another_operation_is_odd_whoever_tells_of_it() -> None:
    job = Job(a=6)
    for rank in (0, 1):
        op = "ALLGATHER" if rank == 1 else "ALLREDUCE"
        job.rank(rank).steps(8).timeout(9, at=609, enqueued=9, completed=8, op=op)
    for rank in range(2, 6):
        _recorded(job, rank)
    assert job.accused() == ("collective-desync", (1,), ("a",))


def test_the_last_member_that_is_told_of_a_time_out_was_awaited() -> None:
    """r0 and r1 print their time-out, r2 left a dump that shows it waiting, r3 only the word that others gave up."""
    job = Job(a=4)
    for rank in (0, 1):
        job.rank(rank).steps(8).timeout(9, at=609, enqueued=9, completed=8)
    _recorded(job, 2)
    job.rank(3).steps(8).dump_signal(0, at=609.5)
    assert job.accused() == ("collective-rank-absent", (3,), ("a",))


def test_two_that_nobody_saw_waiting_are_not_told_apart() -> None:
    job = Job(a=5)
    for rank in (0, 1, 2):
        job.rank(rank).steps(8).timeout(9, at=609, enqueued=9, completed=8)
    for rank in (3, 4):
        job.rank(rank).steps(8).dump_signal(0, at=609.5)
    assert job.best() is None


def test_who_left_no_log_joins_nobody_whom_a_service_names() -> None:
    """The coordinator names r2 as lost; of r1 and r2 no log was read, and nothing tells their hosts."""
    job = Job(a=4)
    job.rank(0).steps(8).signal("absent", "jax-task-heartbeat", "collective-rank-absent", "ambiguous", 100, ranks="2")
    job.rank(3).steps(8).lost(None, at=101)
    found = job.best()
    assert found is not None
    assert found.ranks == (2,)


def test_an_abort_without_a_log_is_doubted_where_others_left_none_either() -> None:
    """r2 aborts, r0 loses a peer; the logs of r1, r2 and r3 are missing: r3 may have left before."""
    job = Job(a=2, b=2)
    job.rank(0).steps(8).lost("b", at=9.5)
    job.launcher("b").kill(3, at=8.9).signal(
        "exit", "elastic-worker-failed", "teardown-echo", "collateral", 9, local_rank=0, exitcode=-6
    )
    assert job.best() is None
