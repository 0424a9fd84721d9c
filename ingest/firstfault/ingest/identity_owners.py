"""Gives lines a rank that no header names: records with an owner beside them, errors that name the rank they are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from firstfault.catalog.model import Event
from firstfault.ingest.identity_commands import small
from firstfault.ingest.identity_job import Job
from firstfault.ingest.identity_sources import LineKey
from firstfault.ingest.identity_statements import Owned, Spoken

OWN_ERRORS = frozenset(
    {Event.EXCEPTION, Event.CUDA_ERROR, Event.NATIVE_CRASH, Event.NUMERIC, Event.HANG, Event.INIT_FAILURE}
)
"""Events whose captured `rank` is the rank that failed."""
RECORD_LIMIT = 5000


class Claim(NamedTuple):
    """A line and whose it is."""

    source_id: int
    line: int
    rank: int
    local_rank: int | None
    host: str | None


def claims_of(spoken: Iterable[Spoken], job: Job, owned: Iterable[tuple[int, Owned]] = ()) -> list[Claim]:
    """One claim for each line that some record or error gives to a rank, the first claim of a line counts."""
    found: dict[tuple[int, int], Claim] = {}
    for source_id, block in owned:
        for claim in _of_block(source_id, block, job):
            found.setdefault(claim[:2], claim)
    for row in spoken:
        for claim in (*_of_record(row, job), *_of_error(row, job), *_of_mark(row, job)):
            found.setdefault(claim[:2], claim)
    return [found[key] for key in sorted(found)]


def _of_record(row: Spoken, job: Job) -> Iterator[Claim]:
    if row.owned is not None:
        yield from _of_block(row.source_id, row.owned, job)


def _of_block(source_id: int, owned: Owned, job: Job) -> Iterator[Claim]:
    key = LineKey(source_id, owned.host, owned.rank, owned.local_rank, owned.pid, owned.task, 0, 0)
    who = job.resolve(key)
    if who.rank is None or (job.world is not None and who.rank >= job.world):
        return
    for line in range(owned.first_line, min(owned.last_line, owned.first_line + RECORD_LIMIT) + 1):
        yield Claim(source_id, line, who.rank, who.local_rank, who.host)


def _of_error(row: Spoken, job: Job) -> Iterator[Claim]:
    if row.event not in OWN_ERRORS or row.rank is not None:
        return
    text = (row.captures or {}).get("rank", "")
    if not text and (alone := job.rank_alone_on(row.source_id, row.host)) is not None:
        who = job.resolve(LineKey(row.source_id, row.host, alone, None, row.pid, None, 0, 0))
        yield Claim(row.source_id, row.line, alone, who.local_rank, who.host)
        return
    rank = small(int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else None
    if rank is None or (job.world is not None and rank >= job.world):
        return
    who = job.resolve(LineKey(row.source_id, row.host, rank, None, row.pid, None, 0, 0))
    yield Claim(row.source_id, row.line, rank, who.local_rank, who.host)


def _of_mark(row: Spoken, job: Job) -> Iterator[Claim]:
    if row.rank is not None or row.event == Event.IDENTITY:
        return
    rank = job.marks.rank_of(row.source_id, row.text or "")
    if rank is None or (job.world is not None and rank >= job.world):
        return
    who = job.resolve(LineKey(row.source_id, row.host, rank, None, row.pid, None, 0, 0))
    yield Claim(row.source_id, row.line, rank, who.local_rank, who.host)
