"""The command line: what each command takes, prints and returns. Heavy imports wait until a command runs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="firstfault",
    help="Names what failed first in a multi-GPU, multi-node job, from the logs it left behind.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def diagnose(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Directories, files, archives, or '-' for standard input.")
    ],
    format_: Annotated[str, typer.Option("--format", help="text, markdown or json.")] = "text",
    fail_on_failure: Annotated[bool, typer.Option(help="Exit with 3 where the verdict is not no-failure.")] = False,
) -> None:
    """Read the logs of a job and say what failed first."""
    from firstfault.correlate.engine import diagnose as run_diagnosis
    from firstfault.ingest import ingest
    from firstfault.report.document import to_json

    with tempfile.TemporaryDirectory(prefix="firstfault-") as folder:
        database = Path(folder) / "timeline.duckdb"
        ingest(paths, database)
        answer = run_diagnosis(database)
    sys.stdout.write(to_json(answer) + "\n")
    if fail_on_failure and answer.verdict != "no-failure":
        raise typer.Exit(3)


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    sys.stdout.write(installed("firstfault") + "\n")


def run() -> None:
    """Entry point."""
    app()
