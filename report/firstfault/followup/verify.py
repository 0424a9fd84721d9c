"""Every line that a diagnosis cites, looked up again in the logs: is it still there, word for word?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import duckdb

from firstfault.correlate.secrets import masked
from firstfault.followup.saved import Cited, Saved

_SHOWN = 500
"""Characters of a line that a document keeps."""


class State(StrEnum):
    """What became of a cited line."""

    SAME = "same"  # its place and its text are as cited
    MOVED = "moved"  # the text stands elsewhere in the file
    CHANGED = "changed"  # another text stands there, and the cited one nowhere in the file
    GONE = "gone"  # the file ends before it
    NO_FILE = "no-file"  # there is no such file


@dataclass(frozen=True, slots=True)
class Checked:
    """One cited line and what is there now: `line` where the text stands, `text` what stands at its place."""

    cited: Cited
    state: State
    line: int | None
    text: str | None


def check(connection: duckdb.DuckDBPyConnection, saved: Saved) -> tuple[Checked, ...]:
    """Look up each cited line in a timeline of the same logs, in the order of the document."""
    return tuple(_check(connection, one) for one in saved.cited)


def _check(con: duckdb.DuckDBPyConnection, cited: Cited) -> Checked:
    here = _texts(con, cited.path, "line = ?", [cited.line])
    if any(_same(cited.text, text) for _, text in here):
        return Checked(cited, State.SAME, cited.line, cited.text)
    there = here[0][1][:_SHOWN] if here else None
    places = {
        line for line, text in _texts(con, cited.path, _CONTAINS, [cited.text.strip()]) if _same(cited.text, text)
    }
    if places and cited.text.strip():
        nearest = min(places, key=lambda line: (abs(line - cited.line), line))
        return Checked(cited, State.MOVED, nearest, there)
    if here:
        return Checked(cited, State.CHANGED, None, there)
    known = con.execute("SELECT count(*) FROM sources WHERE path = ?", [cited.path]).fetchone()
    return Checked(cited, State.GONE if known and known[0] else State.NO_FILE, None, None)


_CONTAINS = "contains(text, ?)"


def _texts(con: duckdb.DuckDBPyConnection, path: str, condition: str, values: list[object]) -> list[tuple[int, str]]:
    """Texts of lines of one file: as they stand there, and as a signal says them (a record of a dump, an exception)."""
    query = f"""
        SELECT line, text FROM (
            SELECT line, coalesce(message, '') AS text FROM lines WHERE path = ?
            UNION ALL
            SELECT line, coalesce(text, '') FROM signals WHERE path = ?
            UNION ALL
            SELECT line, coalesce(map_extract(captures, 'text')[1], '') FROM signals WHERE path = ?
        ) WHERE {condition} ORDER BY line, text LIMIT 10000
    """
    return con.execute(query, [path, path, path, *values]).fetchall()


def _same(cited: str, found: str) -> bool:
    """Whether a text is the cited one; a document cuts long ones and masks secrets, a wrapper may stand around it."""
    cited, found = cited.strip(), masked(found)
    return found.strip()[:_SHOWN].strip() == cited or (len(cited) >= 12 and cited in found)
