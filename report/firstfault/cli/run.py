"""The main job of the commands: paths to a timeline, a timeline to a diagnosis, a diagnosis to what was asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from firstfault.cli.messages import CommandError, Status, progress_bar, say

if TYPE_CHECKING:
    from firstfault.correlate.contexts import Wanted
    from firstfault.correlate.diagnosis import Diagnosis
    from firstfault.correlate.healthy import Healthy
    from firstfault.ingest import IngestOptions
    from firstfault.ingest.run import IngestResult

WIDEST = 140
"""Longer lines are hard to read, however wide the terminal."""


def read_logs(
    paths: list[str],
    database: Path,
    options: IngestOptions,
    quiet: bool,
    report: Callable[[str, int, int], None] | None = None,
) -> IngestResult:
    """Build a timeline; says clearly where there is nothing to read. `report` hears of progress instead of a bar."""
    from firstfault.ingest import run as pipeline
    from firstfault.timeline.place import leftovers

    _check_paths(paths)
    if not is_utf8(str(database)):
        raise CommandError(f"{database}: its name is no valid UTF-8; write the timeline somewhere else")
    if leftovers(database):
        left = "left the timeline before it as it was" if database.exists() else "left no timeline"
        say(f"firstfault: an earlier run into {database} was cut off and {left}; this run makes it anew")
    with progress_bar(not quiet) as bar:
        result = pipeline.ingest(paths, database, options, report or bar)
    if result.lines == 0:
        raise CommandError(_nothing([*paths, *(options.cluster.per_node if options.cluster else ())], database))
    return result


def read_shard(paths: list[str], file: Path, shard: str, node_local: bool, options: IngestOptions, quiet: bool) -> str:
    """Read one share of a job into a part; says what it is."""
    from firstfault.ingest import run as pipeline
    from firstfault.ingest.shards import parse_shard

    which = parse_shard(shard, node_local)
    _check_paths(paths)
    if "-" in paths:
        raise CommandError("--shard: standard input cannot be shared out; give files or directories", Status.USAGE)
    with progress_bar(not quiet) as report:
        result = pipeline.ingest_shard(paths, file, which, options, report)
    return f"shard {which.index}/{which.count}, {counted(result)}"


def merge_parts(parts: Sequence[Path], database: Path, catalogs: Sequence[Path], quiet: bool) -> IngestResult:
    """One timeline out of the parts of a job."""
    from firstfault.ingest import IngestOptions
    from firstfault.ingest import run as pipeline

    with progress_bar(not quiet) as report:
        return pipeline.merge(parts, database, IngestOptions(catalogs=tuple(catalogs)), report)


def _check_paths(paths: Sequence[str]) -> None:
    for path in paths:
        if path != "-" and not os.path.lexists(path):
            raise CommandError(
                f"{path}: no such file or directory; give a directory of logs, a log file, an archive, or '-'"
            )


def is_utf8(name: str) -> bool:
    """Whether a name of a file is text, as DuckDB needs it."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _nothing(paths: list[str], database: Path) -> str:
    from firstfault.timeline import open_timeline

    with open_timeline(database) as con:
        rows = con.execute("SELECT kind, path, detail FROM problems ORDER BY severity, path LIMIT 4").fetchall()
    where = ", ".join(paths)
    if not rows:
        return f"{where}: no log in it; point firstfault at the directory that holds the job's log files"
    listed = "; ".join(f"{path}: {kind} ({detail})" for kind, path, detail in rows)
    return f"{where}: nothing readable in it: {listed}"


def counted(result: IngestResult) -> str:
    """What an ingest read, in words."""
    from firstfault.report.words import many

    return ", ".join(
        (
            many(result.sources, "file"),
            many(result.lines, "line"),
            many(result.signals, "signal"),
            many(result.problems, "problem"),
        )
    )


def judge(
    database: Path, catalogs: Sequence[Path] = (), wanted: Wanted | None = None, healthy: Healthy | None = None
) -> Diagnosis:
    """The diagnosis of a timeline; the findings go back into it where it can be written."""
    from firstfault.catalog import load_catalog
    from firstfault.correlate.engine import diagnose

    return diagnose(database, load_catalog(catalogs), wanted, healthy)


def render(diagnosis: Diagnosis, format_: str) -> str:
    """A diagnosis in one of the formats, as text for a file or a pipe."""
    if format_ == "json":
        from firstfault.report.document import to_json

        return to_json(diagnosis) + "\n"
    if format_ == "markdown":
        from firstfault.report.markdown import to_markdown

        return to_markdown(diagnosis)
    if format_ == "html":
        from firstfault.report.html import to_html

        return to_html(diagnosis)
    from firstfault.report.text import to_text

    return to_text(diagnosis)


def show(diagnosis: Diagnosis, format_: str) -> None:
    """Print a diagnosis; in colour and as wide as the terminal where standard output is one."""
    if format_ == "text" and sys.stdout.isatty():
        from rich.console import Console

        from firstfault.report.text import render as styled

        console = Console(highlight=False, emoji=False, markup=False)
        console.print(styled(diagnosis, min(console.width, WIDEST)), soft_wrap=True)
        return
    sys.stdout.write(render(diagnosis, format_))
    sys.stdout.flush()


def write_all(diagnosis: Diagnosis, folder: Path) -> None:
    """The reports of `--output`, each complete or not there."""
    from firstfault.cli.files import replace_file

    for name, format_ in (("diagnosis.json", "json"), ("report.md", "markdown"), ("report.html", "html")):
        replace_file(folder / name, render(diagnosis, format_).encode("utf-8", "backslashreplace"))
    if diagnosis.swim.lanes:
        from firstfault.report.swim_svg import standalone

        replace_file(folder / "swimlanes.svg", standalone(diagnosis.swim).encode("utf-8", "backslashreplace"))
