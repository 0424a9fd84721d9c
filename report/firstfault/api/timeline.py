"""A timeline in Python: answers as polars frames or Arrow tables, the causal graph as a networkx graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

import duckdb
import polars as pl

from firstfault.catalog import load_catalog
from firstfault.timeline import open_timeline as connect
from firstfault.timeline.frames import arrow_table
from firstfault.timeline.relations import Relation, questions, relation, relations

if TYPE_CHECKING:
    import networkx as nx
    import pyarrow as pa  # type: ignore[import-untyped]

    from firstfault.correlate.diagnosis import Diagnosis


def open_timeline(path: str | Path) -> Timeline:
    """Open a timeline that `firstfault ingest --db` or `diagnose --output` left, for reading.

    Raises `TimelineError` where it is missing, damaged, in use, or of another version.
    """
    return Timeline(connect(path), Path(path))


class Timeline:
    """An open timeline; close it, or use it in a `with` statement. Times of frames are in UTC, on the aligned clock."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self.connection = connection
        self.path = path

    def sql(self, query: str, parameters: Sequence[object] = ()) -> pl.DataFrame:
        """The answer to one query; `?` in it stands for the parameters in their order."""
        frame = pl.from_arrow(self.arrow(query, parameters))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def arrow(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """The answer to one query as an Arrow table."""
        return arrow_table(self.connection, query, parameters)

    def table(self, name: str) -> pl.DataFrame:
        """A whole table or view; `tables` lists them. Raises `KeyError` where there is no such one."""
        return self.sql(f"SELECT * FROM {self.describe(name).name}")

    def lines(
        self,
        *,
        rank: int | None = None,
        host: str | None = None,
        path: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> pl.DataFrame:
        """Lines of the job by rank, host, file and time (`since` <= time < `until`), in the order of time."""
        wanted = (
            ("rank = ?", rank),
            ("host = ?", host),
            ("path = ?", path),
            ("time >= ?", since),
            ("time < ?", until),
        )
        given = [(condition, value) for condition, value in wanted if value is not None]
        where = " AND ".join(condition for condition, _ in given) or "TRUE"
        return self.sql(f"SELECT * FROM lines WHERE {where} ORDER BY time, path, line", [value for _, value in given])

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of all tables and views."""
        return tuple(one.name for one in relations())

    @property
    def questions(self) -> tuple[tuple[str, str], ...]:
        """What is asked often, with the table or view that answers it."""
        return tuple((one.question or "", one.name) for one in questions())

    def describe(self, name: str) -> Relation:
        """What a table or view holds: its rows, columns, question and example."""
        found = relation(name)
        if found is None:
            raise KeyError(f"{name}: no such table or view; `tables` lists them")
        return found

    def diagnosis(self, catalogs: Sequence[str | Path] = ()) -> Diagnosis:
        """The diagnosis of this timeline; nothing is written."""
        from firstfault.correlate.engine import diagnose_open

        catalog = load_catalog(tuple(Path(one) for one in catalogs))
        with self._own_cursor() as cursor:
            return diagnose_open(cursor, catalog, keep=False)

    def graph(self, attempt: int | None = None) -> nx.DiGraph[str]:
        """The causal graph that the last diagnosis left in the file, of one attempt or of that of the root.

        An edge leads from an effect to its cause and has `rule`, `strength` and `lines`, pairs of path and line. A node
        has `kind`, `label` and `root`.
        """
        import networkx as nx

        number = self._attempt_of_root() if attempt is None else attempt
        graph: nx.DiGraph[str] = nx.DiGraph()
        nodes = "SELECT node, kind, label, root FROM nodes WHERE attempt = ? ORDER BY node"
        for node, kind, label, root in self.connection.execute(nodes, [number]).fetchall():
            graph.add_node(node, kind=kind, label=label, root=root)
        edges = """
            SELECT e.effect, e.cause, e.rule, e.strength, s.path, e.line
            FROM edges e LEFT JOIN sources s ON s.source_id = e.source_id
            WHERE e.attempt = ? ORDER BY ALL
        """
        for effect, cause, rule, strength, path, line in self.connection.execute(edges, [number]).fetchall():
            if not graph.has_edge(effect, cause):
                graph.add_edge(effect, cause, rule=rule, strength=strength, lines=[])
            if path is not None:
                graph.edges[effect, cause]["lines"].append((path, line))
        return graph

    def _attempt_of_root(self) -> int:
        row = self.connection.execute(
            "SELECT coalesce(min(attempt) FILTER (WHERE root), min(attempt), 0) FROM nodes"
        ).fetchone()
        return int(row[0]) if row else 0

    @contextmanager
    def _own_cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self.connection.cursor()
        try:
            cursor.execute("SET TimeZone = 'UTC'")
            yield cursor
        finally:
            cursor.close()

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Timeline {self.path}>"
