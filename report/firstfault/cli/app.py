"""The command line: what each command takes, prints and returns. Heavy imports wait until a command runs."""

from __future__ import annotations

import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from firstfault.cli.bundle import bundle
from firstfault.cli.catalog_commands import catalog_app
from firstfault.cli.contexts import ContextLines, ContextRanks, wanted_context
from firstfault.cli.export import export
from firstfault.cli.followup import compare, verify
from firstfault.cli.graph_command import graph
from firstfault.cli.healthy import HealthyRun, read_healthy
from firstfault.cli.live_commands import add_live_commands
from firstfault.cli.messages import CommandError, Status, errors_in_words, say
from firstfault.cli.redaction import Redact, redact_in_place, redactor
from firstfault.cli.settings import (
    Address,
    CatalogDirs,
    Engine,
    Follow,
    Format,
    Fresh,
    HostMap,
    KeepText,
    MemoryLimit,
    Output,
    PerNode,
    Quiet,
    RankMap,
    SomePaths,
    Timeline,
    Workers,
    Year,
    Zone,
    check_format,
    existing,
    ingest_options,
    with_engine,
)
from firstfault.cli.sql import sql

app = typer.Typer(
    name="firstfault",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(catalog_app, name="catalog")


@app.command()
def diagnose(
    paths: SomePaths = None,
    format_: Format = None,
    output: Output = None,
    fail_on_failure: Annotated[
        bool, typer.Option("--fail-on-failure", help="Exit with 3 where the verdict is not no-failure.")
    ] = False,
    healthy: HealthyRun = None,
    redact: Redact = False,
    context: ContextLines = None,
    context_ranks: ContextRanks = None,
    host_map: HostMap = None,
    rank_map: RankMap = None,
    tz: Zone = None,
    year: Year = None,
    follow_links: Follow = False,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    keep_text: KeepText = None,
    engine: Engine = "local",
    address: Address = None,
    per_node: PerNode = None,
    fresh: Fresh = False,
    catalog_dirs: CatalogDirs = None,
    quiet: Quiet = False,
) -> None:
    """Read the logs of a job and say what failed first."""
    with errors_in_words():
        chosen = check_format(format_)
        wanted = wanted_context(context, context_ranks)
        options = ingest_options(
            host_map, rank_map, tz, year, follow_links, workers, catalog_dirs, keep_text, memory_limit, fresh
        )
        paths = paths or []
        options = with_engine(options, paths, engine, address, per_node)
        from firstfault.cli.kept import keep_diagnosis, known_diagnosis, timeline_of
        from firstfault.cli.run import judge, read_logs, show, write_all

        with ExitStack() as stack:
            if output is not None:
                output.mkdir(parents=True, exist_ok=True)
            database = output / "timeline.duckdb" if output else stack.enter_context(timeline_of(paths, options))
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="firstfault-")))
            read_logs(paths, database, options, quiet)
            alone = output is None and not healthy and options.reuse
            known = known_diagnosis(database, options, wanted) if alone else None
            answer = known or judge(database, options.catalogs, wanted, read_healthy(healthy, folder, options, quiet))
            if alone and known is None:
                keep_diagnosis(database, options, wanted, answer)
            if redact:
                names = redactor(database, answer)
                answer = names.answer(answer)
                if output is not None:
                    redact_in_place(database, names)
        if output is not None:
            write_all(answer, output)
        show(answer, chosen)
        if fail_on_failure and answer.verdict != "no-failure":
            raise typer.Exit(int(Status.NOT_HEALTHY))


@app.command()
def ingest(
    db: Annotated[
        Path,
        typer.Option("--db", metavar="FILE", help="The timeline to write; replaces an older one when all is read."),
    ],
    paths: SomePaths = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Say of each file what it was taken for, and why.")
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Read only the I-th of N shares (from 0) into a part for merge; auto or auto/N asks the launcher.",
        ),
    ] = None,
    node_local: Annotated[
        bool,
        typer.Option("--node-local", help="With --shard: the files lie on this machine alone, read all of them."),
    ] = False,
    host_map: HostMap = None,
    rank_map: RankMap = None,
    tz: Zone = None,
    year: Year = None,
    follow_links: Follow = False,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    keep_text: KeepText = None,
    engine: Engine = "local",
    address: Address = None,
    per_node: PerNode = None,
    fresh: Fresh = False,
    catalog_dirs: CatalogDirs = None,
    quiet: Quiet = False,
) -> None:
    """Read the logs of a job into a timeline, without a diagnosis."""
    with errors_in_words():
        options = ingest_options(
            host_map, rank_map, tz, year, follow_links, workers, catalog_dirs, keep_text, memory_limit, fresh
        )
        paths = paths or []
        options = with_engine(options, paths, engine, address, per_node)
        from firstfault.cli.run import counted, read_logs

        if db.is_dir():
            raise CommandError(f"--db {db}: this is a directory; give the file to write", Status.USAGE)
        if shard is not None and options.cluster:
            raise CommandError(
                "--shard: the cluster shares the files out itself; leave out one of the two", Status.USAGE
            )
        if shard is not None:
            from firstfault.cli.run import read_shard

            say(f"{db}: {read_shard(paths, db, shard, node_local, options, quiet)}")
            return
        if node_local:
            raise CommandError("--node-local: it says what --shard I/N reads; give that too", Status.USAGE)
        say(f"{db}: {counted(read_logs(paths, db, options, quiet))}")
        if verbose:
            from firstfault.cli.coverage import print_coverage

            print_coverage(db)


@app.command()
def merge(
    parts: Annotated[list[Path], typer.Argument(metavar="PART...", help="The files that ingest --shard wrote, all.")],
    db: Annotated[Path, typer.Option("--db", metavar="FILE", help="The timeline to write; replaces an older one.")],
    catalog_dirs: CatalogDirs = None,
    quiet: Quiet = False,
) -> None:
    """Unite the parts of a job that several machines read into one timeline."""
    with errors_in_words():
        from firstfault.cli.run import counted, merge_parts

        if db.is_dir():
            raise CommandError(f"--db {db}: this is a directory; give the file to write", Status.USAGE)
        say(f"{db}: {counted(merge_parts(parts, db, existing(catalog_dirs), quiet))}")


@app.command()
def report(
    db: Timeline,
    format_: Format = None,
    output: Output = None,
    healthy: HealthyRun = None,
    redact: Redact = False,
    context: ContextLines = None,
    context_ranks: ContextRanks = None,
    catalog_dirs: CatalogDirs = None,
) -> None:
    """Diagnose a timeline that stands, and report."""
    with errors_in_words():
        chosen = check_format(format_)
        wanted = wanted_context(context, context_ranks)
        from firstfault.cli.run import judge, show, write_all
        from firstfault.ingest import IngestOptions

        catalogs = existing(catalog_dirs)
        with tempfile.TemporaryDirectory(prefix="firstfault-") as name:
            run = read_healthy(healthy, Path(name), IngestOptions(catalogs=catalogs), True)
            answer = judge(db, catalogs, wanted, run)
        if redact:
            answer = redactor(db, answer).answer(answer)
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            write_all(answer, output)
        show(answer, chosen)


app.command()(sql)
app.command()(export)
app.command()(verify)
app.command()(compare)
app.command()(bundle)
app.command()(graph)


@app.command()
def explain(
    text: Annotated[
        str, typer.Argument(metavar="TEXT-OR-ID", help="A log line, a traceback, a code, an id; '-' reads it.")
    ],
    catalog_dirs: CatalogDirs = None,
) -> None:
    """Show the catalog entry that a log line or an id leads to."""
    with errors_in_words():
        from firstfault.cli.explain import explain_text

        pasted = sys.stdin.read() if text == "-" else text
        sys.stdout.write(explain_text(pasted, existing(catalog_dirs)))


@app.command()
def demo(
    job: Annotated[
        str | None, typer.Option("--job", metavar="NAME", help="One of the jobs; a wrong name lists them.")
    ] = None,
    format_: Format = None,
) -> None:
    """Diagnose a small real job that comes with the package."""
    with errors_in_words():
        chosen = check_format(format_)
        from firstfault.cli.demo_job import demo_logs, demo_names
        from firstfault.cli.run import judge, read_logs, show
        from firstfault.ingest import IngestOptions

        if job is not None and job not in demo_names():
            raise CommandError(f"--job {job}: choose one of {', '.join(demo_names())}", Status.USAGE)
        with demo_logs(job) as logs, tempfile.TemporaryDirectory(prefix="firstfault-") as folder:
            say(f"$ firstfault diagnose {logs}")
            database = Path(folder) / "timeline.duckdb"
            read_logs([str(logs)], database, IngestOptions(), True)
            show(judge(database), chosen)


add_live_commands(app)


@app.command()
def version() -> None:
    """Print the version."""
    with errors_in_words():
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as installed

        try:
            sys.stdout.write(installed("firstfault") + "\n")
        except PackageNotFoundError:
            sys.stdout.write("unknown (not installed)\n")


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Names what failed first in a multi-GPU, multi-node job, from the logs it left behind."""


def run() -> None:
    """Entry point. A terminal that cannot show a character gets its escape; who is told to end cleans up first."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _end)
    app(prog_name="firstfault")


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)
