"""The JSON document and its schema: made by hand, and of real jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from firstfault.correlate.diagnosis import Clock, Diagnosis, Evidence
from firstfault.correlate.engine import diagnose
from firstfault.ingest import IngestOptions, ingest
from firstfault.report.document import document, to_json

Make = Callable[..., Diagnosis]
ROOT = Path(__file__).parents[2]
JOBS = ("absent-shard-one-host", "healthy-pair", "two-faults-apart", "module-three-attempts", "srun-time-limit")


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    text = resources.files("firstfault.report").joinpath("diagnosis.schema.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    return jsonschema.Draft202012Validator(json.loads(text))


def wrong(schema: jsonschema.Draft202012Validator, document: Any) -> list[str]:
    return [f"{list(error.absolute_path)}: {error.message}" for error in schema.iter_errors(document)]


def test_documents_of_each_verdict_are_valid(
    schema: jsonschema.Draft202012Validator, identified: Make, undetermined: Make, completed: Make
) -> None:
    for make in (identified, undetermined, completed):
        assert wrong(schema, json.loads(to_json(make()))) == []


@pytest.mark.parametrize("job", JOBS)
def test_documents_of_real_jobs_are_valid(schema: jsonschema.Draft202012Validator, job: str, tmp_path: Path) -> None:
    ingest([ROOT / "sample_logs" / job / "logs"], tmp_path / "t.duckdb", IngestOptions(workers=1))
    assert wrong(schema, json.loads(to_json(diagnose(tmp_path / "t.duckdb")))) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("verdict", "maybe"),
        ("confidence", 1.5),
        ("missing_fact", "a fact where the verdict is identified"),
        ("failure", {"class": None, "entry": None, "title": None}),
        ("clocks", [{"host": "a"}]),
        ("evidence", [{"path": "a", "line": 0, "at": None, "text": "", "why": ""}]),
    ],
)
def test_the_schema_refuses_what_the_contract_forbids(
    schema: jsonschema.Draft202012Validator, identified: Make, key: str, value: Any
) -> None:
    assert wrong(schema, {**document(identified()), key: value})


def test_unknown_keys_are_allowed(schema: jsonschema.Draft202012Validator, identified: Make) -> None:
    assert wrong(schema, {**document(identified()), "later": 1}) == []


def test_the_schema_describes_every_key(schema: jsonschema.Draft202012Validator, identified: Make) -> None:
    assert set(document(identified())) == set(schema.schema["properties"])  # type: ignore[index]


def test_numbers_that_are_not_finite_are_null(identified: Make) -> None:
    clocks = (Clock("n1", float("nan"), float("inf"), "?"),)
    assert document(identified(clocks=clocks))["clocks"] == [
        {"host": "n1", "offset_seconds": None, "uncertainty_seconds": None, "how": "?"}
    ]


def test_the_text_of_a_line_is_bounded(identified: Make) -> None:
    (line,) = document(identified(evidence=(Evidence("a", 1, "x" * 900, ""),)))["evidence"]
    assert len(line["text"]) == 500
