"""Labelled cases: the answer agrees with the truth, and nobody innocent is accused.

What the engine misses today stands in `MISSED`, a list that only gets shorter; no case accuses somebody wrongly.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from firstfault.correlate.engine import diagnose
from firstfault.ingest import ingest
from firstfault.report.document import document

CASES = sorted(path.parent for path in Path(__file__).parent.glob("*/case.toml"))
MISSED = {
    "lab3-slow-compute-r1": "stamps as Tornado prints them",
    "cpu-steal-slow-dataloader-rank-7": "timings in words of its own",
    "lab4-sentencepiece-missing-img-old": "two trees of one folder, without a line that tells them apart",
    "desync-report-ranks-three-and-six-lagging": "a desync report among the lines of other ranks",
    "gke-jax-snapshot-still-running": "a run that still goes on",
    "mpijob-orted-libs-missing-one-worker": "the pod whose daemon did not start, by the one that is missing",
    "sdc-replay-check-names-one-device": "a program's own check of recomputed results",
    "gptneox-allreduce-doubles-then-scancel": "the ranks of a device in a table without ranks, in another time zone",
    "hvd-head-size-differs-labelmap": "the host of a rank in a sentence of its own",
    "lamda-128-stopfile-seen-by-one": "local ranks in brackets of their own, joined with a line of global ones",
    "vllm-compose-worker5-gone": "a worker's process id from a listing, and a kernel log in another zone",
    "yolov5-ddp-launch-failure-xid79": "a fault of another device, hours before, explains away the right one",
    "bloomz-offload-return-code-minus-nine": "the host of a job on one machine that only its kernel log names",
    "gn-301-304-slower-since-iteration-700": "power readings and iteration times together",
    "subnet-manager-names-the-port": "a port that only the subnet manager's log names",
    "tar-shard-crc-rank19-lightning": "the host of a rank in its file's name",
    "trn1-nc-hbm-uncorrectable-ray": "the rank of a Neuron device under Ray",
}


def short(host: str) -> str:
    """A host without its domain."""
    return host if host.replace(".", "").isdigit() or ":" in host else host.split(".")[0]


def answer_of(case: Path, folder: Path) -> dict[str, Any]:
    """The document for a case."""
    database = folder / "timeline.duckdb"
    ingest([case / "logs"], database)
    return document(diagnose(database))


def innocent(answer: dict[str, Any], truth: dict[str, Any]) -> list[str]:
    """Ranks and hosts that an identified verdict names and no label lists."""
    if answer["verdict"] != "identified":
        return []
    ranks, hosts = set(answer["initiating"]["ranks"]), {short(one) for one in answer["initiating"]["hosts"]}
    if truth["failure_class"] == "none" or not truth["determined"]:
        return sorted(map(str, ranks | hosts))
    accepted = [set(truth["initiating_ranks"]), *map(set, truth.get("also_acceptable_ranks", []))]
    known_hosts = {short(one) for one in truth["initiating_hosts"]}
    of_right_host = bool(hosts) and hosts <= known_hosts
    wrong_ranks = ranks - set().union(*accepted)
    if not truth["initiating_ranks"] and (of_right_host or ranks == set(truth["collateral_ranks"])):
        wrong_ranks = set()
    wrong_hosts = hosts - known_hosts if known_hosts else set()
    return sorted(map(str, wrong_ranks | wrong_hosts))


def faults(answer: dict[str, Any], truth: dict[str, Any]) -> list[str]:
    """What of an answer differs from the truth."""
    if truth["failure_class"] == "none":
        return [] if answer["verdict"] == "no-failure" else [f"verdict {answer['verdict']}"]
    if not truth["determined"]:
        right = answer["verdict"] == "undetermined" and answer["missing_fact"]
        return [] if right else [f"verdict {answer['verdict']}"]
    found = [] if answer["verdict"] == "identified" else [f"verdict {answer['verdict']}"]
    cls = answer["failure"]["class"]
    if cls not in {truth["failure_class"], *truth.get("also_acceptable", [])}:
        found.append(f"class {cls}")
    ranks, hosts = set(answer["initiating"]["ranks"]), {short(one) for one in answer["initiating"]["hosts"]}
    known_hosts = {short(one) for one in truth["initiating_hosts"]}
    if known_hosts and not (hosts and hosts <= known_hosts):
        found.append(f"hosts {sorted(hosts)}")
    accepted = [set(truth["initiating_ranks"]), *map(set, truth.get("also_acceptable_ranks", []))]
    whole_host = not ranks and len(truth["initiating_ranks"]) > 1 and hosts and hosts <= known_hosts
    if truth["initiating_ranks"] and ranks not in accepted and not whole_host:
        found.append(f"ranks {sorted(ranks)}")
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answer_agrees_with_the_truth(case: Path, tmp_path: Path) -> None:
    truth = tomllib.loads((case / "case.toml").read_text(encoding="utf-8"))["truth"]
    answer = answer_of(case, tmp_path)
    assert not innocent(answer, truth)
    if case.name not in MISSED:
        assert not faults(answer, truth)


def test_truths_can_be_met() -> None:
    """A perfect answer is judged right, a wrong one wrong: the test itself can fail."""
    truths = (tomllib.loads((case / "case.toml").read_text(encoding="utf-8"))["truth"] for case in CASES)
    truth = next(one for one in truths if one["determined"] and one["initiating_ranks"] and one["initiating_hosts"])
    place = {"ranks": truth["initiating_ranks"], "hosts": truth["initiating_hosts"][:1]}
    perfect = {"verdict": "identified", "failure": {"class": truth["failure_class"]}, "initiating": place}
    assert not faults(perfect, truth)
    assert not innocent(perfect, truth)
    wrong = {**perfect, "initiating": {"ranks": [99], "hosts": ["nobody"]}}
    assert faults(wrong, truth)
    assert innocent(wrong, truth) == ["99", "nobody"]
