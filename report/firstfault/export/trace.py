"""A trace of swim lanes in the JSON format of Chrome's tracing, which ui.perfetto.dev and chrome://tracing open.

A host is a process; a rank has a lane of steps and a lane of errors; waits in collectives and silences lie beside them.
Arrows lead from the root to the ranks that followed. Times are microseconds since the first line of the job.
Format: "Trace Event Format" of the Chromium project; X complete, b/e nestable asynchronous, s/f flow, M metadata.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import duckdb

from firstfault.report.safe_json import safe_json

MOST_EVENTS = 600_000
"""Steps and errors of all ranks together; a browser opens no more with ease."""
_ERROR_US = 1_000_000
_JOB = "job"

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """What a trace holds, and how many steps and errors it had to fold or leave out."""

    events: int
    ranks: int
    folded_steps: int
    errors_left_out: int


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Numbers of processes (hosts) and of threads (lanes) in the trace."""

    hosts: dict[str, int]
    rank_host: dict[int, str]

    def pid(self, host: str | None) -> int:
        return self.hosts.get(host or _JOB, self.hosts[_JOB])

    def steps(self, rank: int) -> tuple[int, int]:
        return self.pid(self.rank_host.get(rank)), 10 + 2 * rank

    def errors(self, rank: int | None, host: str | None) -> tuple[int, int]:
        if rank is None:
            return self.pid(host), 1
        return self.pid(self.rank_host.get(rank, host)), 11 + 2 * rank


def write_trace(connection: duckdb.DuckDBPyConnection, file: Path) -> Written:
    """Write the trace of a timeline, compressed where the name ends with `.gz`. Raises `ValueError` without a time."""
    row = connection.execute("SELECT min(time), count(DISTINCT rank) FROM lines WHERE rank IS NOT NULL").fetchone()
    if row is None or row[0] is None:
        raise ValueError("no line of a rank has a time on the job's clock, so nothing can be laid out in time")
    start, ranks = row
    lanes = _lanes(connection)
    each = max(20, MOST_EVENTS // max(1, 2 * int(ranks)))
    origin = "epoch_us(?::TIMESTAMPTZ)"
    count = folded = left_out = 0
    with _target(file) as out:
        out.write('{"displayTimeUnit": "ms", "otherData": ')
        out.write(json.dumps({"made_by": "firstfault", "origin": start.isoformat()}))
        out.write(', "traceEvents": [')
        for event in _events(connection, lanes, origin, start, each):
            folded += event.pop("folded", 0)
            left_out += event.pop("left_out", 0)
            out.write((",\n" if count else "\n") + safe_json(event, sort_keys=True))
            count += 1
        out.write("\n]}\n")
    return Written(count, int(ranks), folded, left_out)


def _lanes(con: duckdb.DuckDBPyConnection) -> _Lanes:
    placed = "FROM placement WHERE host IS NOT NULL"
    homes = con.execute(f"SELECT rank, min(host) {placed} GROUP BY rank ORDER BY rank").fetchall()
    faulty = "SELECT host FROM faults WHERE host IS NOT NULL"
    hosts = con.execute(f"SELECT host {placed} UNION {faulty} ORDER BY host").fetchall()
    return _Lanes({_JOB: 1, **{str(host): at for at, (host,) in enumerate(hosts, start=2)}}, dict(homes))


def _events(con: duckdb.DuckDBPyConnection, lanes: _Lanes, origin: str, start: object, each: int) -> Iterator[Event]:
    yield from _names(con, lanes)
    yield from _steps(con, lanes, origin, start, each)
    yield from _errors(con, lanes, origin, start, each)
    yield from _waits(con, lanes, origin, start)
    yield from _silences(con, lanes, origin, start)
    yield from _root(con, lanes, origin, start)


def _names(con: duckdb.DuckDBPyConnection, lanes: _Lanes) -> Iterator[Event]:
    for host, pid in lanes.hosts.items():
        yield _meta("process_name", pid, 0, name=host if host == _JOB else f"host {host}")
        yield _meta("process_sort_index", pid, 0, sort_index=pid)
        yield _meta("thread_name", pid, 1, name="machine, launcher, scheduler")
        yield _meta("thread_sort_index", pid, 1, sort_index=1)
    roots = {
        rank
        for (rank,) in con.execute("SELECT unnest(ranks) FROM verdicts WHERE attempt IS NULL ORDER BY 1").fetchall()
    }
    for (rank,) in con.execute("SELECT DISTINCT rank FROM line_rows WHERE rank IS NOT NULL ORDER BY rank").fetchall():
        mark = " (failed first)" if rank in roots else ""
        for (pid, tid), what in ((lanes.steps(rank), ""), (lanes.errors(rank, None), " errors")):
            yield _meta("thread_name", pid, tid, name=f"rank {rank}{what}{mark}")
            yield _meta("thread_sort_index", pid, tid, sort_index=tid)


def _meta(what: str, pid: int, tid: int, /, **args: object) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _steps(con: duckdb.DuckDBPyConnection, lanes: _Lanes, origin: str, start: object, each: int) -> Iterator[Event]:
    """A slice from each step of a rank to its next; where a rank has more than `each`, several steps are one slice."""
    rows = con.execute(
        f"""
        WITH reached AS (
            SELECT rank, attempt, epoch, step, min(epoch_us(time) - {origin}) AS began
            FROM steps WHERE rank IS NOT NULL AND time IS NOT NULL GROUP BY ALL
        ),
        numbered AS (
            SELECT *, row_number() OVER (PARTITION BY rank ORDER BY began, step) - 1 AS number,
                count(*) OVER (PARTITION BY rank) // ? + 1 AS fold
            FROM reached
        ),
        folded AS (
            SELECT rank, attempt, min(began) AS began, min(step) AS low, max(step) AS high, count(*) AS steps
            FROM numbered GROUP BY rank, attempt, number // fold
        )
        SELECT rank, attempt, low, high, steps, began, lead(began) OVER (PARTITION BY rank ORDER BY began) - began
        FROM folded ORDER BY rank, began
        """,
        [start, each],
    )
    for rank, attempt, low, high, steps, at, lasts in _rows(rows):
        pid, tid = lanes.steps(rank)
        name = f"step {low}" if low == high else f"steps {low}-{high}"
        args = {"attempt": attempt, "first": low, "last": high}
        event = {"ph": "X", "cat": "step", "name": name, "pid": pid, "tid": tid, "ts": at, "dur": lasts or 0}
        yield {**event, "args": args, "folded": steps - 1}


def _errors(con: duckdb.DuckDBPyConnection, lanes: _Lanes, origin: str, start: object, each: int) -> Iterator[Event]:
    """A slice of at most a second for each error; at one moment they follow each other by a microsecond."""
    rows = con.execute(
        f"""
        SELECT rank, CASE WHEN rank IS NULL THEN host END AS lane, epoch_us(time) - {origin} AS began,
            coalesce(entry, event), event, role, path, line, left(text, 300),
            count(*) OVER (PARTITION BY rank, lane) AS count,
            row_number() OVER (PARTITION BY rank, lane ORDER BY time, path, line, signal_id) AS number
        FROM faults WHERE time IS NOT NULL
        QUALIFY number <= ?
        ORDER BY rank, lane, began, path, line
        """,
        [start, each],
    )
    waiting: Event | None = None
    for rank, host, at, name, kind, role, path, line, text, count, number in _rows(rows):
        pid, tid = lanes.errors(rank, host)
        ts = at
        if waiting is not None and (waiting["pid"], waiting["tid"]) == (pid, tid):
            ts = max(at, waiting["ts"] + 1)
            waiting["dur"] = min(_ERROR_US, ts - waiting["ts"])
        if waiting is not None:
            yield waiting
        args = {"event": kind, "role": role, "path": path, "line": line, "text": text}
        waiting = {"ph": "X", "cat": "error", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": _ERROR_US}
        waiting["args"] = args
        waiting["left_out"] = count - each if number == 1 and count > each else 0
    if waiting is not None:
        yield waiting


def _waits(con: duckdb.DuckDBPyConnection, lanes: _Lanes, origin: str, start: object) -> Iterator[Event]:
    rows = con.execute(
        f"""
        SELECT rank, coalesce(op, 'collective'), seq, pg_desc, epoch_us(time) - {origin}, 1000 * elapsed_ms, path, line
        FROM signals WHERE event = 'coll-timeout' AND rank IS NOT NULL AND elapsed_ms > 0 AND time IS NOT NULL
        QUALIFY row_number() OVER (PARTITION BY rank, op, seq, pg_desc ORDER BY time, path, line) = 1
        ORDER BY rank, time, path, line
        """,
        [start],
    )
    for rank, op, seq, group, end, lasts, path, line in _rows(rows):
        name = f"rank {rank} waits in {op}{'' if seq is None else f' #{seq}'}"
        yield from _beside(lanes, rank, name, "wait", end - lasts, end, group=group, path=path, line=line)


def _silences(con: duckdb.DuckDBPyConnection, lanes: _Lanes, origin: str, start: object) -> Iterator[Event]:
    rows = con.execute(
        f"""
        SELECT rank, epoch_us(since) - {origin}, (1000000 * seconds)::BIGINT, path, line
        FROM silences WHERE for_good AND unstamped = 0 ORDER BY rank, since
        """,
        [start],
    )
    for rank, at, lasts, path, line in _rows(rows):
        yield from _beside(lanes, rank, f"rank {rank} is silent", "silence", at, at + lasts, path=path, line=line)


def _beside(lanes: _Lanes, rank: int, name: str, kind: str, begin: int, end: int, **args: object) -> Iterator[Event]:
    pid, tid = lanes.steps(rank)
    one = {"cat": kind, "name": name, "pid": pid, "tid": tid, "id": f"{kind}-{rank}-{begin}"}
    yield {**one, "ph": "b", "ts": begin, "args": args}
    yield {**one, "ph": "e", "ts": end}


def _root(con: duckdb.DuckDBPyConnection, lanes: _Lanes, origin: str, start: object) -> Iterator[Event]:
    """The root as a slice on the lane of the job, and an arrow to the first error of each rank that followed."""
    row = con.execute(
        f"SELECT title, class, ranks, hosts, epoch_us(began) - {origin} FROM verdicts WHERE attempt IS NULL", [start]
    ).fetchone()
    if row is None or row[4] is None:
        return
    title, cls, ranks, hosts, at = row
    pid = lanes.pid(hosts[0] if hosts else None)
    args = {"class": cls, "ranks": ranks, "hosts": hosts}
    yield _meta("thread_name", pid, 2, name="failed first")
    yield _meta("thread_sort_index", pid, 2, sort_index=0)
    yield {"ph": "X", "cat": "root", "name": title, "pid": pid, "tid": 2, "ts": at, "dur": _ERROR_US, "args": args}
    followed = con.execute(
        f"SELECT rank, epoch_us(time) - {origin} FROM spread WHERE NOT root AND time IS NOT NULL ORDER BY rank", [start]
    )
    for rank, later in _rows(followed):
        if later < at:
            continue
        there, lane = lanes.errors(rank, None)
        one = {"cat": "cause", "name": "follows", "id": rank + 1}
        yield {**one, "ph": "s", "pid": pid, "tid": 2, "ts": at}
        yield {**one, "ph": "f", "bp": "e", "pid": there, "tid": lane, "ts": later}


def _rows(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while batch := result.fetchmany(5000):
        yield from batch


@contextmanager
def _target(file: Path) -> Iterator[TextIO]:
    """The file, complete or not there at all."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with ExitStack() as stack:
            if file.name.endswith(".gz"):
                raw = stack.enter_context(beside.open("wb"))
                packed = stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0))
                yield stack.enter_context(io.TextIOWrapper(packed, encoding="utf-8"))
            else:
                yield stack.enter_context(beside.open("w", encoding="utf-8"))
        os.replace(beside, file)
    finally:
        beside.unlink(missing_ok=True)
