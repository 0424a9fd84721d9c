"""firstfault in a program or a notebook: a job's diagnosis, and its timeline as polars frames, Arrow and a graph.

    from firstfault.api import diagnose, open_timeline

    answer = diagnose("logs/", database="job.duckdb")
    answer.verdict, answer.failure.cls, answer.initiating.ranks

    with open_timeline("job.duckdb") as timeline:
        timeline.table("first_errors")
        timeline.sql("SELECT rank, message FROM last_lines WHERE rank = ?", [3])
        timeline.graph()

What is exported here stays; everything else of the package may change.
"""

from __future__ import annotations

from firstfault.api.jobs import diagnose
from firstfault.api.timeline import Timeline, open_timeline
from firstfault.correlate.diagnosis import (
    Attempt,
    ChainLink,
    Clock,
    Collateral,
    Diagnosis,
    Evidence,
    Failure,
    Hypothesis,
    Job,
    Place,
    RankFate,
    Verdict,
)
from firstfault.ingest import IngestOptions
from firstfault.report.document import document, to_json
from firstfault.timeline import TimelineError

__all__ = [
    "Attempt",
    "ChainLink",
    "Clock",
    "Collateral",
    "Diagnosis",
    "Evidence",
    "Failure",
    "Hypothesis",
    "IngestOptions",
    "Job",
    "Place",
    "RankFate",
    "Timeline",
    "TimelineError",
    "Verdict",
    "diagnose",
    "document",
    "open_timeline",
    "to_json",
]
