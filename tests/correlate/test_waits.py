"""Who is missing where the others wait: absent, mute, odd, stuck, silent hosts, and who is only slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.correlate.diagnosis import Verdict

from .timeline_builder import Job, Log


def waiting(*but: int, **hosts: int) -> Job:
    """All ranks but some print eight steps and time out in #9 ten minutes later; the others print eight steps."""
    job = Job(**(hosts or {"a": 2, "b": 2}))
    for log in job.ranks():
        log.steps(8)
        if log.rank not in but:
            log.timeout(9, at=610, enqueued=9, completed=8)
    return job


def end_all(job: Job) -> Job:
    """Each launcher reports its first waiting rank and ends the others, after the time-outs."""
    for host in job.names:
        mine = [rank for rank, (name, _) in enumerate(job.hosts) if name == host]
        waited = {one["rank"] for one in job.signals if one["event"] == "coll-timeout"}
        first = next((rank for rank in mine if rank in waited), None)
        if first is not None:
            job.launcher(host).exit(first, -6, at=612)
        job.launcher(host).kill(*(rank for rank in mine if rank != first), at=614)
    return job


# absent


def test_its_own_counters_convict_an_absent_rank() -> None:
    job = waiting(3)
    job.rank(3).counters(8, 8, at=611)
    found = job.best()
    assert found is not None
    assert (found.rule, found.ranks) == ("absent", (3,))
    assert any("never enqueued" in reason for reason in found.for_)


def test_a_flight_recorder_that_shows_nothing_convicts() -> None:
    job = waiting(3)
    job.log("b/fr_3.pkl", "flight-recorder", "b", 3).counters(8, 8, at=611)
    found = job.best()
    assert found is not None
    assert (found.rule, found.ranks) == ("absent", (3,))


def test_two_absent_ranks_are_both_named() -> None:
    job = waiting(2, 3, a=4, b=4)
    for rank in (2, 3):
        job.rank(rank).counters(8, 8, at=611)
    assert job.accused() == ("collective-rank-absent", (2, 3), ("a",))


def test_where_most_are_behind_nobody_is_absent() -> None:
    """Only r0 and r3 wait in #9; the other four had enqueued 8 and say no more: no majority, no verdict."""
    job = waiting(1, 2, 4, 5, a=3, b=3)
    for rank in (1, 2, 4, 5):
        job.rank(rank).counters(8, 8, at=611)
    assert job.best() is None


def test_a_report_that_names_who_did_not_come_convicts() -> None:
    """rank 0's monitored barrier: rank 3 did not come."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.rank(0).signal("absent", "gloo-monitored-barrier", "collective-rank-absent", "collateral", at=60, ranks="3")
    for rank in (1, 2):
        job.rank(rank).lost("a", at=61)
    assert job.accused() == ("collective-rank-absent", (3,), ("b",))


# mute


def test_the_only_silent_rank_that_outlived_the_time_out_is_accused() -> None:
    found = end_all(waiting(3)).best()
    assert found is not None
    assert (found.rule, found.ranks) == ("mute", (3,))


def test_two_silent_ranks_of_eight_are_accused_together() -> None:
    found = end_all(waiting(2, 6, a=4, b=4)).best()
    assert found is not None
    assert (found.rule, found.ranks) == ("mute", (2, 6))


def test_half_of_all_silent_is_no_evidence() -> None:
    job = waiting(1, 2, 3, 4, 5, a=3, b=3)
    for host, ranks in (("a", (0, 1, 2)), ("b", (3, 4, 5))):
        job.launcher(host).kill(*ranks, at=614)
    assert job.best() is None


def test_what_a_silent_rank_began_last_is_shown() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks(3):
        log.steps(8).timeout(9, at=610)
    job.rank(3).steps(8).phase("begins to save the checkpoint", at=8.5)
    found = end_all(job).best()
    assert found is not None
    assert any("last thing that rank 3 says it began" in why for _, why in found.signals)


def test_an_inherited_time_does_not_prove_that_a_rank_was_still_there() -> None:
    """
    a  r0 loses b, in a line without a time, somewhere after step 8
    b  r2 died at 9, unlogged by name; r3 is ended at 20 and had said nothing
    """
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=None)
    job.launcher("b").exit(2, 1, at=19.9).kill(3, at=20)
    found = job.best()
    assert found is None or found.ranks != (3,)


# odd


@pytest.mark.parametrize("odd", [{"numel": 2048}, {"op": "BROADCAST"}])
def test_who_called_something_else_is_odd(odd: dict[str, int | str]) -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
        more = odd if log.rank == 2 else {}
        log.timeout(9, at=610, enqueued=9, completed=8, **more)  # type: ignore[arg-type]
    assert job.accused() == ("collective-desync", (2,), ("b",))


def test_two_against_two_is_undecided() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8).timeout(9, at=610, numel=2048 if log.rank in (1, 2) else 1024, enqueued=9, completed=8)
    assert job.best() is None


def fingerprint(log: Log, shapes: dict[int, int]) -> None:
    """The report of TORCH_DISTRIBUTED_DEBUG=DETAIL."""
    text = "; ".join(
        f"Rank {rank} is running collective: CollectiveFingerPrint(SequenceNumber=9, OpType=ALLREDUCE, "
        f"TensorShape=[{shape}], TensorDtypes=Float)"
        for rank, shape in shapes.items()
    )
    log.signal(
        "desync", "collective-mismatch-detail", "collective-desync", "initiating", at=9, text="mismatch: " + text
    )


def test_fingerprints_convict_the_minority() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1, 2):
        fingerprint(job.rank(rank), {rank: 10, 3: 12})
    fingerprint(job.rank(3), {3: 12, 0: 10})
    assert job.accused() == ("collective-desync", (3,), ("b",))


def test_two_fingerprints_leave_it_open(tmp_path: Path) -> None:
    """Of two ranks that called different things nothing says which was wrong."""
    job = Job(a=1, b=1)
    for log in job.ranks():
        log.steps(8)
        fingerprint(log, {0: 10, 1: 12})
    found = job.diagnose(tmp_path)
    assert found.initiating.ranks == ()


# stuck in what the others completed


def test_one_rank_stuck_in_what_the_others_completed() -> None:
    """
    r0-2  completed 9  [#10 ......... 600 s] time-out
    r3                 [#9 ............ 601 s] time-out
    """
    job = Job(a=2, b=2)
    for log in job.ranks(3):
        log.steps(8).timeout(10, at=610, waited=600, enqueued=10, completed=9)
    job.rank(3).steps(8).timeout(9, at=610, waited=601, enqueued=9, completed=8)
    found = job.best()
    assert found is not None
    assert found.ranks == (3,)


# silent hosts


def test_a_host_that_falls_silent_is_named_whole() -> None:
    job = waiting(2, 3)
    found = job.best()
    assert found is not None
    assert (found.rule, found.ranks, found.hosts) == ("silent-host", (2, 3), ("b",))


@pytest.mark.xfail(strict=True, reason="lines that a host prints after the others gave up do not refute its silence")
def test_a_host_that_speaks_after_the_time_out_is_not_silent() -> None:
    """
    r0,1  [#9 from 10 ........ 600 s] time-out at 610
    r2,3                                       counters at 611: alive, and behind
    """
    job = waiting(2, 3)
    for rank in (2, 3):
        job.rank(rank).counters(8, 8, at=611)
    assert all(one.rule != "silent-host" for one in job.judge().ranked.open)


def test_a_host_that_stops_rank_by_rank_is_not_lost_at_once() -> None:
    """r2 stops at step 4, r3 at step 8: no host goes down in two halves."""
    job = Job(a=2, b=2)
    for rank in (0, 1):
        job.rank(rank).steps(8).timeout(9, at=610, enqueued=9, completed=8)
    job.rank(2).steps(4)
    job.rank(3).steps(8)
    assert all(one.rule != "silent-host" for one in job.judge().ranked.open)


# chains


def test_a_rank_that_waits_for_the_culprit_elsewhere_is_not_accused() -> None:
    """
    r0,1  [dp #5 ...........]  with r2, r3
    r2    [tp #3 .............]  with r3, entered before
    r3    silent, still there at 614
    """
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1):
        job.rank(rank).timeout(5, at=610, waited=598, group="dp")
    job.rank(2).timeout(3, at=610, waited=600, group="tp")
    end_all(job)
    found = job.accused()
    assert found == ("collective-rank-absent", (3,), ("b",))
    assert ("collective:ALLREDUCE #5 of dp", "member-elsewhere", "collective:ALLREDUCE #3 of tp") not in job.edges()


def test_the_first_line_of_a_watchdog_names_no_group() -> None:
    """'[Rank 0] Watchdog caught ...' of a pair; the line behind it names the group of the same operation."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.rank(2).timeout(3, at=610, op="ALLGATHER")
    job.rank(2).timeout(3, at=610, op="ALLGATHER", group="tp", enqueued=3, completed=2)
    found = job.judge().view
    assert [one.label for one in found.collectives] == ["ALLGATHER #3 of tp"]
    assert found.groups.keys() == {"tp"}


# stragglers


def timed(*slow: int, waits: bool = True) -> Job:
    """Own work and waiting beside each step; slow ranks work four times as long from step 11 on and wait least."""
    job = Job(a=2, b=2, c=2)
    for log in job.ranks():
        for step in range(1, 31):
            own = 400 if log.rank in slow and step > 10 else 100
            rest = f" comm {500 - own} ms" if waits else ""
            log.step(step, step, text=f"step {step} compute {own} ms{rest}")
    return job


def test_who_works_longest_and_waits_least_is_the_straggler() -> None:
    assert timed(2).accused() == ("straggler", (2,), ("b",))


def test_the_line_with_which_it_became_slow_is_the_evidence() -> None:
    best = timed(2).judge().ranked.best
    assert best is not None
    assert [signal.place for signal, _ in best.signals] == [("b/rank2.log", 11)]


def test_all_ranks_of_one_host_can_be_the_stragglers() -> None:
    assert timed(2, 3).accused() == ("straggler", (2, 3), ("b",))


def test_slow_ranks_of_several_hosts_blame_no_host() -> None:
    assert timed(1, 2).best() is None


def test_a_table_of_timings_is_read_by_its_first_line() -> None:
    """The stamp and the step on the left are no part of the message."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.say("time,step,rank,data_s,allreduce_wait (ms),total_s")
        for step in range(1, 31):
            data, wait = (2.1, 50) if log.rank == 3 else (0.1, 2050)
            log.say(f",{log.rank},{data},{wait},2.5", at=step)
    assert job.accused() == ("straggler", (3,), ("b",))


def test_parts_of_a_step_may_be_plain_numbers() -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        for step in range(1, 31):
            data, comm = (1.7, 0.1) if log.rank == 3 else (0.03, 1.8)
            log.step(step, step, text=f"step {step} data {data} fwdbwd 0.811 allreduce {comm} total 2.630")
    assert job.accused() == ("straggler", (3,), ("b",))


def test_equal_work_shows_no_straggler() -> None:
    assert timed().best() is None


def test_step_lines_alone_show_no_straggler(tmp_path: Path) -> None:
    """All slow down together; nothing says for whom they wait."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        for step in range(1, 20):
            at = step if step < 10 else 10 + (step - 10) * 5
            log.step(step, at, text=f"step {step} time {1 if step < 10 else 5} s")
    found = job.diagnose(tmp_path)
    assert found.verdict is Verdict.UNDETERMINED
    assert found.initiating.ranks == ()


def test_many_groups_that_wait_do_not_make_the_fabric_guilty() -> None:
    """
    r0-14  [ALLREDUCE #27 of world ............ 599 s]   r15 never enqueued it
    r0-13     [ALLGATHER #3, in seven groups of two  598 s]
    """
    job = Job(**dict.fromkeys("abcdefgh", 2))
    for log in job.ranks():
        log.steps(8)
    for rank in range(15):
        if rank < 14:
            pair = rank // 2
            job.rank(rank).timeout(3, at=619.9, waited=598, op="ALLGATHER", group=f"tp{pair}", pg_rank=rank % 2)
        job.rank(rank).timeout(27, at=620, waited=599, enqueued=27, completed=26)
    job.rank(15).counters(26, 26, at=621)
    assert job.accused() == ("collective-rank-absent", (15,), ("h",))
