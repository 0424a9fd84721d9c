"""`firstfault export`: a timeline as Parquet files or as a trace for Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstfault.cli.files import check_place
from firstfault.cli.messages import CommandError, Status, errors_in_words, say
from firstfault.cli.settings import Timeline

if TYPE_CHECKING:
    import duckdb

EXPORTS = ("parquet", "trace")


def export(
    db: Timeline,
    output: Annotated[
        Path,
        typer.Option(
            "--output", metavar="PATH", help="Folder of the Parquet files, or the trace: a .json or .json.gz."
        ),
    ],
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="|".join(EXPORTS), help="By default by the name of --output."),
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", metavar="NAME", help="Only this table or view; may be repeated.")
    ] = None,
) -> None:
    """Write a timeline for other tools: Parquet, or a trace that ui.perfetto.dev shows as swim lanes."""
    with errors_in_words():
        chosen = format_ or ("trace" if output.name.endswith((".json", ".json.gz")) else "parquet")
        if chosen not in EXPORTS:
            raise CommandError(f"--format {chosen}: choose one of {', '.join(EXPORTS)}", Status.USAGE)
        if table and chosen != "parquet":
            raise CommandError("--table is for --format parquet", Status.USAGE)
        from firstfault.timeline import open_timeline

        with open_timeline(db) as con:
            if chosen == "trace":
                _trace(con, output)
            else:
                _parquet(con, output, table or [])


def _parquet(con: duckdb.DuckDBPyConnection, folder: Path, names: list[str]) -> None:
    from firstfault.export.parquet import write_parquet
    from firstfault.timeline.relations import relation

    if folder.exists() and not folder.is_dir():
        raise CommandError(f"--output {folder}: this is a file; give a folder for Parquet", Status.USAGE)
    for name in names:
        if relation(name) is None:
            raise CommandError(f"--table {name}: no such table or view; see docs/timeline.md", Status.USAGE)
    count = sum(1 for _ in write_parquet(con, folder, names))
    say(f"{folder}: {count} Parquet files")


def _trace(con: duckdb.DuckDBPyConnection, file: Path) -> None:
    from firstfault.export.trace import write_trace

    check_place(file, "--output")
    try:
        made = write_trace(con, file)
    except ValueError as error:
        raise CommandError(f"no trace: {error}") from error
    say(f"{file}: {made.events:,} events of {made.ranks:,} ranks; open it at ui.perfetto.dev or chrome://tracing")
    if made.folded_steps:
        say(f"{made.folded_steps:,} steps stand folded into their neighbours: there are more than a browser shows")
    if made.errors_left_out:
        say(f"{made.errors_left_out:,} later errors are left out; `firstfault sql DB 'FROM faults'` has all")
