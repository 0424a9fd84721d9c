"""Puts the rows of a job into the empty tables of a timeline."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from firstfault.catalog.matcher import Matcher
from firstfault.ingest import stages, tables
from firstfault.ingest.assemble import Job
from firstfault.ingest.line_table import LINE_ROWS, TOLD, Known, LineTable
from firstfault.ingest.options import IngestOptions
from firstfault.ingest.stages import stage

_MANY = 10_000
_AT_ONCE = 8_000_000
_AS_IT_IS = pl.CompatLevel.newest()
"""Texts go to DuckDB as polars holds them, without a copy."""
_OWN_SIGNALS = """
INSERT INTO signal_rows BY NAME
SELECT * FROM found_signals ANTI JOIN echoes USING (signal_id) ORDER BY signal_id
"""


@stage("timeline")
def fill(
    connection: duckdb.DuckDBPyConnection, job: Job, matcher: Matcher, options: IngestOptions, spill: Path | None
) -> None:
    """Insert all rows of a job; `spill` is a folder for what need not be in memory."""
    keep_text = keeps_text(job, options)
    for table, frame in (
        ("sources", tables.sources(job, options, keep_text)),
        ("identities", tables.identities(job)),
        ("problems", tables.problems(job)),
    ):
        with _shown(connection, part_rows=frame):
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM part_rows")
    signals, dumped = tables.signals(job, matcher), tables.dumped_progress(job)
    wanted = pl.concat([signals.select("source_id", "line"), dumped.select("source_id", "line")]).unique()
    known = Known(tables.entries(job, matcher), tables.records(job), tables.joined(job), dumped, wanted)
    held = _held(signals, spill)
    del signals
    job.forget_signals()
    lines = LineTable(job, known, tables.Folded(matcher), keep_text, spill)
    connection.execute("SET threads = 1")
    for frames in _portions(_ahead(lines.frames())):
        with _streamed(connection, LINE_ROWS, part_lines=frames):
            connection.execute("INSERT INTO line_rows BY NAME SELECT * FROM part_lines")
        connection.execute("CHECKPOINT")
    with _shown(connection, part_signals=held(), part_places=lines.places):
        connection.execute(_statement("signal_rows"))
    with _streamed(connection, TOLD, part_progress=lines.progress()):
        connection.execute(_statement("progress"))
    connection.execute(_statement("echoes"))
    connection.execute(_statement("echo_problems"))
    connection.execute(_OWN_SIGNALS)
    connection.execute("DROP TABLE echoes")
    connection.execute("DROP TABLE found_signals")


def _held(frame: pl.DataFrame, spill: Path | None) -> Callable[[], pl.DataFrame]:
    """A way to a frame that need not stay in memory meanwhile."""
    if spill is None or len(frame) < _MANY:
        return lambda: frame
    path = spill / "signals.parquet"
    frame.write_parquet(path, compression="lz4", statistics=False)
    return lambda: pl.read_parquet(path)


def _portions(frames: Iterator[pl.DataFrame]) -> Iterator[Iterator[pl.DataFrame]]:
    """The same frames in groups: of rows that are inserted but not yet written down, DuckDB keeps a part in memory."""

    def some(first: pl.DataFrame) -> Iterator[pl.DataFrame]:
        rows = len(first)
        yield first
        while rows < _AT_ONCE and (frame := next(frames, None)) is not None:
            rows += len(frame)
            yield frame

    while (first := next(frames, None)) is not None:
        yield some(first)


@contextlib.contextmanager
def _streamed(
    connection: duckdb.DuckDBPyConnection, schema: dict[str, Any], **streams: Iterator[pl.DataFrame]
) -> Iterator[None]:
    """Rows as tables of a connection that can be read once, of which one frame is in memory at a time."""
    columns = pl.DataFrame(schema=schema).to_arrow(compat_level=_AS_IT_IS).schema
    raised: list[BaseException] = []

    def batches(frames: Iterator[pl.DataFrame]) -> Iterator[pa.RecordBatch]:
        try:
            for frame in frames:
                yield from frame.to_arrow(compat_level=_AS_IT_IS).to_batches()
        except BaseException as error:
            raised.append(error)
            raise

    for name, frames in streams.items():
        connection.register(name, pa.RecordBatchReader.from_batches(columns, batches(frames)))
    try:
        yield
    except duckdb.Error as error:
        if raised:  # DuckDB would hand on its traceback as a text
            raise raised[0] from error
        raise
    for name in streams:
        connection.unregister(name)


def _ahead(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same frames, the next one made while one is written."""
    if stages.ON:  # what one thread took cannot be told from what the other did
        yield from frames
        return
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, frames, None)
        while (frame := waiting.result()) is not None:
            waiting = pool.submit(next, frames, None)
            yield frame


def keeps_text(job: Job, options: IngestOptions) -> bool:
    """Whether the text of every line goes into the timeline."""
    if options.keep_text is not None:
        return options.keep_text
    return sum(one.state.bytes for one in job.sources) <= options.bounds.text


def catalog_version(matcher: Matcher) -> str:
    """What stands for the patterns of a catalog."""
    patterns = "\0".join(f"{pattern.id}/{pattern.pattern_id}/{pattern.regex}" for pattern in matcher.patterns)
    return hashlib.sha256(patterns.encode()).hexdigest()[:16]


def meta(job: Job, roots: list[str], matcher: Matcher) -> dict[str, str]:
    """Facts about the timeline itself."""
    try:
        version = metadata.version("firstfault")
    except metadata.PackageNotFoundError:
        version = "unknown"
    world = job.identity.world_size
    return {
        "firstfault_version": version,
        "catalog_version": catalog_version(matcher),
        "roots": "\n".join(roots),
        "world_size": "" if world is None else str(world),
    }


def _statement(name: str) -> str:
    return resources.files(__package__).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


@contextlib.contextmanager
def _shown(connection: duckdb.DuckDBPyConnection, **frames: pl.DataFrame) -> Iterator[None]:
    """Frames as tables of a connection for a while."""
    for name, frame in frames.items():
        connection.register(name, frame.to_arrow())
    yield
    for name in frames:
        connection.unregister(name)
