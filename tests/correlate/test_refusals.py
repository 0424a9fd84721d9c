"""What the engine must not conclude: one job for each refusal, with a job beside it where the conclusion is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.correlate.diagnosis import Verdict

from .timeline_builder import Job


def running(**hosts: int) -> Job:
    """All ranks print eight steps of a second."""
    job = Job(**hosts)
    for log in job.ranks():
        log.steps(8)
    return job


# 1: explaining much is not evidence


def test_a_collective_that_all_entered_blames_nobody(tmp_path: Path) -> None:
    """
    r0-3  1..8 [ALLREDUCE #7 ........ 600 s] time-out     nobody is missing
    """
    job = running(a=2, b=2)
    for log in job.ranks():
        log.timeout(7, at=610, enqueued=7, completed=6)
    found = job.diagnose(tmp_path)
    assert found.verdict is Verdict.UNDETERMINED
    assert found.missing_fact
    assert found.hypotheses[0].ranks == ()


def test_weak_evidence_stays_weak_whatever_it_explains() -> None:
    """A bare abort behind a long silence would explain that all others end; a watchdog aborts like that, too."""
    job = running(a=2, b=2)
    job.launcher("b").exit(3, -6, at=700)
    for log in job.ranks(3):
        log.teardown(at=701)
    found = job.judge().ranked
    assert found.best is None
    assert all(one.base < 2.0 for one in found.open)


# 2: a missing log is a suspicion


def test_a_rank_without_a_log_is_suspected_and_not_convicted(tmp_path: Path) -> None:
    """
    r0-2  1..8 [#7 ......... 600 s] time-out
    r3    no file
    """
    job = Job(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).steps(8).timeout(7, at=610, enqueued=7, completed=6)
    found = job.diagnose(tmp_path)
    assert found.verdict is Verdict.UNDETERMINED
    assert found.hypotheses[0].ranks == (3,)
    assert "log" in (found.missing_fact or "")


def test_its_launcher_convicts_a_rank_without_a_log() -> None:
    job = Job(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).steps(8).timeout(7, at=610, enqueued=7, completed=6)
    job.launcher("b").exit(3, -11, at=9)
    assert job.accused() == ("process-segfault", (3,), ("b",))


# 3: signals without an author


def signalled_everywhere() -> Job:
    """
    a, b  launcher: SIGTERM at 10, its ranks are ended
    """
    job = running(a=2, b=2)
    for host, ranks in (("a", (0, 1)), ("b", (2, 3))):
        log = job.launcher(host)
        log.signal("signal-received", "elastic-death-signal", "teardown-echo", "ambiguous", at=10, signal_no=15)
        log.kill(*ranks, at=10)
    return job


def test_signals_on_all_hosts_are_no_root() -> None:
    assert signalled_everywhere().best() is None


def test_the_scheduler_says_who_sent_the_signals() -> None:
    job = signalled_everywhere()
    job.scheduler().signal("sched-action", "slurm-time-limit", "time-limit", "initiating", at=9.8, jobid=12)
    assert job.accused() == ("time-limit", (), ())


# 4: a launcher that was signalled first


def test_one_launcher_is_signalled_while_the_other_lives_on() -> None:
    """
    b  launcher: SIGTERM at 10, ends r2, r3
    a  r0, r1 lose b at 10.4, the launcher reports them at 11, by itself
    """
    job = running(a=2, b=2)
    job.launcher("b").signal(
        "signal-received", "elastic-death-signal", "teardown-echo", "ambiguous", at=10, signal_no=15
    ).kill(2, 3, at=10)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=10.4)
    job.launcher("a").exit(0, 1, at=11).kill(1, at=11)
    found = job.best()
    assert found is None or (found.cls, found.hosts) == ("cancelled-by-user", ("b",))


def test_a_launcher_without_a_log_may_have_been_signalled_too() -> None:
    """The same, but a's launcher left no log: nobody saw it live on."""
    job = running(a=2, b=2)
    job.launcher("b").signal(
        "signal-received", "elastic-death-signal", "teardown-echo", "ambiguous", at=10, signal_no=15
    ).kill(2, 3, at=10)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=10.4)
    assert job.best() is None


# 5: an exception that was lived through


def test_an_exception_before_further_steps_is_no_failure() -> None:
    """
    r1  1 2 3 ! 4 5 6 7 8 [#9 ..... 600 s] time-out
    r3  1 2 3   4 5 6 7 8                              enqueued 8
    """
    job = Job(a=2, b=2)
    for log in job.ranks(1):
        log.steps(8)
    job.rank(1).steps(3).error("data-missing", at=3.5).steps(8, first=4)
    for rank in (0, 1, 2):
        job.rank(rank).timeout(9, at=610, enqueued=9, completed=8)
    job.rank(3).counters(8, 8, at=611)
    assert job.accused() == ("collective-rank-absent", (3,), ("b",))


def test_an_exception_of_a_rank_that_was_ended_while_alive_is_no_failure() -> None:
    """r1 says it caught an error at 8.5; at 12 its launcher ends it because r0 died."""
    job = running(a=2, b=2)
    job.rank(1).error("python-exception", at=8.5)
    job.rank(0).error("cuda-oom", at=9)
    job.launcher("a").exit(0, 1, at=12).kill(1, at=12)
    for rank in (2, 3):
        job.rank(rank).lost("a", at=9.5)
    assert job.accused() == ("cuda-oom", (0,), ("a",))


def test_an_exception_before_a_good_end_is_no_failure(tmp_path: Path) -> None:
    job = running(a=2, b=2)
    job.rank(1).error("python-exception", at=8.5)
    for log in job.ranks():
        log.done(at=9)
    for host in ("a", "b"):
        job.launcher(host).success(at=10)
    assert job.diagnose(tmp_path).verdict is Verdict.NO_FAILURE


def test_a_second_witness_doubles_the_weight_of_an_exception() -> None:
    """Alone it is a lead; with its exit code it is a conviction."""

    def with_exit(known: bool) -> float:
        job = running(a=2, b=2)
        job.rank(3).error("cuda-oom", at=9)
        if known:
            job.launcher("b").exit(3, 1, at=10)
        return next(one.base for one in job.judge().ranked.open if one.ranks == (3,))

    assert with_exit(True) >= 4.0 > with_exit(False)


# 6: secondary errors


def test_an_error_after_the_ranks_own_echo_is_secondary() -> None:
    """
    r1  1..8 lost a peer, then an illegal address while it is torn down
    r3  1..8                                       stopped, its launcher reports -9
    """
    job = running(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).lost("b", at=9.5)
    job.rank(1).error("cuda-illegal-memory-access", at=9.6)
    job.launcher("a").exit(1, 1, at=10).kill(0, at=10)
    job.launcher("b").exit(3, -9, at=9.4).kill(2, at=9.6)
    assert job.accused() == ("process-killed", (3,), ("b",))


def test_an_error_after_the_launchers_kill_is_secondary() -> None:
    """
    b  launcher: r3 exited with 1 at 9.0; ends r2 at 9.1
    r2 1..8           prints a traceback at 9.3, because it was ended
    """
    job = running(a=2, b=2)
    job.launcher("b").exit(3, 1, at=9).kill(2, at=9.1)
    job.rank(2).error("python-exception", at=9.3)
    for rank in (0, 1):
        job.rank(rank).lost("b", at=9.5)
    found = job.accused()
    assert found is None or found[1] == (3,)


# 7: muteness counts only where a word was due


def test_a_rank_that_was_ended_before_the_time_out_need_not_speak() -> None:
    """
    r3  killed by a signal at 9        r2  ended by its launcher at 9.2
    r0,1 [#7 ................ 600 s] time-out
    """
    job = running(a=2, b=2)
    job.launcher("b").exit(3, -11, at=9).kill(2, at=9.2)
    for rank in (0, 1):
        job.rank(rank).timeout(7, at=610, enqueued=7, completed=6)
    assert job.accused() == ("process-segfault", (3,), ("b",))


@pytest.mark.xfail(strict=True, reason="silence counts although the ranks were ended before a word was due")
def test_two_ranks_that_were_ended_early_by_nobody_known_are_not_convicted() -> None:
    """b's ranks were ended at 9, long before the time-outs were due: their silence says nothing of a hang."""
    job = running(a=2, b=2)
    job.launcher("b").kill(2, 3, at=9)
    for rank in (0, 1):
        job.rank(rank).timeout(7, at=610, enqueued=7, completed=6)
    found = job.best()
    assert found is None or found.cls != "collective-rank-absent"


def test_a_rank_that_outlived_the_time_out_should_have_spoken() -> None:
    """r3 was there until 614, and never said that it waited."""
    job = running(a=2, b=2)
    for rank in (0, 1, 2):
        job.rank(rank).timeout(7, at=610, enqueued=7, completed=6)
    job.launcher("a").exit(0, -6, at=612).kill(1, at=612)
    job.launcher("b").exit(2, -6, at=612).kill(3, at=614)
    assert job.accused() == ("collective-rank-absent", (3,), ("b",))


def test_nccl_tells_of_a_death_only_those_that_have_a_socket_to_it() -> None:
    """
    r3    killed, its launcher left no log
    r0,1  NCCL: connection closed by b at 9.5; the launcher of a ends r4 and r5 at 12, which had noticed nothing
    """
    job = Job(a=6, b=6)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1):
        job.rank(rank).signal(
            "peer-loss", "nccl-socket-closed", "nccl-socket-failure", "collateral", at=9.5, peer=job.address("b")
        )
    job.launcher("a").exit(0, -6, at=12).kill(1, 2, 3, 4, 5, at=12)
    found = job.best()
    assert found is None or found.cls != "collective-rank-absent"


def _resets_and_a_silent_rank(*unread: int) -> Job:
    """
    r0,1,4  lost a connection at 9
    r3      prints nothing after its steps, and is ended at 14
    """
    job = Job(a=3, b=3)
    for log in job.ranks(*unread):
        log.steps(8)
    for rank in {0, 1, 4, 5} - set(unread):
        job.rank(rank).lost(None, at=9)
    job.launcher("a").exit(0, 1, at=13)
    job.launcher("b").exit(4, 1, at=13).kill(3, at=14)
    return job


def test_a_silent_rank_is_not_convicted_of_resets_where_another_has_no_log() -> None:
    """A rank that stands still closes no connection; r2, of which nothing was read, may have."""
    assert _resets_and_a_silent_rank(2).best() is None


def test_a_rank_whose_error_stream_was_not_read_is_not_silent() -> None:
    """All wait for r3 to the limit, but of r3 only the output was collected, of the others both."""
    job = running(a=2, b=2)
    for rank in (0, 1, 2):
        job.log(f"rank{rank}.err", "rank", job.host(rank), rank, stream="stderr").timeout(7, at=610)
    for log in job.ranks():
        log.stream = "stdout"
    assert job.best() is None


# 8: behind is not absent


def test_who_waits_elsewhere_is_behind_and_not_absent() -> None:
    """
    r0,1  [world #7 ......... 590 s]            time-out
    r2    [tp #3 .............. 600 s]          time-out; world enqueued 6
    r3    world enqueued 6, tp enqueued 2       the one who never came
    """
    job = running(a=2, b=2)
    for rank in (0, 1):
        job.rank(rank).timeout(7, at=610, waited=590, enqueued=7, completed=6)
    job.rank(2).counters(6, 6, at=600)
    job.rank(2).timeout(3, at=610, waited=600, enqueued=3, completed=2, op="ALLGATHER", group="tp", pg_ranks="2, 3")
    job.rank(3).counters(6, 6, at=611).counters(2, 2, at=611, group="tp")
    assert job.accused() == ("collective-rank-absent", (3,), ("b",))


# 9: a bare abort, and the source of a dump signal


def test_the_first_watchdog_to_fire_is_a_reporter() -> None:
    """
    r0    time-out first, tells all others, aborts (-6)
    r1,2  told by r0
    r3    enqueued 6 where the others wait in 7
    """
    job = running(a=2, b=2)
    job.rank(0).timeout(7, at=610, enqueued=7, completed=6)
    for rank in (1, 2):
        job.rank(rank).dump_signal(0, at=611).timeout(7, at=611.5, waited=601, enqueued=7, completed=6)
    job.rank(3).dump_signal(0, at=611).counters(6, 6, at=611)
    job.launcher("a").exit(0, -6, at=670).kill(1, at=670)
    job.launcher("b").exit(2, -6, at=672).kill(3, at=672)
    assert job.accused() == ("collective-rank-absent", (3,), ("b",))


# 10: the common end of lost connections


def test_lost_connections_to_one_host_do_not_say_link() -> None:
    """
    r0 (a), r1 (b)  lost their connections to c; c left no log
    """
    job = Job(a=1, b=1, c=1)
    for rank in (0, 1):
        job.rank(rank).steps(8).lost("c", at=9)
    found = job.judge().ranked
    assert found.best is None
    assert all(one.cls != "ib-link-failure" for one in found.open)


def test_one_lost_connection_has_two_ends() -> None:
    job = running(a=1, b=1)
    job.rank(0).lost("b", at=9)
    job.rank(1).lost("a", at=9)
    assert job.best() is None


def test_a_dead_process_draws_the_same_star() -> None:
    job = running(a=1, b=1, c=1)
    for rank in (0, 1):
        job.rank(rank).lost("c", at=9.5)
    job.launcher("c").exit(2, -11, at=9)
    assert job.accused() == ("process-segfault", (2,), ("c",))


# 11: a host that is named after its own ranks had died


def lost_after_an_oom_kill(clock: str) -> Job:
    """
    9    kernel of b kills r3 for its memory
    9.4  b's launcher ends r2
    310  the scheduler declares b lost
    """
    job = running(a=2, b=2)
    job.kernel("b").oom_kill(job.pid(3), at=9)
    job.launcher("b").exit(3, -9, at=9.2).kill(2, at=9.4)
    job.log("slurmctld.log", "scheduler", None, clock=clock).signal(
        "node-lost", "slurm-node-fail", "host-down", "initiating", at=310, node="b"
    )
    for rank in (0, 1):
        job.rank(rank).lost("b", at=9.5)
    return job


def test_a_node_that_is_lost_after_its_rank_died_is_an_effect() -> None:
    assert lost_after_an_oom_kill("wall:a").accused() == ("host-oom-kill", (3,), ("b",))


@pytest.mark.xfail(strict=True, reason="that the host still logs is not taken as a proof that it was not lost yet")
def test_a_host_that_still_logs_is_not_lost_yet() -> None:
    """The scheduler's clock is not aligned; but b's own kernel and launcher speak of the kill."""
    assert lost_after_an_oom_kill("wall:ctl").accused() == ("host-oom-kill", (3,), ("b",))


# 12: a silent host


def silent_host() -> Job:
    """
    a  r0,1 1..8 [#9 ........ 600 s] time-out
    b  r2,3 1..8                                nothing of b follows
    """
    job = running(a=2, b=2)
    for rank in (0, 1):
        job.rank(rank).timeout(9, at=610, enqueued=9, completed=8)
    return job


def test_a_silent_host_leaves_open_what_became_of_it() -> None:
    found = silent_host().judge().ranked.open[0]
    assert (found.rule, found.hosts) == ("silent-host", ("b",))
    assert "scheduler" in (found.missing or "")


def test_a_host_whose_launcher_speaks_later_is_not_silent() -> None:
    job = silent_host()
    job.launcher("b").kill(2, 3, at=620)
    assert all(one.rule != "silent-host" for one in job.judge().ranked.open)


def test_several_silent_hosts_are_no_lost_host() -> None:
    """b and c end alike: somebody ended them, or the network between was cut."""
    job = running(a=2, b=2, c=2)
    for rank in (0, 1):
        job.rank(rank).timeout(9, at=610, enqueued=9, completed=8)
    found = job.best()
    assert found is None or found.cls != "host-down"


# 13: lines that were lost


def test_silence_proves_nothing_where_lines_were_lost() -> None:
    """
    r0-3  torn down by a watchdog whose own line is missing
    r4-6  [#7 ....... 600 s] time-out
    r7                                 ended by its launcher, silent

    In half of the logs the line that must come before the teardown is not there.
    """
    job = running(a=4, b=4)
    for rank in (0, 1, 2, 3):
        job.rank(rank).teardown(at=611)
    for rank in (4, 5, 6):
        job.rank(rank).timeout(7, at=610, enqueued=7, completed=6)
    job.launcher("a").exit(0, -6, at=612).kill(1, 2, 3, at=612)
    job.launcher("b").exit(4, -6, at=612).kill(5, 6, 7, at=614)
    assert job.best() is None


# and: health needs a proof


def test_no_failure_and_no_completion_is_not_healthy(tmp_path: Path) -> None:
    found = running(a=2, b=2).diagnose(tmp_path)
    assert found.verdict is Verdict.UNDETERMINED
    assert "how the job ended" in (found.missing_fact or "")


def test_the_success_of_one_launcher_proves_nothing_for_the_others(tmp_path: Path) -> None:
    job = running(a=2, b=2)
    for rank in (0, 1):
        job.rank(rank).done(at=9)
    job.launcher("a").success(at=10)
    assert job.diagnose(tmp_path).verdict is Verdict.UNDETERMINED


@pytest.mark.parametrize("host", ["a", "b"])
def test_a_rank_that_leaves_early_with_success_is_no_proof_of_health(host: str) -> None:
    """r3 finishes at step 5, the others wait for it."""
    job = Job(a=2, b=2)
    leaver = 3 if host == "b" else 0
    for log in job.ranks(leaver):
        log.steps(8).timeout(9, at=610, enqueued=9, completed=8)
    job.rank(leaver).steps(8).done(at=8.5)
    others = [rank for rank in (0, 1, 2, 3) if rank != leaver]
    for rank in others:
        job.launcher(job.host(rank)).listed(rank, -6, first=rank == others[0])
    assert job.accused() == ("collective-rank-absent", (leaver,), (host,))
