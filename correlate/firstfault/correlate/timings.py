"""Stragglers from timings that each rank prints beside its step: whose own work grew, and who waits least for the
others.

Step lines alone cannot show a straggler: in synchronous training everyone slows together. What can is a split of the
step into own work and waiting; the slow rank works longest and waits least (last to arrive at each collective).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import duckdb

from firstfault.catalog.model import Event
from firstfault.correlate.model import Signal, Source

_PAIR = re.compile(r"([A-Za-z][\w/ -]{0,30}?)\s?[=:]?\s?(\d{1,9}(?:\.\d{1,9})?) ?(ms|us|s|sec|seconds)\b")
_WAITING = re.compile(r"comm|wait|reduce|gather|sync|barrier|nccl|recv|exposed", re.IGNORECASE)
_WHOLE = re.compile(r"total|step|iter|elapsed|time per|batch_time|eta|remaining|epoch", re.IGNORECASE)
_UNITS = {"ms": 1e-3, "us": 1e-6, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_LINES_A_RANK = 240
_RATIO = 1.25


@dataclass(frozen=True, slots=True)
class Slow:
    """One rank that works longer than the others while they wait."""

    rank: int
    attempt: int
    name: str
    own_s: float
    others_s: float
    signals: tuple[Signal, ...]


def read_timings(
    con: duckdb.DuckDBPyConnection, sources: dict[int, Source]
) -> dict[int, dict[int, list[tuple[int, int, dict[str, float], str]]]]:
    """Timings beside the last steps of each rank: attempt -> rank -> (source, line, name -> seconds, text)."""
    rows = con.execute(
        """
        SELECT coalesce(p.attempt, 0), p.rank, p.source_id, p.line, l.message
        FROM progress p JOIN line_rows l ON l.source_id = p.source_id AND l.line = p.line
        WHERE p.rank IS NOT NULL AND l.message IS NOT NULL
          AND regexp_matches(l.message, '[0-9] ?(ms|us|s|sec|seconds)\\b')
        QUALIFY row_number() OVER (PARTITION BY p.attempt, p.rank ORDER BY p.source_id DESC, p.line DESC) <= ?
        ORDER BY 1, 2, 3, 4
        """,
        [_LINES_A_RANK],
    ).fetchall()
    found: dict[int, dict[int, list[tuple[int, int, dict[str, float], str]]]] = defaultdict(lambda: defaultdict(list))
    for attempt, rank, source, line, message in rows:
        values = {
            match[1].strip(" =:-").split()[-1].lower(): float(match[2]) * _UNITS[match[3]]
            for match in _PAIR.finditer(message[:1000])
            if match[1].strip(" =:-")
        }
        if values:
            found[attempt][rank].append((source, line, values, message))
    return found


def stragglers(con: duckdb.DuckDBPyConnection, sources: dict[int, Source], attempt: int) -> Iterator[Slow]:
    """Ranks whose own work is slower than the others', by the last third of what they print."""
    ranks = read_timings(con, sources).get(attempt, {})
    if len(ranks) < 3:
        return
    names = set.intersection(*({name for _, _, values, _ in lines for name in values} for lines in ranks.values()))
    waits = sorted(name for name in names if _WAITING.search(name))
    works = sorted(name for name in names if not _WAITING.search(name) and not _WHOLE.search(name))
    late = {
        rank: {
            name: median(values[name] for _, _, values, _ in lines[-max(1, len(lines) // 3) :] if name in values)
            for name in names
            if any(name in values for _, _, values, _ in lines[-max(1, len(lines) // 3) :])
        }
        for rank, lines in ranks.items()
    }
    for name in works:
        for rank in sorted(ranks):
            own = late[rank].get(name)
            others = [value[name] for other, value in late.items() if other != rank and name in value]
            if own is None or len(others) < 2 or own < 0.01:
                continue
            usual, most = median(others), max(others)
            if own < _RATIO * usual or own < 1.1 * most:
                continue
            if waits and not _waits_least(late, rank, waits):
                continue
            source_id, line, _, text = ranks[rank][-1]
            shown = [_as_signal(sources[source_id], line, text, rank, attempt)]
            yield Slow(rank, attempt, name, own, usual, tuple(shown))


def _waits_least(late: dict[int, dict[str, float]], rank: int, waits: list[str]) -> bool:
    own = sum(late[rank].get(name, 0.0) for name in waits)
    others = [sum(values.get(name, 0.0) for name in waits) for other, values in late.items() if other != rank]
    return own < 0.7 * median(others)


def _as_signal(source: Source, line: int, text: str, rank: int, attempt: int) -> Signal:
    return Signal(
        id=-1,
        source=source,
        line=line,
        first_line=line,
        last_line=line,
        entry=None,
        fact=None,
        event=Event.SLOW,
        cls="straggler",
        role=None,
        weak=False,
        level=None,
        rank=rank,
        local_rank=None,
        host=source.host,
        attempt=attempt,
        pid=None,
        gpu=None,
        stamp_ns=None,
        stamp_kind=None,
        res_ns=1_000_000_000,
        own_stamp=False,
        utc_offset_s=None,
        text=text,
    )
