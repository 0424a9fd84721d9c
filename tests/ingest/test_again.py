"""A second look at the same logs: what has not changed is not read again, and the answer is that of a first look."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstfault.ingest import Bounds, IngestOptions, ingest, run
from firstfault.timeline import open_timeline

TABLES = ("sources", "line_rows", "signal_rows", "identities", "progress", "problems")
# every file a unit of its own, big ones cut, all of it kept as if the job were big
CUT = Bounds(shard=128 << 10, chunk=128 << 10, unit=1, file_cost=1, memory=0, in_process=1 << 40)
ONE = IngestOptions(workers=1, bounds=CUT)


def rows(db: Path) -> dict[str, list[Any]]:
    with open_timeline(db) as connection:
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall() for table in TABLES}


def text(rank: int, first: int, stop: int) -> str:
    said = []
    for step in range(first, stop):
        said.append(
            f"2025-05-12 {10 + step // 3600}:{step // 60 % 60:02d}:{step % 60:02d},000 - root - INFO - step {step}"
        )
        if step % 500 == 499:
            said += ["Traceback (most recent call last):", '  File "/x/a.py", line 3, in f', "ValueError: bad sample"]
    return "\n".join(said) + "\n"


@pytest.fixture
def logs(write: Callable[..., Path]) -> Path:
    return write({"rank0.log": text(0, 0, 40), "rank1.log": text(1, 0, 60_000), "rank2.log": text(2, 0, 40)})


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    """Every file or shard that is read, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    seen: list[tuple[str, int | None]] = []
    real = run.read_unit

    def read_unit(unit: Any, *rest: Any) -> Any:
        seen.extend((found.path, unit.shard.start if unit.shard else None) for found in unit.files)
        return real(unit, *rest)

    monkeypatch.setattr(run, "read_unit", read_unit)
    return seen


def test_what_has_not_changed_is_not_read_again(logs: Path, reads: list[Any], tmp_path: Path) -> None:
    first = ingest([logs], tmp_path / "a.duckdb", ONE)
    before = (tmp_path / "a.duckdb").stat()
    reads.clear()
    assert ingest([logs], tmp_path / "a.duckdb", ONE) == first
    assert reads == []
    after = (tmp_path / "a.duckdb").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_of_a_file_that_grew_only_its_end_is_read(logs: Path, reads: list[Any], tmp_path: Path) -> None:
    ingest([logs], tmp_path / "a.duckdb", ONE)
    size = (logs / "rank1.log").stat().st_size
    assert size > (2 << 20) + 4 * CUT.shard, "the file has shards far from its end"
    with (logs / "rank1.log").open("a") as file:
        file.write(text(1, 60_000, 60_500))
    reads.clear()
    ingest([logs], tmp_path / "a.duckdb", ONE)
    assert {path for path, _ in reads} == {"rank1.log"}
    # a record may reach a megabyte into the next shards, so that many are looked at again
    assert min(start for _, start in reads if start is not None) >= size - (2 << 20) - CUT.shard
    ingest([logs], tmp_path / "fresh.duckdb", IngestOptions(workers=1, bounds=CUT, reuse=False))
    assert rows(tmp_path / "a.duckdb") == rows(tmp_path / "fresh.duckdb")


def test_a_new_file_is_read_and_the_others_are_not(logs: Path, reads: list[Any], tmp_path: Path) -> None:
    ingest([logs], tmp_path / "a.duckdb", ONE)
    (logs / "rank9.log").write_text(text(9, 0, 3))
    reads.clear()
    ingest([logs], tmp_path / "a.duckdb", ONE)
    assert reads == [("rank9.log", None)]
    ingest([logs], tmp_path / "fresh.duckdb", IngestOptions(workers=1, bounds=CUT, reuse=False))
    assert rows(tmp_path / "a.duckdb") == rows(tmp_path / "fresh.duckdb")


def test_a_file_of_the_same_size_that_was_written_anew_is_read(logs: Path, reads: list[Any], tmp_path: Path) -> None:
    ingest([logs], tmp_path / "a.duckdb", ONE)
    content = (logs / "rank0.log").read_text()
    (logs / "rank0.log").write_text(content.replace("step 7\n", "step 8\n"))
    os.utime(logs / "rank0.log", ns=(1, 1))
    reads.clear()
    ingest([logs], tmp_path / "a.duckdb", ONE)
    assert ("rank0.log", None) in reads


@pytest.mark.parametrize(
    "options", [IngestOptions(workers=1, bounds=CUT, reuse=False), IngestOptions(workers=1, bounds=CUT, year=2024)]
)
def test_other_options_make_another_timeline(
    logs: Path, reads: list[Any], tmp_path: Path, options: IngestOptions
) -> None:
    ingest([logs], tmp_path / "a.duckdb", ONE)
    before = (tmp_path / "a.duckdb").stat().st_ino
    ingest([logs], tmp_path / "a.duckdb", options)
    assert (tmp_path / "a.duckdb").stat().st_ino != before


def test_a_run_that_dies_leaves_the_last_good_timeline(
    logs: Path, reads: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest([logs], tmp_path / "a.duckdb", ONE)
    good = rows(tmp_path / "a.duckdb")
    (logs / "rank9.log").write_text(text(9, 0, 3))
    monkeypatch.setattr(run, "fill", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        ingest([logs], tmp_path / "a.duckdb", ONE)
    assert rows(tmp_path / "a.duckdb") == good
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.duckdb", "cache", "logs"]


def test_a_damaged_part_is_read_again(logs: Path, reads: list[Any], tmp_path: Path) -> None:
    ingest([logs], tmp_path / "a.duckdb", ONE)
    good = rows(tmp_path / "a.duckdb")
    for kept in (tmp_path / "cache").rglob("*.zip"):
        kept.write_bytes(kept.read_bytes()[:100])
    (tmp_path / "a.duckdb").unlink()
    ingest([logs], tmp_path / "a.duckdb", ONE)
    assert rows(tmp_path / "a.duckdb") == good


def test_the_cache_is_for_its_owner_alone_and_keeps_to_its_limit(
    logs: Path, reads: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest([logs], tmp_path / "a.duckdb", ONE)
    parts = tmp_path / "cache" / "firstfault" / "parts"
    assert parts.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("FIRSTFAULT_CACHE_SIZE", "100000")
    (logs / "rank9.log").write_text(text(9, 0, 3))
    ingest([logs], tmp_path / "a.duckdb", ONE)
    assert sum(path.stat().st_size for path in parts.iterdir()) <= 100_000


def test_a_pipe_is_read_once(tmp_path: Path, reads: list[Any]) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe.log").write_text(text(0, 0, 9)))
    writer.start()
    assert ingest([tmp_path / "pipe.log"], tmp_path / "a.duckdb", ONE).lines == 9
    writer.join()
