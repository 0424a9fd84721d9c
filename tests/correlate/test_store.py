"""What the stage writes back: rows that agree with the answer, and the same rows however often it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firstfault.correlate.engine import diagnose
from firstfault.correlate.healthy import Healthy
from firstfault.timeline import open_timeline

from .timeline_builder import Job

TABLES = ("clocks", "collectives", "nodes", "edges", "hypotheses")


def absent() -> Job:
    """
    r0-2  1..8 [ALLREDUCE #9 ....... 600 s] time-out      the clock of b is 40 s ahead
    r3    1..8                              enqueued 8
    """
    job = Job(skew={"b": 40.0}, a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1, 2):
        job.rank(rank).timeout(9, at=610, enqueued=9, completed=8)
    job.rank(3).counters(8, 8, at=611)
    return job


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    con = open_timeline(database)
    try:
        return con.execute(query).fetchall()
    finally:
        con.close()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = absent().write(tmp_path / "t.duckdb")
    diagnose(path)
    return path


def test_collectives_hold_each_member_once(database: Path) -> None:
    query = """
        SELECT process_group, seq, rank, state, op, last_enqueued, last_completed, line
        FROM collectives ORDER BY rank
    """
    assert rows(database, query) == [
        ("world", 9, 0, "waiting", "ALLREDUCE 1024", 9, 8, 9),
        ("world", 9, 1, "waiting", "ALLREDUCE 1024", 9, 8, 9),
        ("world", 9, 2, "waiting", "ALLREDUCE 1024", 9, 8, 9),
        ("world", 9, 3, "absent", None, 8, 8, 9),
    ]


def test_edges_cite_the_lines_that_show_them(database: Path) -> None:
    query = """
        SELECT e.effect, e.rule, e.cause, e.strength, s.path, e.line
        FROM edges e JOIN sources s USING (source_id) ORDER BY ALL
    """
    world = "collective:ALLREDUCE #9 of world"
    assert rows(database, query) == [
        (world, "member-absent", "rank:3", "strong", "b/rank3.log", 9),
        ("rank:0", "waits-in", world, "certain", "a/rank0.log", 9),
        ("rank:1", "waits-in", world, "certain", "a/rank1.log", 9),
        ("rank:2", "waits-in", world, "certain", "b/rank2.log", 9),
    ]


def test_nodes_mark_the_root(database: Path) -> None:
    assert rows(database, "SELECT node FROM nodes WHERE root") == [("rank:3",)]
    joined = "SELECT effect FROM edges UNION SELECT cause FROM edges EXCEPT SELECT node FROM nodes"
    assert rows(database, joined) == []


def test_hypotheses_stand_in_the_order_of_their_weight(database: Path) -> None:
    found = rows(database, "SELECT position, rule, ranks, probability FROM hypotheses ORDER BY position")
    assert found[0][:3] == (1, "absent", [3])
    assert [row[0] for row in found] == list(range(1, len(found) + 1))
    assert [row[3] for row in found] == sorted((row[3] for row in found), reverse=True)


def test_clocks_hold_shift_and_bound(database: Path) -> None:
    found = rows(database, "SELECT clock, shift_ns, uncertainty_ns, reference FROM clocks ORDER BY clock")
    assert [(row[0], row[3]) for row in found] == [("wall:a", True), ("wall:b", False)]
    (_, first, none, _), (_, shift, bound, _) = found
    assert (first, none) == (0, 0)
    assert abs(shift + 40 * 10**9) <= bound < 10**9


def test_the_aligned_time_of_a_line_is_one_for_all_hosts(database: Path) -> None:
    query = "SELECT max(epoch_ns(time)) - min(epoch_ns(time)) < 100000000 FROM lines WHERE message = 'step 5'"
    assert rows(database, query) == [(True,)]


def test_a_second_run_gives_the_same_rows(database: Path) -> None:
    before = {table: rows(database, f"SELECT * FROM {table} ORDER BY ALL") for table in TABLES}
    diagnose(database)
    assert {table: rows(database, f"SELECT * FROM {table} ORDER BY ALL") for table in TABLES} == before


def test_a_job_without_a_failure_leaves_no_root(tmp_path: Path) -> None:
    job = Job(a=2)
    for log in job.ranks():
        log.steps(8).done(at=9)
    path = job.write(tmp_path / "t.duckdb")
    diagnose(path)
    assert rows(path, "SELECT count(*) FROM nodes WHERE root") == [(0,)]
    assert rows(path, "SELECT count(*) FROM hypotheses") == [(0,)]


def test_differences_from_a_healthy_run_can_be_asked(tmp_path: Path) -> None:
    well, job = Job(a=2), Job(a=2)
    for log in well.ranks():
        log.say("warming up").steps(8).done(at=9)
    for log in job.ranks():
        log.say("warming up").steps(3)
    job.rank(1).say("NaN in bucket 7").error("cuda-oom", at=4)
    healthy = Healthy(well.write(tmp_path / "well.duckdb"), "well", True)
    path = job.write(tmp_path / "t.duckdb")
    diagnose(path, healthy=healthy)
    new = rows(path, "SELECT name, now, past, ranks, path, line FROM changes WHERE change = 'new' ORDER BY line")
    assert new == [
        ("NaN in bucket #", "1", "0", [1], "a/rank1.log", 5),
        ("cuda-oom", "1", "0", [1], "a/rank1.log", 6),
    ]
    diagnose(path)
    assert rows(path, "SELECT count(*) FROM changes") == [(0,)]
