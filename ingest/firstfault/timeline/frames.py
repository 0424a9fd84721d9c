"""Answers of a connection as Arrow, by whichever names the installed DuckDB has for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa  # type: ignore[import-untyped]

_NAMES = ("to_arrow_reader", "fetch_arrow_reader", "fetch_record_batch")


def arrow_batches(
    connection: duckdb.DuckDBPyConnection,
    query: str | duckdb.Statement,
    parameters: Sequence[object] = (),
    rows: int = 100_000,
) -> pa.RecordBatchReader:
    """The answer to one query as a stream of Arrow batches of at most `rows` rows."""
    relation = connection.sql(query, params=list(parameters)) if parameters else connection.sql(query)
    name = next(one for one in _NAMES if hasattr(relation, one))
    return getattr(relation, name)(rows)


def arrow_table(
    connection: duckdb.DuckDBPyConnection, query: str | duckdb.Statement, parameters: Sequence[object] = ()
) -> pa.Table:
    """The answer to one query as one Arrow table."""
    return arrow_batches(connection, query, parameters).read_all()
