"""What the nodes of a cluster are asked to do: look which files they have, and read some of them.

These functions run in the processes of the cluster and know nothing of it. What they hand back is the same archive of a
part that `ingest --shard` writes.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # a task has one core; before anything imports polars

from firstfault.ingest.again import job_mark
from firstfault.ingest.discover import Found
from firstfault.ingest.format_load import USER_FOLDERS
from firstfault.ingest.job import job_files
from firstfault.ingest.options import IngestOptions
from firstfault.ingest.part import save
from firstfault.ingest.plan import Unit, plan
from firstfault.ingest.problems import Problem
from firstfault.ingest.read import Tools, read_unit

_tools: dict[str, Tools] = {}


@dataclass(frozen=True, slots=True)
class Told:
    """What every task of a job is told; `catalog` stands for the patterns of who asks, `formats` are folders."""

    options: IngestOptions
    catalog: str
    formats: str | None


@dataclass(frozen=True, slots=True)
class Seen:
    """The files of one node, not read yet, and what its folders say of the job. `missing` are paths that it lacks."""

    roots: list[str]
    missing: list[str]
    units: list[Unit]
    problems: list[Problem]
    options: IngestOptions
    mark: str | None


class OtherVersion(Exception):
    """The catalog of this node is not that of the one who asks."""


def look(paths: Sequence[str], told: Told) -> Seen:
    """The files of this node below the paths, in which `~` and variables are those of this node."""
    roots = [os.path.expandvars(os.path.expanduser(path)) for path in paths]
    there = [root for root in roots if os.path.lexists(root)]
    found = job_files(there, told.options)
    units = plan(found.files, found.options.bounds)
    mark = job_mark(found.shown, found.files, found.problems, found.options)
    missing = [root for root in roots if root not in there]
    return Seen(found.shown, missing, units, found.problems, found.options, mark)


def read(unit: Unit, place: int, told: Told) -> bytes:
    """An archive with the part of a unit, under the name `0`. Raises OtherVersion."""
    part = read_unit(unit, place, _tools_for(told), None)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        save(part, archive, "0")
    return out.getvalue()


def read_shared(unit: Unit, place: int, told: Told) -> bytes | None:
    """The same of files that the one who asks sees, too; None where this node has others at their paths, or none."""
    return read(unit, place, told) if all(_same(found) for found in unit.files) else None


def _same(found: Found) -> bool:
    try:
        status = os.stat(found.file)
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (found.size, found.mtime_ns)


def _tools_for(told: Told) -> Tools:
    """What units of a job are read with; made once in each process."""
    key = repr(told)
    if key not in _tools:
        from firstfault.catalog import load_catalog
        from firstfault.catalog.matcher import Matcher
        from firstfault.ingest.extract.hits import Patterns
        from firstfault.ingest.formats import Formats
        from firstfault.ingest.load import catalog_version

        matcher = Matcher.load(load_catalog(told.options.catalogs))
        if catalog_version(matcher) != told.catalog:
            raise OtherVersion(f"{os.uname().nodename} has another catalog or version of firstfault")
        if told.formats is not None:
            os.environ[USER_FOLDERS] = told.formats
        _tools.clear()
        _tools[key] = Tools(Patterns(matcher), Formats(), told.options)
    return _tools[key]
