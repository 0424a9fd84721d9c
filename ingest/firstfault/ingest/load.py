"""Puts the rows of a job into the empty tables of a timeline."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from importlib import metadata, resources

import duckdb
import polars as pl

from firstfault.catalog.matcher import Matcher
from firstfault.ingest import tables
from firstfault.ingest.assemble import Job
from firstfault.ingest.options import IngestOptions

_NEAR = """
CREATE TEMP TABLE near (
    source_id INTEGER, line BIGINT, near_kind VARCHAR, near_res_ns BIGINT, near_offset_s INTEGER, next_ns BIGINT
)
"""


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
    signals, progress = tables.signals(job), tables.progress(job)
    wanted = pl.concat([signals.select("source_id", "line"), progress.select("source_id", "line")]).unique()
    connection.execute(_NEAR)
    with _shown(
        connection, part_entries=tables.entries(job, matcher), part_records=tables.records(job), part_wanted=wanted
    ):
        for frame in tables.lines(job, keep_text):
            with _shown(connection, part_lines=frame):
                connection.execute(_statement("line_rows"))
                connection.execute(_statement("near_late"))
                connection.execute(_statement("near"))
    with _shown(connection, part_signals=signals, part_progress=progress):
        connection.execute(_statement("signal_rows"))
        connection.execute(_statement("progress"))
    connection.execute("DROP TABLE near")
    connection.execute(_statement("echoes"))
    connection.execute(_statement("echo_problems"))
    connection.execute("DELETE FROM signal_rows WHERE signal_id IN (SELECT signal_id FROM echoes)")
    connection.execute("DROP TABLE echoes")


def keeps_text(job: Job, options: IngestOptions) -> bool:
    """Whether the text of every line goes into the timeline."""
    if options.keep_text is not None:
        return options.keep_text
    return sum(one.state.bytes for one in job.sources) <= options.bounds.text


def meta(job: Job, roots: list[str], matcher: Matcher) -> dict[str, str]:
    """Facts about the timeline itself."""
    try:
        version = metadata.version("firstfault")
    except metadata.PackageNotFoundError:
        version = "unknown"
    patterns = "\0".join(f"{pattern.id}/{pattern.pattern_id}/{pattern.regex}" for pattern in matcher.patterns)
    world = job.identity.world_size
    return {
        "firstfault_version": version,
        "catalog_version": hashlib.sha256(patterns.encode()).hexdigest()[:16],
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
