"""Writes what the stage found back into the timeline, so that every number of a report can be asked again in SQL.

All of it goes in one transaction over an empty slate: a second run gives the same rows, a crash leaves the former ones.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import duckdb

from firstfault.correlate.candidate import View
from firstfault.correlate.graph import Edge, build
from firstfault.correlate.times import Times

if TYPE_CHECKING:
    from firstfault.correlate.comparison import Comparison
    from firstfault.correlate.diagnosis import Diagnosis, Failure, Place
    from firstfault.correlate.engine import AttemptResult, Correlation

_TABLES = ("clocks", "collectives", "nodes", "edges", "hypotheses", "verdicts", "evidence")


def save(con: duckdb.DuckDBPyConnection, correlation: Correlation, diagnosis: Diagnosis) -> None:
    """Replace the findings in a writable timeline."""
    con.execute("BEGIN TRANSACTION")
    try:
        for table in _TABLES:
            con.execute(f"DELETE FROM {table}")  # the names above, never input
        _many(con, "clocks", clock_rows(correlation.times, correlation))
        for result in correlation.attempts:
            _many(con, "collectives", collective_rows(result.view))
            graph = build(result.view, result.ranked.best)
            nodes = [(key, graph.nodes[key]) for key in sorted(graph)]
            _many(con, "nodes", [(result.attempt, key, one["kind"], one["label"], one["root"]) for key, one in nodes])
            _many(
                con,
                "edges",
                [
                    row
                    for effect, cause in sorted(graph.edges)
                    for row in edge_rows(result.attempt, graph.edges[effect, cause]["edge"])
                ],
            )
            _many(con, "hypotheses", hypothesis_rows(result))
        _many(con, "verdicts", verdict_rows(diagnosis))
        _many(con, "evidence", evidence_rows(diagnosis))
        con.execute("COMMIT")
    except BaseException:
        con.execute("ROLLBACK")
        raise


def _many(con: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[object, ...]]) -> None:
    """All rows of a table. Beyond a few they go by columns: row by row, DuckDB takes minutes for a hundred thousand."""
    if not rows:
        return
    if len(rows) <= 64:
        marks = ", ".join("?" for _ in rows[0])
        con.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        return
    types = [row[1] for row in con.execute(f"DESCRIBE {table}").fetchall()]
    columns = ", ".join(f"unnest(${number}::{kind}[])" for number, kind in enumerate(types, start=1))
    con.execute(f"INSERT INTO {table} SELECT {columns}", [list(column) for column in zip(*rows, strict=True)])


def clock_rows(times: Times, correlation: Correlation) -> list[tuple[object, ...]]:
    """One row for each clock that is linked to the reference."""
    alignment = times.alignment
    rows: list[tuple[object, ...]] = []
    names = sorted({source.clock for source in correlation.timeline.sources.values() if source.clock})
    for name in names:
        one = alignment.clocks.get(name)
        host = name.partition(":")[2] or None
        if name == times.reference and one is None:
            rows.append((name, host, None, 1, None, times.zones.get(name), 0, 0, True, "the reference"))
        elif one is not None and one.component == 0:
            segment = one.segments[-1]
            shift = -round(segment.offset_s * 1e9)
            bound = round(segment.bound(segment.middle_s) * 1e9)
            how = "the reference" if name == times.reference else one.how
            rows.append((name, host, None, 1, None, times.zones.get(name), shift, bound, name == times.reference, how))
    return rows


def collective_rows(view: View) -> list[tuple[object, ...]]:
    """One row for each member of each waited-in collective."""
    rows: list[tuple[object, ...]] = []
    for one in view.collectives:
        members = sorted(one.group.members | set(one.waiters) | set(one.absent) | set(one.passed))
        for rank in members:
            state = "unknown"
            for name, ranks in (
                ("odd", one.odd),
                ("waiting", one.waiters),
                ("absent", one.absent),
                ("passed", one.passed),
            ):
                if rank in ranks:
                    state = name
                    break
            signal = one.waiters.get(rank) or one.absent.get(rank) or one.passed.get(rank)
            enqueued, completed, _ = one.group.counters.get(rank, (None, None, None))
            rows.append(
                (
                    view.attempt,
                    one.group.key,
                    one.seq,
                    rank,
                    state,
                    str(one.calls[rank]) if rank in one.calls else None,
                    enqueued,
                    completed,
                    signal.source.id if signal else None,
                    signal.line if signal else None,
                )
            )
    return rows


def edge_rows(attempt: int, edge: Edge) -> list[tuple[object, ...]]:
    """One row for each line of an edge, one without a line where none shows it."""
    head = (attempt, edge.effect, edge.cause, edge.rule.id, edge.rule.strength)
    return [(*head, signal.source.id, signal.line) for signal in edge.signals] or [(*head, None, None)]


def hypothesis_rows(result: AttemptResult) -> list[tuple[object, ...]]:
    """Open candidates by probability, then the explained ones."""
    rows: list[tuple[object, ...]] = []
    ranked = result.ranked
    chances = (*ranked.probabilities, *(0.0 for _ in ranked.explained))
    for position, (one, chance) in enumerate(zip((*ranked.open, *ranked.explained), chances, strict=True), start=1):
        cause = one.explained_by
        reason = f"{cause.cls} ({cause.rule})" if cause else None
        rows.append(
            (
                result.attempt,
                position,
                one.cls,
                one.entry,
                one.rule,
                list(one.ranks),
                list(one.hosts),
                one.base,
                one.score,
                chance,
                reason,
                one.for_,
                one.against,
            )
        )
    return rows


def verdict_rows(diagnosis: Diagnosis) -> list[tuple[object, ...]]:
    """The answer of the job, then one row for each attempt."""
    failure, place = diagnosis.failure, diagnosis.initiating
    rows: list[tuple[object, ...]] = [
        (
            None,
            str(diagnosis.verdict),
            *_what_and_where(failure, place),
            diagnosis.confidence,
            diagnosis.missing_fact,
            diagnosis.next_action,
            diagnosis.summary,
        )
    ]
    for one in diagnosis.attempts:
        where = _what_and_where(one.failure, one.initiating)
        rows.append((one.attempt, str(one.verdict), *where, None, None, None, None))
    return rows


def _what_and_where(failure: Failure, place: Place) -> tuple[object, ...]:
    return (
        failure.cls,
        failure.entry,
        failure.title,
        place.component,
        list(place.ranks),
        list(place.hosts),
        list(place.gpus),
        _moment(place.at),
    )


def evidence_rows(diagnosis: Diagnosis) -> list[tuple[object, ...]]:
    """One row for each line that the answer rests on."""
    return [
        (position, one.path, one.line, one.rank, one.host, _moment(one.at), one.text, one.why)
        for position, one in enumerate(diagnosis.evidence, start=1)
    ]


def _moment(text: str | None) -> datetime | None:
    """A time of a diagnosis; without a zone it counts as UTC, as everywhere in the timeline."""
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def save_changes(con: duckdb.DuckDBPyConnection, comparison: Comparison | None) -> None:
    """Replace the differences from a run that went well; none where there is no such run."""
    con.execute("DELETE FROM changes")
    if comparison is not None:
        rows = change_rows(comparison)
        _many(con, "changes", [(position, *row) for position, row in enumerate(rows, start=1)])


def change_rows(comparison: Comparison) -> list[tuple[object, ...]]:
    """Lines, timings, settings, in the order of the comparison; without their position."""
    rows: list[tuple[object, ...]] = [
        (
            *("line", one.change, one.template, str(one.now), str(one.then)),
            *(list(one.ranks), one.level, one.entry, one.path, one.line, one.text),
        )
        for one in comparison.templates
    ]
    for timing in comparison.timings:
        change = "slower" if timing.now > timing.then or timing.ranks else "faster"
        values = (f"{timing.now:g}", f"{timing.then:g}")
        rows.append(("timing", change, timing.name, *values, list(timing.ranks), None, None, None, None, None))
    for setting in comparison.settings:
        values_ = (setting.now, setting.then)
        rows.append((setting.kind, "different", setting.name, *values_, [], None, None, None, None, None))
    return rows
