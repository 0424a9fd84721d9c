"""Small jobs for the rules of the causal graph: how one is written down, and those of collectives.

Each rule has a job in which it joins two places, and one like it in which it must not.
"""

from __future__ import annotations

from collections.abc import Callable

from .timeline_builder import Job

WORLD7 = "collective:ALLREDUCE #7 of world"
Pairs = set[tuple[str, str]]
CASES: list[tuple[str, Callable[[], Job], Pairs, bool]] = []


def fires(rule: str, *expected: tuple[str, str]) -> Callable[[Callable[[], Job]], Callable[[], Job]]:
    """The rule gives exactly these edges (effect, cause) in the job."""

    def keep(make: Callable[[], Job]) -> Callable[[], Job]:
        CASES.append((rule, make, set(expected), True))
        return make

    return keep


def silent(rule: str) -> Callable[[Callable[[], Job]], Callable[[], Job]]:
    """The rule gives no edge in the job."""

    def keep(make: Callable[[], Job]) -> Callable[[], Job]:
        CASES.append((rule, make, set(), False))
        return make

    return keep


def running(**hosts: int) -> Job:
    """All ranks print eight steps of a second."""
    job = Job(**hosts)
    for log in job.ranks():
        log.steps(8)
    return job


# waits-in


@fires("waits-in", ("rank:0", WORLD7), ("rank:1", WORLD7), ("rank:2", WORLD7))
def waiting_in_one() -> Job:
    """
    r0  1..8 [ALLREDUCE #7 ............ 600 s] time-out
    r1  1..8 [ALLREDUCE #7 ............ 600 s] time-out
    r2  1..8 [ALLREDUCE #7 ............ 600 s] time-out
    r3  1..8                 enqueued 6
    """
    job = running(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).timeout(7, at=610, enqueued=7, completed=6)
    job.rank(3).counters(6, 6, at=611)
    return job


@fires(
    "waits-in",
    ("rank:0", "collective:ALLGATHER #3 of tp"),
    ("rank:1", "collective:ALLGATHER #3 of tp"),
)
def waiting_first_in_the_smaller_group() -> Job:
    """Of two time-outs of one rank only the one that it entered first blocks it.

    r0,1  [tp #3 .......... 600.0 s]      entered at 10.0
    r0,1     [world #7 .... 599.5 s]      entered at 10.5
    """
    job = running(a=2, b=2)
    for rank in (0, 1):
        job.rank(rank).timeout(7, at=610.0, waited=599.5, enqueued=7, completed=6)
        job.rank(rank).timeout(3, at=610.0, waited=600.0, op="ALLGATHER", group="tp", pg_rank=rank)
    return job


@silent("waits-in")
def nobody_waits() -> Job:
    job = running(a=2, b=2)
    job.rank(3).error("cuda-oom", at=9)
    for log in job.ranks(3):
        log.lost("b", at=9.5)
    return job


# member-failed


@fires("member-failed", (WORLD7, "rank:3"))
def a_member_died() -> Job:
    """
    r0-2  1..8 [#7 ........... 600 s] time-out
    r3    1..8 out of memory
    """
    job = running(a=2, b=2)
    job.rank(3).error("cuda-oom", at=9)
    for rank in (0, 1, 2):
        job.rank(rank).timeout(7, at=610, enqueued=7, completed=6)
    return job


@silent("member-failed")
def somebody_outside_the_group_died() -> Job:
    """Ranks 0 and 1 wait in a group of their own, of which rank 3 is no member."""
    job = running(a=2, b=2)
    job.rank(3).error("cuda-oom", at=9)
    job.launcher("b").exit(3, 1, at=10)
    for rank in (0, 1):
        job.rank(rank).signal(
            "coll-state", at=609, pg_guid="tp", pg_desc="tp", pg_ranks="[0, 1]", last_enqueued=3, last_completed=2
        )
        job.rank(rank).timeout(3, at=610, op="ALLGATHER", group="tp")
    return job


# member-absent


@fires("member-absent", (WORLD7, "rank:3"))
def a_member_never_came() -> Job:
    return waiting_in_one()


@silent("member-absent")
def all_came() -> Job:
    """
    r0-3  1..8 [#7 ......... 600 s] time-out     all four had enqueued 7
    """
    job = running(a=2, b=2)
    for log in job.ranks():
        log.timeout(7, at=610, enqueued=7, completed=6)
    return job


# member-elsewhere


@fires("member-elsewhere", (WORLD7, "collective:ALLGATHER #3 of tp"))
def a_member_waits_elsewhere() -> Job:
    """
    r0,1  [#7 of world ......... 590 s]
    r2,3  [#3 of tp .............. 600 s]   entered before
    """
    job = running(a=2, b=2)
    for rank in (0, 1):
        job.rank(rank).timeout(7, at=610, waited=590, enqueued=7, completed=6)
    for rank in (2, 3):
        job.rank(rank).timeout(3, at=610, waited=600, op="ALLGATHER", group="tp")
    return job


@silent("member-elsewhere")
def all_wait_in_the_same() -> Job:
    return all_came()


# member-mute


@fires("member-mute", (WORLD7, "rank:3"))
def a_member_says_nothing() -> Job:
    """
    r0-2  1..8 [#7 ........... 600 s] time-out, ended
    r3    1..8                              ended by its launcher while it was still there
    """
    job = running(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).timeout(7, at=610, enqueued=7, completed=6)
    job.launcher("a").exit(0, -6, at=612).kill(1, at=612)
    job.launcher("b").exit(2, -6, at=612).kill(3, at=614)
    return job


@silent("member-mute")
def a_member_died_with_a_word() -> Job:
    return a_member_died()


# member-odd


@fires("member-odd", (WORLD7, "rank:3"))
def a_member_called_something_else() -> Job:
    """
    r0-2  [ALLREDUCE #7, 1024 ......] time-out
    r3    [ALLREDUCE #7, 2048 ......] time-out
    """
    job = running(a=2, b=2)
    for log in job.ranks():
        log.timeout(7, at=610, numel=2048 if log.rank == 3 else 1024, enqueued=7, completed=6)
    return job


@silent("member-odd")
def all_called_the_same() -> Job:
    return all_came()


# waits-in-completed


@fires("waits-in-completed", (WORLD7, "rank:3"))
def one_waits_in_what_the_others_completed() -> Job:
    """
    r0-2  1..8  completed 7
    r3    1..8  [#7 ......... 600 s] time-out
    """
    job = running(a=2, b=2)
    job.rank(3).timeout(7, at=610, enqueued=7, completed=6)
    for log in job.ranks(3):
        log.counters(8, 7, at=611)
    return job


@silent("waits-in-completed")
def the_others_did_not_complete_it_either() -> Job:
    return all_came()


# member-unlogged


@fires("member-unlogged", (WORLD7, "rank:3"))
def a_member_left_no_log() -> Job:
    """
    r0-2  1..8 [#7 ........... 600 s] time-out
    r3    no file
    """
    job = Job(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).steps(8).timeout(7, at=610, enqueued=7, completed=6)
    return job


@silent("member-unlogged")
def all_left_logs() -> Job:
    return waiting_in_one()
