"""Whether a network that was full explains a collective that everybody entered and nobody finished.

What shows it is sysstat's table of interfaces (`sar -n DEV`), whose last column is the share of the link's speed that
was used (sar(1), %ifutil). An interface of a host that stays nearly full was moving data all the time: nobody hung.
Where there is no such table, the ranks themselves may tell (`movement`).
"""

from __future__ import annotations

from collections import defaultdict

import duckdb

from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.model import Signal
from firstfault.correlate.movement import movement
from firstfault.correlate.timings import line_as_signal

_FULL = 80.0
_ROWS = 3
"""Rows of the table in a row: with the usual interval some minutes."""


def full_interfaces(con: duckdb.DuckDBPyConnection, view: View) -> dict[str, list[Signal]]:
    """Interfaces that end their table nearly full, by 'host interface', with the rows that show it."""
    rows = con.execute(
        """
        WITH heads AS (
            SELECT source_id, min(line) AS line FROM line_rows
            WHERE message LIKE '%IFACE %rxkB/s%' AND rtrim(message) LIKE '%\\%ifutil' ESCAPE '\\'
            GROUP BY source_id
        )
        SELECT l.source_id, l.line, left(l.message, 300)
        FROM heads h JOIN line_rows l USING (source_id)
        WHERE l.line > h.line AND regexp_matches(l.message, '[A-Za-z]\\w*( +[0-9]+[.,][0-9]+){5,8}\\s*$')
        QUALIFY row_number() OVER (PARTITION BY l.source_id ORDER BY l.line DESC) <= 2000
        ORDER BY l.source_id, l.line
        """
    ).fetchall()
    tables: dict[tuple[int, str], list[tuple[float, int, str]]] = defaultdict(list)
    for source_id, line, text in rows:
        cells = text.split()
        if "Average:" not in cells[0]:
            name = next(cell for cell in reversed(cells) if not cell[0].isdigit())
            tables[source_id, name].append((float(cells[-1].replace(",", ".")), line, text))
    found = {}
    for (source_id, interface), table in sorted(tables.items()):
        full = [number for number, (used, _, _) in enumerate(table) if used >= _FULL]
        # the job ends it, and the table may go on for a row or two
        if (
            not full
            or full[-1] < len(table) - _ROWS
            or full[-_ROWS:] != list(range(full[-1] - _ROWS + 1, full[-1] + 1))
        ):
            continue
        source = view.timeline.sources[source_id]
        first = next(number for number in full if full[-1] - number == sum(other > number for other in full))
        found[f"{source.host or source.path} {interface}"] = [
            line_as_signal(source, line, text, None, view.attempt) for _, line, text in (table[first], table[full[-1]])
        ]
    return found


def blame_full_network(con: duckdb.DuckDBPyConnection, view: View, candidates: list[Candidate]) -> None:
    """A collective that all members entered alike, and an interface that was full until the end: it was only slow."""
    slow = [one for one in candidates if one.rule == "fabric" and one.cls == "collective-slow"]
    full = full_interfaces(con, view) if slow else {}
    if not full:
        _blame_movement(con, view, slow)
        return
    for one in slow:
        one.base = BASE["full-network"]
        one.missing = None
        one.for_.append(f"{next(iter(full))} was nearly full until the end, so the data was moving")
        rows = [(signal, "the link was full") for signals in list(full.values())[:3] for signal in signals]
        one.signals = [*rows, *one.signals]


def _blame_movement(con: duckdb.DuckDBPyConnection, view: View, slow: list[Candidate]) -> None:
    found = movement(con, view) if slow else None
    if found is None:
        return
    words, lines = found
    for one in slow:
        one.base = BASE["full-network"]
        one.missing = None
        one.for_.append(words)
        one.signals = [*lines, *one.signals]
