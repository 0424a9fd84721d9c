"""Ingest: paths in, one timeline out. Plans, shares the units among workers or machines, settles, writes."""

from __future__ import annotations

import contextlib
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
from firstfault.ingest.load import catalog_version, fill, meta
from firstfault.ingest.options import PER_PROCESS, IngestOptions, check, with_settings
from firstfault.ingest.part import Part
from firstfault.ingest.plan import Unit, plan
from firstfault.ingest.problems import Problem
from firstfault.ingest.read import Tools, read_unit
from firstfault.ingest.shards import Shard, United, agreed, share, unite, write_part
from firstfault.ingest.stages import seldom_collected
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
    options: IngestOptions | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read the logs below `paths` into the timeline `db`, which replaces an older one when all is read."""
    plans, db = _planned(paths, options or IngestOptions()), Path(db)
    with seldom_collected(), _folder(db) as folder:
        parts = _read(plans, range(len(plans.units)), folder, progress)
        united = United(parts, plans.shown, plans.problems, plans.options)
        return _write(united, plans.matcher, db, plans.total, progress)


def ingest_shard(
    paths: Sequence[str | Path],
    file: str | Path,
    shard: Shard,
    options: IngestOptions | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read one share of the logs below `paths` into a file of parts, which `merge` unites with the others."""
    plans, file = _planned(paths, options or IngestOptions()), Path(file)
    with seldom_collected(), _folder(file) as folder:
        places = share(plans.units, shard)
        parts = _read(plans, places, folder, progress)
        job = agreed(plans.shown, plans.options, catalog_version(plans.matcher), plans.problems)
        write_part(file, shard, job, plans.units, places, parts)
    states = [state for part in parts for state in part.states]
    signals, problems = (sum(len(getattr(one, name)) for one in states) for name in ("signals", "problems"))
    return IngestResult(file, len(states), sum(state.lines for state in states), signals, problems)


def merge(
    files: Sequence[str | Path],
    db: str | Path,
    options: IngestOptions | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Unite the parts of all shares of a job into the timeline `db`. Raises PartError where they do not fit."""
    options, db = options or IngestOptions(), Path(db)
    matcher = Matcher.load(load_catalog(options.catalogs))
    with seldom_collected():
        united = unite([Path(file) for file in files], options, catalog_version(matcher))
        return _write(united, matcher, db, sum(Path(file).stat().st_size for file in files), progress)


@dataclass(frozen=True, slots=True)
class _Plans:
    """What is to be read, before anything is."""

    shown: list[str]
    options: IngestOptions
    units: list[Unit]
    problems: list[Problem]
    matcher: Matcher

    @property
    def total(self) -> int:
        return sum(unit.bytes for unit in self.units)


def _planned(paths: Sequence[str | Path], options: IngestOptions) -> _Plans:
    roots = [str(path) for path in paths]
    for root in roots:
        if root != STDIN and Path(root).is_dir():
            options = with_settings(options, Path(root))
    check(options)
    problems: list[Problem] = []
    files = list(discover(roots, follow_links=options.follow_links, problems=problems))
    matcher = Matcher.load(load_catalog(options.catalogs))
    return _Plans([printable(root) for root in roots], options, plan(files, options.bounds), problems, matcher)


@contextlib.contextmanager
def _folder(file: Path) -> Iterator[Path]:
    """A folder for what does not fit into memory, beside the file that is to be made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{file.name}.", suffix=".parts", dir=file.parent) as folder:
        yield Path(folder)


def _write(united: United, matcher: Matcher, db: Path, total: int, progress: Progress | None) -> IngestResult:
    job = assemble(united.roots, united.parts, united.problems, matcher, united.options)
    if progress:
        progress("write", total, total)
    facts = meta(job, united.roots, matcher)
    write_timeline(db, lambda connection: fill(connection, job, matcher, united.options), facts)
    lines = sum(one.state.lines for one in job.sources)
    return IngestResult(db, len(job.sources), lines, len(job.signals), len(job.problems))


def _read(plans: _Plans, places: Sequence[int], folder: Path, progress: Progress | None) -> list[Part]:
    """The parts of the units at these places, in their order."""
    options = plans.options
    units = [(plans.units[place], place) for place in places]
    total = sum(unit.bytes for unit, _ in units)
    spill = folder if total > options.bounds.memory else None
    workers = min(options.workers or _cores(), len(units), _room(options))
    if workers <= 1 or total < options.bounds.in_process:
        tools = Tools(Patterns(plans.matcher), Formats(), options)
        made: Iterator[Part] = (read_unit(unit, place, tools, spill) for unit, place in units)
    else:
        from firstfault.ingest.workers import read_in_processes

        made = read_in_processes(units, options, spill, workers)
    done, parts = 0, []
    for (unit, _), part in zip(units, made, strict=True):
        parts.append(part)
        done += unit.bytes
        if progress:
            progress("read", done, total)
    return parts


def _room(options: IngestOptions) -> int:
    """How many workers fit into the memory beside the process that asked."""
    if options.memory_limit is None:
        return 1 << 20
    return max(options.memory_limit // PER_PROCESS - 1, 1)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
