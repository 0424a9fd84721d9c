"""Ingest: paths in, one timeline out. Plans, shares the units among workers or machines, settles, writes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from firstfault.catalog import load_catalog
from firstfault.catalog.matcher import Matcher
from firstfault.ingest.again import Keep, job_mark, still_holds
from firstfault.ingest.assemble import assemble
from firstfault.ingest.extract.hits import Patterns
from firstfault.ingest.formats import Formats
from firstfault.ingest.job import JobFiles, job_files
from firstfault.ingest.load import catalog_version, fill, meta
from firstfault.ingest.options import PER_PROCESS, IngestOptions
from firstfault.ingest.part import Part
from firstfault.ingest.plan import Unit, plan
from firstfault.ingest.problems import Problem
from firstfault.ingest.read import Tools, read_unit
from firstfault.ingest.shards import Shard, United, agreed, share, unite, write_part
from firstfault.ingest.stages import count, seldom_collected
from firstfault.timeline import write_timeline
from firstfault.timeline.place import remove_leftovers, workplace

if TYPE_CHECKING:
    from firstfault.ingest.nodes import Nodes

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
    """Read the logs below `paths` into the timeline `db`, which replaces an older one when all is read.

    A timeline that already holds exactly these files stays as it is, and of a job that grew only what is new is read.
    """
    found, db = job_files(paths, options or IngestOptions()), Path(db)
    if found.options.cluster is None or not found.options.cluster.per_node:
        return _ingest(found, db, progress)
    from firstfault.ingest.nodes import nodes_of

    with nodes_of(found) as nodes:
        return _ingest(replace(found, options=nodes.options), db, progress, nodes)


def _ingest(found: JobFiles, db: Path, progress: Progress | None, nodes: Nodes | None = None) -> IngestResult:
    mark = job_mark(found.shown, found.files, found.problems, found.options) if found.options.reuse else None
    if nodes is not None:
        mark = nodes.mark(mark)
    if (counts := still_holds(db, mark)) is not None:
        remove_leftovers(db)
        return IngestResult(db, *counts)
    plans = _planned(found)
    with seldom_collected(), workplace(db) as folder:
        parts = _read(plans, range(len(plans.units)), folder, progress)
        united = United(parts, found.shown, found.problems, found.options)
        if nodes is not None:
            united = nodes.read(united, catalog_version(plans.matcher), folder, _counted(progress, nodes.bytes))
        return _write(united, plans.matcher, db, folder, plans.total, progress, mark)


def ingest_shard(
    paths: Sequence[str | Path],
    file: str | Path,
    shard: Shard,
    options: IngestOptions | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read one share of the logs below `paths` into a file of parts, which `merge` unites with the others."""
    found, file = job_files(paths, options or IngestOptions()), Path(file)
    plans = _planned(found)
    with seldom_collected(), workplace(file) as folder:
        places = share(plans.units, shard)
        parts = _read(plans, places, folder, progress)
        job = agreed(found.shown, found.options, catalog_version(plans.matcher), found.problems)
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
    with seldom_collected(), workplace(db) as folder:
        united = unite([Path(file) for file in files], options, catalog_version(matcher))
        return _write(united, matcher, db, folder, sum(Path(file).stat().st_size for file in files), progress)


@dataclass(frozen=True, slots=True)
class _Plans:
    """What is to be read, before anything is."""

    options: IngestOptions
    units: list[Unit]
    matcher: Matcher
    problems: list[Problem]

    @property
    def total(self) -> int:
        return sum(unit.bytes for unit in self.units)


def _planned(found: JobFiles) -> _Plans:
    units = plan(found.files, found.options.bounds)
    return _Plans(found.options, units, Matcher.load(load_catalog(found.options.catalogs)), found.problems)


def _write(
    united: United,
    matcher: Matcher,
    db: Path,
    folder: Path,
    total: int,
    progress: Progress | None,
    mark: str | None = None,
) -> IngestResult:
    job = assemble(united.roots, united.parts, united.problems, matcher, united.options)
    if progress:
        progress("write", total, total)
    lines = sum(one.state.lines for one in job.sources)
    result = IngestResult(db, len(job.sources), lines, len(job.signals), len(job.problems))
    facts = meta(job, united.roots, matcher)
    if mark is not None:
        facts |= {"made_of": mark, "counts": json.dumps([result.sources, lines, result.signals, result.problems])}
    write_timeline(db, lambda connection: fill(connection, job, matcher, united.options, folder), facts, lines)
    count("timeline", db.stat().st_size)
    return result


def _read(plans: _Plans, places: Sequence[int], folder: Path, progress: Progress | None) -> list[Part]:
    """The parts of the units at these places, in their order."""
    options = plans.options
    units = {place: plans.units[place] for place in places}
    total = sum(unit.bytes for unit in units.values())
    big = total > options.bounds.memory
    keep = Keep(options, Formats()) if big and options.reuse else None
    marks = {place: keep.mark(unit) for place, unit in units.items()} if keep else {}
    parts: dict[int, Part] = {}
    done = 0
    for place, unit in units.items():
        if keep and (part := keep.get(marks[place], unit, folder)):
            parts[place] = part
            done += unit.bytes
    missing = [(unit, place) for place, unit in units.items() if place not in parts]
    if progress:
        progress("read", done, total)
    with contextlib.closing(_some(plans, missing, folder if big else None, folder)) as made:
        for place, part in made:
            parts[place] = part
            done += units[place].bytes
            if keep:
                keep.put(marks[place], part)
            if progress:
                progress("read", done, total)
    if keep:
        keep.trim()
    return [parts[place] for place in units]


def _some(
    plans: _Plans, units: Sequence[tuple[Unit, int]], spill: Path | None, folder: Path
) -> Generator[tuple[int, Part]]:
    """The parts of units that have to be read, with their places: by the cluster, if there is one, the rest here."""
    if plans.options.cluster is not None and units:
        from firstfault.ingest.nodes import read_shared

        read = set()
        for place, part in read_shared(units, plans.options, catalog_version(plans.matcher), folder, plans.problems):
            read.add(place)
            yield place, part
        units = [one for one in units if one[1] not in read]
    with contextlib.closing(_made(plans, units, spill)) as made:  # ends its workers, come what may
        yield from zip((place for _, place in units), made, strict=True)


def _counted(progress: Progress | None, total: int) -> Callable[[int], None]:
    """What counts the bytes that the nodes have read."""
    done = 0

    def count_on(size: int) -> None:
        nonlocal done
        done += size
        if progress:
            progress("nodes", done, total)

    return count_on


def _made(plans: _Plans, units: Sequence[tuple[Unit, int]], spill: Path | None) -> Generator[Part]:
    """The parts of units that have to be read."""
    options = plans.options
    workers = min(options.workers or _cores(), len(units), _room(options))
    if workers <= 1 or sum(unit.bytes for unit, _ in units) < options.bounds.in_process:
        tools = Tools(Patterns(plans.matcher), Formats(), options)
        return (read_unit(unit, place, tools, spill) for unit, place in units)
    from firstfault.ingest.workers import read_in_processes

    return read_in_processes(units, options, spill, workers)


def _room(options: IngestOptions) -> int:
    """How many workers fit into the memory beside the process that asked."""
    if options.memory_limit is None:
        return 1 << 20
    return max(options.memory_limit // PER_PROCESS - 1, 1)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
