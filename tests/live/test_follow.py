"""Files that grow are followed line by line, through new files, rotation and truncation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firstfault.live import follow
from firstfault.live.follow import Follower, below


def lines(follower: Follower) -> list[tuple[str, int, str]]:
    """(path, line number, text) of what came in."""
    found = []
    for growth in follower.look():
        for number, text in enumerate(growth.data.decode().splitlines(), growth.first_line):
            found.append((growth.path, number, text))
    return found


def settled(follower: Follower) -> list[tuple[str, int, str]]:
    """What came in up to the next look that also looks for new files."""
    return [one for _ in range(3) for one in lines(follower)]


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    append(log, "one\ntwo\nhalf")
    follower = Follower([str(tmp_path)])
    assert settled(follower) == [("rank0.log", 1, "one"), ("rank0.log", 2, "two")]
    append(log, " a line\nfour\n")
    assert settled(follower) == [("rank0.log", 3, "half a line"), ("rank0.log", 4, "four")]
    assert settled(follower) == []


def test_new_files_and_folders_are_found(tmp_path: Path) -> None:
    follower = Follower([str(tmp_path / "logs")])
    assert settled(follower) == []
    (tmp_path / "logs" / "attempt_1" / "7").mkdir(parents=True)
    append(tmp_path / "logs" / "attempt_1" / "7" / "stderr.log", "begun\n")
    assert settled(follower) == [("attempt_1/7/stderr.log", 1, "begun")]


@pytest.mark.parametrize("alone", [False, True])
def test_rotation_by_name_loses_and_repeats_nothing(tmp_path: Path, alone: bool) -> None:
    log = tmp_path / "rank0.log"
    append(log, "one\n")
    follower = Follower([str(log if alone else tmp_path)])
    assert settled(follower) == [("rank0.log", 1, "one")]
    append(log, "two\n")
    log.rename(tmp_path / "rank0.log.1")
    append(log, "of the new file\n")
    found = [*settled(follower), *settled(follower)]
    assert sorted(found) == [("rank0.log", 1, "of the new file"), ("rank0.log.1", 2, "two")]


def test_a_truncated_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    append(log, "one\ntwo\n")
    follower = Follower([str(tmp_path)])
    settled(follower)
    log.write_text("new\n")
    assert settled(follower) == [("rank0.log", 1, "new")]
    log.write_text("copied away, truncated and longer than before\n")
    assert settled(follower) == [("rank0.log", 1, "copied away, truncated and longer than before")]


def test_a_file_that_went_away_may_come_back(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    append(log, "one\n")
    follower = Follower([str(tmp_path)])
    settled(follower)
    log.unlink()
    assert settled(follower) == []
    append(log, "again\n")
    assert settled(follower) == [("rank0.log", 1, "again")]


def test_of_a_large_file_the_end_is_read_with_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_LARGE", 1000)
    monkeypatch.setattr(follow, "_TAIL", 25)
    append(tmp_path / "rank0.log", "".join(f"line {n:03d}\n" for n in range(1, 201)))
    follower = Follower([str(tmp_path)])
    assert settled(follower) == [("rank0.log", 199, "line 199"), ("rank0.log", 200, "line 200")]


def test_what_cannot_be_followed_is_counted(tmp_path: Path) -> None:
    (tmp_path / "old.log.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / "core").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "away").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe")
    append(tmp_path / "rank0.log", "one\n")
    follower = Follower([str(tmp_path)])
    assert settled(follower) == [("rank0.log", 1, "one")]
    assert follower.counts.not_followed == 1


def test_our_own_reports_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    append(tmp_path / "out" / "report.md", "ERROR\n")
    append(tmp_path / "rank0.log", "one\n")
    follower = Follower([str(tmp_path)], below(tmp_path / "out"))
    assert settled(follower) == [("rank0.log", 1, "one")]


def test_a_line_without_an_end_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    follower = Follower([str(tmp_path)])
    for _ in range(6):
        append(log, "x" * 30_000)
        assert settled(follower) == []
    append(log, "\nnext\n")
    found = settled(follower)
    assert [number for _, number, _ in found] == [1, 2]
    assert len(found[0][2]) <= 100_000
    assert found[1][2] == "next"
