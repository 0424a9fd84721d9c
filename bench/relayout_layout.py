"""What a layout is, and what all of them begin with: the files of a case as they are.

A layout holds only what the real one would give. `keeps` says whether it still tells ranks and hosts apart by itself;
where it does not, the lines may, and else no answer is the right one. A layout gives None for a case that lacks what
it takes (times of lines, hosts of ranks).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from relayout_job import Files, Job, Log

Make = Callable[[Job], Files | None]
BOTH, RANK, HOST, NONE = "rank, host", "rank", "host", "-"


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout: its group, what it still tells of `rank` and `host`, and how it is made."""

    name: str
    group: str
    keeps: str
    make: Make


def others(job: Job) -> Files:
    """The files that belong to no rank, as they are."""
    pieces = {path: data.split(b"\n") for path, data in job.others.items()}
    return {path: [((path, n), line) for n, line in enumerate(lines, 1)] for path, lines in pieces.items()}


def texts(job: Job) -> Files:
    """All files without those that are no text."""
    return {path: rows for path, rows in same(job).items() if b"\0" not in job.others.get(path, b"")}


def same(job: Job) -> Files:
    """As it was."""
    return {
        **others(job),
        **{log.path: [((log.path, n), one) for n, one in enumerate(log.lines, 1)] for log in job.logs},
    }


def stream_of(log: Log, line: bytes) -> str:
    """Where a line went: prints to standard output, tracebacks and the loggers of C++ to standard error."""
    if log.stream:
        return log.stream
    printed = re.search(rb"\b(?:step|iter|iteration|epoch|loss)\b", line) and not re.match(rb"[\[ ]*(?:File|E|W)", line)
    return "stdout" if printed else "stderr"


def pod_of(rank: int) -> str:
    """The pod of a rank, where each has one."""
    return f"llm-pre-worker-{rank}"
