"""Reads what the correlate stage needs from a timeline, once: sources, signals, extents and furthest steps of ranks,
identities.

Lines themselves stay in the database; what grows with the size of the logs is aggregated there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from firstfault.catalog.model import Event, Role
from firstfault.correlate.model import Extent, Progress, Signal, Source

MANY_STEPS = 4096
"""About as many steps of an attempt are marks that clocks are aligned by, where it has more."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One statement about who is who, with the line that makes it (columns of the table `identities`)."""

    rank: int | None
    attempt: int | None
    host: str | None
    local_rank: int | None
    node_rank: int | None
    pid: int | None
    gpu: int | None
    bus_id: str | None
    address: str | None
    pod: str | None
    alias: str | None
    comm: str | None
    comm_rank: int | None
    comm_size: int | None
    world_size: int | None
    source_id: int
    line: int
    how: str


@dataclass(frozen=True, slots=True)
class StepMark:
    """The earliest stamp with which one clock shows a step (or another sync point) in one attempt."""

    clock: str
    attempt: int
    key: str
    stamp_ns: int
    res_ns: int
    zoned: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything that the correlate stage works on; `unplaced` are the signals whose lines name no attempt."""

    sources: dict[int, Source]
    signals: tuple[Signal, ...]
    unplaced: frozenset[int]
    extents: tuple[Extent, ...]
    ends: dict[int, tuple[int, int | None, str]]
    progress: tuple[Progress, ...]
    identities: tuple[Identity, ...]
    marks: tuple[StepMark, ...]
    host_lines: dict[str, int]
    clock_spans: dict[str, tuple[int, int]]
    problems: tuple[tuple[str, str, int, str], ...]
    lines: int

    def facts(self, event: Event) -> Iterator[Signal]:
        """Signals of one kind of event."""
        return (signal for signal in self.signals if signal.event is event)


def _rows(con: duckdb.DuckDBPyConnection, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    return con.execute(query, values).fetchall()


def load(con: duckdb.DuckDBPyConnection) -> Timeline:
    """Read a timeline through an open connection."""
    sources = {
        row[0]: Source(*row)
        for row in _rows(
            con,
            """
            SELECT source_id, path, kind, format, host, node_rank, rank, local_rank, attempt, stream, clock,
                   utc_offset_s, coalesce(lines, 0)
            FROM sources ORDER BY source_id
            """,
        )
    }
    return Timeline(
        sources=sources,
        signals=tuple(_signals(con, sources)),
        unplaced=frozenset(
            row[0] for row in _rows(con, "SELECT signal_id FROM signal_rows WHERE attempt IS NULL ORDER BY signal_id")
        ),
        extents=tuple(_extents(con, sources)),
        ends={
            row[0]: (row[1], row[2], row[3])
            for row in _rows(
                con,
                """
                WITH ends AS (
                    SELECT source_id, max(line) AS line, max_by(near_ns, line) AS ns, max_by(rowid, line) AS place
                    FROM line_rows GROUP BY source_id
                )
                SELECT e.source_id, e.line, e.ns, coalesce(left(l.message, 500), '')
                FROM ends e JOIN line_rows l ON l.rowid = e.place ORDER BY e.source_id
                """,
            )
        },
        progress=tuple(_progress(con, sources)),
        identities=tuple(
            Identity(*row)
            for row in _rows(
                con,
                """
                SELECT rank, attempt, host, local_rank, node_rank, pid, gpu, bus_id, address, pod, alias, comm,
                       comm_rank, comm_size, world_size, source_id, line, how
                FROM identities ORDER BY source_id, line, rank, host, how
                """,
            )
        ),
        marks=tuple(
            StepMark(*row)
            for row in _rows(
                con,
                """
                SELECT s.clock, coalesce(p.attempt, 0), 'step ' || coalesce(p.epoch || '/', '') || p.step,
                       min(p.stamp_ns - coalesce(l.utc_offset_s, s.utc_offset_s, 0)::BIGINT * 1000000000),
                       min(coalesce(l.stamp_res_ns, 1000000000)),
                       coalesce(l.utc_offset_s, s.utc_offset_s) IS NOT NULL
                FROM progress p JOIN sources s USING (source_id)
                LEFT JOIN line_rows l ON l.source_id = p.source_id AND l.line = p.line
                JOIN (
                    SELECT attempt, greatest(count(DISTINCT hash(epoch, step)) // ?, 1)::UBIGINT AS stride
                    FROM progress GROUP BY attempt
                ) t ON t.attempt IS NOT DISTINCT FROM p.attempt
                WHERE p.stamp_own AND p.stamp_ns IS NOT NULL AND s.clock IS NOT NULL
                  AND hash(p.epoch, p.step) % t.stride = 0
                GROUP BY ALL ORDER BY ALL
                """,
                [MANY_STEPS],
            )
        ),
        host_lines={
            row[0]: row[1]
            for row in _rows(
                con, "SELECT host, count(*) FROM line_rows WHERE host IS NOT NULL GROUP BY host ORDER BY host"
            )
        },
        clock_spans={
            row[0]: (row[1], row[2])
            for row in _rows(
                con,
                """
                SELECT s.clock, min(l.stamp_ns), max(l.stamp_ns)
                FROM line_rows l JOIN sources s USING (source_id)
                WHERE l.stamp_ns IS NOT NULL AND s.clock IS NOT NULL GROUP BY s.clock ORDER BY s.clock
                """,
            )
        },
        problems=tuple(
            _rows(
                con,
                """
                SELECT severity, kind, sum(count)::BIGINT, min(coalesce(path || ': ', '') || coalesce(detail, ''))
                FROM problems GROUP BY severity, kind ORDER BY severity, kind
                """,
            )
        ),
        lines=sum(source.lines for source in sources.values()),
    )


def _event(name: str | None) -> Event | None:
    try:
        return Event(name) if name else None
    except ValueError:
        return None


def _role(name: str | None) -> Role | None:
    try:
        return Role(name) if name else None
    except ValueError:
        return None


_EXCEPTION = "python-traceback"
_NO_PYTHON = frozenset({"kernel", "scheduler", "events", "status", "gpu-state"})
"""Logs of machines: a word like LustreError that begins a line there is no exception of Python."""


def _signals(con: duckdb.DuckDBPyConnection, sources: dict[int, Source]) -> Iterator[Signal]:
    query = """
        SELECT signal_id, source_id, line, coalesce(first_line, line), coalesce(last_line, line), entry, fact, event,
               class, role, coalesce(weak, FALSE), level, rank, local_rank, host, coalesce(attempt, 0), pid, gpu,
               stamp_ns, stamp_kind, coalesce(stamp_res_ns, 1000000000), coalesce(stamp_own, FALSE), utc_offset_s,
               coalesce(text, ''), captures, hooked.line IS NOT NULL
        FROM signal_rows
        LEFT JOIN (
            SELECT DISTINCT source_id, line FROM line_rows WHERE format = 'torch-rank-prefix'
        ) hooked USING (source_id, line)
        WHERE event IS DISTINCT FROM 'progress'
        ORDER BY source_id, line, signal_id
    """
    for row in _rows(con, query):
        if row[5] == _EXCEPTION and row[3] == row[4] and sources[row[1]].kind in _NO_PYTHON:
            continue
        captures = row[24] or {}
        yield Signal(
            id=row[0],
            source=sources[row[1]],
            line=row[2],
            first_line=row[3],
            last_line=row[4],
            entry=row[5],
            fact=row[6],
            event=_event(row[7]),
            cls=row[8],
            role=_role(row[9]),
            weak=row[10],
            level=row[11],
            rank=row[12],
            local_rank=row[13],
            host=row[14],
            attempt=row[15],
            pid=row[16],
            gpu=row[17],
            stamp_ns=row[18],
            stamp_kind=row[19],
            res_ns=row[20],
            own_stamp=row[21],
            utc_offset_s=row[22],
            text=row[23],
            captures={str(key): str(value) for key, value in captures.items() if value is not None},
            uncaught=row[25],
        )


def _extents(con: duckdb.DuckDBPyConnection, sources: dict[int, Source]) -> Iterator[Extent]:
    # the texts of all lines are many times their places, so only those of the last ones are read
    query = """
        WITH extents AS (
            SELECT rank, coalesce(attempt, 0) AS attempt, source_id, min(line) AS first_line, max(line) AS last_line,
                   min(near_ns) AS first_ns, max_by(near_ns, line) AS last_ns, count(*) AS lines,
                   max_by(rowid, line) AS place
            FROM line_rows WHERE rank IS NOT NULL
            GROUP BY rank, coalesce(attempt, 0), source_id
        )
        SELECT e.* EXCLUDE (place), coalesce(left(l.message, 500), '')
        FROM extents e JOIN line_rows l ON l.rowid = e.place ORDER BY ALL
    """
    for rank, attempt, source_id, first, last, first_ns, last_ns, count, text in _rows(con, query):
        yield Extent(rank, attempt, sources[source_id], first, last, first_ns, last_ns, count, text)


def _progress(con: duckdb.DuckDBPyConnection, sources: dict[int, Source]) -> Iterator[Progress]:
    query = """
        SELECT rank, coalesce(attempt, 0), source_id, max(line), max_by(step, line), max_by(stamp_ns, line), count(*),
               max_by(host, line)
        FROM progress GROUP BY rank, coalesce(attempt, 0), source_id ORDER BY ALL
    """
    for rank, attempt, source_id, line, step, stamp, count, host in _rows(con, query):
        yield Progress(rank, attempt, sources[source_id], line, step, stamp, count, host)
