"""Adds to an answer what its pictures need: lanes, progress, the last checkpoint, lines before the failure.

None of it changes the verdict; all of it is asked of the timeline once, so that a report needs no other look. Secrets
are masked here, so that no reporter ever sees one.
"""

from __future__ import annotations

from dataclasses import replace

import duckdb

from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.contexts import Wanted, contexts_of
from firstfault.correlate.diagnosis import Diagnosis, Verdict
from firstfault.correlate.engine import Correlation, echo_moment
from firstfault.correlate.healthy import Healthy, compare
from firstfault.correlate.model import Moment
from firstfault.correlate.progress import last_checkpoint, progress_of
from firstfault.correlate.secrets import mapped, masked
from firstfault.correlate.swim import swim_of
from firstfault.correlate.verdict import judged

_SECOND = 1_000_000_000


def enriched(
    con: duckdb.DuckDBPyConnection,
    correlation: Correlation,
    answer: Diagnosis,
    wanted: Wanted,
    healthy: Healthy | None = None,
) -> Diagnosis:
    """The same answer with its pictures."""
    result, verdict = judged(correlation)
    view = result.view
    root = result.ranked.best if verdict is Verdict.IDENTIFIED else None
    failed = None if verdict is Verdict.NO_FAILURE else failed_at(view, root)
    swim, origin_ns = swim_of(con, view, root, failed)
    full = replace(
        answer,
        swim=swim,
        progress=progress_of(con, view, root, origin_ns),
        job=replace(answer.job, checkpoint=last_checkpoint(view, failed)),
        contexts=contexts_of(con, view, answer.evidence, root, failed, wanted),
        comparison=compare(con, healthy) if healthy else None,
    )
    return mapped(full, masked)  # type: ignore[no-any-return]


def failed_at(view: View, root: Candidate | None) -> Moment | None:
    """When it began: the root's moment, else the first line that only follows a failure.

    A stamp may be cut to the second: the last line of the rank where it began then says it more closely.
    """
    moment = (root.moment if root else None) or echo_moment(view)
    if moment is None or root is None:
        return moment
    lasts = [view.states[rank].last_ns(view.times) for rank in root.ranks if rank in view.states]
    closer = [last for last in lasts if last is not None and moment.ns < last <= moment.ns + _SECOND]
    return Moment(max(closer), moment.bound_ns, moment.late_ns) if closer else moment
