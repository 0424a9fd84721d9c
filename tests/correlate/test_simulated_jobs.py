"""One simulated job of each kind, written as text and read back: nobody innocent is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firstfault.correlate.engine import diagnose
from firstfault.ingest import ingest

from .simulator.case import PRESETS, make_case
from .simulator.faults import FAULTS
from .simulator.judge import outcome


@pytest.fixture(scope="module", autouse=True)
def _one_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize("knobs", ["normal", "poor"])
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_nobody_innocent_is_named(fault: str, knobs: str, tmp_path: Path) -> None:
    case = make_case(71, fault, PRESETS[knobs], tmp_path / "logs")
    ingest([tmp_path / "logs"], tmp_path / "t.duckdb")
    found = diagnose(tmp_path / "t.duckdb")
    assert outcome(case, found) != "false", f"{found.failure.cls} {found.initiating.ranks}, truth {case.truth}"
