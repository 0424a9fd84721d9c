"""`export`: Parquet files that hold the rows, and a trace whose lanes, slices and arrows fit together."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from firstfault.correlate.engine import diagnose
from firstfault.timeline import write_timeline

from ..correlate.timeline_builder import Job
from .conftest import Cli


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Rank 3 runs out of memory at 10 s; ranks 0 and 1 lose it, rank 2 has waited since 4 s."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(5)
    job.rank(3).error("cuda-oom", at=10)
    job.rank(0).lost("b", at=11)
    job.rank(1).lost("b", at=11)
    job.rank(2).timeout(6, at=14, waited=10.0)
    database = job.write(tmp_path / "t.duckdb")
    diagnose(database)
    return database


def events(file: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    found: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return found


def test_tables_become_parquet_files(cli: Cli, job: Path, tmp_path: Path) -> None:
    done = cli("export", job, "--output", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (0, "")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"lines.parquet", "signals.parquet", "verdicts.parquet", "sources.parquet"} <= names
    lines = pq.read_table(tmp_path / "out" / "lines.parquet")
    assert lines.num_rows == 24
    assert str(lines.schema.field("time").type) == "timestamp[us, tz=UTC]"


def test_only_chosen_tables(cli: Cli, job: Path, tmp_path: Path) -> None:
    cli("export", job, "--output", tmp_path / "out", "--table", "first_errors")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["first_errors.parquet"]
    done = cli("export", job, "--output", tmp_path / "none", "--table", "nonsense")
    assert (done.exit_code, (tmp_path / "none").exists()) == (2, False)


def test_a_trace_has_a_lane_for_each_rank(cli: Cli, job: Path, tmp_path: Path) -> None:
    assert cli("export", job, "--output", tmp_path / "trace.json").exit_code == 0
    found = events(tmp_path / "trace.json")
    names = {
        (one["pid"], one["tid"]): one["args"]["name"]
        for one in found
        if one["ph"] == "M" and one["name"] == "thread_name"
    }
    hosts = {one["pid"]: one["args"]["name"] for one in found if one["name"] == "process_name"}
    lanes = {(hosts[pid], name) for (pid, _), name in names.items()}
    assert {("host a", "rank 0"), ("host b", "rank 2"), ("host b", "rank 3 (failed first)")} <= lanes
    steps = Counter((hosts[one["pid"]], names[one["pid"], one["tid"]]) for one in found if one.get("cat") == "step")
    assert steps["host a", "rank 0"] == 5
    first = next(one for one in found if one.get("cat") == "step")
    assert (first["ts"], first["dur"], first["name"]) == (0, 1_000_000, "step 1")


def test_slices_of_one_lane_do_not_overlap(cli: Cli, job: Path, tmp_path: Path) -> None:
    cli("export", job, "--output", tmp_path / "trace.json")
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for one in events(tmp_path / "trace.json"):
        if one["ph"] == "X":
            lanes.setdefault((one["pid"], one["tid"]), []).append((one["ts"], one["ts"] + one["dur"]))
    for slices in lanes.values():
        ordered = sorted(slices)
        assert all(one[1] <= other[0] for one, other in pairwise(ordered))


def test_waits_and_arrows(cli: Cli, job: Path, tmp_path: Path) -> None:
    cli("export", job, "--output", tmp_path / "trace.json.gz")
    found = events(tmp_path / "trace.json.gz")
    waits = [(one["ph"], one["ts"], one["name"]) for one in found if one.get("cat") == "wait"]
    assert waits == [
        ("b", 3_000_000, "rank 2 waits in ALLREDUCE #6"),
        ("e", 13_000_000, "rank 2 waits in ALLREDUCE #6"),
    ]
    root = next(one for one in found if one.get("cat") == "root")
    assert (root["ts"], root["args"]["ranks"]) == (9_000_000, [3])
    ends = {one["id"]: one["ts"] for one in found if one["ph"] == "f"}
    assert ends == {1: 10_000_000, 2: 10_000_000, 3: 13_000_000}
    assert {one["id"] for one in found if one["ph"] == "s"} == set(ends)


def test_many_steps_are_folded_and_said(cli: Cli, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firstfault.export.trace.MOST_EVENTS", 1)
    big = Job(a=1)
    big.rank(0).steps(90)
    done = cli("export", big.write(tmp_path / "big.duckdb"), "--output", tmp_path / "trace.json")
    steps = [one for one in events(tmp_path / "trace.json") if one.get("cat") == "step"]
    assert len(steps) <= 20
    assert steps[0]["name"] == "steps 1-5"
    assert "steps stand folded" in done.stderr


def test_a_timeline_without_times_is_no_trace(cli: Cli, tmp_path: Path) -> None:
    write_timeline(tmp_path / "t.duckdb", lambda _: None, {})
    done = cli("export", tmp_path / "t.duckdb", "--output", tmp_path / "trace.json")
    assert done.exit_code == 1
    assert "no trace: no line of a rank has a time" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["t.duckdb"]


def test_a_wrong_form_is_wrong_usage(cli: Cli, job: Path, tmp_path: Path) -> None:
    assert cli("export", job, "--output", tmp_path / "x", "--format", "odd").exit_code == 2
    assert cli("export", job, "--output", tmp_path, "--format", "trace").exit_code == 2
    assert cli("export", job, "--output", job, "--format", "parquet").exit_code == 2
