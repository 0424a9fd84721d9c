"""The tables and views of a timeline as Parquet files, one each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from firstfault.timeline.relations import relations

LEFT_OUT = frozenset({"line_rows", "signal_rows"})
"""Tables whose view holds all of their columns that others need."""
DEFAULT = (*(one.name for one in relations() if not one.view and one.name not in LEFT_OUT), "lines", "signals", "steps")
"""What is written where nothing is chosen; the other views can be asked again from these."""


def write_parquet(connection: duckdb.DuckDBPyConnection, folder: Path, names: Sequence[str] = ()) -> Iterator[Path]:
    """Write each of `names` (by default `DEFAULT`) to `folder/NAME.parquet`; yields each file when it is there.

    A name has to be one of the timeline's tables or views.
    """
    known = {one.name for one in relations()}
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or DEFAULT:
        if name not in known:
            raise ValueError(f"{name}: no such table or view")
        file = folder / f"{name}.parquet"
        beside = folder / f".{name}.{os.getpid()}.tmp"
        try:
            target = str(beside).replace("'", "''")
            connection.execute(f"COPY (SELECT * FROM {name}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
            os.replace(beside, file)
        finally:
            beside.unlink(missing_ok=True)
        yield file
