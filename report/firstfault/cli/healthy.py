"""The option --healthy: reads the run that went well into a timeline beside that of the job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstfault.cli.messages import say

if TYPE_CHECKING:
    from firstfault.correlate.healthy import Healthy
    from firstfault.ingest import IngestOptions

HealthyRun = Annotated[
    str | None,
    typer.Option("--healthy", metavar="PATH", help="Logs, or the timeline, of a run that went well, to compare with."),
]


def read_healthy(path: str | None, folder: Path, options: IngestOptions, quiet: bool) -> Healthy | None:
    """The healthy run, read into `folder` where it is not a timeline yet."""
    if path is None:
        return None
    from firstfault.cli.run import judge, read_logs
    from firstfault.correlate.healthy import Healthy

    given = Path(path)
    database = given
    if not (given.is_file() and given.suffix == ".duckdb"):
        database = folder / "healthy.duckdb"
        read_logs([path], database, replace(options, hosts={}, ranks={}, cluster=None), quiet)
    completed = judge(database, options.catalogs).verdict == "no-failure"
    if not completed:
        say(f"firstfault: {path}: nothing proves that this run went well; it is compared, but changes no hypothesis")
    return Healthy(database, given.name or path, completed)
