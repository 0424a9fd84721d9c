"""Progress up to the failure: the last step of every rank, steps over time of the telling ones, the last checkpoint."""

from __future__ import annotations

from collections import defaultdict

import duckdb

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.diagnosis import Checkpoint
from firstfault.correlate.model import Moment
from firstfault.correlate.picture import ProgressUpTo, Reached, Series

_POINTS = 120
_SERIES = 6
_SECOND = 1_000_000_000


def progress_of(
    con: duckdb.DuckDBPyConnection, view: View, root: Candidate | None, origin_ns: int | None
) -> ProgressUpTo:
    """Where each rank stopped, and step curves of the ranks where it began, of the furthest and of the last other."""
    stopped: dict[int, list[int]] = defaultdict(list)
    for state in view.states.values():
        if state.last_step is not None:
            stopped[state.last_step].append(state.rank)
    reached = tuple(Reached(step, tuple(sorted(stopped[step]))) for step in sorted(stopped))
    if origin_ns is None:
        return ProgressUpTo(reached)
    guilty = set(root.ranks) if root else set()
    others = sorted(
        (state.last_step, state.rank)
        for state in view.states.values()
        if state.last_step is not None and state.rank not in guilty
    )
    chosen = sorted(guilty & {rank for ranks in stopped.values() for rank in ranks})[: _SERIES - 2]
    chosen += [rank for _, rank in dict.fromkeys([*others[:1], *others[-1:]])]
    series = [one for rank in chosen if (one := _series(con, view, rank, rank in guilty, origin_ns))]
    if not series and (one := _series(con, view, None, False, origin_ns)):
        series = [one]
    return ProgressUpTo(reached, tuple(series))


def _series(con: duckdb.DuckDBPyConnection, view: View, rank: int | None, root: bool, origin_ns: int) -> Series | None:
    rows = con.execute(
        """
        WITH mine AS (
            SELECT source_id, line, step, stamp_ns, row_number() OVER (ORDER BY source_id, line) AS position,
                   count(*) OVER () AS total
            FROM progress
            WHERE rank IS NOT DISTINCT FROM $1 AND coalesce(attempt, 0) = $2 AND stamp_ns IS NOT NULL
              AND step IS NOT NULL
        )
        SELECT source_id, stamp_ns, step FROM mine
        WHERE (position - 1) % greatest(1, total // $3) = 0 OR position = total ORDER BY position
        """,
        [rank, view.attempt, _POINTS],
    ).fetchall()
    points = {}
    for source_id, stamp, step in rows:
        moment = view.times.of_source(view.timeline.sources[source_id], stamp)
        if moment is not None:
            points[round((moment.ns - origin_ns) / _SECOND, 3)] = int(step)
    name = "the job" if rank is None else f"rank {rank}"
    return Series(name, root, tuple(sorted(points.items()))) if points else None


def last_checkpoint(view: View, failed: Moment | None) -> Checkpoint | None:
    """The last checkpoint that a line calls written before the failure: the furthest step, else the latest line.

    One that only began to be written is no place to resume from.
    """
    found = []
    for signal in view.signals:
        if signal.event is not Event.CHECKPOINT or not (signal.fact or "").startswith("checkpoint-end"):
            continue
        moment = view.times.of(signal)
        if failed is not None and moment is not None and failed.surely_before(moment):
            continue
        step = signal.number("step")
        found.append((step if step is not None else -1, moment.ns if moment else 0, signal.place, signal, moment))
    if not found:
        return None
    steps = any(one[0] >= 0 for one in found)
    step, _, _, signal, moment = max(
        (one for one in found if one[0] >= 0 or not steps), key=lambda one: (one[0], one[1], one[2])
    )
    return Checkpoint(
        path=signal.captures.get("path") or signal.captures.get("path2"),
        step=step if step >= 0 else None,
        at=view.times.text(moment),
        source=signal.source.path,
        line=signal.line,
        text=signal.text[:500],
    )
