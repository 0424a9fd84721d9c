"""Puts the rows of a job into the empty tables of a timeline."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata, resources

import duckdb
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from firstfault.catalog.matcher import Matcher
from firstfault.ingest import stages, tables
from firstfault.ingest.assemble import Job
from firstfault.ingest.line_table import LINE_ROWS, LineTable
from firstfault.ingest.options import IngestOptions
from firstfault.ingest.stages import stage

_OWN_SIGNALS = """
INSERT INTO signal_rows BY NAME
SELECT * FROM found_signals ANTI JOIN echoes USING (signal_id) ORDER BY signal_id
"""


@stage("timeline")
def fill(connection: duckdb.DuckDBPyConnection, job: Job, matcher: Matcher, options: IngestOptions) -> None:
    """Insert all rows of a job."""
    keep_text = keeps_text(job, options)
    for table, frame in (
        ("sources", tables.sources(job, options, keep_text)),
        ("identities", tables.identities(job)),
        ("problems", tables.problems(job)),
    ):
        with _shown(connection, part_rows=frame):
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM part_rows")
    signals, progress = tables.signals(job, matcher), tables.progress(job)
    wanted = signals.select("source_id", "line").unique()
    lines = LineTable(job, tables.entries(job, matcher), tables.records(job), tables.joined(job), wanted, keep_text)
    raised: list[BaseException] = []
    connection.register("part_lines", _stream(lines, raised))
    connection.execute("SET threads = 1")
    try:
        connection.execute("INSERT INTO line_rows BY NAME SELECT * FROM part_lines")
    except duckdb.Error as error:
        if raised:  # DuckDB would hand on its traceback as a text
            raise raised[0] from error
        raise
    connection.unregister("part_lines")
    with _shown(connection, part_signals=signals, part_progress=progress, part_places=lines.places):
        connection.execute(_statement("signal_rows"))
        connection.execute(_statement("progress"))
    connection.execute(_statement("echoes"))
    connection.execute(_statement("echo_problems"))
    connection.execute(_OWN_SIGNALS)
    connection.execute("DROP TABLE echoes")
    connection.execute("DROP TABLE found_signals")


def _stream(lines: LineTable, raised: list[BaseException]) -> pa.RecordBatchReader:
    """All lines as one stream, of which only one part is in memory at a time; `raised` gets what went wrong."""
    schema = pl.DataFrame(schema=LINE_ROWS).to_arrow().schema

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for frame in _ahead(lines.frames()):
                yield from frame.to_arrow().to_batches()
        except BaseException as error:
            raised.append(error)
            raise

    return pa.RecordBatchReader.from_batches(schema, batches())


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
