"""What a pipeline hands to `identify`, in small: signals, lines, paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from firstfault.ingest.identify import Identity, Owned, SourceSeen, identify, summarise


@dataclass(frozen=True)
class Said:
    """A signal row as the pipeline makes it."""

    source_id: int
    line: int
    text: str = ""
    event: str | None = "identity"
    fact: str | None = "start-line"
    captures: dict[str, str] = field(default_factory=dict)
    host: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    gpu: int | None = None
    stamp_ns: int | None = None
    stamp_kind: str | None = "full"
    owned: Owned | None = None


LINE: dict[str, Any] = {
    "source_id": pl.Int32, "line": pl.Int64, "host": pl.String, "rank": pl.Int32, "local_rank": pl.Int32,
    "pid": pl.Int64, "task": pl.Int32, "attempt": pl.Int32, "stamp_ns": pl.Int64,
}  # fmt: skip


def lines(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([{name: row.get(name) for name in LINE} for row in rows], schema=LINE)


def run(paths: list[str], said: list[Said], frame: pl.DataFrame | None = None, **more: Any) -> Identity:
    sources = [SourceSeen(n, path) for n, path in enumerate(paths)]
    frame = lines(*({"source_id": n, "line": 1} for n in range(len(paths)))) if frame is None else frame
    return identify(sources, said, summarise(frame), **more)


@pytest.fixture(scope="session")
def kit() -> SimpleNamespace:
    """Signals, lines and the decision about them."""
    return SimpleNamespace(Said=Said, lines=lines, run=run)
