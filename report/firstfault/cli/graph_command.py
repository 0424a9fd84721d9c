"""`firstfault graph`: the causal graph of a timeline as GraphML, DOT or JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from firstfault.cli.messages import CommandError, Status, errors_in_words
from firstfault.cli.settings import Timeline

_SUFFIXES = {".graphml": "graphml", ".dot": "dot", ".gv": "dot", ".json": "json"}


def graph(
    db: Timeline,
    format_: Annotated[
        str | None, typer.Option("--format", metavar="graphml|dot|json", help="By default what FILE ends in, or json.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="The file to write; standard output without it.")
    ] = None,
) -> None:
    """Write the causal graph of a timeline, from effects to causes, for other programs."""
    with errors_in_words():
        from firstfault.correlate.engine import diagnose
        from firstfault.report.graph_files import FORMS, read_graph
        from firstfault.timeline import open_timeline

        chosen = format_ or (_SUFFIXES.get(output.suffix.lower()) if output is not None else None) or "json"
        if chosen not in FORMS:
            raise CommandError(f"--format {chosen}: choose one of {', '.join(FORMS)}", Status.USAGE)
        with open_timeline(db) as con:
            found = read_graph(con)
        if not found.nodes:  # read, but not diagnosed yet
            diagnose(db)
            with open_timeline(db) as con:
                found = read_graph(con)
        text = FORMS[chosen](found)
        if output is None:
            sys.stdout.write(text)
        else:
            output.write_text(text, encoding="utf-8")
