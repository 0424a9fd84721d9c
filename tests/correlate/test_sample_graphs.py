"""The causal graph of every attempt of every sample job is sound, and what it cites exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firstfault.correlate.engine import correlate
from firstfault.correlate.graph import build
from firstfault.correlate.graph_check import validate
from firstfault.ingest import ingest
from firstfault.timeline import open_timeline

SAMPLES = Path(__file__).parents[2] / "sample_logs"
JOBS = sorted(path.parent for path in SAMPLES.glob("*/case.toml"))


@pytest.fixture(scope="module", autouse=True)
def _one_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_graphs_are_sound(job: Path, tmp_path: Path) -> None:
    database = tmp_path / "t.duckdb"
    ingest([job / "logs"], database)
    con = open_timeline(database)
    try:
        found = correlate(con)
        lengths = dict(con.execute("SELECT path, lines FROM sources").fetchall())
    finally:
        con.close()
    for result in found.attempts:
        for root in {None, result.ranked.best}:
            graph = build(result.view, root)
            assert validate(graph) == []
            for _, _, data in graph.edges(data=True):
                for path, line in data["edge"].lines:
                    assert 1 <= line <= max(1, lengths[path])
        chances = result.ranked.probabilities
        assert sum(chances) <= 1.0 + 1e-9
        assert list(chances) == sorted(chances, reverse=True)
