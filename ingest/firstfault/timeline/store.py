"""Opening a timeline, and the statements that make an empty one.

A timeline that an older firstfault wrote has fewer tables and views. Opened to be written it gets them; opened to be
read it gets them for the time of the connection, so that the same questions can be asked.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]

from firstfault.timeline.place import leftovers
from firstfault.timeline.relations import Relation, digest, guide, relations

SCHEMA_VERSION = "1"
_HOLDER = re.compile(r"PID ([0-9]{1,9})")


class TimelineError(Exception):
    """A timeline that cannot be used: missing, damaged, in use, or written with another schema."""


def create_schema(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the empty tables and the views in the current database of a connection."""
    for one in relations():
        connection.execute(one.statement)
    _fill_guide(connection)


def open_timeline(path: str | Path, *, writable: bool = False) -> duckdb.DuckDBPyConnection:
    """Connect to a timeline, read-only unless a later stage adds its findings to it. Times are shown in UTC.

    Raises `TimelineError` with what is wrong and what to do.
    """
    file = Path(path)
    if not file.is_file():
        cut = "the run that was to make it was cut off; " if leftovers(file) else ""
        raise TimelineError(f"{file}: no timeline here; {cut}`firstfault ingest PATH... --db {file}` makes one")
    connection = None
    try:
        connection = duckdb.connect(str(file), read_only=not writable)
        facts = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        _check_version(file, facts.get("schema_version"))
        connection.execute("SET TimeZone = 'UTC'")
        if facts.get("schema_digest") != digest():
            _complete(connection, writable)
    except duckdb.Error as error:
        if connection is not None:
            connection.close()
        raise TimelineError(f"{file}: {_trouble(file, error)}") from error
    except TimelineError:
        if connection is not None:
            connection.close()
        raise
    return connection


def _check_version(file: Path, version: str | None) -> None:
    if version == SCHEMA_VERSION:
        return
    if version is not None and version.isdigit() and int(version) > int(SCHEMA_VERSION):
        raise TimelineError(
            f"{file}: a newer firstfault wrote it (schema {version}; this one reads {SCHEMA_VERSION}); update this one"
        )
    raise TimelineError(f"{file}: schema {version or 'unknown'}, this version reads {SCHEMA_VERSION}; ingest again")


def _trouble(file: Path, error: duckdb.Error) -> str:
    """What keeps a file from being opened, in words."""
    said = str(error)
    first = said.partition("\n")[0]
    if "lock on file" in said:
        holder = _HOLDER.search(said)
        by = f" (process {holder[1]})" if holder else ""
        return f"another process{by} writes to this timeline; wait until it has ended"
    if "configuration" in said and "same database" in said:
        return "this process has the timeline open for writing; close that connection first"
    if "newer version of DuckDB" in said or "can only read version" in said:
        return f"a newer DuckDB wrote it; update duckdb ({first})"
    if "Permission denied" in said:
        return "no permission to read it"
    return f"not a timeline, or a damaged one; `firstfault ingest PATH... --db {file}` makes a new one ({first})"


def _complete(connection: duckdb.DuckDBPyConnection, writable: bool) -> None:
    """Add what a timeline of an older firstfault lacks; nothing in the file changes where it is only read."""
    there = {
        row[0]
        for row in connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_catalog = current_database()"
        ).fetchall()
    }
    for one in relations():
        if one.view or one.name not in there or one.name == "guide":
            connection.execute(_adapted(one, writable))
    _fill_guide(connection)
    if writable:
        connection.execute("DELETE FROM meta WHERE key = 'schema_digest'")
        connection.execute("INSERT INTO meta VALUES ('schema_digest', ?)", [digest()])


def _adapted(one: Relation, writable: bool) -> str:
    """The statement that makes a table or view anew: in the file, or for this connection only."""
    kind = "VIEW" if one.view else "TABLE"
    place = "" if writable else "TEMP "
    head = one.statement.replace(f"CREATE {kind} {one.name}", f"CREATE OR REPLACE {place}{kind} {one.name}", 1)
    return head if writable else head.replace(" USING COMPRESSION zstd", "")


def _fill_guide(connection: duckdb.DuckDBPyConnection) -> None:
    names = ("position", "relation", "field", "what", "question", "example")
    rows = guide()
    columns = {name: pa.array([row[at] for row in rows]) for at, name in enumerate(names)}
    connection.register("guide_rows", pa.table(columns))
    connection.execute("INSERT INTO guide SELECT * FROM guide_rows")
    connection.unregister("guide_rows")
