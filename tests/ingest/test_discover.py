"""Which files are read, under which path, and what is said about the others."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from firstfault.ingest import IngestOptions


def test_folders_are_walked_in_sorted_order(read: Any) -> None:
    made = read({"b/rank1.log": "x\n", "a/rank0.log": "y\n", "a.log": "z\n", "a/sub/n.log": "w\n"})
    assert made.column("SELECT path FROM sources ORDER BY source_id") == [
        "a/rank0.log",
        "a/sub/n.log",
        "a.log",
        "b/rank1.log",
    ]


def test_a_file_given_as_path_is_cited_by_its_name(read: Any, write: Any) -> None:
    logs = write({"deep/rank0.log": "x\n"})
    made = read({}, logs / "deep" / "rank0.log")
    assert made.column("SELECT path FROM lines") == ["rank0.log"]


def test_paths_that_clash_are_told_apart_by_the_given_path(
    read: Any, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = write({"a/rank0.log": "from a\n", "b/rank0.log": "from b\n"})
    monkeypatch.chdir(logs)
    made = read({}, "./a", "b")
    assert made.rows("SELECT path, message FROM lines ORDER BY path") == [
        ("a/rank0.log", "from a"),
        ("b/rank0.log", "from b"),
    ]


def test_files_of_the_same_name_given_alone_are_told_apart(
    read: Any, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = write({"a/x.log": "from a\n", "b/x.log": "from b\n"})
    monkeypatch.chdir(logs)
    assert read({}, "a/x.log", "b/x.log").column("SELECT path FROM sources ORDER BY path") == ["a/x.log", "b/x.log"]


def test_links_out_of_the_tree_are_not_followed(read: Any, write: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.log").write_text("secret\n")
    logs = write({"a.log": "inside\n"})
    (logs / "out").symlink_to(outside)
    (logs / "again.log").symlink_to(logs / "a.log")
    (logs / "nowhere").symlink_to(tmp_path / "missing")
    made = read()
    assert made.column("SELECT message FROM lines") == ["inside"]
    assert made.rows("SELECT path, kind, severity FROM problems ORDER BY path") == [
        ("again.log", "link", "info"),
        ("nowhere", "link", "notice"),
        ("out", "link", "data-loss"),
    ]


def test_links_are_followed_on_request_and_loops_end(read: Any, write: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "pod.log").write_text("from the pod\n")
    (outside / "loop").symlink_to(outside)
    logs = write({"a.log": "inside\n"})
    (logs / "out").symlink_to(outside)
    made = read(options=IngestOptions(follow_links=True))
    assert made.column("SELECT path FROM sources ORDER BY path") == ["a.log", "out/pod.log"]


def test_what_is_no_file_is_skipped(read: Any, write: Any) -> None:
    logs = write({"a.log": "x\n"})
    os.mkfifo(logs / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    try:
        os.chdir(logs)
        listener.bind("sock")
    finally:
        os.chdir(here)
        listener.close()
    made = read()
    assert made.rows("SELECT path, kind FROM problems ORDER BY path") == [
        ("pipe", "not-a-file"),
        ("sock", "not-a-file"),
    ]


def test_a_missing_path_is_a_problem(read: Any, tmp_path: Path) -> None:
    made = read({"a.log": "x\n"}, tmp_path / "logs", tmp_path / "gone")
    assert made.rows("SELECT kind, severity FROM problems") == [("unreadable", "error")]


def test_odd_names_are_kept(read: Any, write: Any) -> None:
    logs = write({"new\nline.log": "x\n", "colour\x1b[31m.log": "y\n"})
    (logs / os.fsdecode(b"bad\xff.log")).write_text("z\n")
    made = read()
    assert sorted(made.column("SELECT path FROM sources")) == ["bad\ufffd.log", "colour\x1b[31m.log", "new\nline.log"]


def test_the_output_of_an_earlier_diagnosis_is_not_read(read: Any) -> None:
    made = read({"timeline.duckdb": "x", "diagnosis.json": "{}", "report.md": "CUDA out of memory\n", "a.log": "x\n"})
    assert made.column("SELECT path FROM sources") == ["a.log"]


def test_source_code_is_kept_but_not_searched(read: Any) -> None:
    made = read({"train.py": "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')\n"})
    assert made.rows("SELECT count(*) FROM signal_rows") == [(0,)]
    assert made.rows("SELECT kind FROM problems") == [("not-a-log",)]
