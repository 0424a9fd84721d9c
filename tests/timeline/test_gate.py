"""The gate: what a query tries, and what it gets. Nothing is written, read or reached beside the one timeline."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from firstfault.timeline import write_timeline
from firstfault.timeline.gate import Gate, QueryError, open_gate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate")
    for name in ("t", "other"):
        write_timeline(folder / f"{name}.duckdb", lambda _: None, {"answer": "42"})
    (folder / "secret.csv").write_text("a,b\n1,2\n")
    return folder


@pytest.fixture
def gate(folder: Path) -> Iterator[Gate]:
    with open_gate(folder / "t.duckdb", seconds=20) as gate:
        yield gate


ATTACKS = {
    "other databases": [
        "ATTACH ':memory:' AS m",
        "ATTACH 'other.duckdb' AS o",
        "SELECT * FROM read_duckdb('other.duckdb')",
        "SELECT * FROM 'other.duckdb'",
        "DETACH t",
        "USE memory",
        "COPY FROM DATABASE t TO memory",
    ],
    "files": [
        "SELECT * FROM read_csv('secret.csv')",
        "SELECT * FROM 'secret.csv'",
        "SELECT * FROM read_csv_auto('secret.csv')",
        "SELECT * FROM sniff_csv('secret.csv')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM read_json('/etc/passwd')",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "SELECT * FROM parquet_metadata('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
        "SELECT * FROM query_table('/etc/passwd')",
        "COPY (SELECT 1) TO 'here.csv'",
        "COPY meta FROM 'secret.csv'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO 'here.csv'",
        "EXPLAIN (ANALYZE) COPY (SELECT 1) TO 'here.csv'",
        "EXPORT DATABASE 'here'",
        "IMPORT DATABASE 'here'",
        "SELECT * FROM enable_logging('QueryLog', storage := 'file')",
        'SELECT (SELECT count(*) FROM "enable_logging"())',
        "EXPLAIN ANALYZE SELECT * FROM enable_profiling()",
        "DESCRIBE SELECT * FROM main.glob('/*')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
        "WITH a AS (FROM force_checkpoint()) FROM a",
        "SELECT * FROM pandas_scan(1)",
    ],
    "network and extensions": [
        "SELECT * FROM 'https://example.invalid/x.parquet'",
        "SELECT * FROM read_csv('s3://bucket/x.csv')",
        "INSTALL httpfs",
        "FORCE INSTALL httpfs FROM 'http://example.invalid'",
        "LOAD httpfs",
        "LOAD '/tmp/x.duckdb_extension'",
        "UPDATE EXTENSIONS",
        "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM which_secret('s3://x', 's3')",
        "SELECT * FROM sqlite_scan('other.db', 't')",
        "SELECT * FROM st_read('x')",
    ],
    "environment and settings": [
        "SELECT getenv('HOME')",
        "SET enable_external_access = true",
        "SET GLOBAL temp_directory = 'here'",
        "SET lock_configuration = false",
        "SET memory_limit = '100GB'",
        "SET VARIABLE x = 1",
        "RESET memory_limit",
        "PRAGMA enable_external_access = true",
        "PRAGMA database_list",
        "PRAGMA enable_profiling",
        "CALL enable_logging()",
        "CALL pragma_version()",
    ],
    "writes": [
        "INSERT INTO meta VALUES ('a', 'b')",
        "UPDATE meta SET value = 'x'",
        "DELETE FROM meta",
        "DROP TABLE meta",
        "ALTER TABLE meta RENAME TO x",
        "COMMENT ON TABLE meta IS 'x'",
        "CREATE TABLE x (a INTEGER)",
        "CREATE TEMP TABLE x AS SELECT 1",
        "CREATE OR REPLACE TEMP VIEW lines AS SELECT 1",
        "CREATE TEMP MACRO m() AS 1",
        "WITH x AS (INSERT INTO meta VALUES ('a', 'b') RETURNING *) SELECT * FROM x",
        "PREPARE p AS DELETE FROM meta",
        "EXECUTE p",
        "BEGIN",
        "CHECKPOINT",
        "VACUUM",
        "ANALYZE",
    ],
    "several at once": ["SELECT 1; SELECT 2", "SELECT 1; DROP TABLE meta", "", " ; ", "-- nothing"],
    "objects of this process": ["SELECT * FROM frame", "SELECT * FROM gate"],
}


@pytest.mark.parametrize("query", [query for queries in ATTACKS.values() for query in queries])
def test_an_attack_is_refused_and_leaves_everything_as_it_was(
    folder: Path, gate: Gate, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({"a": [1]})
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(QueryError):
        list(gate.ask(query).rows)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert list(gate.ask("SELECT value FROM meta WHERE key = 'answer'").rows) == [("42",)]
    assert frame.height == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM lines",
        "FROM meta",
        "VALUES (1)",
        "WITH a AS (SELECT 1 AS x) SELECT * FROM a",
        "DESCRIBE lines",
        "SUMMARIZE meta",
        "SHOW TABLES",
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE SELECT count(*) FROM lines",
        "PIVOT lines ON level IN ('WARN', 'ERROR') USING count(*) GROUP BY rank",
        "SELECT table_name FROM duckdb_columns()",
        "SELECT n, m FROM range(3) r(n), LATERAL (SELECT unnest([n, n + 1]) AS m)",
        "SELECT * FROM unnest([1, 2])",
    ],
)
def test_a_question_is_answered(gate: Gate, query: str) -> None:
    assert gate.ask(query).names
    list(gate.ask(query).rows)


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("PRAGMA table_info('lines')", "DESCRIBE lines"),
        ("COPY (SELECT 1) TO 'x.csv'", "--format csv"),
        ("EXPORT DATABASE 'x'", "firstfault export"),
        ("ATTACH 'x' AS y", "firstfault compare"),
        ("PIVOT lines ON level USING count(*)", "give PIVOT its values"),
        ("SELECT 1; SELECT 2", "one at a time"),
        ("", "SELECT * FROM verdicts"),
    ],
)
def test_a_refusal_says_what_to_do_instead(gate: Gate, query: str, hint: str) -> None:
    with pytest.raises(QueryError, match=re.escape(hint)):
        gate.ask(query)


ENDLESS = "SELECT count(*) FROM range(1000000000000) WHERE hash(range) % 7 = 1"


@pytest.mark.parametrize("query", [ENDLESS, "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) FROM t"])
def test_a_query_ends_at_its_time_limit_and_the_next_one_is_answered(folder: Path, query: str) -> None:
    with open_gate(folder / "t.duckdb", seconds=0.3) as gate:
        with pytest.raises(QueryError, match=r"stopped after 0\.3 s"):
            list(gate.ask(query).rows)
        assert list(gate.ask("SELECT 1").rows) == [(1,)]


def test_control_c_ends_a_query(gate: Gate) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever a test before left in its place
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(gate.ask(ENDLESS).rows)
    timer.join()
    assert list(gate.ask("SELECT 1").rows) == [(1,)]


def test_memory_is_bounded(folder: Path) -> None:
    with open_gate(folder / "t.duckdb", memory="100MB") as gate, pytest.raises(QueryError, match=r"(?i)memory"):
        list(gate.ask("SELECT range FROM range(100000000) ORDER BY hash(range)").rows)
    assert sorted(path.name for path in folder.iterdir()) == ["other.duckdb", "secret.csv", "t.duckdb"]


def test_an_amount_of_memory_is_checked(folder: Path) -> None:
    with pytest.raises(QueryError, match="as '2GB'"), open_gate(folder / "t.duckdb", memory="1GB'; DROP"):
        pass


def test_batches_are_arrow(gate: Gate) -> None:
    schema, batches = gate.batches("SELECT range AS n FROM range(250000)")
    assert schema.names == ["n"]
    assert sum(batch.num_rows for batch in batches) == 250_000
