"""The rows of every table of a timeline, made from a settled job."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl

from firstfault.catalog.matcher import Matcher
from firstfault.ingest import times
from firstfault.ingest.assemble import Job, Numbered, Spoken
from firstfault.ingest.extract.rows import About, SignalRow
from firstfault.ingest.extract.settle import best_of
from firstfault.ingest.options import IngestOptions, zone

_TEXT, _SMALL, _BIG = pl.String, pl.Int32, pl.Int64
_IDENTITY: dict[str, Any] = {
    "rank": _SMALL, "attempt": _SMALL, "host": _TEXT, "local_rank": _SMALL, "node_rank": _SMALL, "pid": _BIG,
    "gpu": _SMALL, "bus_id": _TEXT, "address": _TEXT, "pod": _TEXT, "alias": _TEXT, "comm": _TEXT,
    "comm_rank": _SMALL, "comm_size": _SMALL, "world_size": _SMALL,
}  # fmt: skip
_ABOUT: dict[str, Any] = {
    "rank": _SMALL, "local_rank": _SMALL, "host": _TEXT, "attempt": _SMALL, "pid": _BIG, "gpu": _SMALL, "level": _TEXT,
    "stamp_ns": _BIG, "stamp_kind": _TEXT, "stamp_res_ns": _BIG, "utc_offset_s": _SMALL,
}  # fmt: skip
PROGRESS: dict[str, Any] = {
    "source_id": _SMALL, "line": _BIG, "step": _BIG, "epoch": _BIG, "rank": _SMALL, "stamp_ns": _BIG,
}  # fmt: skip
assert tuple(_ABOUT) == About.__slots__


def sources(job: Job, options: IngestOptions, text_stored: bool) -> pl.DataFrame:
    """The rows of `sources`."""
    rows = [_source(one, job, options, text_stored) for one in job.sources]
    schema = {
        "source_id": _SMALL, "path": _TEXT, "kind": _TEXT, "format": _TEXT, "why": _TEXT, "host": _TEXT,
        "node_rank": _SMALL, "rank": _SMALL, "local_rank": _SMALL, "attempt": _SMALL, "stream": _TEXT, "clock": _TEXT,
        "utc_offset_s": _SMALL, "bytes": _BIG, "lines": _BIG, "understood": _BIG, "text_stored": pl.Boolean,
        "fingerprint": _TEXT,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _source(one: Numbered, job: Job, options: IngestOptions, text_stored: bool) -> tuple[object, ...]:
    state, who = one.state, job.identity.sources[one.id]
    top = min(state.formats.items(), key=lambda pair: (-pair[1], pair[0]), default=(None, 0))[0]
    kind = "binary" if state.kind == "binary" else who.kind
    reasons = [f"read by {state.reader}" if state.reader else "", who.why, state.format_why]
    why = "; ".join(reason for reason in reasons if reason)
    offset = _zone_offset(options, job.contexts[one.id].anchor_ns) if (who.clock or "").startswith("wall:") else None
    return (
        one.id, one.path, kind, state.reader or top, why, who.host, who.node_rank, who.rank, who.local_rank,
        who.attempt, who.stream, who.clock, offset, state.bytes, state.lines, sum(state.formats.values()), text_stored,
        f"{state.bytes}:{state.mtime_ns}:{state.digest}",
    )  # fmt: skip


def _zone_offset(options: IngestOptions, anchor_ns: int) -> int | None:
    """Seconds east of UTC in the zone that the user names, at the time of the job."""
    if options.tz is None:
        return None
    local = datetime(1970, 1, 1) + timedelta(seconds=anchor_ns // times.SECOND)
    offset = local.replace(tzinfo=zone(options.tz)).utcoffset()
    return None if offset is None else int(offset.total_seconds())


_ENTRIES: dict[str, Any] = {"source_id": _SMALL, "line": _BIG, "entry": _TEXT, "class": _TEXT}


def entries(job: Job, matcher: Matcher) -> pl.DataFrame:
    """The entry that speaks for a line, for every line whose signals have one."""
    found: dict[tuple[int, int], list[SignalRow]] = {}
    for one in job.signals:
        if one.row.entry is not None:
            found.setdefault((one.source_id, one.line), []).append(one.row)
    rows = []
    for (source, line), signals in found.items():
        best = best_of(signals, matcher) or signals[0]
        rows.append((source, line, best.entry, best.cls))
    return pl.DataFrame(rows, schema=_ENTRIES, orient="row")


class Folded:
    """Gives entries to the lines of a storm, which have no signals."""

    def __init__(self, matcher: Matcher) -> None:
        order = sorted(range(len(matcher.patterns)), key=matcher.precedence)
        named = [(number, rank, matcher.patterns[number]) for rank, number in enumerate(order)]
        self._names = pl.DataFrame(
            [(number, rank, one.id, one.cls) for number, rank, one in named if one.kind == "entry"],
            schema={"pattern": _SMALL, "rank": _SMALL, "entry": _TEXT, "class": _TEXT},
            orient="row",
        )

    def entries(self, folded: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
        """The entry of each folded line that no signal speaks for."""
        untold = folded.join(told, on=["source_id", "line"], how="anti")
        best = untold.join(self._names, on="pattern").sort("rank").unique(["source_id", "line"], keep="first")
        return best.select(list(_ENTRIES)).cast(pl.Schema(_ENTRIES))


def records(job: Job) -> pl.DataFrame:
    """The first line of its record, for every line in one."""
    found: dict[tuple[int, int], int] = {}
    for one in job.sources:
        for span in one.state.spans:
            for line in span:
                found.setdefault((one.id, line), span[0])
    rows = [(source, line, first) for (source, line), first in found.items()]
    return pl.DataFrame(rows, schema={"source_id": _SMALL, "line": _BIG, "record": _BIG}, orient="row")


def joined(job: Job) -> pl.DataFrame:
    """The whole message of every line that came in parts, at its first part."""
    rows = [(one.id, line, text) for one in job.sources for line, text in sorted(one.state.joined.items())]
    return pl.DataFrame(rows, schema={"source_id": _SMALL, "line": _BIG, "whole": _TEXT}, orient="row")


def signals(job: Job, matcher: Matcher) -> pl.DataFrame:
    """The rows of `signal_rows` with what their records say about place and time; the rest is their line's.

    Of those on one line the one that speaks for it comes first.
    """

    def where(one: Spoken) -> tuple[int, int, bool, int, str, str]:
        pattern = one.row.pattern
        rank = matcher.precedence(pattern) if pattern >= 0 and one.row.entry is not None else pattern
        return (one.source_id, one.line, one.row.entry is None, rank, one.event or "", one.text)

    ordered = sorted(job.signals, key=where)
    rows = []
    for number, one in enumerate(ordered):
        row = one.row
        about = [getattr(row.about, name) for name in _ABOUT] if row.about else [None] * len(_ABOUT)
        captures = [{"key": key, "value": value} for key, value in sorted(row.captures.items()) if value is not None]
        rows.append(
            (
                number, one.source_id, row.line, row.first_line or row.line, row.last_line or row.line, row.entry,
                row.fact, row.event, row.cls, row.role, row.weak, row.text, captures, *about,
            )
        )  # fmt: skip
    schema: dict[str, Any] = {
        "signal_id": _BIG, "source_id": _SMALL, "line": _BIG, "first_line": _BIG, "last_line": _BIG, "entry": _TEXT,
        "fact": _TEXT, "event": _TEXT, "class": _TEXT, "role": _TEXT, "weak": pl.Boolean, "text": _TEXT,
        "captures": pl.List(pl.Struct({"key": _TEXT, "value": _TEXT})), **_ABOUT,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def identities(job: Job) -> pl.DataFrame:
    """The rows of `identities`."""
    rows = [
        (*(getattr(one, name) for name in _IDENTITY), source, one.line, one.how)
        for source, one in job.identity.identities
    ]
    schema = {**_IDENTITY, "source_id": _SMALL, "line": _BIG, "how": _TEXT}
    return pl.DataFrame(rows, schema=schema, orient="row")


def dumped_progress(job: Job) -> pl.DataFrame:
    """What dumps say of how far a rank had come."""
    rows = [
        (source, one.line, one.step, one.epoch, one.rank, one.stamp_ns)
        for source, rows in job.dumps
        for one in rows.progress
    ]
    silent = [one.id for one in job.sources if one.twin_of is not None]
    return pl.DataFrame(rows, schema=PROGRESS, orient="row").filter(~pl.col("source_id").is_in(silent))


def problems(job: Job) -> pl.DataFrame:
    """The rows of `problems`."""
    ids = {one.path: one.id for one in job.sources}
    rows = {
        (ids.get(one.path), one.path, one.line, one.kind, str(one.severity), one.count, one.detail)
        for one in job.problems
    }
    schema = {
        "source_id": _SMALL, "path": _TEXT, "line": _BIG, "kind": _TEXT, "severity": _TEXT, "count": _BIG,
        "detail": _TEXT,
    }  # fmt: skip
    ordered = sorted(rows, key=lambda row: [(value is not None, str(value).zfill(12)) for value in row])
    return pl.DataFrame(ordered, schema=schema, orient="row")
