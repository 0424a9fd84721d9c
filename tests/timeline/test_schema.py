"""The `.sql` files of the timeline: complete comments, names that stay, views that work on an empty timeline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from firstfault.timeline import TimelineError, create_schema, open_timeline, write_timeline

FOLDER = Path(__file__).parents[2] / "ingest" / "firstfault" / "timeline"
TABLES = sorted((FOLDER / "schema").glob("*.sql"))
LINES = {
    "path": "VARCHAR", "line": "BIGINT", "stamp": "TIMESTAMP", "time": "TIMESTAMP WITH TIME ZONE", "level": "VARCHAR",
    "host": "VARCHAR", "rank": "INTEGER", "local_rank": "INTEGER", "pid": "BIGINT", "gpu": "INTEGER",
    "message": "VARCHAR", "entry": "VARCHAR", "class": "VARCHAR",
}  # fmt: skip


@pytest.fixture
def empty() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_schema(connection)
        yield connection


@pytest.mark.parametrize("file", TABLES, ids=[file.name for file in TABLES])
def test_every_table_and_column_is_explained(file: Path) -> None:
    head, _, body = file.read_text().partition("CREATE TABLE ")
    assert re.fullmatch(r"(-- .+\n)+", head)
    for line in body.splitlines()[1:-1]:
        assert re.search(r"-- \S", line), line


@pytest.mark.parametrize("file", sorted((FOLDER / "views").glob("*.sql")), ids=lambda file: file.name)
def test_every_view_is_explained(file: Path) -> None:
    assert file.read_text().startswith("-- ")


def test_lines_has_the_columns_that_others_rely_on(empty: duckdb.DuckDBPyConnection) -> None:
    columns = {row[0]: row[1] for row in empty.execute("DESCRIBE lines").fetchall()}
    assert {name: columns.get(name) for name in LINES} == LINES


@pytest.mark.parametrize("view", ["lines", "signals", "coverage"])
def test_views_of_an_empty_timeline_are_empty(empty: duckdb.DuckDBPyConnection, view: str) -> None:
    assert empty.execute(f"SELECT * FROM {view}").fetchall() == []


SECOND = 1_000_000_000


def put_line(
    connection: duckdb.DuckDBPyConnection, line: int, stamp_s: int, kind: str, offset: int | None = None
) -> None:
    connection.execute(
        "INSERT INTO line_rows BY NAME SELECT 0 AS source_id, ? AS line, ? AS stamp_ns, ? AS near_ns, ? AS stamp_kind, "
        "? AS utc_offset_s, 'x' AS message",
        [line, stamp_s * SECOND, stamp_s * SECOND, kind, offset],
    )


def put_source(connection: duckdb.DuckDBPyConnection, clock: str) -> None:
    connection.execute("INSERT INTO sources BY NAME SELECT 0 AS source_id, 'a.log' AS path, ? AS clock", [clock])


def times(connection: duckdb.DuckDBPyConnection) -> list[str | None]:
    connection.execute("SET TimeZone = 'UTC'")
    return [row[0] for row in connection.execute("SELECT time::VARCHAR FROM lines ORDER BY line").fetchall()]


def test_a_clock_shifts_its_lines_and_only_from_where_it_holds(empty: duckdb.DuckDBPyConnection) -> None:
    put_source(empty, "wall:n1")
    for line in (1, 2, 3):
        put_line(empty, line, 1_000_000 + line, "full")
    empty.execute("INSERT INTO clocks VALUES ('wall:n1', 'n1', NULL, 1, 3, 0, 0, NULL, TRUE, 'test')")
    empty.execute(
        f"INSERT INTO clocks VALUES ('wall:n1', 'n1', NULL, 3, NULL, 3600, {-10 * SECOND}, NULL, FALSE, 'test')"
    )
    assert times(empty) == ["1970-01-12 13:46:41+00", "1970-01-12 13:46:42+00", "1970-01-12 12:46:33+00"]


def test_the_zone_of_the_line_wins_over_that_of_the_clock(empty: duckdb.DuckDBPyConnection) -> None:
    put_source(empty, "wall:n1")
    put_line(empty, 1, 1_000_000, "offset", 7200)
    empty.execute("INSERT INTO clocks VALUES ('wall:n1', 'n1', NULL, 1, NULL, 3600, 0, NULL, TRUE, 'test')")
    assert times(empty) == ["1970-01-12 11:46:40+00"]


def test_time_since_boot_becomes_a_moment_with_the_boot_time(empty: duckdb.DuckDBPyConnection) -> None:
    put_source(empty, "boot:n1")
    put_line(empty, 1, 50, "monotonic")
    assert times(empty) == [None]
    empty.execute(
        f"INSERT INTO clocks VALUES ('boot:n1', 'n1', NULL, 1, NULL, 0, {1_000_000 * SECOND}, NULL, FALSE, 'test')"
    )
    assert times(empty) == ["1970-01-12 13:47:30+00"]
    assert empty.execute("SELECT stamp FROM lines").fetchall() == [(None,)]


def test_captures_that_are_asked_for_often_are_typed_columns(empty: duckdb.DuckDBPyConnection) -> None:
    put_source(empty, "wall:n1")
    empty.execute(
        "INSERT INTO signal_rows BY NAME SELECT 0 AS signal_id, 0 AS source_id, 1 AS line, "
        "MAP {'seq': '41', 'op': 'ALLREDUCE', 'exitcode': '-9', 'xid': 'no number'} AS captures"
    )
    assert empty.execute("SELECT path, seq, op, exitcode, xid, pg_rank FROM signals").fetchall() == [
        ("a.log", 41, "ALLREDUCE", -9, None, None)
    ]


def test_opening_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(TimelineError, match="no timeline here"):
        open_timeline(tmp_path / "none.duckdb")
    (tmp_path / "text.duckdb").write_text("x" * 5000)
    with pytest.raises(TimelineError, match="damaged"):
        open_timeline(tmp_path / "text.duckdb")
    with duckdb.connect(str(tmp_path / "old.duckdb")) as connection:
        connection.execute("CREATE TABLE meta (key VARCHAR, value VARCHAR)")
        connection.execute("INSERT INTO meta VALUES ('schema_version', '0')")
    with pytest.raises(TimelineError, match="ingest again"):
        open_timeline(tmp_path / "old.duckdb")


def test_a_timeline_is_read_only_unless_asked_for(tmp_path: Path) -> None:
    write_timeline(tmp_path / "t.duckdb", lambda _: None, {"answer": "42"})
    with open_timeline(tmp_path / "t.duckdb") as connection, pytest.raises(duckdb.Error):
        connection.execute("DELETE FROM meta")
    with open_timeline(tmp_path / "t.duckdb", writable=True) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'answer'").fetchall() == [("42",)]


def test_leftovers_of_killed_writers_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".t.duckdb.999999999.tmp").write_text("x")
    (tmp_path / ".t.duckdb.other").write_text("x")
    write_timeline(tmp_path / "t.duckdb", lambda _: None, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".t.duckdb.other", "t.duckdb"]
