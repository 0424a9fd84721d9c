"""Puts the parts of all workers together: final paths and numbers, twins, identities, stamps, and the rows of every table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from firstfault.catalog.matcher import Matcher
from firstfault.ingest import identify as identity
from firstfault.ingest import times
from firstfault.ingest.discover import STDIN
from firstfault.ingest.dumps import DumpSignal
from firstfault.ingest.extract.rows import About, Own, SignalRow
from firstfault.ingest.extract.source import SourceState, best_of
from firstfault.ingest.options import IngestOptions, zone
from firstfault.ingest.problems import Problem, Severity
from firstfault.ingest.read import Part


@dataclass(slots=True)
class Numbered:
    """A source with its final number and path."""

    id: int
    path: str
    state: SourceState
    twin_of: str | None = None


@dataclass(frozen=True, slots=True)
class Spoken:
    """A signal with the number of its source, as the identity stage wants it."""

    source_id: int
    row: SignalRow

    @property
    def line(self) -> int:
        return self.row.line

    @property
    def event(self) -> str | None:
        return self.row.event

    @property
    def fact(self) -> str | None:
        return self.row.fact

    @property
    def text(self) -> str:
        return self.row.text

    @property
    def captures(self) -> Any:
        return self.row.captures

    @property
    def host(self) -> str | None:
        return self.row.own.host

    @property
    def rank(self) -> int | None:
        return self.row.own.rank

    @property
    def local_rank(self) -> int | None:
        return self.row.own.local_rank

    @property
    def pid(self) -> int | None:
        return self.row.own.pid

    @property
    def gpu(self) -> int | None:
        return self.row.own.gpu

    @property
    def stamp_ns(self) -> int | None:
        return self.row.own.stamp_ns

    @property
    def stamp_kind(self) -> str | None:
        return self.row.own.stamp_kind


@dataclass(slots=True)
class Job:
    """Everything that was read, ready to be written."""

    sources: list[Numbered]
    signals: list[Spoken]
    problems: list[Problem]
    identity: identity.Identity
    parts: Sequence[Part]
    contexts: dict[int, times.Context]
    matcher: Matcher
    options: IngestOptions
    roots: list[str]
    _ids: pl.DataFrame = field(init=False)

    def __post_init__(self) -> None:
        pairs = [(one.state.number, one.id) for one in self.sources]
        self._ids = pl.DataFrame(pairs, schema={"number": pl.Int32, "id": pl.Int32}, orient="row")

    @classmethod
    def of(
        cls,
        paths: Sequence[str | Path],
        parts: Sequence[Part],
        problems: Iterable[Problem],
        matcher: Matcher,
        options: IngestOptions,
    ) -> Job:
        """Number the sources and settle who is who."""
        roots = [str(path) for path in paths]
        found = [*problems, *(problem for part in parts for problem in part.problems)]
        sources, renamed = _numbered([state for part in parts for state in part.states], roots)
        found = [_renamed(problem, renamed) for problem in found]
        found += [_renamed(problem, renamed) for one in sources for problem in one.state.problems]
        _mark_twins(sources, found)
        signals = [Spoken(one.id, row) for one in sources if one.twin_of is None for row in one.state.signals]
        dumps = {number: rows for part in parts for number, rows in part.dumps}
        ids = {one.state.number: one.id for one in sources if one.twin_of is None}
        for number, rows in sorted(dumps.items()):
            if number in ids:
                signals += [Spoken(ids[number], _of_dump(row)) for row in rows.signals]
        by_id = {one.id: one for one in sources}
        for number, rows in sorted(dumps.items()):
            if number in ids:
                path = by_id[ids[number]].path
                found += [
                    Problem(path, one.kind, Severity(one.severity), one.detail, one.line, one.count, path)
                    for one in rows.problems
                ]
        renumber = {one.state.number: one.id for one in sources}
        summaries = [part.summary.with_columns(pl.col("source_id").replace_strict(renumber, return_dtype=pl.Int32)) for part in parts if part.summary is not None]
        who = identity.identify(
            [
                identity.SourceSeen(one.id, one.path, one.state.head, one.state.kind if one.state.reader else None)
                for one in sources
            ],
            signals,
            identity.merge(summaries),
            {ids[number]: rows.identities for number, rows in dumps.items() if number in ids},
            options.hosts,
            options.ranks,
        )
        stamp_summary = pl.concat([part.stamps for part in parts if part.stamps is not None]) if any(part.stamps is not None for part in parts) else None
        full = [
            signal.about.stamp_ns
            for spoken in signals
            if (signal := spoken.row).about is not None
            and signal.about.stamp_ns is not None
            and signal.about.stamp_kind in ("full", "offset")
        ]
        contexts = (
            dict(times.contexts(stamp_summary, [(one.state.number, one.state.mtime_ns) for one in sources], full, options.year))
            if stamp_summary is not None
            else {}
        )
        found += [
            Problem(path or "", one.kind, Severity(one.severity), one.detail, one.line, one.count, path)
            for _, path, one in who.problems
        ]
        return cls(sources, signals, found, who, parts, contexts, matcher, options, roots)

    def meta(self) -> dict[str, str]:
        """Facts about the timeline itself."""
        try:
            version = metadata.version("firstfault")
        except metadata.PackageNotFoundError:
            version = "unknown"
        catalog = hashlib.sha256("\0".join(f"{p.id}/{p.pattern_id}/{p.regex}" for p in self.matcher.patterns).encode())
        return {
            "firstfault_version": version,
            "catalog_version": catalog.hexdigest()[:16],
            "roots": "\n".join(self.roots),
            "world_size": "" if self.identity.world_size is None else str(self.identity.world_size),
        }

    def source_rows(self) -> pl.DataFrame:
        """The rows of `sources`."""
        rows = []
        for one in self.sources:
            state, who = one.state, self.identity.sources[one.id]
            form = state.reader or (state.formats.most_common(1)[0][0] if state.formats else None)
            kind = "binary" if state.kind == "binary" else who.kind
            understood = sum(state.formats.values())
            rows.append(
                (
                    one.id, one.path, kind, form, _why(state, who.why), who.host, who.node_rank, who.rank, who.local_rank,
                    who.attempt, who.stream, who.clock, _fixed_offset(self.options), state.bytes, state.lines, understood,
                    True, f"{state.bytes}:{state.mtime_ns}:{state.digest}",
                )
            )  # fmt: skip
        schema = {
            "source_id": pl.Int32, "path": pl.String, "kind": pl.String, "format": pl.String, "why": pl.String,
            "host": pl.String, "node_rank": pl.Int32, "rank": pl.Int32, "local_rank": pl.Int32, "attempt": pl.Int32,
            "stream": pl.String, "clock": pl.String, "utc_offset_s": pl.Int32, "bytes": pl.Int64, "lines": pl.Int64,
            "understood": pl.Int64, "text_stored": pl.Boolean, "fingerprint": pl.String,
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

    def line_frames(self) -> Iterator[pl.DataFrame]:
        """The rows of `line_rows` part by part, with columns that only signals need."""
        for part in self.parts:
            frames = [pl.read_parquet(file) for file in part.files] + ([pl.concat(part.lines)] if part.lines else [])
            for frame in frames:
                if not len(frame):
                    continue
                out = times.neighbours(times.complete(frame, self.contexts))
                out = out.join(self._ids, left_on="source", right_on="number", how="left").rename({"id": "source_id"})
                yield self.identity.fill(out.sort("source_id", "line"))

    def marks(self) -> pl.DataFrame:
        """For lines with an entry or in a record: which."""
        best: dict[tuple[int, int], list[SignalRow]] = {}
        for spoken in self.signals:
            if spoken.row.entry is not None:
                best.setdefault((spoken.source_id, spoken.line), []).append(spoken.row)
        rows = []
        for (source, line), found in best.items():
            chosen = best_of(found, self.matcher) or found[0]
            rows.append((source, line, chosen.entry, chosen.cls))
        return pl.DataFrame(
            rows, schema={"source_id": pl.Int32, "line": pl.Int64, "entry": pl.String, "class": pl.String}, orient="row"
        )

    def record_rows(self) -> pl.DataFrame:
        """For lines in a record: its first line."""
        rows = [
            (one.id, line, record.lines[0])
            for one in self.sources
            for record in one.state.records
            for line in record.lines
        ]
        schema = {"source_id": pl.Int32, "line": pl.Int64, "record": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row").unique(["source_id", "line"], keep="first")

    def signal_frame(self) -> pl.DataFrame:
        """Signals with their own columns; `about_*` columns win over what the line and its source say."""
        ordered = sorted(self.signals, key=lambda one: (one.source_id, one.line, one.row.entry is None, one.row.pattern, one.row.event or ""))
        rows = []
        for number, spoken in enumerate(ordered):
            row, about = spoken.row, spoken.row.about
            captures = [{"key": key, "value": value} for key, value in sorted(row.captures.items()) if value is not None]
            rows.append(
                (
                    number, spoken.source_id, row.line, row.first_line or row.line, row.last_line or row.line, row.entry,
                    row.fact, row.event, row.cls, row.role, row.weak, row.text, captures,
                    *(getattr(about, name, None) for name in About.__slots__),
                )
            )  # fmt: skip
        schema: dict[str, Any] = {
            "signal_id": pl.Int64, "source_id": pl.Int32, "line": pl.Int64, "first_line": pl.Int64, "last_line": pl.Int64,
            "entry": pl.String, "fact": pl.String, "event": pl.String, "class": pl.String, "role": pl.String,
            "weak": pl.Boolean, "text": pl.String, "captures": pl.List(pl.Struct({"key": pl.String, "value": pl.String})),
            "a_rank": pl.Int32, "a_local_rank": pl.Int32, "a_host": pl.String, "a_attempt": pl.Int32, "a_pid": pl.Int64,
            "a_gpu": pl.Int32, "a_stamp_ns": pl.Int64, "a_stamp_kind": pl.String, "a_stamp_res_ns": pl.Int64,
            "a_utc_offset_s": pl.Int32,
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

    def identity_rows(self) -> pl.DataFrame:
        """The rows of `identities`."""
        names = (
            "rank", "attempt", "host", "local_rank", "node_rank", "pid", "gpu", "bus_id", "address", "pod", "alias",
            "comm", "comm_rank", "comm_size", "world_size",
        )  # fmt: skip
        rows = [(*(getattr(one, name) for name in names), source, one.line, one.how) for source, one in self.identity.identities]
        text = {"host", "bus_id", "address", "pod", "alias", "comm"}
        schema: dict[str, Any] = {name: pl.String if name in text else pl.Int64 if name == "pid" else pl.Int32 for name in names}
        schema |= {"source_id": pl.Int32, "line": pl.Int64, "how": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def progress_rows(self) -> pl.DataFrame:
        """The rows of `progress`, without what the line says."""
        schema = {"source_id": pl.Int32, "line": pl.Int64, "step": pl.Int64, "epoch": pl.Int64, "p_rank": pl.Int32, "p_stamp_ns": pl.Int64}
        twins = {one.id for one in self.sources if one.twin_of is not None}
        made = []
        for part in self.parts:
            for frame in part.progress:
                out = frame.join(self._ids, left_on="source", right_on="number", how="left").rename({"id": "source_id", "rank": "p_rank"})
                made.append(out.with_columns(p_stamp_ns=pl.lit(None, pl.Int64)).select(list(schema)))
        ids = {one.state.number: one.id for one in self.sources}
        dumped = [
            (ids[number], one.line, one.step, one.epoch, one.rank, one.stamp_ns)
            for part in self.parts
            for number, rows in part.dumps
            for one in rows.progress
        ]
        made.append(pl.DataFrame(dumped, schema=schema, orient="row"))
        return pl.concat(made).filter(~pl.col("source_id").is_in(list(twins))).sort("source_id", "line")

    def problem_rows(self) -> pl.DataFrame:
        """The rows of `problems`, those of unfinished identity included."""
        ids = {one.path: one.id for one in self.sources}
        rows = sorted(
            {(ids.get(one.source or one.path), one.path, one.line, one.kind, str(one.severity), one.count, one.detail) for one in self.problems},
            key=lambda row: tuple((value is not None, value if value is not None else 0) for value in row),
        )
        schema = {
            "source_id": pl.Int32, "path": pl.String, "line": pl.Int64, "kind": pl.String, "severity": pl.String,
            "count": pl.Int64, "detail": pl.String,
        }  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")


def _why(state: SourceState, why: str) -> str:
    return why if state.reader is None else f"read by {state.reader}; {why}"


def _fixed_offset(options: IngestOptions) -> int | None:
    if options.tz is None:
        return None
    from datetime import UTC, datetime

    offset = datetime.now(UTC).astimezone(zone(options.tz)).utcoffset()
    return None if offset is None else int(offset.total_seconds())


def _of_dump(row: DumpSignal) -> SignalRow:
    about = About(
        row.rank, row.local_rank, row.host, row.attempt, row.pid, row.gpu, row.stamp_ns, row.stamp_kind,
        row.stamp_res_ns, row.utc_offset_s,
    )  # fmt: skip
    own = Own(row.level, row.host, row.rank, row.local_rank, None, row.pid, row.gpu, row.stamp_ns, row.stamp_kind, row.stamp_res_ns, row.utc_offset_s)
    return SignalRow(
        line=row.line, event=row.event, text=row.text, entry=row.entry, fact=row.fact, cls=row.cls, role=row.role,
        weak=row.weak, first_line=row.first_line, last_line=row.last_line, captures=dict(row.captures), own=own, about=about,
    )  # fmt: skip


def _numbered(states: list[SourceState], roots: list[str]) -> tuple[list[Numbered], dict[tuple[int, str], str]]:
    """Sources in the order of their final paths; where several given PATHs hold the same path, the PATH stands in front."""
    owners: dict[str, set[int]] = {}
    for state in states:
        owners.setdefault(state.path, set()).add(state.root)
    clashing = {root for held in owners.values() if len(held) > 1 for root in held}
    taken: dict[str, int] = {}
    named = []
    for state in states:
        path = state.path if state.root not in clashing else _in_front(roots[state.root], state.path)
        again = taken.get(path, 0)
        taken[path] = again + 1
        named.append((path if not again else f"{path}~{again + 1}", state))
    named.sort(key=lambda pair: pair[0].split("/"))
    renamed = {(state.root, state.path): path for path, state in named}
    return [Numbered(number, path, state) for number, (path, state) in enumerate(named)], renamed


def _in_front(root: str, path: str) -> str:
    if root == STDIN:
        return path
    front = root.rstrip("/").removeprefix("./")
    return front if front.rpartition("/")[2] == path else f"{front}/{path}"


def _renamed(problem: Problem, renamed: dict[tuple[int, str], str]) -> Problem:
    return problem


def _mark_twins(sources: list[Numbered], problems: list[Problem]) -> None:
    """Of sources with the very same content, by one writer, only the first speaks."""
    first: dict[tuple[str, int], Numbered] = {}
    for one in sources:
        state = one.state
        if not state.digest or not state.lines or not _self_identifying(state):
            continue
        known = first.setdefault((state.digest, state.bytes), one)
        if known is not one:
            one.twin_of = known.path
            detail = f"the same content as {known.path}, which speaks for both"
            problems.append(Problem(one.path, "duplicate", Severity.INFO, detail, count=state.lines, source=one.path))


def _self_identifying(state: SourceState) -> bool:
    return state.identified


def fill(connection: duckdb.DuckDBPyConnection, job: Job) -> None:
    """Insert all rows of a job into the empty tables of a timeline."""
    _insert(connection, "sources", job.source_rows())
    _insert(connection, "identities", job.identity_rows())
    _insert(connection, "problems", job.problem_rows())
    connection.register("_marks", job.marks().to_arrow())
    connection.register("_records", job.record_rows().to_arrow())
    near = "CREATE TEMP TABLE near (source_id INTEGER, line BIGINT, near_kind VARCHAR, near_res BIGINT, next_ns BIGINT)"
    connection.execute(near)
    wanted = pl.concat([job.signal_frame().select("source_id", "line"), job.progress_rows().select("source_id", "line")]).unique()
    connection.register("_wanted", wanted.to_arrow())
    for frame in job.line_frames():
        connection.register("_lines", frame.to_arrow())
        connection.execute(_LINES)
        connection.execute(_NEAR)
        connection.unregister("_lines")
    connection.register("_signals", job.signal_frame().to_arrow())
    connection.execute(_SIGNALS)
    connection.register("_progress", job.progress_rows().to_arrow())
    connection.execute(_PROGRESS)
    for name in ("_marks", "_records", "_wanted", "_signals", "_progress"):
        connection.unregister(name)
    connection.execute("DROP TABLE near")


def _insert(connection: duckdb.DuckDBPyConnection, table: str, frame: pl.DataFrame) -> None:
    connection.register("_rows", frame.to_arrow())
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM _rows")
    connection.unregister("_rows")


_LINES = """
INSERT INTO line_rows BY NAME
SELECT l.source_id, l.line, l.byte_offset, l.byte_length, l.stamp_ns, l.stamp_kind, l.stamp_res_ns, l.utc_offset_s,
    l.collect_ns, l.near_ns, l.level, l.host, l.rank, l.local_rank, l.attempt, l.pid, l.gpu, l.format, r.record,
    l.message, m.entry, m.class
FROM _lines l
LEFT JOIN _marks m ON m.source_id = l.source_id AND m.line = l.line
LEFT JOIN _records r ON r.source_id = l.source_id AND r.line = l.line
ORDER BY l.source_id, l.line
"""

_NEAR = """
INSERT INTO near SELECT l.source_id, l.line, l.near_kind, l.near_res, l.next_ns
FROM _lines l SEMI JOIN _wanted w ON w.source_id = l.source_id AND w.line = l.line
"""

_SIGNALS = """
INSERT INTO signal_rows BY NAME
SELECT g.signal_id, g.source_id, g.line, g.first_line, g.last_line, g.entry, g.fact, g.event, g.class, g.role, g.weak,
    l.level AS level,
    coalesce(g.a_rank, l.rank, s.rank) AS rank,
    coalesce(g.a_local_rank, l.local_rank, s.local_rank) AS local_rank,
    coalesce(g.a_host, l.host, s.host) AS host,
    coalesce(g.a_attempt, l.attempt, s.attempt) AS attempt,
    coalesce(g.a_pid, l.pid) AS pid,
    coalesce(g.a_gpu, l.gpu) AS gpu,
    coalesce(g.a_stamp_ns, l.stamp_ns, l.near_ns) AS stamp_ns,
    CASE WHEN g.a_stamp_ns IS NOT NULL THEN g.a_stamp_kind ELSE coalesce(l.stamp_kind, n.near_kind) END AS stamp_kind,
    CASE
        WHEN g.a_stamp_ns IS NOT NULL THEN g.a_stamp_res_ns
        WHEN l.stamp_ns IS NOT NULL THEN l.stamp_res_ns
        ELSE greatest(n.near_res, n.next_ns - l.near_ns)
    END AS stamp_res_ns,
    g.a_stamp_ns IS NOT NULL OR l.stamp_ns IS NOT NULL AS stamp_own,
    CASE WHEN g.a_stamp_ns IS NOT NULL THEN g.a_utc_offset_s ELSE l.utc_offset_s END AS utc_offset_s,
    g.text,
    map_from_entries(g.captures) AS captures
FROM _signals g
JOIN sources s ON s.source_id = g.source_id
LEFT JOIN line_rows l ON l.source_id = g.source_id AND l.line = g.line
LEFT JOIN near n ON n.source_id = g.source_id AND n.line = g.line
ORDER BY g.signal_id
"""

_PROGRESS = """
INSERT INTO progress BY NAME
SELECT coalesce(p.p_rank, l.rank, s.rank) AS rank, coalesce(l.host, s.host) AS host, coalesce(l.attempt, s.attempt) AS attempt,
    p.source_id, p.line, p.step, p.epoch,
    coalesce(p.p_stamp_ns, l.stamp_ns, l.near_ns) AS stamp_ns,
    p.p_stamp_ns IS NOT NULL OR l.stamp_ns IS NOT NULL AS stamp_own
FROM _progress p
JOIN sources s ON s.source_id = p.source_id
LEFT JOIN line_rows l ON l.source_id = p.source_id AND l.line = p.line
ORDER BY p.source_id, p.line
"""
