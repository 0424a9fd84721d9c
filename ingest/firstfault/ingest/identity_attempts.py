"""Cuts sources into attempts: by folder, by the launcher's own counter, by a process that starts a second time.

A source that says nothing itself (the error stream of a requeued task) follows the stamps of one of the same rank or
host.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from firstfault.catalog.model import Event
from firstfault.ingest.identity_places import PLACES
from firstfault.ingest.identity_statements import PAIRS, TABLES, Spoken, Statement

RESTART_TEXT = "will restart worker group"
REPORT_TEXT = "failed (exitcode: "
"""What torch's agent prints once for each start of its workers that failed (torch/distributed/elastic/multiprocessing/
api.py); that it starts them again is below its default level.
"""
RESTART_GAP_NS = 60 * 1_000_000_000
IDLE = frozenset({Event.IDENTITY, Event.START, Event.SYNC, Event.NOISE, Event.CLOCK, Event.PHASE, None})


DESCRIBING = PAIRS | PLACES | {"identity-megatron-rerun"}
"""Facts of lines that a process may print at any time, as often as it has something to tell."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """From this line on, a source belongs to this attempt (and to this host, where the attempt moved)."""

    source_id: int
    line: int
    attempt: int
    host: str | None = None
    stamp_ns: int | None = None
    stamp_kind: str | None = None


@dataclass(slots=True)
class _Cursor:
    """What was met so far while one source is read from top to bottom."""

    attempt: int = 0
    counted: bool = False
    agents: dict[Hashable, int] = field(default_factory=lambda: defaultdict(int))
    reports: dict[Hashable, list[int]] = field(default_factory=lambda: defaultdict(list))
    starts: dict[Hashable, tuple[int, Spoken, Statement]] = field(default_factory=dict)
    busy_line: int = 0


def boundaries_of(spoken: Iterable[Spoken], statements: Sequence[Statement]) -> dict[int, list[Boundary]]:
    """The boundaries that each source shows by itself; only sources with a second attempt are listed."""
    said: dict[tuple[int, int], list[Statement]] = defaultdict(list)
    for one in statements:
        said[(one.source_id, one.line)].append(one)
    numbered = {one.source_id for one in statements if one.how in ("rendezvous", "restart") and one.attempt is not None}
    rows: dict[int, list[Spoken]] = defaultdict(list)
    for row in spoken:
        rows[row.source_id].append(row)
    found: dict[int, list[Boundary]] = {}
    for source_id in sorted(rows):
        cursor, cuts = _Cursor(), [Boundary(source_id, 1, 0)]
        for row in sorted(rows[source_id], key=lambda row: row.line):
            here = said.get((source_id, row.line), [])
            for cut in _cuts(cursor, row, here, source_id in numbered):
                if cut.attempt != cursor.attempt:
                    cuts.append(cut)
                    cursor.attempt = cut.attempt
            if row.event not in IDLE:
                cursor.busy_line = row.line
        if len(cuts) > 1:
            found[source_id] = _with_hosts(cuts, statements)
    return found


def _cuts(cursor: _Cursor, row: Spoken, here: Sequence[Statement], numbered: bool) -> Iterable[Boundary]:
    for one in here:
        if one.how in ("rendezvous", "restart") and one.attempt is not None and one.attempt != cursor.attempt:
            yield Boundary(row.source_id, row.line, one.attempt, None, row.stamp_ns, row.stamp_kind)
    if not numbered and RESTART_TEXT in (row.text or ""):
        agent = (row.host, row.pid)
        cursor.agents[agent] += 1
        if cursor.agents[agent] > cursor.attempt:
            yield Boundary(row.source_id, row.line + 1, cursor.agents[agent], None, row.stamp_ns, row.stamp_kind)
    if not numbered and row.event == Event.EXIT and (row.text or "").startswith(REPORT_TEXT):
        lines = cursor.reports[row.host, row.pid]
        if lines and lines[-1] != row.line and len(lines) > cursor.attempt:
            yield Boundary(row.source_id, lines[-1] + 1, len(lines), None, row.stamp_ns, row.stamp_kind)
        if not lines or lines[-1] != row.line:
            lines.append(row.line)
    for one in here:
        starts = (one.own and one.how == "start-line") or one.fact in TABLES
        if not starts or one.comm is not None or row.event not in (Event.IDENTITY, Event.START):
            continue
        if one.fact in DESCRIBING and one.pid is None:
            continue  # some programs describe themselves in every line
        key = (one.fact, one.rank, one.local_rank, one.task)
        if key[1:] == (None, None, None):
            continue  # whose second start it would be, it does not say
        before = cursor.starts.get(key)
        if before is None:
            cursor.starts[key] = (0, row, one)
        elif _again(before[1], before[2], row, one, cursor.busy_line):
            count = before[0] + 1
            cursor.starts[key] = (count, row, one)
            count = max(count, *map(len, cursor.reports.values())) if cursor.reports else count
            if count > cursor.attempt and not numbered:
                yield Boundary(row.source_id, row.line, count, one.host, row.stamp_ns, row.stamp_kind)


def _again(old_row: Spoken, old: Statement, row: Spoken, one: Statement, busy_line: int) -> bool:
    """Whether a start line that is met again means a new process."""
    if row.line == old_row.line:
        return False
    if old.pid is not None and one.pid is not None:
        return old.pid != one.pid
    if old_row.stamp_ns is not None and row.stamp_ns is not None and old_row.stamp_kind == row.stamp_kind:
        return row.stamp_ns - old_row.stamp_ns >= RESTART_GAP_NS
    return busy_line > old_row.line


def _with_hosts(cuts: Sequence[Boundary], statements: Sequence[Statement]) -> list[Boundary]:
    """Each boundary with the one host that start lines behind it name, where attempts ran on different hosts."""
    source_id = cuts[0].source_id
    hosts: list[set[str]] = [set() for _ in cuts]
    for one in statements:
        if one.source_id == source_id and one.own and one.host:
            at = max(index for index, cut in enumerate(cuts) if cut.line <= max(one.line, 1))
            hosts[at].add(one.host)
    if len(set().union(*hosts)) < 2:
        return list(cuts)
    return [
        Boundary(
            cut.source_id,
            cut.line,
            cut.attempt,
            next(iter(names)) if len(names) == 1 else None,
            cut.stamp_ns,
            cut.stamp_kind,
        )
        for cut, names in zip(cuts, hosts, strict=True)
    ]


def by_jobs(jobs: Mapping[int, str], spoken: Iterable[Spoken]) -> dict[int, int]:
    """Attempts of sources whose names bear the numbers of different jobs, where one job follows on the other."""
    spans: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for row in spoken:
        if row.stamp_ns is not None and row.source_id in jobs:
            spans[(jobs[row.source_id], row.stamp_kind)].append(row.stamp_ns)
    names = sorted({name for name, _ in spans})
    kinds = {kind for _, kind in spans}
    if len(names) < 2 or len(kinds) != 1 or len(names) < len(set(jobs.values())):
        return {}
    ordered = sorted((min(stamps), max(stamps), name) for (name, _), stamps in spans.items())
    if any(later[0] <= earlier[1] for earlier, later in pairwise(ordered)):
        return {}  # jobs side by side are no attempts of one another
    order = {name: attempt for attempt, (_, _, name) in enumerate(ordered)}
    return {source_id: order[name] for source_id, name in jobs.items()}


def by_stamps(
    silent: Iterable[tuple[int, int | None, str | None]],
    owners: Mapping[int, tuple[int | None, str | None]],
    boundaries: Mapping[int, Sequence[Boundary]],
) -> list[Boundary]:
    """Boundaries by stamp for `silent` sources (source, rank, host), from one of the same rank, else host."""
    by_rank: dict[int, list[Boundary]] = {}
    by_host: dict[str, list[Boundary]] = {}
    for source_id in sorted(boundaries):
        dated = [cut for cut in boundaries[source_id] if cut.stamp_ns is not None]
        rank, host = owners.get(source_id, (None, None))
        if not dated:
            continue
        if rank is not None:
            by_rank.setdefault(rank, dated)
        for name in {host, *(cut.host for cut in boundaries[source_id])} - {None}:
            by_host.setdefault(str(name), dated)
    found: list[Boundary] = []
    for source_id, rank, host in silent:
        cuts = by_rank.get(rank) if rank is not None else None
        if cuts is None and host is not None:
            cuts = by_host.get(host)
        found.extend(
            Boundary(source_id, 0, cut.attempt, cut.host, cut.stamp_ns, cut.stamp_kind)
            for cut in cuts or ()
            if cut.stamp_ns is not None
        )
    return found
