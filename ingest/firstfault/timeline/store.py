"""Opening a timeline, and the statements that make an empty one."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import duckdb

SCHEMA_VERSION = "1"


class TimelineError(Exception):
    """A timeline that cannot be used: missing, damaged, or written with another schema."""


@cache
def statements(folder: str) -> tuple[str, ...]:
    """The statements of one folder of `.sql` files, in the order of their names."""
    files = sorted(resources.files(__package__).joinpath(folder).iterdir(), key=lambda file: file.name)
    return tuple(file.read_text(encoding="utf-8") for file in files if file.name.endswith(".sql"))


def create_schema(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the empty tables and the views in the current database of a connection."""
    for folder in ("schema", "views"):
        for statement in statements(folder):
            connection.execute(statement)


def open_timeline(path: str | Path, *, writable: bool = False) -> duckdb.DuckDBPyConnection:
    """Connect to a timeline, read-only unless a later stage adds its findings to it. Times are shown in UTC."""
    file = Path(path)
    if not file.is_file():
        raise TimelineError(f"{file}: no timeline here; `firstfault ingest PATH... --db {file}` makes one")
    try:
        connection = duckdb.connect(str(file), read_only=not writable)
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    except duckdb.Error as error:
        raise TimelineError(f"{file}: not a timeline, or a damaged one ({error})") from error
    if row is None or row[0] != SCHEMA_VERSION:
        connection.close()
        raise TimelineError(
            f"{file}: schema {row[0] if row else 'unknown'}, this version reads {SCHEMA_VERSION}; ingest again"
        )
    connection.execute("SET TimeZone = 'UTC'")
    return connection
