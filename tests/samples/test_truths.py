"""The sample jobs are sound: each truth parses, its evidence lines exist, and the folder stays small and neutral."""

from __future__ import annotations

import gzip
import pathlib
import re
import tomllib
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_logs"
DEMO = ROOT / "report" / "firstfault" / "cli" / "demo"
JOBS = sorted(path.parent for folder in (SAMPLES, DEMO) for path in folder.glob("*/case.toml"))
KEYS = {
    "determined": bool,
    "failure_class": str,
    "also_acceptable": list,
    "also_acceptable_ranks": list,
    "initiating_ranks": list,
    "initiating_hosts": list,
    "root_evidence": list,
    "collateral_ranks": list,
    "trap": str,
    "missing_fact": str,
}
MACHINE = re.compile(rb"/home/|/root/\.|\.pyenv|/tmp/(?!torchelastic_)|" + re.escape(str(ROOT).encode()))


def truth_of(job: pathlib.Path) -> dict[str, Any]:
    truth: dict[str, Any] = tomllib.loads((job / "case.toml").read_text(encoding="utf-8"))["truth"]
    return truth


def test_there_are_enough_jobs() -> None:
    assert len([job for job in JOBS if job.parent == SAMPLES]) >= 18
    assert len([job for job in JOBS if job.parent == DEMO]) == 2


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_truth_has_every_key_with_its_type(job: pathlib.Path) -> None:
    truth = truth_of(job)
    assert {key: type(truth[key]) for key in KEYS} == KEYS
    assert set(truth) == set(KEYS)
    assert not set(truth["initiating_ranks"]) & set(truth["collateral_ranks"])
    if not truth["determined"]:
        assert truth["missing_fact"]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_evidence_lines_exist(job: pathlib.Path) -> None:
    for place in truth_of(job)["root_evidence"]:
        path, _, line = place.rpartition(":")
        data = (job / path).read_bytes()
        lines = (gzip.decompress(data) if path.endswith(".gz") else data).split(b"\n")
        assert 1 <= int(line) <= len(lines), place
        assert lines[int(line) - 1].strip(), f"{place} is an empty line"


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_logs_name_no_machine_they_were_made_on(job: pathlib.Path) -> None:
    for path in job.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not MACHINE.search(gzip.decompress(data) if path.suffix == ".gz" else data), path


def test_samples_stay_small() -> None:
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) < 5_000_000
    assert sum(path.stat().st_size for path in DEMO.rglob("*") if path.is_file()) < 200_000
