"""Bad input and odd surroundings: one clear message, the right exit status, never a traceback."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import SAMPLE, Cli, Process, environment


def refused(cli: Cli, *arguments: str | Path) -> tuple[int, str]:
    done = cli(*arguments)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return done.exit_code, done.stderr.removeprefix("firstfault: ").rstrip("\n")


def test_no_such_path(cli: Cli) -> None:
    assert refused(cli, "diagnose", "no/such/logs") == (
        1,
        "no/such/logs: no such file or directory; give a directory of logs, a log file, an archive, or '-'",
    )


def test_an_empty_directory(cli: Cli, tmp_path: Path) -> None:
    status, said = refused(cli, "diagnose", tmp_path)
    assert status == 1
    assert said == f"{tmp_path}: no log in it; point firstfault at the directory that holds the job's log files"


def test_an_empty_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rank0.log").touch()
    assert refused(cli, "diagnose", tmp_path)[0] == 1


def test_nothing_readable(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "logs.tar.gz").write_bytes(b"\x1f\x8b\x08\x00 this was cut off")
    status, said = refused(cli, "diagnose", tmp_path)
    assert status == 1
    assert "nothing readable in it" in said
    assert "logs.tar.gz" in said


def test_a_binary_file_among_logs_is_set_apart(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "core.1234").write_bytes(b"\x7fELF\x02\x01\x01" + os.urandom(4096))
    (tmp_path / "rank0.log").write_text("step 1 loss 2.0\nstep 2 loss 1.9\n")
    done = cli("diagnose", tmp_path)
    assert done.exit_code == 0
    assert "binary (1): " in done.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_among_logs_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("step 1 loss 2.0\n")
    (tmp_path / "rank1.log").write_text("step 1 loss 2.0\n")
    (tmp_path / "rank1.log").chmod(0)
    done = cli("diagnose", tmp_path)
    assert done.exit_code == 0
    assert "unreadable (1): " in done.stdout


def test_a_dangling_link_among_logs_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("step 1 loss 2.0\n")
    (tmp_path / "rank1.log").symlink_to(tmp_path / "gone")
    done = cli("diagnose", tmp_path)
    assert done.exit_code == 0
    assert "rank1.log" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--format", "yaml"), "--format yaml: choose one of text, markdown, html, json"),
        (("--tz", "Mars/Olympus"), "time zone 'Mars/Olympus': not known"),
        (("--year", "20"), "year 20: expected a year between 1970 and 2200"),
        (("--workers", "0"), "workers 0: at least one is needed"),
        (("--host-map", "node1"), "--host-map 'node1': write it as GLOB=VALUE"),
        (("--rank-map", "a*=x"), "--rank-map a*=x: a global rank is a whole number"),
        (("--catalog", "no/such"), "no/such: no such file or folder of catalog entries"),
    ],
)
def test_wrong_usage_ends_with_two(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    status, message = refused(cli, "diagnose", SAMPLE, *arguments)
    assert status == 2
    assert message.startswith(said)


def test_an_unknown_option_ends_with_two(cli: Cli) -> None:
    assert cli("diagnose", SAMPLE, "--fastest").exit_code == 2
    assert cli("diagnose").exit_code == 2
    assert cli("ingest", SAMPLE).exit_code == 2


def test_an_output_that_is_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    assert refused(cli, "diagnose", SAMPLE, "--output", tmp_path / "out") == (1, f"{tmp_path / 'out'}: File exists")
    assert (tmp_path / "out").read_text() == "mine"


def test_names_that_are_no_text(cli: Cli, tmp_path: Path) -> None:
    logs = Path(os.fsdecode(os.fsencode(tmp_path) + b"/l\xffgs"))
    logs.mkdir()
    (logs / os.fsdecode(b"rank0\xfe.log")).write_bytes(b"step 1\n[rank0]: RuntimeError: bad \xff byte\n")
    for paths in ((logs,), (logs, next(logs.iterdir()))):
        for form in ("text", "json", "markdown", "html"):
            done = cli("diagnose", *paths, "--format", form)
            assert done.exit_code == 0
            assert "rank0\ufffd.log" in done.stdout
    status, said = refused(cli, "diagnose", SAMPLE, "--output", logs)
    assert status == 1
    assert "no valid UTF-8" in said


def test_a_wrong_format_of_ones_own(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\nnonsense = 1\n')
    monkeypatch.setenv("FIRSTFAULT_FORMATS", str(tmp_path))
    status, said = refused(cli, "diagnose", SAMPLE)
    assert status == 1
    assert str(tmp_path / "mine.toml") in said


def test_a_damaged_timeline(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.duckdb").write_bytes(b"not a database" * 500)
    status, said = refused(cli, "report", tmp_path / "t.duckdb")
    assert status == 1
    assert "not a timeline, or a damaged one" in said


def test_no_timeline(cli: Cli, tmp_path: Path) -> None:
    assert "no timeline here" in refused(cli, "report", tmp_path / "t.duckdb")[1]


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    """As in `firstfault diagnose logs | head -1`, with a reader that closes before anything was written."""
    with (tmp_path / "err").open("w+") as err:
        running = subprocess.Popen(
            [sys.executable, "-m", "firstfault", "diagnose", str(SAMPLE)],
            stdout=subprocess.PIPE,
            stderr=err,
            env=environment(),
        )
        assert running.stdout is not None
        running.stdout.close()
        assert running.wait(timeout=120) == 0
        err.seek(0)
        assert err.read() == ""


def test_who_is_told_to_end_leaves_no_logs_behind(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "firstfault", "diagnose", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(TMPDIR=str(tmp_path)),
    )
    assert running.stdin is not None
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("firstfault-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    running.terminate()
    _, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (143, b"")
    assert list(tmp_path.iterdir()) == []


def seen_on_a_terminal(columns: int, **extra: str) -> str:
    """What a terminal of this width gets."""
    controller, terminal = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "firstfault", "diagnose", "--quiet", str(SAMPLE)],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=subprocess.PIPE,
        env={**environment(COLUMNS=str(columns), TERM="xterm-256color", **extra)},
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(controller)
    _, err = running.communicate(timeout=120)
    assert (running.returncode, err) == (0, b"")
    return seen.decode().replace("\r\n", "\n")


def test_a_narrow_terminal_gets_narrow_lines_in_colour() -> None:
    seen = seen_on_a_terminal(40)
    assert "\x1b[" in seen
    wide = [line for line in without_colour(seen).splitlines() if len(line) > 40]
    # only a word of a command that cannot be broken
    assert [line for line in wide if " " in line.strip().removesuffix(" \\")] == []


def test_no_color_is_respected() -> None:
    assert "\x1b[3" not in seen_on_a_terminal(100, NO_COLOR="1")


def without_colour(text: str) -> str:
    out, rest = "", text
    while "\x1b[" in rest:
        before, _, rest = rest.partition("\x1b[")
        out += before
        rest = rest.partition("m")[2]
    return out + rest


def test_a_terminal_without_the_characters_gets_escapes(process: Process) -> None:
    done = process("diagnose", SAMPLE, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "8 ranks \\xb7 2 hosts" in done.stdout


def test_start_does_not_load_the_engine(process: Process) -> None:
    """Help has to come at once: nothing heavy is imported for it."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys, firstfault.cli.app; print(sorted(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    heavy = {"polars", "pyarrow", "duckdb", "numpy", "networkx", "hyperscan", "re2", "rich", "zstandard"}
    assert {name for name in heavy if f"'{name}'" in done.stdout} == set()
