"""`firstfault.api`: a diagnosis in one call, and a timeline as frames, Arrow and a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from pathlib import Path

import networkx as nx
import polars as pl
import pytest

from firstfault.api import Diagnosis, Timeline, TimelineError, Verdict, diagnose, document, open_timeline

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "sample_logs" / "mute-rank6" / "logs"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("api") / "job.duckdb"


@pytest.fixture(scope="module")
def answer(database: Path) -> Diagnosis:
    return diagnose(LOGS, database=database)


@pytest.fixture
def timeline(database: Path, answer: Diagnosis) -> Iterator[Timeline]:
    with open_timeline(database) as timeline:
        yield timeline


def test_a_diagnosis_is_one_frozen_object(answer: Diagnosis) -> None:
    assert (answer.verdict, answer.initiating.ranks) == (Verdict.IDENTIFIED, (6,))
    with pytest.raises(FrozenInstanceError):
        answer.confidence = 1.0  # type: ignore[misc]
    assert document(answer)["schema"] == "firstfault.diagnosis/1"


def test_a_timeline_is_diagnosed_as_it_stands(database: Path, answer: Diagnosis, timeline: Timeline) -> None:
    before = database.read_bytes()
    assert timeline.diagnosis().initiating == answer.initiating
    assert database.read_bytes() == before


def test_answers_are_frames(timeline: Timeline) -> None:
    frame = timeline.sql("SELECT rank, message FROM last_lines WHERE rank = ?", [6])
    assert frame.rows() == [(6, "step 8/40 loss 2.53540 138 ms")]
    assert timeline.table("first_errors").schema["time"] == pl.Datetime("us", "UTC")
    assert timeline.arrow("SELECT 1 AS n").to_pydict() == {"n": [1]}
    for name in timeline.tables:
        timeline.table(name)


def test_lines_by_rank_and_time(timeline: Timeline) -> None:
    since, until = (datetime(2026, 11, 30, 16, 14, 41, ms * 1000, UTC) for ms in (600, 700))
    frame = timeline.lines(rank=6, since=since, until=until)
    assert frame.get_column("message").to_list() == ["step 7/40 loss 2.46830 94 ms"]
    assert timeline.lines(host="nowhere").is_empty()


def test_the_graph_leads_from_effects_to_the_root(timeline: Timeline) -> None:
    graph = timeline.graph()
    roots = [node for node, data in graph.nodes(data=True) if data["root"]]
    assert roots == ["rank:6"]
    assert "rank:6" in nx.descendants(graph, "rank:0")
    assert all({"rule", "strength", "lines"} <= set(data) for _, _, data in graph.edges(data=True))


def test_names_are_told(timeline: Timeline) -> None:
    assert ("What failed first?", "verdicts") in timeline.questions
    assert timeline.describe("lines").columns[0].name == "path"
    with pytest.raises(KeyError, match="nonsense: no such table"):
        timeline.table("nonsense")


def test_a_timeline_is_for_reading(timeline: Timeline) -> None:
    import duckdb

    with pytest.raises(duckdb.Error):
        timeline.sql("DELETE FROM meta")


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        diagnose(tmp_path / "none")
    with pytest.raises(TimelineError, match="nothing readable"):
        diagnose(tmp_path)
    with pytest.raises(TimelineError, match="no timeline here"):
        open_timeline(tmp_path / "none.duckdb")
    with pytest.raises(ValueError, match="needs the paths"):
        diagnose()


def test_a_timeline_by_its_path(database: Path, answer: Diagnosis) -> None:
    assert diagnose(database).initiating == answer.initiating
