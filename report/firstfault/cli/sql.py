"""SQL over a timeline, from one query or a prompt: read-only, without access to any other file, rows in four forms."""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstfault.cli.messages import CommandError, say
from firstfault.report.layout import cells, cut
from firstfault.report.words import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    Rows = Iterator[tuple[Any, ...]]

_MOST_ROWS = 1000
"""Rows of a table that is looked at; the other forms give all."""
_WIDEST = 80
"""Cells of one column of a table."""


@contextmanager
def open_locked(database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that reads this timeline and nothing else, and whose settings a query cannot change."""
    from firstfault.timeline import open_timeline

    with open_timeline(database) as con:
        con.execute("SET enable_external_access = false")
        con.execute("SET lock_configuration = true")
        yield con


def run_query(con: duckdb.DuckDBPyConnection, query: str, format_: str) -> None:
    """Run a query and print its rows."""
    import duckdb

    try:
        con.execute(query)
        names = [column[0] for column in con.description or ()]
        if names:
            TABLE_FORMATS[format_](names, _rows(con))
    except duckdb.Error as error:
        raise CommandError(f"SQL: {error}") from error


def ask(con: duckdb.DuckDBPyConnection, format_: str) -> None:
    """Queries from standard input: one each up to a semicolon at a prompt, or all of what is piped in."""
    if not sys.stdin.isatty():
        run_query(con, sys.stdin.read(), format_)
        return
    import readline  # noqa: F401 - gives the prompt history and editing

    say("SQL, ended by a semicolon; SHOW TABLES; DESCRIBE lines; Ctrl-D leaves")
    pending: list[str] = []
    while True:
        try:
            pending.append(input("...> " if pending else "sql> "))
        except EOFError:
            say("")
            return
        except KeyboardInterrupt:
            say("")
            pending.clear()
            continue
        query = "\n".join(pending).strip()
        if not query.endswith(";") and query:
            continue
        pending.clear()
        try:
            if query:
                run_query(con, query, format_)
        except CommandError as error:
            say(str(error))


def _rows(con: duckdb.DuckDBPyConnection) -> Rows:
    while batch := con.fetchmany(2000):
        yield from batch


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def _table(names: Sequence[str], rows: Rows) -> None:
    shown = list(islice(rows, _MOST_ROWS))
    more = next(rows, None) is not None
    texts = [[cut(clean(_as_text(value)), _WIDEST) for value in row] for row in shown]
    widths = [max(map(cells, column)) for column in zip(names, *texts, strict=True)]
    numeric = [all(row[at] is None or isinstance(row[at], int | float) for row in shown) for at in range(len(names))]
    room = shutil.get_terminal_size((200, 24)).columns if sys.stdout.isatty() else 1 << 30
    for texts_of_row in chain([names, ["-" * width for width in widths]], texts):
        parts = []
        for text, width, right in zip(texts_of_row, widths, numeric, strict=True):
            pad = " " * (width - cells(text))
            parts.append(pad + text if right else text + pad)
        sys.stdout.write(cut("  ".join(parts).rstrip(), room) + "\n")
    if more:
        say(f"the first {_MOST_ROWS} rows; --format csv or json gives all")


def _csv(names: Sequence[str], rows: Rows) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_as_text(value) for value in row] for row in rows)


def _markdown(names: Sequence[str], rows: Rows) -> None:
    from firstfault.report.markdown import cell

    def line(texts: Iterable[str]) -> str:
        return f"| {' | '.join(texts)} |\n"

    sys.stdout.write(line(cell(name) for name in names))
    sys.stdout.write(line("---" for _ in names))
    for row in rows:
        sys.stdout.write(line(cell(text) if (text := _as_text(value)) else "" for value in row))


def _json(names: Sequence[str], rows: Rows) -> None:
    sys.stdout.write("[")
    for number, row in enumerate(rows):
        one = dict(zip(names, map(_plain, row), strict=True))
        sys.stdout.write(("," if number else "") + "\n" + json.dumps(one, ensure_ascii=False, allow_nan=False))
    sys.stdout.write("\n]\n")


def _plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return _as_text(value)


TABLE_FORMATS: dict[str, Callable[[Sequence[str], Rows], None]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "markdown": _markdown,
}
