"""Ingest: paths in, one timeline out. Shares the files among workers, settles who is who, writes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from firstfault.catalog import load_catalog
from firstfault.catalog.matcher import Matcher
from firstfault.ingest.discover import STDIN, Found, discover
from firstfault.ingest.formats import Formats
from firstfault.ingest.options import IngestOptions, check, with_settings
from firstfault.ingest.problems import Problem
from firstfault.ingest.read import Part, Reading
from firstfault.ingest.assemble import Job, fill
from firstfault.timeline import write_timeline

Progress = Callable[[str, int, int], None]
"""Called with the name of a phase, bytes done, bytes in all."""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an ingest did."""

    db: Path
    sources: int
    lines: int
    signals: int
    problems: int


def ingest(
    paths: Sequence[str | Path],
    db: str | Path,
    options: IngestOptions = IngestOptions(),  # noqa: B008 - frozen
    progress: Progress | None = None,
) -> IngestResult:
    """Read the logs below `paths` into the timeline `db`, which replaces an older one when all is read."""
    check(options)
    for path in paths:
        if str(path) != STDIN and Path(path).is_dir():
            options = with_settings(options, Path(path))
    problems: list[Problem] = []
    files = list(discover(paths, follow_links=options.follow_links, problems=problems))
    matcher = Matcher.load(load_catalog(options.catalogs))
    with tempfile.TemporaryDirectory(prefix="firstfault-") as spill:
        part = _read(files, matcher, options, Path(spill), progress)
        job = Job.of(paths, [part], problems, matcher, options)
        write_timeline(Path(db), lambda connection: fill(connection, job), job.meta())
    return IngestResult(Path(db), len(job.sources), sum(s.state.lines for s in job.sources), len(job.signals), len(job.problems))


def _read(
    files: list[Found], matcher: Matcher, options: IngestOptions, spill: Path, progress: Progress | None
) -> Part:
    total = sum(found.size for found in files)
    if progress:
        progress("read", 0, total)
    part = Reading(matcher, Formats(), options, 0, spill if total > 256 << 20 else None).read(files)
    if progress:
        progress("read", total, total)
    return part
