"""The coverage table of `ingest --verbose`: each source, what it was taken for and why, and what was not understood."""

from __future__ import annotations

import sys
from pathlib import Path

from firstfault.report.words import clean
from firstfault.timeline import open_timeline


def print_coverage(database: Path) -> None:
    """Print one line for each source and one for each kind of problem."""
    with open_timeline(database) as con:
        rows = con.execute(
            "SELECT path, kind, format, why, lines, understood, signals FROM coverage ORDER BY path"
        ).fetchall()
        problems = con.execute(
            "SELECT severity, kind, path, line, count, detail FROM problems ORDER BY severity, kind, path, line LIMIT 1000"
        ).fetchall()
    for path, kind, form, why, lines, understood, signals in rows:
        sys.stdout.write(
            f"{clean(path)}: {kind}, {form or 'plain text'}; {lines} lines, {understood} understood, {signals} signals"
            f" ({clean(why or '')})\n"
        )
    for severity, kind, path, line, count, detail in problems:
        place = f"{clean(path or '')}{f':{line}' if line else ''}"
        sys.stdout.write(f"{severity}: {kind}: {place}: {clean(detail or '')} ({count})\n")
