"""The lines before the first evidence: of each wanted rank, and of each log that carries evidence but no rank."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import duckdb

from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.diagnosis import Evidence
from firstfault.correlate.model import Moment, Source
from firstfault.correlate.picture import Context

_TEXT = 2000
_BY_DEFAULT = 8
_RECORDS = frozenset({"error-file", "flight-recorder", "stacks", "ras", "status"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to show: so many lines (0 for none), of these ranks, of all, or (None) of those that the answer is about."""

    lines: int = 0
    ranks: tuple[int, ...] | None = None
    every_rank: bool = False


def contexts_of(
    con: duckdb.DuckDBPyConnection,
    view: View,
    evidence: tuple[Evidence, ...],
    root: Candidate | None,
    failed: Moment | None,
    wanted: Wanted,
) -> tuple[Context, ...]:
    """Ranks in their order, then logs without a rank by path. Where no clock places the failure: the last lines."""
    if wanted.lines <= 0:
        return ()
    first: dict[tuple[str, int | None], int] = {}
    for one in evidence:
        for key in ((one.path, one.rank), (one.path, None)):
            first[key] = min(one.line, first.get(key, one.line))
    places: list[tuple[str, Source, int | None, int]] = []
    for rank in _ranks(view, evidence, root, wanted):
        state = view.states.get(rank)
        if state is None:
            continue
        logs = [extent for extent in state.extents if extent.source.kind not in _RECORDS] or state.extents
        cited = [extent for extent in logs if (extent.source.path, rank) in first]
        extent = max(cited or logs, key=lambda one: (one.lines, one.source.path), default=None)
        if extent is None:
            continue
        until = first.get((extent.source.path, rank)) or _until(view, extent.source, extent.last_ns, failed)
        places.append((f"rank {rank}", extent.source, rank, until if until is not None else extent.last_line))
    by_path = {source.path: source for source in view.timeline.sources.values()}
    for path in sorted({one.path for one in evidence if one.rank is None}):
        if path in by_path:
            places.append((f"log {path}", by_path[path], None, first[path, None]))
    return _fetch(con, view, places, first, wanted.lines, failed)


def _ranks(view: View, evidence: tuple[Evidence, ...], root: Candidate | None, wanted: Wanted) -> list[int]:
    if wanted.every_rank:
        return sorted(view.states)
    if wanted.ranks is not None:
        return sorted(set(wanted.ranks))
    told = [*(root.ranks if root else ()), *(one.rank for one in evidence if one.rank is not None)]
    others = [state.rank for state in view.failing() if state.rank not in told]
    return sorted(dict.fromkeys([*told[:32], *others[: max(0, _BY_DEFAULT - len(told))]]))


def _until(view: View, source: Source, last_ns: int | None, failed: Moment | None) -> int | None:
    """The stamp, as that source's clock prints it, of the moment of the failure; negative, so that no line has it."""
    if failed is None or last_ns is None or (moment := view.times.of_source(source, last_ns)) is None:
        return None
    return -(failed.end_ns - moment.ns + last_ns) if failed.end_ns < moment.ns else None


def _fetch(
    con: duckdb.DuckDBPyConnection,
    view: View,
    places: list[tuple[str, Source, int | None, int]],
    first: dict[tuple[str, int | None], int],
    count: int,
    failed: Moment | None,
) -> tuple[Context, ...]:
    rows = con.execute(
        """
        WITH wanted AS (
            SELECT unnest($1::INTEGER[]) AS number, unnest($2::INTEGER[]) AS source_id, unnest($3::INTEGER[]) AS rank,
                   unnest($4::BIGINT[]) AS until
        )
        SELECT w.number, l.line, left(coalesce(l.message, '(the text of this line was left in the log)'), $6)
        FROM wanted w JOIN line_rows l USING (source_id)
        WHERE (w.until >= 0 AND l.line <= w.until OR w.until < 0 AND coalesce(l.near_ns, 0) <= -w.until)
          AND (w.rank IS NULL OR l.rank IS NULL OR l.rank = w.rank)
        QUALIFY row_number() OVER (PARTITION BY w.number ORDER BY l.line DESC) <= $5
        ORDER BY w.number, l.line
        """,
        [
            list(range(len(places))),
            [source.id for _, source, _, _ in places],
            [rank for _, _, rank, _ in places],
            [until for _, _, _, until in places],
            count,
            _TEXT,
        ],
    ).fetchall()
    lines: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for number, line, text in rows:
        lines[number].append((int(line), text))
    return tuple(
        Context(who, source.path, lines[number][-1][0], tuple(lines[number]), (source.path, rank) in first)
        for number, (who, source, rank, _) in enumerate(places)
        if lines[number]
    )
