"""The command line: what each command takes, prints and returns. Heavy imports wait until a command runs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from firstfault.cli.settings import (
    CatalogDirs,
    Follow,
    Format,
    HostMap,
    Paths,
    RankMap,
    Workers,
    Year,
    Zone,
    ingest_options,
)

app = typer.Typer(
    name="firstfault",
    help="Names what failed first in a multi-GPU, multi-node job, from the logs it left behind.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
Output = Annotated[
    Path | None, typer.Option("--output", help="Folder for report.md, diagnosis.json and timeline.duckdb.")
]


@app.command()
def diagnose(
    paths: Paths,
    format_: Format = None,
    output: Output = None,
    fail_on_failure: Annotated[
        bool, typer.Option("--fail-on-failure", help="Exit with 3 where the verdict is not no-failure.")
    ] = False,
    host_map: HostMap = None,
    rank_map: RankMap = None,
    tz: Zone = None,
    year: Year = None,
    follow_links: Follow = False,
    workers: Workers = None,
    catalog_dirs: CatalogDirs = None,
    quiet: Quiet = False,
) -> None:
    """Read the logs of a job and say what failed first."""
    from firstfault.cli.messages import Status, errors_in_words
    from firstfault.cli.run import check_format, read_logs, show, write_all

    with errors_in_words():
        chosen = check_format(format_)
        options = ingest_options(host_map, rank_map, tz, year, follow_links, workers, catalog_dirs)
        from firstfault.correlate.engine import diagnose as judge

        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            database = output / "timeline.duckdb"
            read_logs(paths, database, options, quiet)
            answer = judge(database)
            write_all(answer, output)
        else:
            with tempfile.TemporaryDirectory(prefix="firstfault-") as folder:
                database = Path(folder) / "timeline.duckdb"
                read_logs(paths, database, options, quiet)
                answer = judge(database)
        show(answer, chosen)
        if fail_on_failure and answer.verdict != "no-failure":
            raise typer.Exit(int(Status.NOT_HEALTHY))


@app.command()
def ingest(
    paths: Paths,
    db: Annotated[Path, typer.Option("--db", help="The timeline to write; an older one is replaced when all is read.")],
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Say of each file what it was taken for, and why.")
    ] = False,
    host_map: HostMap = None,
    rank_map: RankMap = None,
    tz: Zone = None,
    year: Year = None,
    follow_links: Follow = False,
    workers: Workers = None,
    catalog_dirs: CatalogDirs = None,
    quiet: Quiet = False,
) -> None:
    """Read the logs of a job into a timeline, without a diagnosis."""
    from firstfault.cli.messages import errors_in_words, say
    from firstfault.cli.run import read_logs

    with errors_in_words():
        options = ingest_options(host_map, rank_map, tz, year, follow_links, workers, catalog_dirs)
        result = read_logs(paths, db, options, quiet)
        say(f"{db}: {result.sources} files, {result.lines} lines, {result.signals} signals, {result.problems} problems")
        if verbose:
            from firstfault.cli.coverage import print_coverage

            print_coverage(db)


@app.command()
def report(
    db: Annotated[Path, typer.Argument(metavar="DB", help="A timeline made by ingest or diagnose --output.")],
    format_: Format = None,
    output: Output = None,
) -> None:
    """Diagnose a timeline that stands, and report."""
    from firstfault.cli.messages import errors_in_words
    from firstfault.cli.run import check_format, show, write_all

    with errors_in_words():
        chosen = check_format(format_)
        from firstfault.correlate.engine import diagnose as judge

        answer = judge(db)
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            write_all(answer, output)
        show(answer, chosen)


@app.command()
def explain(
    text: Annotated[str, typer.Argument(metavar="TEXT-OR-ID", help="A log line, a traceback, or the id of an entry.")],
) -> None:
    """Show the catalog entry that a log line or an id leads to."""
    from firstfault.cli.messages import errors_in_words
    from firstfault.cli.pages import explain_text

    with errors_in_words():
        sys.stdout.write(explain_text(text))


@app.command()
def demo(format_: Format = None) -> None:
    """Diagnose a small real job that comes with the package."""
    from firstfault.cli.demo_job import demo_logs
    from firstfault.cli.messages import errors_in_words, say
    from firstfault.cli.run import check_format, read_logs, show

    with errors_in_words():
        chosen = check_format(format_)
        from firstfault.correlate.engine import diagnose as judge
        from firstfault.ingest import IngestOptions

        with demo_logs() as logs, tempfile.TemporaryDirectory(prefix="firstfault-") as folder:
            say(f"$ firstfault diagnose {logs}")
            database = Path(folder) / "timeline.duckdb"
            read_logs([str(logs)], database, IngestOptions(), True)
            show(judge(database), chosen)


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        sys.stdout.write(installed("firstfault") + "\n")
    except PackageNotFoundError:
        sys.stdout.write("unknown (not installed)\n")


def run() -> None:
    """Entry point."""
    app()
