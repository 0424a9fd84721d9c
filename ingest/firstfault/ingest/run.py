"""Ingest: paths in, one timeline out. Plans, shares the units among workers, settles, writes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from firstfault.catalog import load_catalog
from firstfault.catalog.matcher import Matcher
from firstfault.ingest.assemble import assemble
from firstfault.ingest.discover import STDIN, discover, printable
from firstfault.ingest.extract.hits import Patterns
from firstfault.ingest.formats import Formats
from firstfault.ingest.load import fill, meta
from firstfault.ingest.options import IngestOptions, check, with_settings
from firstfault.ingest.plan import Unit, plan
from firstfault.ingest.problems import Problem
from firstfault.ingest.read import Part, Tools, read_unit
from firstfault.ingest.stages import seldom_collected
from firstfault.timeline import write_timeline

Progress = Callable[[str, int, int], None]
"""Called with the name of a phase, bytes done, bytes in all."""

_NUMBERS = 1 << 20
"""Numbers of sources that a unit may give away; archives hold more sources than files."""


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
    options: IngestOptions | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read the logs below `paths` into the timeline `db`, which replaces an older one when all is read."""
    options = options or IngestOptions()
    roots = [str(path) for path in paths]
    for root in roots:
        if root != STDIN and Path(root).is_dir():
            options = with_settings(options, Path(root))
    check(options)
    problems: list[Problem] = []
    files = list(discover(roots, follow_links=options.follow_links, problems=problems))
    units = plan(files, options.bounds)
    total = sum(unit.bytes for unit in units)
    db = Path(db)
    db.parent.mkdir(parents=True, exist_ok=True)
    matcher = Matcher.load(load_catalog(options.catalogs))
    made = tempfile.TemporaryDirectory(prefix=f".{db.name}.", suffix=".parts", dir=db.parent)
    with seldom_collected(), made as folder:
        spill = Path(folder) if total > options.bounds.memory else None
        parts = _read(units, matcher, options, spill, total, progress)
        shown = [printable(root) for root in roots]
        job = assemble(shown, parts, problems, matcher, options)
        if progress:
            progress("write", total, total)
        write_timeline(db, lambda connection: fill(connection, job, matcher, options), meta(job, shown, matcher))
    lines = sum(one.state.lines for one in job.sources)
    return IngestResult(db, len(job.sources), lines, len(job.signals), len(job.problems))


def _read(
    units: Sequence[Unit],
    matcher: Matcher,
    options: IngestOptions,
    spill: Path | None,
    total: int,
    progress: Progress | None,
) -> list[Part]:
    """The parts of all units, in their order."""
    workers = min(options.workers or _cores(), len(units))
    numbered = [(unit, place * _NUMBERS) for place, unit in enumerate(units)]
    done, parts = 0, []
    if workers <= 1 or total < options.bounds.in_process:
        tools = Tools(Patterns(matcher), Formats(), options)
        made: Iterator[Part] = (read_unit(unit, number, tools, spill) for unit, number in numbered)
    else:
        from firstfault.ingest.workers import read_in_processes

        made = read_in_processes(numbered, options, spill, workers)
    for unit, part in zip(units, made, strict=True):
        parts.append(part)
        done += unit.bytes
        if progress:
            progress("read", done, total)
    return parts


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
