"""Puts the parts of all units together: shards to sources, paths and numbers, twins, identities, time contexts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from firstfault.catalog.matcher import Matcher
from firstfault.ingest import identify as identity
from firstfault.ingest import times
from firstfault.ingest.discover import STDIN
from firstfault.ingest.dumps import DumpProblem, DumpRows, DumpSignal
from firstfault.ingest.dumps.classify import classified
from firstfault.ingest.extract.records import Failure
from firstfault.ingest.extract.rows import About, Own, SignalRow
from firstfault.ingest.extract.settle import settle
from firstfault.ingest.extract.source import SourceState
from firstfault.ingest.identity_paths import claims_of
from firstfault.ingest.options import IngestOptions
from firstfault.ingest.part import Part, numbered
from firstfault.ingest.problems import Problem, Severity
from firstfault.ingest.stages import stage

_ROTATED = re.compile(r"^(?P<stem>.+\.[A-Za-z]+)\.(?P<number>\d{1,3})(?:\.(?:gz|zst|xz|bz2))?$")
_DATED = re.compile(r"^(?P<stem>.+\.[A-Za-z]+)[.-](?P<date>\d{8}(?:-\d{6})?)(?:\.(?:gz|zst|xz|bz2))?$")
_FEW_LINES = 20


@dataclass(frozen=True, slots=True)
class Spoken:
    """A signal with the number of its source; the place and time are those that its own line says."""

    source_id: int
    row: SignalRow
    line: int
    event: str | None
    fact: str | None
    text: str
    captures: Mapping[str, str]
    host: str | None
    rank: int | None
    local_rank: int | None
    pid: int | None
    gpu: int | None
    stamp_ns: int | None
    stamp_kind: str | None
    owned: identity.Owned | None = None

    @classmethod
    def of(cls, source_id: int, row: SignalRow) -> Spoken:
        own, owner = row.own, row.owner
        owned = None
        if owner is not None and row.first_line is not None and row.last_line is not None:
            owned = _owned(row.first_line, row.last_line, owner)
        return cls(
            source_id, row, row.line, row.event, row.fact, row.text, row.captures, own.host, own.rank, own.local_rank,
            own.pid, own.gpu, own.stamp_ns, own.stamp_kind, owned,
        )  # fmt: skip


@dataclass(slots=True)
class Numbered:
    """A source with its final number and path."""

    id: int
    path: str
    state: SourceState
    twin_of: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that was read, settled. `places` says for each number of a part the source and the lines before it."""

    sources: Sequence[Numbered]
    places: pl.DataFrame
    signals: list[Spoken]
    dumps: Sequence[tuple[int, DumpRows]]
    problems: Sequence[Problem]
    identity: identity.Identity
    contexts: Mapping[int, times.Context]
    parts: Sequence[Part]

    def forget_signals(self) -> None:
        """Let go of what its rows were made of, which is much in a long job."""
        self.signals.clear()
        for one in self.sources:
            one.state.signals = []
            one.state.spans = []


@stage("assemble")
def assemble(
    roots: Sequence[str], parts: Sequence[Part], problems: Iterable[Problem], matcher: Matcher, options: IngestOptions
) -> Job:
    """Number the sources of all parts and settle who is who and when."""
    numbered(parts)
    states, before = _united(parts, matcher)
    sources, renamed = _numbered(states, roots)
    ids = {one.state.number: one.id for one in sources}
    pairs = [(number, ids[owner], lines) for number, (owner, lines) in before.items()]
    places = pl.DataFrame(pairs, schema={"number": pl.Int32, "id": pl.Int32, "before": pl.Int64}, orient="row")
    found = [*problems, *(problem for part in parts for problem in part.problems)]
    for one in sources:
        _note_format(one.state)
        found += one.state.problems
    keys = _renumbered(
        identity.merge(part.keys for part in parts if part.keys is not None), "source_id", "first", places
    )
    stamps = _renumbered(
        times.merge(part.stamps for part in parts if part.stamps is not None), "source", "line", places
    )
    _mark_twins(sources, keys, stamps, found)
    speaking = {one.state.number: one for one in sources if one.twin_of is None}
    dumps = [
        (speaking[number].id, classified(rows, matcher))
        for part in parts
        for number, rows in part.dumps
        if number in speaking
    ]
    signals = [Spoken.of(one.id, row) for one in speaking.values() for row in one.state.signals]
    signals += [Spoken.of(source, _of_dump(row)) for source, rows in dumps for row in rows.signals]
    paths = {one.id: one.path for one in sources}
    found += [_of_reader(paths[source], problem) for source, rows in dumps for problem in rows.problems]
    who = identity.identify(
        [
            identity.SourceSeen(one.id, one.path, one.state.head, one.state.kind if one.state.reader else None)
            for one in sources
        ],
        signals,
        identity.merge([keys]),
        {source: rows.identities for source, rows in dumps},
        options.hosts,
        options.ranks,
        [(one.id, _owned(*block)) for one in speaking.values() for block in one.state.owned],
    )
    found += [_of_reader(path or "", problem) for _, path, problem in who.problems]
    dated = [about.stamp_ns for one in signals if (about := one.row.about) and about.stamp_ns is not None]
    changed = {one.id: one.state.mtime_ns for one in sources}
    contexts = times.contexts(stamps, changed, dated, options.year)
    final = [replace(problem, path=renamed.get(problem.path, problem.path)) for problem in found]
    # the evidence is as much as all signals, and is asked no more
    return Job(sources, places, signals, dumps, final, replace(who, job=None), contexts, parts)


def _owned(first: int, last: int, own: Own) -> identity.Owned:
    return identity.Owned(first, last, own.host, own.rank, own.local_rank, own.pid, own.task)


def _united(parts: Sequence[Part], matcher: Matcher) -> tuple[list[SourceState], dict[int, tuple[int, int]]]:
    """The states of whole sources, and for each number in a part the number of its source and the lines before it."""
    states: list[SourceState] = []
    before: dict[int, tuple[int, int]] = {}
    first: SourceState | None = None
    for part in parts:
        if part.shard is None:
            states += part.states
            before |= {state.number: (state.number, 0) for state in part.states}
            continue
        for state in part.states:
            if part.shard.start == 0 or first is None:
                first = state
                before[state.number] = (state.number, 0)
                states.append(state)
            else:
                before[state.number] = (first.number, first.lines)
                _append(first, state)
    sharded = {owner for number, (owner, _) in before.items() if number != owner}
    for state in states:
        if state.number in sharded:
            settle(state, matcher)
    return states, before


def _append(whole: SourceState, shard: SourceState) -> None:
    """Add the next shard of a source to what is known of it."""
    base = whole.lines
    whole.signals += [replace(signal, line=signal.line + base) for signal in shard.signals]
    whole.failures += [_shifted(failure, base) for failure in shard.failures]
    whole.spans += [[line + base for line in span] for span in shard.spans]
    whole.owned += [(first + base, last + base, own) for first, last, own in shard.owned]
    begun = max((span[-1] for span in whole.spans if span[0] in whole.joined), default=0)
    whole.joined.update({line + base: text for line, text in shard.joined.items() if line + base > begun})
    whole.formats.update(shard.formats)
    whole.lines += shard.lines
    whole.bytes += shard.bytes
    whole.folded.update(shard.folded)
    whole.folded_lines += [lines + base for lines in shard.folded_lines]
    whole.digest = hashlib.blake2b(f"{whole.digest}{shard.digest}".encode(), digest_size=16).hexdigest()
    for problem in shard.problems:
        line = problem.line + base if problem.line is not None else None
        whole.note(problem.kind, problem.severity, problem.detail, line, problem.count)


def _shifted(failure: Failure, base: int) -> Failure:
    captures = dict(failure.captures)
    if "cause_line" in captures:
        captures["cause_line"] = str(int(captures["cause_line"]) + base)
    return replace(failure, line=failure.line + base, lines=[line + base for line in failure.lines], captures=captures)


def _renumbered(frame: pl.DataFrame, column: str, line: str, places: pl.DataFrame) -> pl.DataFrame:
    """A summary of parts with the numbers of their sources, its lines counted from the top of each."""
    joined = frame.join(places, left_on=column, right_on="number", how="inner")
    moved = (pl.col(line) + pl.col("before")).alias(line)
    return joined.with_columns(pl.col("id").alias(column), moved).drop("id", "before")


def _numbered(states: Sequence[SourceState], roots: Sequence[str]) -> tuple[list[Numbered], dict[str, str]]:
    """Sources in the order of their final paths; where given PATHs hold the same path, the PATH stands in front."""
    owners: dict[str, set[int]] = {}
    for state in states:
        owners.setdefault(state.path, set()).add(state.root)
    clashing = {root for held in owners.values() if len(held) > 1 for root in held}
    taken: dict[str, int] = {}
    named: list[tuple[str, SourceState]] = []
    for state in states:
        path = _in_front(roots[state.root], state.path) if state.root in clashing else state.path
        taken[path] = taken.get(path, 0) + 1
        named.append((path if taken[path] == 1 else f"{path}~{taken[path]}", state))
    named.sort(key=lambda pair: _in_order(pair[0]))
    renamed = {state.path: path for path, state in named if len(owners[state.path]) == 1}
    for path, state in named:
        state.path = path
        state.problems = [replace(one, path=path, source=path) for one in state.problems]
    return [Numbered(number, path, state) for number, (path, state) in enumerate(named)], renamed


def _in_order(path: str) -> tuple[list[str], int, str]:
    """Paths by folder and name, the parts of a rotated log from the oldest to the one that is written now."""
    *folders, name = path.split("/")
    if found := _ROTATED.match(name):
        return [*folders, found["stem"]], -int(found["number"]), name
    if found := _DATED.match(name):
        return [*folders, found["stem"]], -1, name
    return [*folders, name], 0, name


def _in_front(root: str, path: str) -> str:
    if root == STDIN:
        return path
    front = root.rstrip("/").removeprefix("./")
    return front if front.rpartition("/")[2] == path else f"{front}/{path}"


def _note_format(state: SourceState) -> None:
    """Say so where nearly no line of a log has a header that a format explains."""
    understood = sum(state.formats.values()) + sum(len(span) for span in state.spans)
    if state.reader is None and state.lines >= _FEW_LINES and understood * 20 < state.lines:
        detail = f"only {understood} of {state.lines} lines begin with a header that a known format explains"
        state.note("unknown-format", Severity.INFO, detail, count=state.lines - understood)


def _mark_twins(sources: Sequence[Numbered], keys: pl.DataFrame, stamps: pl.DataFrame, problems: list[Problem]) -> None:
    """Of sources with the very same content, by one writer at one time, only the first speaks.

    Two ranks may well print the same few words: content counts as one only where its lines name their writer and time.
    """
    naming = keys.filter(pl.any_horizontal(pl.col("host", "rank", "pid").is_not_null()))["source_id"]
    telling = set(naming) & set(stamps["source"])
    first: dict[tuple[str, int], Numbered] = {}
    for one in sources:
        state = one.state
        if one.id not in telling or not state.digest:
            continue
        known = first.setdefault((state.digest, state.bytes), one)
        if known is not one and not _contradict(known.path, one.path):
            one.twin_of = known.path
            detail = f"the same content as {known.path}, which speaks for both"
            problems.append(Problem(one.path, "duplicate", Severity.INFO, detail, count=state.lines, source=one.path))


def _contradict(first: str, second: str) -> bool:
    """Whether two paths claim different writers."""
    one, other = claims_of(first), claims_of(second)
    for name in ("rank", "local_rank", "node_rank", "task", "attempt", "tree", "pid"):
        a, b = getattr(one, name), getattr(other, name)
        if a is not None and b is not None and a != b:
            return True
    return False


def _of_dump(row: DumpSignal) -> SignalRow:
    about = About(
        row.rank, row.local_rank, row.host, row.attempt, row.pid, row.gpu, row.level, row.stamp_ns, row.stamp_kind,
        row.stamp_res_ns, row.utc_offset_s,
    )  # fmt: skip
    own = Own(
        row.level, row.host, row.rank, row.local_rank, None, row.pid, row.gpu, row.stamp_ns, row.stamp_kind,
        row.stamp_res_ns, row.utc_offset_s,
    )  # fmt: skip
    return SignalRow(
        line=row.line, event=row.event, text=row.text, entry=row.entry, fact=row.fact, cls=row.cls, role=row.role,
        weak=row.weak, first_line=row.first_line, last_line=row.last_line, captures=dict(row.captures), own=own,
        about=about, owner=Own(host=row.host, pid=row.pid) if row.fact == "stack" and row.rank is None else None,
    )  # fmt: skip


def _of_reader(path: str, problem: DumpProblem) -> Problem:
    return Problem(path, problem.kind, Severity(problem.severity), problem.detail, problem.line, problem.count, path)
