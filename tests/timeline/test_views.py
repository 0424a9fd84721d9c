"""The views: a small job, a question, the rows that must come out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from firstfault.correlate.engine import diagnose
from firstfault.timeline import open_timeline

from ..correlate.timeline_builder import Job

ABSENT = """
r0-2  1..8 [ALLREDUCE #9 ....... 600 s] time-out      the clock of b is 40 s ahead
r3    1..8                              enqueued 8
"""


def absent() -> Job:
    job = Job(skew={"b": 40.0}, a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1, 2):
        job.rank(rank).timeout(9, at=610, enqueued=9, completed=8, elapsed_ms=600000)
    job.rank(3).counters(8, 8, at=611)
    return job


def dead() -> Job:
    """
    r0    1..5 ............ lost b      launcher a: r0 exit 1
    r1    1..5 ............ lost b      (no line after)
    r2    1..5  lost connection last
    r3    1..5 cuda-oom at 10           launcher b: r3 exit 1 at 12, kills r2
    """
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(5)
    job.rank(3).say("allocating", at=9.5).error("cuda-oom", at=10)
    job.rank(0).lost("b", at=11)
    job.rank(1).lost("b", at=11.5)
    given = {"exitcode": 1, "child_pid": job.pid(3), "local_rank": 1}
    agent = job.launcher("b").signal("exit", "elastic-worker-failed", "teardown-echo", "collateral", 12, **given)
    agent.kill(2, at=12.5)
    job.kernel("b").xid(13, at=9)
    return job


class Questions:
    """Queries to a diagnosed job."""

    def __init__(self, job: Job, folder: Path) -> None:
        path = job.write(folder / "t.duckdb")
        diagnose(path)
        self.con: duckdb.DuckDBPyConnection = open_timeline(path)

    def __call__(self, query: str) -> list[tuple[Any, ...]]:
        return self.con.execute(query).fetchall()


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Questions]:
    ask = Questions(absent(), tmp_path_factory.mktemp("absent"))
    yield ask
    ask.con.close()


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Questions]:
    ask = Questions(dead(), tmp_path_factory.mktemp("dead"))
    yield ask
    ask.con.close()


def test_the_verdict_can_be_asked_again(crash: Questions) -> None:
    query = "SELECT attempt, verdict, class, ranks, hosts FROM verdicts ORDER BY attempt NULLS FIRST"
    assert crash(query) == [
        (None, "identified", "cuda-oom", [3], ["b"]),
        (0, "identified", "cuda-oom", [3], ["b"]),
    ]
    assert crash("SELECT path, line, rank FROM evidence WHERE position = 1") == [("b/rank3.log", 7, 3)]


def test_first_errors_are_those_of_ranks_by_themselves_or_by_others(crash: Questions) -> None:
    assert crash("SELECT rank, host, path, line, message FROM first_errors") == [
        (3, "b", "b/rank3.log", 7, "cuda-oom"),
        (0, "a", "a/rank0.log", 6, "gloo-closed-by-peer"),
        (1, "a", "a/rank1.log", 6, "gloo-closed-by-peer"),
    ]


def test_spread_counts_from_the_root(crash: Questions) -> None:
    assert crash("SELECT position, rank, seconds, root FROM spread") == [
        (1, 3, 0.0, True),
        (2, 0, 1.0, False),
        (3, 1, 1.5, False),
    ]


def test_last_lines_are_one_for_each_rank(crash: Questions) -> None:
    assert crash("SELECT rank, message, lines FROM last_lines") == [
        (0, "gloo-closed-by-peer", 6),
        (1, "gloo-closed-by-peer", 6),
        (2, "step 5", 5),
        (3, "cuda-oom", 7),
    ]


def test_errors_fold_over_ranks(stuck: Questions, crash: Questions) -> None:
    query = (
        "SELECT entry, count, ranks, rank_count, hosts FROM folded_errors WHERE event IN ('coll-timeout', 'peer-loss')"
    )
    assert stuck(query) == [("pgnccl-watchdog-timeout", 3, "0-2", 3, "a, b")]
    assert crash(query) == [("gloo-closed-by-peer", 2, "0-1", 2, "a")]


def test_who_is_behind(stuck: Questions) -> None:
    query = "SELECT process_group, seq, op, rank, host, state, behind_by, waiting FROM behind"
    assert stuck(query) == [("world", 9, "ALLREDUCE 1024", 3, "b", "absent", 1, 3)]


def test_signals_and_steps_stand_on_the_aligned_clock(stuck: Questions) -> None:
    seconds = "epoch_ms(time)::BIGINT // 1000 - 1780000000"
    query = f"SELECT rank, {seconds} FROM signals WHERE event = 'coll-timeout' ORDER BY rank"
    assert stuck(query) == [(0, 610), (1, 610), (2, 610)]
    assert stuck(f"SELECT DISTINCT {seconds} FROM steps WHERE step = 5") == [(5,)]
    same = "SELECT count(*) FROM signals g JOIN lines l USING (source_id, line) WHERE g.time IS DISTINCT FROM l.time"
    assert stuck(same) == [(0,)]


def test_around_the_root_are_lines_of_its_hosts_only(crash: Questions) -> None:
    query = "SELECT DISTINCT host FROM around_root"
    assert crash(query) == [("b",)]
    assert crash("SELECT seconds, path, message FROM around_root WHERE seconds BETWEEN -1 AND 2.5") == [
        (-1.0, "b/dmesg.log", "xid-13"),
        (-0.5, "b/rank3.log", "allocating"),
        (0.0, "b/rank3.log", "cuda-oom"),
        (2.0, "b/agent.log", "elastic-worker-failed"),
        (2.5, "b/agent.log", "elastic-sigterm-closing"),
    ]


def test_exits_name_the_rank_of_a_process(crash: Questions) -> None:
    query = "SELECT rank, child_pid, exitcode, signal, event FROM exits ORDER BY path, line"
    assert crash(query) == [
        (3, 1003, 1, None, "exit"),
        (2, 1002, None, "SIGTERM", "agent-kill"),
    ]


def test_what_speaks_of_a_process(crash: Questions) -> None:
    query = "SELECT how, host, rank FROM about_process WHERE pid = 1002 ORDER BY how"
    assert crash(query) == [("ended", "b", None), ("is", "b", 2)]


def test_machines(crash: Questions) -> None:
    assert crash("SELECT host, event, entry, xid FROM machine_faults") == [("b", "node-fault", "xid-13", 13)]


def test_lost_peers_have_the_name_of_their_address(crash: Questions) -> None:
    assert crash("SELECT rank, peer, peer_name FROM lost_peers") == [(0, "10.0.0.2", "b"), (1, "10.0.0.2", "b")]


def test_placement_and_hosts(stuck: Questions) -> None:
    assert stuck("SELECT rank, host, local_rank, pid, gpu, bus_id, contradicted FROM placement WHERE rank = 3") == [
        (3, "b", 1, 1003, 1, "0000:11:00.0", False)
    ]
    query = "SELECT host, ranks, lines, faults, round(clock_offset_seconds) FROM host_summary"
    assert stuck(query) == [("a", 2, 18, 2, 0.0), ("b", 2, 18, 1, 40.0)]


def test_progress_and_steps() -> None:
    job = Job(a=2)
    job.rank(0).steps(6)
    job.rank(1).steps(3).step(4, at=9.0)
    with job.connect() as con:
        rows = con.execute("SELECT rank, last_step, behind_by, seconds_per_step FROM rank_progress").fetchall()
        assert rows == [(1, 4, 2, 2.667), (0, 6, 0, 1.0)]
        rows = con.execute("SELECT step, seconds, spread_seconds, slowest_rank, ranks FROM step_times").fetchall()
        assert rows[3:] == [(4, 1.0, 5.0, 1, 2), (5, 1.0, 0.0, 0, 1), (6, 1.0, 0.0, 0, 1)]


def test_silences_are_gaps_and_ends() -> None:
    """
    r0  1..3 ........ 60 .. 95
    r1  1..3 Traceback without stamps
    """
    job = Job(a=2)
    job.rank(0).steps(3).say("late", at=60).say("later", at=69.9).say("end", at=95)
    job.rank(1).steps(3).say("Traceback").say("ValueError")
    with job.connect() as con:
        rows = con.execute("SELECT rank, seconds, for_good, unstamped, line FROM silences").fetchall()
    assert rows == [(0, 57.0, False, 0, 3), (1, 92.0, True, 2, 3), (0, 25.1, False, 0, 5)]


def test_lines_of_each_minute() -> None:
    job = Job(a=1)
    job.rank(0).say("x", at=0).say("y", at=1).say("z", at=61)
    with job.connect() as con:
        assert con.execute("SELECT rank, lines FROM line_rate").fetchall() == [(0, 2), (0, 1)]


def test_lead_up_ends_at_the_first_error_or_the_last_line(crash: Questions) -> None:
    assert crash("SELECT before, message FROM lead_up WHERE rank = 3 AND before < 2 ORDER BY before") == [
        (0, "cuda-oom"),
        (1, "allocating"),
    ]
    assert crash("SELECT before, message FROM lead_up WHERE rank = 2 AND before = 0") == [(0, "step 5")]


def test_attempts(tmp_path: Path) -> None:
    job = Job(a=2)
    for log in job.ranks():
        log.steps(3)
    job.rank(1).error("cuda-oom", at=4)
    for rank in (0, 1):
        job.rank(rank, attempt=1).steps(8, first=6).done(at=9)
    job.launcher("a", attempt=1).success(at=10)
    ask = Questions(job, tmp_path)
    assert ask("SELECT attempt, ranks, last_step, verdict, class FROM attempts") == [
        (0, 2, 3, "identified", "cuda-oom"),
        (1, 2, 8, "no-failure", None),
    ]
    ask.con.close()


def test_warnings_that_differ_in_numbers_are_one() -> None:
    with Job(a=1).connect() as con:
        con.execute("INSERT INTO sources BY NAME SELECT 7 AS source_id, 'w.log' AS path")
        for line, text in ((1, "queue 5 full"), (2, "queue 17 full"), (3, "odd 0xff")):
            columns = "7 AS source_id, ? AS line, 'WARN' AS level, ? AS message, 3 AS rank"
            con.execute(f"INSERT INTO line_rows BY NAME SELECT {columns}", [line, text])
        rows = con.execute("SELECT template, count, ranks, path, line FROM warnings").fetchall()
    assert rows == [("queue # full", 2, 1, "w.log", 1), ("odd #", 1, 1, "w.log", 3)]


def test_exceptions_fold_over_ranks() -> None:
    job = Job(a=3)
    for rank, at in ((0, 5.0), (2, 4.0)):
        job.rank(rank).signal(
            "exception", at=at, exception="KeyError", src_file="train.py", src_line=7, function="step", text=f"'{rank}'"
        )
    with job.connect() as con:
        rows = con.execute(
            "SELECT exception, src_file, src_line, function, count, ranks, example FROM exceptions"
        ).fetchall()
    assert rows == [("KeyError", "train.py", 7, "step", 2, 2, "'2'")]


def test_checkpoints() -> None:
    job = Job(a=1)
    job.rank(0).signal("checkpoint", fact="checkpoint-end", at=3, step=200, path="/ckpt/200")
    with job.connect() as con:
        assert con.execute("SELECT rank, fact, step, checkpoint FROM checkpoints").fetchall() == [
            (0, "checkpoint-end", 200, "/ckpt/200")
        ]
