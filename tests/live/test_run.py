"""`firstfault run`: output passed on and kept, signals handed on, the command's exit status, a diagnosis on failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from firstfault.live.kept import Kept

ROOT = Path(__file__).parents[2]
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start `firstfault run` with its files in tmp_path/run."""
    paths = os.pathsep.join(str(ROOT / portion) for portion in ("ingest", "correlate", "report"))

    def begin(*arguments: str) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", "firstfault", "run", "--output", str(tmp_path / "run"), *arguments]
        environment = {**os.environ, "PYTHONPATH": paths}
        environment.pop("SLURM_PROCID", None)
        pipe = subprocess.PIPE
        return subprocess.Popen(line, stdout=pipe, stderr=pipe, env=environment, stdin=subprocess.DEVNULL, cwd=tmp_path)

    return begin


def kept(tmp_path: Path, name: str) -> bytes:
    (place,) = (tmp_path / "run" / "logs").iterdir()
    return (place / name).read_bytes()


def test_streams_stay_apart_and_the_status_is_the_command_s(start: Start, tmp_path: Path) -> None:
    process = start("--", "sh", "-c", r"printf 'to out\n\377\r bar'; echo to err >&2; exit 0")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == b"to out\n\xff\r bar" == kept(tmp_path, "stdout.log")
    assert err == b"to err\n" == kept(tmp_path, "stderr.log")
    assert not (tmp_path / "run" / "report.md").exists()


def test_a_failed_command_is_diagnosed_on_standard_error(start: Start, tmp_path: Path) -> None:
    script = "import sys; print('[rank2]: step 7', flush=True); raise KeyError('mask')"
    process = start("--", sys.executable, "-c", script)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out == b"[rank2]: step 7\n"
    assert b"KeyError: 'mask'" in err
    assert b"An uncaught Python exception" in err
    for name in ("report.md", "report.html", "diagnosis.json", "timeline.duckdb"):
        assert (tmp_path / "run" / name).is_file()


@pytest.mark.parametrize(("script", "status"), [("exit 77", 77), ("kill -9 $$", 137)])
def test_any_end_of_the_command_is_passed_on(start: Start, tmp_path: Path, script: str, status: int) -> None:
    process = start("--", "sh", "-c", script)
    process.communicate(timeout=60)
    assert process.returncode == status
    assert kept(tmp_path, "launcher.log").endswith(f": command exited with status {status}\n".encode())


@pytest.mark.parametrize(("command", "status"), [("no-such-command-here", 127), ("/", 126)])
def test_a_command_that_cannot_start_leaves_nothing(start: Start, tmp_path: Path, command: str, status: int) -> None:
    process = start("--", command)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert err.startswith(f"firstfault run: {command}: cannot be started: ".encode())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_sent_to_us_reaches_the_command_once(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    script = (
        "import signal, time\ngot = []\n"
        f"signal.signal({number.value}, lambda n, f: got.append(n))\n"
        "print('ready', flush=True)\n"
        "while not got: time.sleep(0.02)\n"
        "time.sleep(0.3)\nprint(got, flush=True)\nraise SystemExit(5)"
    )
    process = start("--", sys.executable, "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.communicate(timeout=60)[0] == f"[{number.value}]\n".encode()
    assert process.returncode == 5


def test_ctrl_c_at_a_terminal_reaches_the_command_once(tmp_path: Path) -> None:
    """The terminal sends it to both of us; it must not be sent again."""
    import pty

    script = (
        "import signal, time, os\ngot = []\n"
        "signal.signal(2, lambda n, f: got.append(n))\n"
        "open('ready', 'w').close()\n"
        "while not got: time.sleep(0.02)\n"
        "time.sleep(0.3)\nopen('got', 'w').write(str(got))"
    )
    paths = os.pathsep.join(str(ROOT / portion) for portion in ("ingest", "correlate", "report"))
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ["PYTHONPATH"] = paths
        os.execv(
            sys.executable,
            [sys.executable, "-m", "firstfault", "run", "--output", "run", "--", sys.executable, "-c", script],
        )
    while not (tmp_path / "ready").exists():
        time.sleep(0.02)
    os.write(master, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 0
    assert (tmp_path / "got").read_text() == "[2]"


def test_a_child_left_behind_does_not_hold_us(start: Start) -> None:
    process = start("--", "sh", "-c", "sleep 60 & echo $!; exit 0")
    assert process.stdout is not None
    left = int(process.stdout.readline())
    try:
        assert process.wait(timeout=30) == 0
    finally:
        os.kill(left, signal.SIGKILL)
        process.communicate()


def test_a_reader_that_goes_away_does_not_end_the_command(start: Start, tmp_path: Path) -> None:
    process = start("--", "sh", "-c", "echo first; sleep 0.3; for n in 1 2 3; do echo more; sleep 0.1; done")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=30) == 0
    assert kept(tmp_path, "stdout.log") == b"first\nmore\nmore\nmore\n"
    assert process.stderr is not None
    process.stderr.close()


def test_a_disk_that_fills_ends_the_keeping_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "full.log").symlink_to("/dev/full")
    with Kept(tmp_path / "full.log") as file:
        file.write(b"a line\n")
        file.write(b"another\n")
    assert file.lost is not None
    assert "No space left on device" in file.lost


def test_lines_are_stamped_where_they_begin(tmp_path: Path) -> None:
    with Kept(tmp_path / "out.log", stamped=True) as file:
        file.write(b"half")
        file.write(b" a line\nsecond\n")
        file.write(b"third\n")
    lines = (tmp_path / "out.log").read_text().splitlines()
    assert [line.partition(" ")[2] for line in lines] == ["half a line", "second", "third"]
    assert all(line[4] == "-" and line[29] == "Z" for line in lines)


def test_a_secret_in_the_command_line_is_not_kept(start: Start, tmp_path: Path) -> None:
    process = start("--", "true", "--hf-token", "hf_abcdefghijklmnopqrstuvwxyz0123456789", "--steps", "5")
    process.communicate(timeout=60)
    assert b"true --hf-token [masked] --steps 5" in kept(tmp_path, "launcher.log")
