"""Readers that people and tools use today, over a timeline: what each would name, for comparison with the engine.

They get the benefit of everything that reading the logs found out (which rank wrote a line, which stamp stands near it)
and then apply one plain rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_ERROR = r"(?i)\b(error|exception|fatal|critical|traceback|failed|aborted|killed)\b"
_WATCHDOG = r"(?i)watchdog caught collective|timed out waiting|collective operation timeout"
_TABLE_TIME = re.compile(r"time\s{1,9}:\s{1,9}(\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)")
_TABLE_RANK = re.compile(r"rank\s{1,9}:\s{1,9}(\d{1,9}) \(local_rank")
_LOUD = f"(regexp_matches(message, '{_ERROR}') OR level IN ('ERROR', 'FATAL')) AND rank IS NOT NULL"


def _one(con: duckdb.DuckDBPyConnection, query: str) -> tuple[int, ...]:
    row = con.execute(query).fetchone()
    return (int(row[0]),) if row else ()


def first_error(con: duckdb.DuckDBPyConnection) -> tuple[int, ...]:
    """The rank of the first line that looks like an error, by printed time; zones and clocks left as they are."""
    return _one(con, f"SELECT rank FROM line_rows WHERE {_LOUD} ORDER BY near_ns NULLS LAST, source_id, line LIMIT 1")


def loudest(con: duckdb.DuckDBPyConnection) -> tuple[int, ...]:
    """The rank that prints the most lines that look like errors."""
    return _one(con, f"SELECT rank FROM line_rows WHERE {_LOUD} GROUP BY rank ORDER BY count(*) DESC, rank LIMIT 1")


def first_watchdog(con: duckdb.DuckDBPyConnection) -> tuple[int, ...]:
    """The rank of the first line of a watchdog, by printed time."""
    return _one(
        con,
        f"SELECT rank FROM line_rows WHERE regexp_matches(message, '{_WATCHDOG}') AND rank IS NOT NULL "
        "ORDER BY near_ns NULLS LAST, source_id, line LIMIT 1",
    )


def first_observed(con: duckdb.DuckDBPyConnection) -> tuple[int, ...]:
    """The earliest 'Root Cause (first observed failure)' block of torchelastic, by the time in it."""
    rows = con.execute(
        """
        SELECT r.source_id, r.line, l.message FROM line_rows r
        JOIN line_rows l ON l.source_id = r.source_id AND l.line BETWEEN r.line AND r.line + 12
        WHERE contains(r.message, 'Root Cause (first observed failure)')
        ORDER BY r.source_id, r.line, l.line
        """
    ).fetchall()
    blocks: dict[tuple[int, int], list[str]] = {}
    for source, line, message in rows:
        blocks.setdefault((source, line), []).append((message or "")[:200])
    found: list[tuple[datetime, tuple[int, int], int]] = []
    for place, lines in blocks.items():
        text = "\n".join(lines)
        when, rank = _TABLE_TIME.search(text), _TABLE_RANK.search(text)
        if when and rank:
            found.append((datetime.strptime(when[1], "%Y-%m-%d_%H:%M:%S"), place, int(rank[1])))
    return (min(found)[2],) if found else ()


NAIVE: dict[str, Callable[[duckdb.DuckDBPyConnection], tuple[int, ...]]] = {
    "first error by printed time": first_error,
    "rank with the most error lines": loudest,
    "first watchdog line": first_watchdog,
    "torchelastic's 'first observed failure'": first_observed,
}
