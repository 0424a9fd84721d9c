"""`firstfault sql`: one query, a pipe of queries, or a prompt; read-only, and without access to any other file."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from firstfault.cli.files import check_place
from firstfault.cli.messages import CommandError, Status, errors_in_words, say
from firstfault.cli.settings import Timeline

if TYPE_CHECKING:
    from firstfault.timeline.gate import Gate

_NEEDS_A_DIAGNOSIS = re.compile(
    r"(?i)\b(verdicts|evidence|hypotheses|edges|nodes|collectives|behind|around_root|spread|attempts|clocks)\b"
)
"""What the correlate stage fills; without it these are empty, which looks like an answer."""


def _say_what_is_left_out(db: Path) -> None:
    """Say so where texts are not in the timeline, so that no query takes a hole for an empty line."""
    from firstfault.timeline import open_timeline

    with open_timeline(db) as con:
        row = con.execute("SELECT count(*), sum(lines) FROM sources WHERE NOT text_stored").fetchone()
    if row and row[0]:
        say(
            f"firstfault: lines.message is NULL for ordinary lines of {row[0]} files ({row[1]:,} lines in all), whose"
            " text was left in the logs; `firstfault ingest --keep-text` keeps all of it"
        )


def sql(
    db: Timeline,
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUERY]", help="SQL, or .examples and the like; without one a prompt, or what is piped in."
        ),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="table|csv|json|markdown|parquet", help="How to print rows.")
    ] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write the rows there instead of printing them.")
    ] = None,
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", help="Stop a query after so long; 0 for no limit.")
    ] = 60.0,
    memory: Annotated[
        str, typer.Option("--memory", metavar="AMOUNT", help="Memory that a query may use, such as 2GB.")
    ] = "4GB",
) -> None:
    """Read-only SQL over a timeline. What can be asked: docs/timeline.md, or the query .examples."""
    with errors_in_words():
        from firstfault.cli.sql_rows import FORMATS
        from firstfault.timeline.gate import Stuck, open_gate

        if format_ not in FORMATS:
            raise CommandError(f"--format {format_}: choose one of {', '.join(FORMATS)}", Status.USAGE)
        if time_limit < 0:
            raise CommandError(f"--time-limit {time_limit:g}: give seconds, or 0 for no limit", Status.USAGE)
        if output is not None:
            check_place(output, "--output")
        _say_what_is_left_out(db)
        if query is None and sys.stdin.isatty() and output is None and format_ != "parquet":
            from firstfault.cli.sql_shell import Shell

            Shell(db, format_, time_limit or None, memory).run()
            return
        try:
            with open_gate(db, seconds=time_limit or None, memory=memory) as gate:
                answer(gate, sys.stdin.read() if query is None else query, format_, output)
        except Stuck as stuck:  # its thread would hold this process, whatever the interpreter does
            sys.stdout.flush()
            say(f"firstfault: {stuck}")
            sys.stderr.flush()
            os._exit(int(Status.FAILED))


def answer(gate: Gate, query: str, format_: str, output: Path | None = None) -> None:
    """Run what was asked and write the rows."""
    from firstfault.timeline.gate import QueryError, Stuck

    try:
        if query.strip().startswith("."):
            from firstfault.cli.sql_help import dot_command

            with _to(output) as out:
                said = dot_command(gate, query.strip())
                if said.query is None:
                    out.write(said.text)
                    return
            query = said.query
        _rows(gate, query, format_, output)
        if _NEEDS_A_DIAGNOSIS.search(query[:4000]) and not next(gate.ask("SELECT count(*) FROM verdicts").rows)[0]:
            say("this timeline has no diagnosis yet; `firstfault report DB` adds it")
    except Stuck:
        raise
    except QueryError as error:
        raise CommandError(f"SQL: {error}") from error


def _rows(gate: Gate, query: str, format_: str, output: Path | None) -> None:
    from firstfault.cli.sql_rows import MOST_ROWS, WRITERS, table

    if format_ == "parquet":
        _parquet(gate, query, output)
        return
    if format_ == "table":
        with _to(output) as out:
            for number, found in enumerate(gate.ask_all(query)):
                out.write("\n" if number else "")
                if table(found.names, found.rows, out, terminal_width() if output is None else None):
                    say(f"the first {MOST_ROWS} rows; --format csv, json or parquet gives all")
        return
    found = gate.ask(query)
    with _to(output) as out:
        WRITERS[format_](found.names, found.rows, out)


def _parquet(gate: Gate, query: str, output: Path | None) -> None:
    from tempfile import TemporaryDirectory

    from firstfault.cli.sql_rows import parquet_file

    if output is None and sys.stdout.isatty():
        raise CommandError("--format parquet is not for a terminal; add --output FILE, or > FILE", Status.USAGE)
    if output is not None:
        beside = output.with_name(f".{output.name}.{os.getpid()}.tmp")
        try:
            count = parquet_file(gate, query, beside)
            os.replace(beside, output)
        finally:
            beside.unlink(missing_ok=True)
        say(f"{output}: {count:,} rows")
        return
    with TemporaryDirectory(prefix="firstfault-") as folder:
        file = Path(folder) / "rows.parquet"
        parquet_file(gate, query, file)
        sys.stdout.flush()
        with file.open("rb") as made:
            shutil.copyfileobj(made, sys.stdout.buffer)


def terminal_width() -> int | None:
    """Cells of a line where standard output is a terminal, None where it is not."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


@contextmanager
def _to(output: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that is complete or not there at all."""
    if output is None:
        yield sys.stdout
        return
    beside = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        with beside.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            yield out
        os.replace(beside, output)
    finally:
        beside.unlink(missing_ok=True)
