"""The coverage table of `ingest --verbose`: each file, what it was taken for and why, and what was not understood."""

from __future__ import annotations

import sys
from pathlib import Path

from firstfault.report.words import clean, many
from firstfault.timeline import open_timeline

_FILES = """
    SELECT path, kind, format, why, lines, understood, signals FROM coverage ORDER BY path
"""
_PROBLEMS = """
    SELECT severity, kind, path, line, count, detail FROM problems ORDER BY severity, kind, path, line LIMIT 1000
"""


def print_coverage(database: Path) -> None:
    """Print one line for each file and one for each kind of problem."""
    with open_timeline(database) as con:
        files = con.execute(_FILES).fetchall()
        problems = con.execute(_PROBLEMS).fetchall()
    for path, kind, form, why, lines, understood, signals in files:
        counts = f"{many(lines, 'line')}, {understood:,} understood, {many(signals, 'signal')}"
        sys.stdout.write(f"{clean(path)}: {kind}, {form or 'plain text'}; {counts} ({clean(why or 'no reason')})\n")
    for severity, kind, path, line, count, detail in problems:
        place = f"{clean(path or '')}{f':{line}' if line else ''}"
        sys.stdout.write(f"{severity}: {kind}: {place}: {clean(detail or '')} ({count:,})\n")
