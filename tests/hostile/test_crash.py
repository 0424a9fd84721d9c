"""Runs that are killed, told to end, meet a full disk or one another: what is left, and what the next one makes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firstfault.timeline import open_timeline, place
from firstfault.timeline.place import put

from .conftest import ROOT, Process

sys.path.insert(0, str(ROOT / "bench"))
import bench_kill
from fingerprint import fingerprint


def text(rank: int, lines: int) -> str:
    rows = [
        f"2025-05-12 10:{n // 60 % 60:02d}:{n % 60:02d},000 - train - INFO - step {n} loss 2.0" for n in range(lines)
    ]
    return "\n".join([*rows, f"[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", ""])


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Four units of work."""
    (tmp_path / "logs").mkdir()
    for rank in range(4):
        (tmp_path / "logs" / f"rank{rank}.log").write_text(text(rank, 3500), encoding="utf-8")
    return tmp_path / "logs"


def test_runs_that_are_killed_leave_the_last_good_timeline_and_the_next_one_gives_the_same_rows(
    logs: Path, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    seen = bench_kill.rounds(tmp_path / "work", logs, 2, random.Random(3), every=2)
    assert seen["resumed"] == 1


def test_who_is_told_to_end_takes_his_workers_along_and_leaves_nothing(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    running = bench_kill.start(tmp_path, logs, tmp_path / "out" / "t.duckdb")
    deadline = time.monotonic() + 60
    while len(bench_kill.members(running.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C at a terminal does
    _, said = running.communicate(timeout=60)
    assert running.returncode != 0
    assert said.count(b"Traceback") <= 1, "workers say nothing"
    assert bench_kill.gone(running.pid, 30)
    assert list((tmp_path / "out").iterdir()) == []


def test_two_runs_into_one_timeline_do_not_mind_each_other(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    running = [bench_kill.start(tmp_path, logs, tmp_path / "out" / "t.duckdb") for _ in range(2)]
    assert [one.communicate(timeout=120)[1] for one in running] == [b"", b""]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["t.duckdb"]
    assert fingerprint(tmp_path / "out" / "t.duckdb")["line_rows"].startswith("14004 ")


def test_a_full_disk_is_said_and_leaves_the_last_good_timeline(process: Process, logs: Path, tmp_path: Path) -> None:
    db = tmp_path / "out" / "t.duckdb"
    small = tmp_path / "small"
    small.mkdir()
    (small / "rank0.log").write_text(text(0, 3), encoding="utf-8")
    assert process("ingest", small, "--db", db).returncode == 0
    before = fingerprint(db)
    # no file may be larger than 256 KB, which is what a disk without room looks like from inside
    done = process("ingest", logs, "--db", db, "--fresh", before="ulimit -f 512; trap '' XFSZ")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert fingerprint(db) == before
    assert [path.name for path in db.parent.iterdir()] == ["t.duckdb"]


def test_a_file_is_on_the_disk_before_it_is_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    names: dict[int, str] = {}
    real_open, real_replace = os.open, os.replace

    def opened(path: object, *rest: int, **more: int) -> int:
        handle = real_open(path, *rest, **more)  # type: ignore[arg-type]
        names[handle] = Path(str(path)).name
        return handle

    def synced(handle: int) -> None:
        done.append(f"sync {names.get(handle, 'content')}")

    def replaced(made: Path, file: Path) -> None:
        done.append("replace")
        real_replace(made, file)

    monkeypatch.setattr(place.os, "open", opened)
    monkeypatch.setattr(place.os, "fsync", synced)
    monkeypatch.setattr(place.os, "replace", replaced)
    (tmp_path / "made").write_bytes(b"x")
    put(tmp_path / "made", tmp_path / "file")
    assert done == ["sync content", "replace", f"sync {tmp_path.name}"]


def test_the_next_run_says_what_a_killed_one_left(process: Process, logs: Path, tmp_path: Path) -> None:
    db = tmp_path / "out" / "t.duckdb"
    running = bench_kill.start(tmp_path, logs, db)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out").glob(".t.duckdb.*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    running.kill()
    running.communicate()
    done = process("report", db)
    assert done.returncode == 1
    assert "the run that was to make it was cut off" in done.stderr
    done = process("ingest", logs, "--db", db)
    assert done.returncode == 0
    assert "an earlier run" in done.stderr.splitlines()[0]
    assert "left no timeline" in done.stderr.splitlines()[0]
    with open_timeline(db) as connection:
        assert connection.execute("SELECT count(*) FROM lines").fetchall() == [(14004,)]
    assert [path.name for path in db.parent.iterdir()] == ["t.duckdb"]


def test_a_process_that_is_killed_while_it_writes_its_findings_leaves_a_timeline_that_opens(tmp_path: Path) -> None:
    program = (
        "import os, sys, pathlib\n"
        "from firstfault.timeline import open_timeline, write_timeline\n"
        "db = pathlib.Path(sys.argv[1])\n"
        "write_timeline(db, lambda _: None, {'answer': '42'})\n"
        "con = open_timeline(db, writable=True)\n"
        "con.execute('BEGIN'); con.execute(\"UPDATE meta SET value = '43' WHERE key = 'answer'\")\n"
        "con.execute('COMMIT') if sys.argv[2] == 'commit' else None\n"
        "os._exit(9)\n"
    )
    for end, wanted in (("commit", "43"), ("nothing", "42")):
        db = tmp_path / f"{end}.duckdb"
        paths = [path for path in sys.path if path]
        code = f"import sys; sys.path[:0] = {paths!r}\n{program}"
        assert subprocess.run([sys.executable, "-c", code, str(db), end], check=False).returncode == 9
        with open_timeline(db) as connection:
            assert connection.execute("SELECT value FROM meta WHERE key = 'answer'").fetchall() == [(wanted,)]
