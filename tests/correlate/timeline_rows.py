"""What a hand-written timeline takes from the catalog, and how its rows get into the tables."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]

Row = dict[str, Any]

ERRORS = {
    "python-exception": ("python-traceback", "exception", "ambiguous"),
    "cuda-oom": ("cuda-oom", "exception", "initiating"),
    "loss-nan-or-diverged": ("nan-generic", "numeric", "ambiguous"),
    "data-missing": ("data-file-missing", "exception", "initiating"),
    "disk-full": ("disk-full", "exception", "initiating"),
    "cuda-illegal-memory-access": ("cuda-illegal-address", "cuda-error", "ambiguous"),
}
"""Entry, event and role of some classes, as the catalog has them."""

XIDS = {
    13: ("cuda-illegal-memory-access", "ambiguous"),
    48: ("gpu-ecc-uncorrectable", "initiating"),
    79: ("gpu-fell-off-bus", "initiating"),
}
"""Class and role of some codes, likewise."""


def insert(con: duckdb.DuckDBPyConnection, table: str, rows: list[Row]) -> None:
    """Insert rows by the names of their columns; columns that no row names stay NULL."""
    if not rows:
        return
    names = sorted({name for row in rows for name in row})
    columns = {
        name: pa.array(
            [row.get(name) for row in rows], pa.map_(pa.string(), pa.string()) if name == "captures" else None
        )
        for name in names
    }
    made = pa.table(columns)
    con.register("made", made)
    con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM made")
    con.unregister("made")
