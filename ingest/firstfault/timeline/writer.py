"""Writing a timeline: all tables into one new file, which replaces the old one in one rename.

A reader never meets a half-written file, and a killed writer leaves the last good one in place, as does a power cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb

from firstfault.timeline.place import put, workplace
from firstfault.timeline.relations import digest
from firstfault.timeline.store import SCHEMA_VERSION, create_schema

STORAGE_VERSION = "v1.2.0"

Fill = Callable[[duckdb.DuckDBPyConnection], None]


def memory_for(lines: int) -> str:
    """What DuckDB may hold of a timeline of that many lines: it keeps a little of each block of rows until the end."""
    return f"{192 + max(lines // 1_000_000 - 25, 0)}MB"


def write_timeline(db: Path, fill: Fill, meta: Mapping[str, str], lines: int = 0) -> None:
    """Make the timeline `db`: the schema, then whatever `fill` inserts into its tables, then `meta`."""
    db = Path(db)
    with workplace(db) as folder:
        temporary = folder / "timeline.duckdb"
        connection = duckdb.connect()
        try:
            connection.execute(f"ATTACH '{_quoted(temporary)}' AS timeline (STORAGE_VERSION '{STORAGE_VERSION}')")
            connection.execute("USE timeline")
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"SET memory_limit = '{memory_for(lines)}'")
            connection.execute(f"SET temp_directory = '{_quoted(temporary)}.spill'")
            create_schema(connection)
            fill(connection)
            own = {"schema_version": SCHEMA_VERSION, "schema_digest": digest(), "complete": "true"}
            connection.executemany("INSERT INTO meta VALUES (?, ?)", sorted({**meta, **own}.items()))
            connection.execute("USE memory")
            connection.execute("DETACH timeline")
        finally:
            connection.close()
        # what a killed process meant to add to the old timeline must not be added to the new one
        db.with_name(db.name + ".wal").unlink(missing_ok=True)
        put(temporary, db)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
