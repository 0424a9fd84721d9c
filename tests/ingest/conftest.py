"""A small job on disk, read into a timeline: what most tests of the pipeline begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from firstfault.ingest import IngestOptions, ingest
from firstfault.timeline import open_timeline

Content = str | bytes
Rows = list[tuple[Any, ...]]


class Read:
    """A timeline that was just made, and short ways to ask it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, logs: Path, db: Path) -> None:
        self.connection, self.logs, self.db = connection, logs, db

    def rows(self, query: str) -> Rows:
        return self.connection.execute(query).fetchall()

    def column(self, query: str) -> list[Any]:
        return [row[0] for row in self.rows(query)]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Mapping[str, Content]], Path]:
    """Write files below a folder of logs."""

    def made(files: Mapping[str, Content]) -> Path:
        for name, content in files.items():
            path = tmp_path / "logs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (tmp_path / "logs").mkdir(exist_ok=True)
        return tmp_path / "logs"

    return made


@pytest.fixture
def read(tmp_path: Path, write: Callable[[Mapping[str, Content]], Path]) -> Iterator[Callable[..., Read]]:
    """Write files, read them into a timeline, and open it."""
    opened: list[duckdb.DuckDBPyConnection] = []

    def made(
        files: Mapping[str, Content] | None = None, *paths: str | Path, options: IngestOptions | None = None
    ) -> Read:
        logs = write(files or {})
        db = tmp_path / f"out-{len(opened)}" / "timeline.duckdb"
        ingest(paths or [logs], db, options)
        opened.append(open_timeline(db))
        return Read(opened[-1], logs, db)

    yield made
    for connection in opened:
        connection.close()
