"""The `.sql` files of the timeline: complete comments, names that stay, views that work on an empty timeline."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from firstfault.timeline import TimelineError, create_schema, open_timeline, write_timeline
from firstfault.timeline.place import leftovers, workplace
from firstfault.timeline.relations import Relation, questions, relations

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
    assert re.fullmatch(r"(--.+\n)+", head)
    for line in body.splitlines()[1:-1]:
        assert re.search(r"-- \S", line), line


@pytest.mark.parametrize("one", relations(), ids=lambda one: one.name)
def test_every_table_and_view_describes_its_columns(empty: duckdb.DuckDBPyConnection, one: Relation) -> None:
    columns = [row[0] for row in empty.execute(f"DESCRIBE {one.name}").fetchall()]
    assert [column.name for column in one.columns] == columns
    assert one.what.startswith("One row for ")
    assert (one.question is None) == (one.example is None)
    assert not one.question or one.question.endswith("?")


def test_every_question_has_its_place_and_its_example_runs(empty: duckdb.DuckDBPyConnection) -> None:
    asked = questions()
    assert {one.name for one in asked} == {one.name for one in relations() if one.question}
    assert len(asked) >= 20
    for one in asked:
        empty.execute(one.example or "").fetchall()
    guide = empty.execute("SELECT relation, question, example FROM guide WHERE question IS NOT NULL ORDER BY position")
    assert guide.fetchall() == [(one.name, one.question, one.example) for one in asked]


def test_lines_has_the_columns_that_others_rely_on(empty: duckdb.DuckDBPyConnection) -> None:
    columns = {row[0]: row[1] for row in empty.execute("DESCRIBE lines").fetchall()}
    assert {name: columns.get(name) for name in LINES} == LINES


@pytest.mark.parametrize("view", [one.name for one in relations() if one.view])
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
    with duckdb.connect(str(tmp_path / "old.duckdb")) as connection:
        connection.execute("UPDATE meta SET value = '999'")
    with pytest.raises(TimelineError, match="a newer firstfault wrote it"):
        open_timeline(tmp_path / "old.duckdb")


def older(path: Path) -> Path:
    """A timeline as a firstfault left it that knew fewer tables and views."""
    write_timeline(path, lambda _: None, {"answer": "42"})
    with duckdb.connect(str(path)) as connection:
        for kind, name in (("VIEW", "spread"), ("VIEW", "signals"), ("TABLE", "evidence"), ("TABLE", "guide")):
            connection.execute(f"DROP {kind} {name}")
        connection.execute("CREATE VIEW signals AS SELECT 1 AS odd")
        connection.execute("DELETE FROM meta WHERE key = 'schema_digest'")
    return path


def test_an_older_timeline_answers_the_same_questions_and_is_left_as_it_is(tmp_path: Path) -> None:
    path = older(tmp_path / "t.duckdb")
    before = path.read_bytes()
    with open_timeline(path) as connection:
        for one in questions():
            connection.execute(one.example or "").fetchall()
        assert "time" in [column[0] for column in connection.execute("SELECT * FROM signals").description]
    assert path.read_bytes() == before


def test_an_older_timeline_that_is_written_to_becomes_a_current_one(tmp_path: Path) -> None:
    path = older(tmp_path / "t.duckdb")
    open_timeline(path, writable=True).close()
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) > 0 FROM guide").fetchall() == [(True,)]
        assert connection.execute("SELECT * FROM spread").fetchall() == []
        assert connection.execute("SELECT count(*) FROM meta WHERE key = 'schema_digest'").fetchall() == [(1,)]


def test_a_timeline_that_somebody_writes_to_says_who(tmp_path: Path) -> None:
    write_timeline(tmp_path / "t.duckdb", lambda _: None, {})
    script = "import sys, duckdb; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, str(tmp_path / "t.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(TimelineError, match=rf"another process \(process {other.pid}\) writes to this timeline"):
            open_timeline(tmp_path / "t.duckdb")
        other.communicate("")


def test_a_timeline_is_read_only_unless_asked_for(tmp_path: Path) -> None:
    write_timeline(tmp_path / "t.duckdb", lambda _: None, {"answer": "42"})
    with open_timeline(tmp_path / "t.duckdb") as connection, pytest.raises(duckdb.Error):
        connection.execute("DELETE FROM meta")
    with open_timeline(tmp_path / "t.duckdb", writable=True) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'answer'").fetchall() == [("42",)]


def test_leftovers_of_killed_writers_are_removed(tmp_path: Path) -> None:
    program = (
        "import os, sys, pathlib\n"
        "from firstfault.timeline import write_timeline\n"
        "write_timeline(pathlib.Path(sys.argv[1]), lambda _: os._exit(9), {})\n"
    )
    paths = [path for path in sys.path if path]
    killed = [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{program}", str(tmp_path / "t.duckdb")]
    assert subprocess.run(killed, check=False).returncode == 9
    assert len(leftovers(tmp_path / "t.duckdb")) == 1
    with pytest.raises(TimelineError, match="was cut off"):
        open_timeline(tmp_path / "t.duckdb")
    with workplace(tmp_path / "t.duckdb") as living:  # of another one that is at work
        write_timeline(tmp_path / "t.duckdb", lambda _: None, {})
        assert sorted(path.name for path in tmp_path.iterdir()) == [living.name, "t.duckdb"]
    assert [path.name for path in tmp_path.iterdir()] == ["t.duckdb"]


def test_what_a_killed_process_meant_to_add_is_not_added_to_a_new_timeline(tmp_path: Path) -> None:
    write_timeline(tmp_path / "t.duckdb", lambda _: None, {"answer": "42"})
    (tmp_path / "t.duckdb.wal").write_bytes(b"of another timeline")
    write_timeline(tmp_path / "t.duckdb", lambda _: None, {"answer": "43"})
    with open_timeline(tmp_path / "t.duckdb", writable=True) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'answer'").fetchall() == [("43",)]
