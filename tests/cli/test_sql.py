"""`sql`: rows in four forms, one timeline and nothing else, and nothing that changes it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from firstfault.cli.sql_rows import table

from .conftest import Cli

QUERY = "SELECT rank, count(*) AS lines, 'a|b' AS bar FROM lines WHERE rank IN (0, 6) GROUP BY rank ORDER BY rank"


def test_a_table_is_aligned(cli: Cli, timeline: Path) -> None:
    lines = cli("sql", timeline, "SELECT 1 AS n, 'x' AS word UNION ALL SELECT 200, NULL ORDER BY n").stdout.splitlines()
    assert lines == ["  n  word", "---  ----", "  1  x", "200"]


def test_csv_json_and_markdown(cli: Cli, timeline: Path) -> None:
    rows = json.loads(cli("sql", timeline, QUERY, "--format", "json").stdout)
    assert [row["rank"] for row in rows] == [0, 6]
    assert cli("sql", timeline, QUERY, "--format", "csv").stdout.splitlines()[1] == f"0,{rows[0]['lines']},a|b"
    assert cli("sql", timeline, QUERY, "--format", "markdown").stdout.splitlines()[1:3] == [
        "| --- | --- | --- |",
        f"| `0` | `{rows[0]['lines']}` | `a\\|b` |",
    ]


def test_json_holds_every_type(cli: Cli, timeline: Path) -> None:
    query = (
        "SELECT 'nan'::DOUBLE AS nan, TIMESTAMPTZ '2026-01-02 03:04:05+00' AS at, MAP {'a': 1} AS map,"
        " [1, NULL] AS list, 1.50::DECIMAL(4, 2) AS number, 'é' AS text, '\\x01'::BLOB AS bytes,"
        " INTERVAL 90 SECOND AS long"
    )
    assert json.loads(cli("sql", timeline, query, "--format", "json").stdout) == [
        {
            "nan": None,
            "at": "2026-01-02T03:04:05+00:00",
            "map": {"a": 1},
            "list": [1, None],
            "number": "1.50",
            "text": "é",
            "bytes": "01",
            "long": 90.0,
        }
    ]


def test_the_query_comes_from_a_pipe_too(cli: Cli, timeline: Path) -> None:
    assert cli("sql", timeline, "--format", "csv", stdin="SELECT 42 AS answer;").stdout == "answer\n42\n"


def test_a_long_table_says_that_it_was_cut(cli: Cli, timeline: Path) -> None:
    done = cli("sql", timeline, "SELECT * FROM range(2000)")
    assert len(done.stdout.splitlines()) == 1002
    assert "first 1000 rows" in done.stderr
    assert len(cli("sql", timeline, "SELECT * FROM range(2000)", "--format", "csv").stdout.splitlines()) == 2001


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE t (a INTEGER)",
        "DELETE FROM meta",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO 'here.csv'",
        "ATTACH 'other.duckdb' AS other",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '1GB'",
        "SELECT nonsense FROM lines",
        "SELEC 1",
    ],
)
def test_what_is_not_a_question_to_this_timeline_is_refused(cli: Cli, timeline: Path, query: str) -> None:
    before = timeline.read_bytes()
    done = cli("sql", timeline, query)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("firstfault: SQL: ")
    assert timeline.read_bytes() == before


def test_no_log_text_acts_on_the_terminal(cli: Cli, timeline: Path) -> None:
    assert cli("sql", timeline, "SELECT chr(27) || '[2J' AS x").stdout.splitlines()[2] == "\\x1b[2J"


def test_a_narrow_terminal_gets_narrow_columns_or_one_below_the_other() -> None:
    def shown(names: list[str], rows: list[tuple[object, ...]], room: int) -> list[str]:
        out = io.StringIO()
        table(names, iter(rows), out, room)
        lines = out.getvalue().splitlines()
        assert max(map(len, lines)) <= room
        return lines

    text = "a long message about what went wrong in the end"
    assert shown(["rank", "message"], [(3, text)], 30) == [
        "rank  message",
        "----  " + "-" * 24,
        "   3  a long message about wh…",
    ]
    names = ["rank", "host", "path", "message", "entry", "example"]
    assert shown(names, [(3, "node-17.example", "a/very/long/path.log", text, "xid-79-off-the-bus", text)], 60)[:4] == [
        "-- row 1 " + "-" * 51,
        "rank     3",
        "host     node-17.example",
        "path     a/very/long/path.log",
    ]


def test_parquet_goes_to_a_file_or_a_pipe(cli: Cli, timeline: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    assert cli("sql", timeline, QUERY, "--format", "parquet", "--output", file).exit_code == 0
    assert pq.read_table(file).column("rank").to_pylist() == [0, 6]
    piped = cli("sql", timeline, QUERY, "--format", "parquet").stdout_bytes
    assert pq.read_table(io.BytesIO(piped)).column_names == ["rank", "lines", "bar"]


def test_other_forms_go_to_a_file_too(cli: Cli, timeline: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    done = cli("sql", timeline, "SELECT 1 AS n", "--format", "csv", "--output", file)
    assert (done.stdout, file.read_text()) == ("", "n\n1\n")
    assert cli("sql", timeline, "SELECT nonsense", "--format", "csv", "--output", tmp_path / "none.csv").exit_code == 1
    assert [one.name for one in tmp_path.iterdir()] == ["rows.csv"]


def test_several_queries_in_a_table_form_only(cli: Cli, timeline: Path) -> None:
    assert cli("sql", timeline, "SELECT 1 AS a; SELECT 2 AS b").stdout == "a\n-\n1\n\nb\n-\n2\n"
    done = cli("sql", timeline, "SELECT 1; SELECT 2", "--format", "json")
    assert (done.exit_code, done.stdout) == (1, "")


def test_a_query_that_lasts_is_stopped(cli: Cli, timeline: Path) -> None:
    endless = "SELECT count(*) FROM range(1000000000000) WHERE hash(range) % 7 = 1"
    done = cli("sql", timeline, endless, "--time-limit", "0.3")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "stopped after 0.3 s" in done.stderr
    assert cli("sql", timeline, "SELECT 1", "--time-limit", "-1").exit_code == 2


def test_a_timeline_without_a_diagnosis_says_so(cli: Cli, timeline: Path) -> None:
    done = cli("sql", timeline, "SELECT * FROM spread", "--format", "csv")
    assert done.exit_code == 0
    assert "`firstfault report DB` adds it" in done.stderr
    assert cli("sql", timeline, "SELECT 1").stderr == ""


def test_a_folder_that_is_not_there_is_said_before_the_work(cli: Cli, timeline: Path, tmp_path: Path) -> None:
    done = cli("sql", timeline, "SELECT 1", "--output", tmp_path / "none" / "x.csv")
    assert (done.exit_code, done.stderr) == (
        1,
        f"firstfault: --output {tmp_path / 'none' / 'x.csv'}: there is no folder {tmp_path / 'none'}\n",
    )


def test_a_wrong_form_is_wrong_usage(cli: Cli, timeline: Path) -> None:
    assert cli("sql", timeline, "SELECT 1", "--format", "xml").exit_code == 2


@pytest.mark.parametrize(("option", "stored"), [("--keep-text", True), ("--leave-text", False)])
def test_texts_that_were_left_in_the_logs_are_said_to_be(cli: Cli, tmp_path: Path, option: str, stored: bool) -> None:
    (tmp_path / "logs").mkdir()
    line = "2026-05-04 10:00:00,000 - root - INFO - "
    (tmp_path / "logs" / "a.log").write_text(f"{line}ordinary\n{line}the last one of a log is always kept\n")
    cli("ingest", tmp_path / "logs", "--db", tmp_path / "a.duckdb", option)
    asked = cli("sql", tmp_path / "a.duckdb", "SELECT message FROM lines", "--format", "csv")
    assert ("ordinary" in asked.stdout) is stored
    assert ("text was left in the logs" in asked.stderr) is not stored
