"""Each sample job gets the answer that its truth holds: verdict, class, ranks, hosts."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tomllib
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOBS = sorted(path.parent for path in (ROOT / "sample_logs").glob("*/case.toml"))
READY = all(
    any((ROOT / portion / "firstfault" / name).exists() for portion in ("ingest", "correlate", "report"))
    for name in ("__main__.py", "cli/app.py", "correlate/engine.py")
)

pytestmark = pytest.mark.skipif(
    not READY or importlib.util.find_spec("duckdb") is None, reason="the engine is not there yet"
)


def diagnose(logs: pathlib.Path, cache: pathlib.Path) -> dict[str, Any]:
    """The document that the command prints."""
    paths = os.pathsep.join(str(ROOT / portion) for portion in ("ingest", "correlate", "report"))
    done = subprocess.run(
        [sys.executable, "-m", "firstfault", "diagnose", str(logs), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(cache)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def faults_of(answer: dict[str, Any], truth: dict[str, Any]) -> list[str]:
    """What is wrong with an answer, in words."""
    if truth["failure_class"] == "none":
        return [] if answer["verdict"] == "no-failure" else [f"verdict {answer['verdict']}"]
    if not truth["determined"]:
        right = answer["verdict"] == "undetermined" and answer["missing_fact"]
        return [] if right else [f"verdict {answer['verdict']}, missing fact {answer['missing_fact']}"]
    wrong = []
    if answer["verdict"] != "identified":
        wrong.append(f"verdict {answer['verdict']}")
    if answer["failure"]["class"] not in {truth["failure_class"], *truth["also_acceptable"]}:
        wrong.append(f"class {answer['failure']['class']}, not {truth['failure_class']}")
    ranks, hosts = answer["initiating"]["ranks"], answer["initiating"]["hosts"]
    right_hosts = bool(hosts) and set(hosts) <= set(truth["initiating_hosts"])
    everyone = [truth["collateral_ranks"]] if not truth["initiating_ranks"] else []
    accepted = [truth["initiating_ranks"], *truth["also_acceptable_ranks"], *everyone]
    if ranks not in accepted and not (right_hosts and not truth["initiating_ranks"]):
        wrong.append(f"ranks {ranks}, not {truth['initiating_ranks']}")
    if truth["initiating_hosts"] and not right_hosts:
        wrong.append(f"hosts {hosts}, not {truth['initiating_hosts']}")
    return wrong


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """One cache for all jobs, so that the catalog is compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_diagnosis_agrees_with_the_truth(job: pathlib.Path, cache: pathlib.Path) -> None:
    truth = tomllib.loads((job / "case.toml").read_text(encoding="utf-8"))["truth"]
    assert not faults_of(diagnose(job / "logs", cache), truth)
