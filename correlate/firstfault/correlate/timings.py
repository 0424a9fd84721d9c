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
_NAMED_UNIT = re.compile(r"([A-Za-z]\w{0,30}?)_(ms|us|s|sec|seconds)[\"']?\s?[=:]\s?(\d{1,9}(?:\.\d{1,9})?)\b")
_PARTS_OF_A_STEP = (
    "data|fwd|bwd|fwd_?bwd|forward|backward|compute|optimi[sz]er|opt|h2d|all_?reduce|all_?gather|reduce_?scatter"
    "|reduce|comm|sync|wait|barrier|grad_?sync"
)
_BARE = re.compile(rf"\b({_PARTS_OF_A_STEP})[ =:]{{1,2}}(\d{{1,6}}\.\d{{1,6}})(?:[ ,;|]|$)")
"""Parts of a step that are printed as plain numbers, by their usual names; all ranks share whatever the unit is."""
_COLUMN = re.compile(r"([A-Za-z]\w{0,30}?)(?:_| ?[(\[])(ms|us|s|sec|seconds)[)\]]?")
_WAITING = re.compile(r"comm|wait|reduce|gather|sync|barrier|nccl|recv|exposed", re.IGNORECASE)
_WHOLE = re.compile(r"total|step|iter|elapsed|time per|batch_time|eta|remaining|epoch", re.IGNORECASE)
_UNITS = {"ms": 1e-3, "us": 1e-6, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_LINES_A_RANK = 240
RATIO = 1.25

Timed = tuple[int, int, dict[str, float], str]
"""A line with timings: source, line, name -> seconds, text."""


@dataclass(frozen=True, slots=True)
class Slow:
    """One rank that works longer than the others while they wait."""

    rank: int
    attempt: int
    name: str
    own_s: float
    others_s: float
    signals: tuple[Signal, ...]
    waits_shown: bool = False


def read_timings(con: duckdb.DuckDBPyConnection) -> dict[int, dict[int, list[Timed]]]:
    """Timings of each rank, in the order of its lines: attempt -> rank -> lines; beside its steps, or in a table."""
    found: dict[int, dict[int, list[Timed]]] = defaultdict(lambda: defaultdict(list))
    for attempt, rank, timed in (*_beside_steps(con), *_in_tables(con)):
        found[attempt][rank].append(timed)
    return found


def _beside_steps(con: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, int, Timed]]:
    rows = con.execute(
        """
        SELECT coalesce(p.attempt, 0), p.rank, p.source_id, p.line, l.message
        FROM progress p JOIN line_rows l ON l.source_id = p.source_id AND l.line = p.line
        WHERE p.rank IS NOT NULL AND l.message IS NOT NULL
          AND regexp_matches(
              l.message,
              '[0-9] ?(ms|us|s|sec|seconds)\\b|_(ms|us|s|sec|seconds)["'']? ?[=:]'
              '|\\b(data|fwd|fwd_?bwd|forward|compute)[ =:]{1,2}[0-9]+[.][0-9]'
          )
        QUALIFY row_number() OVER (PARTITION BY p.attempt, p.rank ORDER BY p.source_id DESC, p.line DESC) <= ?
        ORDER BY 1, 2, 3, 4
        """,
        [_LINES_A_RANK],
    ).fetchall()
    for attempt, rank, source, line, message in rows:
        text = message[:1000]
        values = {
            match[1].strip(" =:-").split()[-1].lower(): float(match[2]) * _UNITS[match[3]]
            for match in _PAIR.finditer(text)
            if match[1].strip(" =:-")
        }
        values |= {match[1].lower(): float(match[3]) * _UNITS[match[2]] for match in _NAMED_UNIT.finditer(text)}
        values = values or {match[1].lower(): float(match[2]) for match in _BARE.finditer(text)}
        if values:
            yield attempt, rank, (source, line, values, message)


def _in_tables(con: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, int, Timed]]:
    """Tables that a rank writes for itself, values behind commas and names with units in the first line.

    Columns are matched from the right, because a stamp on the left is no part of the message.
    """
    rows = con.execute(
        """
        WITH heads AS (
            SELECT source_id, message AS head FROM line_rows
            WHERE line = 1 AND regexp_matches(message, '^[A-Za-z_][^,]*(,[^,]+){3,}$')
              AND regexp_matches(message, '(_|[(\\[])(ms|us|s|sec|seconds)\\b')
        )
        SELECT coalesce(l.attempt, 0), l.rank, l.source_id, l.line, l.message, h.head
        FROM heads h JOIN line_rows l USING (source_id)
        WHERE l.rank IS NOT NULL AND l.line > 1 AND l.message LIKE '%,%'
        QUALIFY row_number() OVER (PARTITION BY l.attempt, l.rank ORDER BY l.source_id DESC, l.line DESC) <= ?
        ORDER BY 1, 2, 3, 4
        """,
        [_LINES_A_RANK],
    ).fetchall()
    for attempt, rank, source, line, message, head in rows:
        values = {}
        for name, cell in zip(reversed(head.split(",")), reversed(message[:1000].split(",")), strict=False):
            column = _COLUMN.fullmatch(name.strip())
            if column and (number := _seconds(cell.strip(), column[2])) is not None:
                values[column[1].lower()] = number
        if values:
            yield attempt, rank, (source, line, values, message)


def _seconds(text: str, unit: str) -> float | None:
    try:
        return float(text) * _UNITS[unit]
    except ValueError:
        return None


def stragglers(con: duckdb.DuckDBPyConnection, sources: dict[int, Source], attempt: int) -> Iterator[Slow]:
    """Ranks whose own work is slower than that of most, by the last third of what they print.

    For each kind of work the slow ones are set off from all others by a tenth at least, and wait less than they do.
    """
    ranks = read_timings(con).get(attempt, {})
    if len(ranks) < 3:
        return
    names = set.intersection(*({name for _, _, values, _ in lines for name in values} for lines in ranks.values()))
    waits = sorted(name for name in names if _WAITING.search(name))
    late = {rank: _late(lines, names) for rank, lines in ranks.items()}
    for name in sorted(name for name in names if not _WAITING.search(name) and not _WHOLE.search(name)):
        shown = {rank: values[name] for rank, values in late.items() if name in values}
        usual = median(shown.values())
        slow = {rank for rank, own in shown.items() if own >= max(0.01, RATIO * usual)}
        others = [own for rank, own in shown.items() if rank not in slow]
        if not slow or len(others) < 2 or 2 * len(slow) > len(shown):
            continue
        if min(shown[rank] for rank in slow) < 1.1 * max(others):
            continue
        if waits and not all(_waits_least(late, rank, slow, waits) for rank in slow):
            continue
        for rank in sorted(slow):
            midway = (shown[rank] + median(others)) / 2
            source_id, line, _, text = next(one for one in ranks[rank] if one[2].get(name, 0.0) >= midway)
            signal = line_as_signal(sources[source_id], line, text, rank, attempt)
            yield Slow(rank, attempt, name, shown[rank], median(others), (signal,), bool(waits))


def _late(lines: list[Timed], names: set[str]) -> dict[str, float]:
    """Median of each timing over the last third of the lines, in seconds."""
    last = [values for _, _, values, _ in lines[-max(1, len(lines) // 3) :]]
    return {
        name: median(values[name] for values in last if name in values)
        for name in sorted(names)
        if any(name in values for values in last)
    }


def _waits_least(late: dict[int, dict[str, float]], rank: int, slow: set[int], waits: list[str]) -> bool:
    own = sum(late[rank].get(name, 0.0) for name in waits)
    others = [sum(values.get(name, 0.0) for name in waits) for other, values in late.items() if other not in slow]
    return own < 0.7 * median(others)


def line_as_signal(source: Source, line: int, text: str, rank: int | None, attempt: int) -> Signal:
    """A line that no pattern holds as evidence."""
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
