"""Writing a timeline: all tables into one new file, which replaces the old one in one rename.

A reader never meets a half-written file, and a killed writer leaves the last good one in place.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import duckdb

from firstfault.timeline.relations import digest
from firstfault.timeline.store import SCHEMA_VERSION, create_schema

STORAGE_VERSION = "v1.2.0"

Fill = Callable[[duckdb.DuckDBPyConnection], None]


def write_timeline(db: Path, fill: Fill, meta: Mapping[str, str]) -> None:
    """Make the timeline `db`: the schema, then whatever `fill` inserts into its tables, then `meta`."""
    db = Path(db)
    db.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(db)
    with _temporary(db) as temporary:
        connection = duckdb.connect()
        try:
            connection.execute(f"ATTACH '{_quoted(temporary)}' AS timeline (STORAGE_VERSION '{STORAGE_VERSION}')")
            connection.execute("USE timeline")
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET memory_limit = '256MB'")
            connection.execute(f"SET temp_directory = '{_quoted(temporary)}.spill'")
            create_schema(connection)
            fill(connection)
            own = {"schema_version": SCHEMA_VERSION, "schema_digest": digest(), "complete": "true"}
            connection.executemany("INSERT INTO meta VALUES (?, ?)", sorted({**meta, **own}.items()))
            connection.execute("USE memory")
            connection.execute("DETACH timeline")
        finally:
            connection.close()
        os.replace(temporary, db)


@contextlib.contextmanager
def _temporary(db: Path) -> Iterator[Path]:
    path = db.with_name(f".{db.name}.{os.getpid()}.tmp")
    path.unlink(missing_ok=True)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        path.with_name(path.name + ".wal").unlink(missing_ok=True)


def _remove_leftovers(db: Path) -> None:
    """Delete the temporary files of writers that were killed."""
    pattern = re.compile(re.escape(f".{db.name}.") + r"([0-9]+)\.tmp(?:\.wal)?")
    for path in sorted(db.parent.iterdir()):
        found = pattern.fullmatch(path.name)
        if found and not _alive(int(found[1])):
            path.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
