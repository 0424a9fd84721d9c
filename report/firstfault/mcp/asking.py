"""Questions to a job's timeline: SQL through the gate, lines around a place, what one rank or host showed."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb

from firstfault.correlate.secrets import LineMasker
from firstfault.mcp.roots import Refused
from firstfault.mcp.untrusted import ANSWER, prose, shown, value
from firstfault.timeline import TimelineError, open_timeline
from firstfault.timeline.gate import Gate, QueryError, open_gate
from firstfault.timeline.relations import questions, relation, relations

MOST_ROWS = 500
MOST_LINES = 200
_COUNTED = 10_000
_LINE = 2000


@dataclass(frozen=True, slots=True)
class Rows:
    """Part of an answer: `notes` say what is missing of it, and how to get that."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """One row a line, cells between bars."""
        return "\n".join(" | ".join("" if one is None else str(one) for one in row) for row in (self.names, *self.rows))


class Asked:
    """One query; `stop` may be called from another thread while `answer` waits for it."""

    def __init__(self, database: Path, sql: str, most: int, seconds: float) -> None:
        self._database, self._sql, self._most, self._seconds = database, sql, most, seconds
        self._gate: Gate | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def stop(self) -> None:
        """End it as soon as may be."""
        with self._lock:
            self._stopped = True
            if self._gate is not None:
                self._gate.interrupt()

    def answer(self) -> Rows:
        """The rows, bounded in number, width and sum. Raises `Refused`."""
        most = min(max(self._most, 1), MOST_ROWS)
        try:
            with open_gate(self._database, seconds=self._seconds, memory="2GB") as gate:
                with self._lock:
                    if self._stopped:
                        raise Refused("stopped")
                    self._gate = gate
                try:
                    found = gate.ask(self._sql)
                    rows = list(islice(found.rows, most))
                    more = sum(1 for _ in islice(found.rows, _COUNTED))
                finally:
                    with self._lock:
                        self._gate = None
        except QueryError as error:
            raise Refused(f"SQL: {prose(str(error), 1500)}", quotes=True) from error
        except TimelineError as error:
            raise Refused(f"{error}; `diagnose` the logs again") from error
        return bounded(found.names, rows, more)


def bounded(names: tuple[str, ...], rows: list[tuple[Any, ...]], more: int, width: int = 500) -> Rows:
    """Rows made fit to show, as many as an answer holds; `more` were left out before."""
    kept: list[tuple[Any, ...]] = []
    left = ANSWER
    cells = 0
    for row in rows:
        made = tuple(value(one, width) for one in row)
        left -= len(json.dumps(made)) + 2
        if left < 0 and kept:
            break
        cells += sum(isinstance(one, str) and one.endswith(" more characters)") for one in made)
        kept.append(made)
    missing = more + len(rows) - len(kept)
    notes = []
    if missing:
        over = "at least " if more >= _COUNTED else ""
        notes.append(
            f"{over}{missing:,} more rows; narrow with WHERE, choose fewer columns, aggregate, or page with "
            f"ORDER BY … LIMIT … OFFSET {len(kept)}"
        )
    if cells:
        notes.append(f"{cells} cells are cut at {width} characters; ask for substr(column, {width + 1}, {width})")
    return Rows(tuple(shown(name, 100) for name in names), tuple(kept), tuple(notes))


def lines(database: Path, path: str, line: int, before: int, after: int) -> tuple[str, Rows]:
    """The path as the timeline has it, and lines around one of it. Only what was read of the logs is there."""
    first, last = line - min(max(before, 0), MOST_LINES // 2), line + min(max(after, 0), MOST_LINES // 2)
    try:
        with open_timeline(database) as con:
            source = _source(con, path)
            found = con.execute(
                """
                SELECT line, time, level, host, rank, entry, message FROM lines
                WHERE path = ? AND line BETWEEN ? AND ? ORDER BY line
                """,
                [source, first, last],
            )
            names = tuple(str(column[0]) for column in found.description or ())
            rows = found.fetchall()
            row = con.execute("SELECT lines, text_stored FROM sources WHERE path = ?", [source]).fetchone()
    except TimelineError as error:
        raise Refused(f"{error}; `diagnose` the logs again") from error
    total, stored = row or (0, True)
    if not rows:
        raise Refused(f"{shown(source)}: it has {total:,} lines, none of them from {first} to {last}", quotes=True)
    hide = LineMasker()
    whole = [(*one[:-1], None if one[-1] is None else hide(one[-1])) for one in rows]
    made = bounded(names, whole, 0, _LINE)
    notes = [f"this log has {total:,} lines"]
    if made.notes:
        notes.append(f"lines from {made.rows[-1][0] + 1} on are left out: ask for fewer, or further on")
    if not stored and any(one[-1] is None for one in rows):
        notes.append("ordinary lines of a job of this size stay in the log file: here only those that carry a signal")
    return source, Rows(made.names, made.rows, tuple(notes))


def _source(con: duckdb.DuckDBPyConnection, path: str) -> str:
    """The source that a path means: by its whole name, or by an end of it that only one has."""
    if con.execute("SELECT 1 FROM sources WHERE path = ?", [path]).fetchone():
        return path
    query = "SELECT path FROM sources WHERE ends_with(path, ?) ORDER BY path LIMIT 6"
    near = [row[0] for row in con.execute(query, ["/" + path.lstrip("/")]).fetchall()]
    if len(near) == 1:
        return str(near[0])
    if near:
        raise Refused(f"{shown(path)}: several logs end so: {', '.join(shown(one) for one in near)}", quotes=True)
    raise Refused(f"{shown(path)}: no log of this job has that name; query SELECT path, lines FROM sources")


def about(database: Path, rank: int | None, host: str | None) -> dict[str, Rows]:
    """What a rank or host showed: its first error, its last lines."""
    column, wanted = ("rank", rank) if rank is not None else ("host", host)
    made = {}
    with open_timeline(database) as con:
        for name in ("first_errors", "last_lines"):
            found = con.execute(f"SELECT * FROM {name} WHERE {column} = ? ORDER BY ALL LIMIT 9", [wanted])
            names = tuple(str(one[0]) for one in found.description or ())
            rows = found.fetchall()
            made[name] = bounded(names, rows[:8], 0)
    return made


def catalogue() -> list[dict[str, str]]:
    """Every table and view in a line, those that answer a question first."""
    asked = questions()
    rest = [one for one in relations() if one not in asked]
    return [
        {"name": one.name, "question": one.question or "", "what": one.what.partition("\n")[0]}
        for one in (*asked, *rest)
    ]


def described(name: str) -> dict[str, Any]:
    """Columns and example of a table or view. Raises `Refused`."""
    one = relation(name)
    if one is None:
        raise Refused(f"{name!r}: no such table or view; `schema` without a name lists them")
    columns = [{"name": column.name, "what": column.what} for column in one.columns]
    return {"name": one.name, "what": one.what, "columns": columns, "example": one.example or ""}
