"""Questions from outside to one timeline: only SELECT, nothing but this file, bounded in time and memory.

    with open_gate("timeline.duckdb", seconds=10) as gate:
        answer = gate.ask("SELECT rank, message FROM last_lines")

Locks behind each other, each enough for most of what a query could try: only statements that select are run, with table
functions of a short list; the file is opened read-only; DuckDB may reach no other file, no network and no extension,
and spills nothing; its settings are locked. A query runs in a thread of its own, so that a time limit or Ctrl-C stops
it.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import duckdb

from firstfault.timeline.frames import arrow_batches
from firstfault.timeline.store import open_timeline

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

_LOCKS = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET allow_persistent_secrets = false",
    "SET temp_directory = ''",
    "SET memory_limit = '{memory}'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
MEMORY = "4GB"
SECONDS = 60.0
_GRACE = 5.0
"""Seconds that a query has to notice that it was told to stop."""
_EXPLAIN = re.compile(r"(?is)\s*EXPLAIN(?:\s+ANALYZE)?(?:\s*\([^)]{0,200}\))?\s")
_BATCH = 2000
_LOOK = 0.1

T = TypeVar("T")


class QueryError(Exception):
    """A query that cannot be answered: refused, wrong, or stopped."""


class Stuck(QueryError):
    """A query that was told to stop and has not; its thread still runs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Names and types of the columns, and the rows, which are fetched as they are read."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def open_gate(path: str | Path, *, seconds: float | None = SECONDS, memory: str = MEMORY) -> Iterator[Gate]:
    """A gate to the timeline `path`. `seconds` bounds each query (None: no bound), `memory` what it may use ('2GB')."""
    if not re.fullmatch(r"[0-9]{1,6} ?[KMG]i?B", memory):
        raise QueryError(f"{memory!r}: write an amount of memory as '2GB'")
    connection = open_timeline(path)
    gate = Gate(connection, seconds)
    try:
        for lock in _LOCKS:
            connection.execute(lock.format(memory=memory))
        yield gate
    finally:
        gate.close()


class Gate:
    """A locked connection; see the module."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, seconds: float | None) -> None:
        self._connection = connection
        self._seconds = seconds
        self._stuck = False

    def ask(self, query: str) -> Answer:
        """The answer to one statement. Raises `QueryError`."""
        return self._ask(self.statements(query, most=1)[0])

    def ask_all(self, query: str) -> Iterator[Answer]:
        """The answers to statements separated by semicolons; each is run when its turn comes."""
        for statement in self.statements(query):
            yield self._ask(statement)

    def batches(self, query: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The answer to one statement as Arrow batches, with their schema. Raises `QueryError`."""
        statement = self.statements(query, most=1)[0]
        deadline = self._deadline()
        reader = self._within(lambda: arrow_batches(self._connection, statement), deadline)
        return reader.schema, self._each(lambda: next(reader, None), deadline)

    def statements(self, query: str, most: int | None = None) -> list[duckdb.Statement]:
        """The statements of a text, all of which select; refuses everything else with what to do instead."""
        try:
            found = self._connection.extract_statements(query)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
        if not found:
            raise QueryError("no query; try: SELECT * FROM verdicts")
        if most is not None and len(found) > most:
            raise QueryError(f"{len(found)} queries where one is asked for; give one at a time")
        for statement in found:
            self._check(statement)
        return found

    def _check(self, statement: duckdb.Statement) -> None:
        kind = _kind(statement)
        if kind == "SELECT":
            self._check_functions(statement.query)
        elif kind == "EXPLAIN":
            head = _EXPLAIN.match(statement.query)
            inner = self._connection.extract_statements(statement.query[head.end() :]) if head else []
            if len(inner) != 1 or _kind(inner[0]) != "SELECT":
                raise QueryError("EXPLAIN is answered for SELECT only")
            self._check_functions(inner[0].query)
        else:
            raise QueryError(f"{kind}: {_INSTEAD.get(kind, 'this is read-only: ask with SELECT')}")

    def _check_functions(self, query: str) -> None:
        """Refuse table functions that are not known to be harmless, in the tree that DuckDB itself parsed."""
        [(text,)] = self._connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
        tree = json.loads(text)
        if tree.get("error", True):
            raise QueryError(f"only SELECT is answered here ({tree.get('error_message', 'not understood')})")
        todo: list[Any] = [tree]
        while todo:
            one = todo.pop()
            if isinstance(one, dict):
                if one.get("type") == "TABLE_FUNCTION":
                    name = str((one.get("function") or {}).get("function_name", "")).lower()
                    if name not in _TABLE_FUNCTIONS:
                        raise QueryError(f"{name}(): this table function is not for queries to a timeline")
                todo.extend(one.values())
            elif isinstance(one, list):
                todo.extend(one)

    def _ask(self, statement: duckdb.Statement) -> Answer:
        deadline = self._deadline()
        self._within(lambda: self._connection.execute(statement), deadline)
        described = self._connection.description or []
        rows = self._each(lambda: self._connection.fetchmany(_BATCH), deadline)
        return Answer(
            tuple(str(column[0]) for column in described),
            tuple(str(column[1]) for column in described),
            (row for batch in rows for row in batch),
        )

    def _deadline(self) -> float | None:
        return None if self._seconds is None else time.monotonic() + self._seconds

    def _each(self, fetch: Callable[[], T | None], deadline: float | None) -> Iterator[T]:
        """Batches until none is left; the time that the reader takes between two does not count."""
        while True:
            begun = time.monotonic()
            batch = self._within(fetch, deadline)
            if not batch:
                return
            yield batch
            if deadline is not None:
                deadline += time.monotonic() - begun

    def _within(self, work: Callable[[], T], deadline: float | None) -> T:
        """Do some work in a thread; stop it at the deadline or when this thread is interrupted."""
        if self._stuck:
            raise Stuck("an earlier query still runs; open the timeline again")
        task = _Task(work)
        try:
            if task.wait(None if deadline is None else max(0.0, deadline - time.monotonic())):
                return task.result()
        except KeyboardInterrupt:
            self._stop(task)
            raise
        except duckdb.Error as error:
            raise QueryError(_in_words(error)) from error
        self._stop(task)
        raise QueryError(f"stopped after {self._seconds:g} s; ask for less, or give more time")

    def _stop(self, task: _Task[Any]) -> None:
        self._connection.interrupt()
        if not task.wait(_GRACE):
            self._stuck = True
            raise Stuck(f"the query did not stop within {_GRACE:g} s of being told to")

    def interrupt(self) -> None:
        """Stop the query that another thread waits for; there it raises `QueryError`."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the connection; one that still works on a query is left alone."""
        if not self._stuck:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Task(Generic[T]):
    """One call in a thread that does not keep the process alive."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._found: list[T] = []
        self._error: BaseException | None = None
        self._done = threading.Event()
        threading.Thread(target=self._run, name="firstfault-query", daemon=True).start()

    def _run(self) -> None:
        try:
            self._found.append(self._work())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error
        finally:
            self._done.set()

    def wait(self, seconds: float | None) -> bool:
        """Whether it ended within that time. Polars restarts waits that Ctrl-C interrupts, so none lasts long."""
        end = None if seconds is None else time.monotonic() + seconds
        while not self._done.wait(_LOOK if end is None else max(0.0, min(_LOOK, end - time.monotonic()))):
            if end is not None and time.monotonic() >= end:
                return False
        return True

    def result(self) -> T:
        """What it returned, or raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._found[0]


def _in_words(error: duckdb.Error) -> str:
    said = str(error)
    if "Corrupt database" in said or "checksum" in said or isinstance(error, duckdb.FatalException):
        return f"the timeline is damaged; make it again with `firstfault ingest` ({said.partition(chr(10))[0]})"
    return said


def _kind(statement: duckdb.Statement) -> str:
    try:
        return str(statement.type.name).removesuffix("_STATEMENT")
    except ValueError:  # the Python client has no name for it
        return "this statement"


_TABLE_FUNCTIONS = frozenset(
    (
        "range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "summary", "histogram",
        "histogram_values", "duckdb_columns", "duckdb_tables", "duckdb_views", "duckdb_functions", "duckdb_types",
        "duckdb_keywords", "duckdb_settings", "pg_timezone_names", "pragma_version",
    )
)  # fmt: skip
"""Table functions that read no file, reach nothing outside and change nothing."""

_INSTEAD = {
    "PRAGMA": "use DESCRIBE lines, SHOW TABLES, or SELECT from duckdb_columns()",
    "CALL": "ask with SELECT",
    "SET": "settings are fixed here",
    "VARIABLE_SET": "settings are fixed here",
    "ATTACH": "one timeline at a time; `firstfault compare` looks at several jobs",
    "DETACH": "one timeline at a time",
    "COPY": "files are not written from a query: use --format csv or parquet with --output FILE",
    "EXPORT": "files are not written from a query: `firstfault export` writes all tables",
    "LOAD": "no extension is loaded from a query",
    "MULTI": "give PIVOT its values: PIVOT lines ON level IN ('WARN', 'ERROR') USING count(*) GROUP BY rank",
}
