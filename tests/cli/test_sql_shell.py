"""The prompt of `sql`: queries over several lines, commands, completion, history; and its commands without a prompt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from firstfault.cli.sql_shell import Names, Shell, columns_of, complete_query, history_file
from firstfault.timeline.gate import open_gate

from .conftest import Cli

Typed = Callable[[str], tuple[str, str]]


@pytest.fixture
def typed(timeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """What a session prints for some keys, on both streams."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run(keys: str) -> tuple[str, str]:
        with create_pipe_input() as pipe:
            pipe.send_text(keys)
            Shell(timeline, "csv", 20, "1GB", pipe, DummyOutput()).run()
        return capsys.readouterr()

    return run


def test_a_query_runs_when_it_ends_with_a_semicolon(typed: Typed) -> None:
    out, err = typed("SELECT 40 +\r 2 AS answer;\r\x04")
    assert out == "answer\n42\n"
    assert "Ctrl-D leaves" in err


def test_a_wrong_query_does_not_end_the_session(typed: Typed) -> None:
    out, err = typed("SELECT nonsense FROM lines;\rDELETE FROM meta;\rSELECT 1 AS n;\r.quit\r")
    assert out == "n\n1\n"
    assert "SQL: Binder Error" in err
    assert "DELETE: this is read-only" in err


def test_commands_begin_with_a_dot(typed: Typed) -> None:
    out, err = typed(".format json\rSELECT 1 AS n;\r.format odd\r.nonsense\r.run 999\rquit\r")
    assert out == '[\n{"n": 1}\n]\n'
    assert ".format table, csv, json, markdown; now json" in err
    assert ".nonsense: no such command" in err
    assert "999: no such example" in err


def test_the_history_is_kept_for_this_user_alone(typed: Typed, tmp_path: Path) -> None:
    typed("SELECT 1;\r\x04")
    file = tmp_path / "firstfault" / "sql_history"
    assert history_file() == file
    assert "+SELECT 1;" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_history_that_cannot_be_written_is_no_obstacle(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "firstfault").write_text("a file is in the way")
    out, err = typed("SELECT 1 AS n;\r\x04")
    assert out == "n\n1\n"
    assert "the history is kept for this session only" in err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM first_e", ["first_errors"]),
        ("SELECT * FROM faults JOIN last_l", ["last_lines"]),
        ("SELECT f.ent| FROM faults f", ["entry"]),
        ("SELECT exit| FROM signals", ["exitcode", "exits"]),
        ("SELECT l.nonsense_| FROM lines l", []),
        ("SEL", ["SELECT"]),
        (".ex", [".examples"]),
        (".schema prob", ["problems"]),
        (".run sil", ["silences"]),
        (".format m", ["markdown"]),
    ],
)
def test_completion(timeline: Path, text: str, expected: list[str]) -> None:
    with open_gate(timeline) as gate:
        names = Names(columns_of(gate))
    place = text.find("|") if "|" in text else len(text)
    document = Document(text.replace("|", ""), place)
    found = [one.text for one in names.get_completions(document, CompleteEvent(completion_requested=True))]
    assert found == expected


@pytest.mark.parametrize(
    ("text", "runs"), [("", True), ("SELECT 1", False), ("SELECT 1 ; ", True), (".help", True), ("exit", True)]
)
def test_enter_runs_what_is_complete(text: str, runs: bool) -> None:
    assert complete_query(text) is runs


def test_commands_without_a_prompt(cli: Cli, timeline: Path) -> None:
    assert "first_errors" in cli("sql", timeline, ".views").stdout
    assert "line_rows" in cli("sql", timeline, ".tables").stdout
    assert cli("sql", timeline, ".examples 1").stdout.startswith("-- What failed first?\nSELECT ")
    columns = [line.split()[:2] for line in cli("sql", timeline, ".schema signals").stdout.splitlines()]
    assert ["exitcode", "INTEGER"] in columns
    asked = cli("sql", timeline, ".run last_lines", "--format", "csv")
    assert asked.stdout.startswith("rank,host,time,path,line,message\n")
    done = cli("sql", timeline, ".schema nonsense")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "nonsense: no such table or view" in done.stderr
