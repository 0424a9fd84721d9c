"""Odd surroundings: few open files, files that change while they are read, a million members, logs nobody may write."""

from __future__ import annotations

import os
import threading
import zipfile
from pathlib import Path

import pytest

from firstfault.ingest import IngestOptions, ingest
from firstfault.ingest.discover import Found
from firstfault.ingest.opening import open_found
from firstfault.ingest.options import Bounds
from firstfault.ingest.problems import Problem
from firstfault.timeline import open_timeline

from .conftest import Process


def test_few_open_files_are_enough_for_many_logs(process: Process, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for rank in range(400):
        (tmp_path / "logs" / f"rank{rank}.log").write_text(f"[rank{rank}]: step 1\n", encoding="utf-8")
    done = process("ingest", tmp_path / "logs", "--db", tmp_path / "t.duckdb", before="ulimit -n 64")
    assert done.returncode == 0, done.stderr
    assert "400 files, 400 lines" in done.stderr


def test_logs_that_nobody_may_write_are_read_and_left_as_they_are(process: Process, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank0.log").write_text("[rank0]: RuntimeError: x\n", encoding="utf-8")
    (tmp_path / "logs" / "rank0.log").chmod(0o444)
    (tmp_path / "logs").chmod(0o555)
    try:
        before = [(path.name, path.stat().st_mtime_ns) for path in (tmp_path / "logs").iterdir()]
        assert process("diagnose", tmp_path / "logs").returncode == 0
        assert [(path.name, path.stat().st_mtime_ns) for path in (tmp_path / "logs").iterdir()] == before
    finally:
        (tmp_path / "logs").chmod(0o755)


@pytest.mark.parametrize(("what", "kind"), [("gone", "unreadable"), ("pipe", "not-a-file"), ("socket", "unreadable")])
def test_what_is_no_file_any_more_is_named_and_nobody_waits_for_it(tmp_path: Path, what: str, kind: str) -> None:
    place = tmp_path / "rank0.log"
    if what == "pipe":
        os.mkfifo(place)
    if what == "socket":
        os.mknod(place, 0o140644)
    problems: list[Problem] = []
    assert list(open_found(Found(0, "rank0.log", str(place), 9, 0, False), Bounds(), problems)) == []
    assert [one.kind for one in problems] == [kind]


def test_a_log_that_is_cut_and_written_while_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    place = tmp_path / "logs" / "rank0.log"
    line = "2025-05-12 10:00:00,000 - train - INFO - step 1 loss 2.0\n"
    place.write_text(line * 1000, encoding="utf-8")
    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            place.write_text(line * 1000, encoding="utf-8")
            os.truncate(place, len(line) * 3)
            with place.open("a", encoding="utf-8") as file:
                file.write(line * 2000)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for number in range(5):
            ingest([tmp_path / "logs"], tmp_path / f"{number}.duckdb", IngestOptions(workers=1, reuse=False))
    finally:
        stop.set()
        thread.join()
    with open_timeline(tmp_path / "4.duckdb") as connection:
        assert connection.execute("SELECT count(*) FROM sources").fetchall() == [(1,)]


def test_a_zip_of_more_members_than_any_job_has_is_not_opened(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for number in range(3000):
            archive.writestr(f"{number}.log", b"")
    problems: list[Problem] = []
    found = Found(0, "x.zip", str(tmp_path / "x.zip"), 1, 0, True)
    assert list(open_found(found, Bounds(directory=100_000), problems)) == []
    assert [one.kind for one in problems] == ["bomb"]
    assert len(list(open_found(found, Bounds(), []))) == 3000
