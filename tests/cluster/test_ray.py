"""`--engine ray` on a real cluster: the same rows and verdict as on one machine, whatever dies meanwhile."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from .conftest import HOSTS, SAMPLE, RayNodes, ended

pytestmark = pytest.mark.slow
TABLES = ("sources", "line_rows", "signal_rows", "identities", "progress")


def digest(output: Path) -> dict[str, str]:
    """What stands for the rows of each table, in order."""
    found = {}
    with duckdb.connect(str(output / "timeline.duckdb"), read_only=True) as connection:
        for table in TABLES:
            rows = connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
            found[table] = hashlib.sha256(repr(rows).encode()).hexdigest()
    return found


def problems(output: Path) -> list[Any]:
    with duckdb.connect(str(output / "timeline.duckdb"), read_only=True) as connection:
        return connection.execute("SELECT path, kind, severity FROM problems ORDER BY ALL").fetchall()


def verdict(document: str) -> dict[str, Any]:
    found = json.loads(document)
    names = ("verdict", "failure", "initiating", "evidence", "collateral", "confidence", "hypotheses", "job", "clocks")
    return {name: found[name] for name in names}


def test_the_same_rows_and_the_same_verdict_as_on_one_machine(cluster: RayNodes, tmp_path: Path) -> None:
    logs = shutil.copytree(SAMPLE, tmp_path / "logs")
    for name in ("a.out", "z.out"):  # each as much as one task takes at once
        (logs / name).write_text("".join(f"step {step} {'.' * 1000}\n" for step in range(17_000)))
    ray = ["--engine", "ray", "--address", cluster.address]
    with_ray = cluster.run("diagnose", logs, *ray, "--output", tmp_path / "ray", "--format", "json")
    local = cluster.run("diagnose", logs, "--output", tmp_path / "local", "--format", "json")
    assert verdict(with_ray) == verdict(local)
    assert verdict(local)["initiating"]["ranks"] == [6]
    assert digest(tmp_path / "ray") == digest(tmp_path / "local")
    assert problems(tmp_path / "ray") == problems(tmp_path / "local")


def test_each_node_reads_its_own_disk_and_a_worker_that_is_killed_is_replaced(
    cluster: RayNodes, tmp_path: Path
) -> None:
    ray = ["--engine", "ray", "--address", cluster.address, "--per-node", "$NODE_DISK"]
    running = cluster.begin("diagnose", *ray, "--output", tmp_path / "ray", "--format", "json")
    os.kill(cluster.wait_for("n-1", "ray::firstfault.read"), signal.SIGKILL)
    with_ray = ended(running)
    local = cluster.run("diagnose", SAMPLE, "--output", tmp_path / "local", "--format", "json")
    assert verdict(with_ray) == verdict(local)
    assert digest(tmp_path / "ray") == digest(tmp_path / "local")
    assert problems(tmp_path / "ray") == problems(tmp_path / "local")


def test_what_a_dead_node_had_is_named(cluster: RayNodes, tmp_path: Path) -> None:
    (cluster.disk("n-2") / "v100-r2n7").mkdir(parents=True)
    (cluster.disk("n-2") / "v100-r2n7" / "rank8.log").write_text("2026-11-30 16:14:40,000 - root - ERROR - lost\n")
    cluster.start("n-2")
    ray = ["--engine", "ray", "--address", cluster.address, "--per-node", "$NODE_DISK"]
    running = cluster.begin("diagnose", *ray, "--output", tmp_path / "first")
    cluster.wait_for("n-2", "ray::firstfault.read")
    cluster.kill("n-2")
    report = ended(running)
    lost = ("n-2/v100-r2n7/rank8.log", "unread", "error")
    assert lost in problems(tmp_path / "first")
    assert "unread (1): n-2/v100-r2n7/rank8.log: not read: node n-2" in " ".join(report.split())
    # from now on nobody knows which files it had
    cluster.run("ingest", *ray, "--db", tmp_path / "second" / "timeline.duckdb")
    assert ("n-2/", "unread", "error") in problems(tmp_path / "second")
    with duckdb.connect(str(tmp_path / "second" / "timeline.duckdb"), read_only=True) as connection:
        hosts = connection.execute("SELECT DISTINCT split_part(path, '/', 1) FROM sources ORDER BY 1").fetchall()
    assert [host for (host,) in hosts] == list(HOSTS)


def test_an_address_where_no_cluster_is(cluster: RayNodes) -> None:
    running = cluster.begin("diagnose", SAMPLE, "--engine", "ray", "--address", "127.0.0.1:9")
    _, said = running.communicate(timeout=120)
    assert (running.returncode, "nothing listens at 127.0.0.1:9" in said) == (1, True)
