"""Who wrote what: kind, host, ranks, attempt and clock of every source; rank, host and attempt of lines that lack them.

Paths claim, lines confirm or override, contradictions stay side by side in `identities` and become a row of problems.
The pipeline calls `summarise` on every batch of lines and `merge` on the results, `identify` once with everything that
was said, and `Identity.fill` on every batch of `line_rows`, `signal_rows` and `progress` before it is stored.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import polars as pl

from firstfault.ingest.dumps.rows import DumpIdentity, DumpProblem
from firstfault.ingest.identity_attempts import Boundary, boundaries_of
from firstfault.ingest.identity_fill import CLAIMS, KEY_TYPES, KEYS, Filler, with_keys
from firstfault.ingest.identity_job import Job
from firstfault.ingest.identity_owners import Claim, claims_of
from firstfault.ingest.identity_sources import LineKey, SourceIdentity, SourceSeen
from firstfault.ingest.identity_statements import Owned, Spoken, statements_of
from firstfault.ingest.stages import stage

__all__ = ["Identity", "Owned", "SourceIdentity", "SourceSeen", "Spoken", "identify", "merge", "summarise"]

T = TypeVar("T")


@stage("summaries")
def summarise(lines: pl.DataFrame) -> pl.DataFrame:
    """How many lines of each source name each combination of host, rank, local rank, process and task."""
    return (
        with_keys(lines)
        .group_by(KEYS)
        .agg(pl.len().cast(pl.Int64).alias("n"), pl.col("line").min().cast(pl.Int64).alias("first"))
        .sort(KEYS, nulls_last=False)
    )


def merge(summaries: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Several summaries as one."""
    parts = list(summaries)
    if not parts:
        return pl.DataFrame(schema={**KEY_TYPES, "n": pl.Int64, "first": pl.Int64})
    return pl.concat(parts).group_by(KEYS).agg(pl.col("n").sum(), pl.col("first").min()).sort(KEYS, nulls_last=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """The answer: rows for `sources`, `identities` and `problems`, and the means to complete other rows."""

    sources: Mapping[int, SourceIdentity]
    identities: tuple[tuple[int, DumpIdentity], ...]
    problems: tuple[tuple[int | None, str | None, DumpProblem], ...]
    world_size: int | None
    resolved: pl.DataFrame = field(repr=False)
    ranges: pl.DataFrame = field(repr=False)
    dated: pl.DataFrame = field(repr=False)
    claims: pl.DataFrame = field(repr=False)
    job: Job | None = field(repr=False)

    def fill(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with host, rank, local_rank and attempt completed; it needs source_id and line."""
        return self.filler().fill(frame)

    def filler(self) -> Filler:
        """What completes many frames."""
        return Filler(self.resolved, self.ranges, self.dated, self.claims)

    def about(self, signal: Spoken) -> tuple[int | None, int | None, str | None]:
        """Rank, local rank and host of the process that a launcher's or scheduler's line is about."""
        if self.job is None:
            raise ValueError("the evidence about processes was let go of")
        return self.job.about(signal)


@stage("identify")
def identify(
    sources: Sequence[SourceSeen],
    spoken: Iterable[Spoken],
    summary: pl.DataFrame,
    dumps: Mapping[int, Sequence[DumpIdentity]] | None = None,
    hosts: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    owned: Iterable[tuple[int, Owned]] = (),
) -> Identity:
    """Decide about every source. `hosts` and `ranks` are what the user says for patterns of paths, and win.

    `owned` are lines of sources that a line beside them gives to somebody.
    """
    rows = list(spoken)
    statements = statements_of(rows, dumps or {})
    attempts = boundaries_of(rows, statements)
    job = Job(sources, statements, summary, attempts, _said(hosts or {}, sources), _said(ranks or {}, sources), rows)
    return Identity(
        sources=job.sources,
        identities=tuple(job.rows()),
        problems=tuple(job.problems()),
        world_size=job.world,
        resolved=_resolved(job, summary),
        ranges=_ranges(attempts),
        dated=_dates(job.dated),
        claims=_claims(claims_of(rows, job, owned)),
        job=job,
    )


def _said(patterns: Mapping[str, T], sources: Sequence[SourceSeen]) -> dict[int, T]:
    found: dict[int, T] = {}
    for one in sources:
        for pattern in sorted(patterns):
            if fnmatch.fnmatchcase(one.path, pattern):
                found[one.source_id] = patterns[pattern]
                break
    return found


def _resolved(job: Job, summary: pl.DataFrame) -> pl.DataFrame:
    known = set(job.order)
    keys = [row for row in summary.select(KEYS).rows() if row[0] in known]
    present = set(keys)
    bare = [(source_id, None, None, None, None, None) for source_id in job.order]
    keys.extend(key for key in bare if key not in present)
    answers = [job.resolve(LineKey(s, host, rank, local, pid, task, 0, 0)) for s, host, rank, local, pid, task in keys]
    return pl.DataFrame(keys, schema=KEY_TYPES, orient="row").with_columns(
        pl.Series("k_host", [one.host for one in answers], dtype=pl.String),
        pl.Series("k_rank", [one.rank for one in answers], dtype=pl.Int32),
        pl.Series("k_local", [one.local_rank for one in answers], dtype=pl.Int32),
        pl.Series("k_attempt", [one.attempt for one in answers], dtype=pl.Int32),
        pl.Series("k_local_prefix", [one.local_prefix for one in answers], dtype=pl.Boolean),
    )


def _claims(claims: Sequence[Claim]) -> pl.DataFrame:
    return pl.DataFrame(claims, schema={"source_id": pl.Int32, **CLAIMS}, orient="row")


def _ranges(attempts: Mapping[int, Sequence[Boundary]]) -> pl.DataFrame:
    rows = [(cut.source_id, cut.line, cut.attempt, cut.host) for s in sorted(attempts) for cut in attempts[s]]
    schema = {"source_id": pl.Int32, "_from": pl.Int64, "r_attempt": pl.Int32, "r_host": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _dates(dated: Sequence[Boundary]) -> pl.DataFrame:
    first = sorted({cut.source_id for cut in dated})
    rows: list[tuple[int, int | None, int, str | None]] = [(source_id, -(2**62), 0, None) for source_id in first]
    rows.extend((cut.source_id, cut.stamp_ns, cut.attempt, cut.host) for cut in dated)
    schema = {"source_id": pl.Int32, "_since": pl.Int64, "d_attempt": pl.Int32, "d_host": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")
