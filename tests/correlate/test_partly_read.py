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
