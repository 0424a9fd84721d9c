"""Tries catalog entries: on their own examples, and on the lines of a log."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from firstfault.catalog import Catalog, Entry
from firstfault.catalog.check import check_catalog
from firstfault.cli.run import read_logs
from firstfault.ingest import IngestOptions
from firstfault.report.layout import cut
from firstfault.report.words import clean
from firstfault.timeline import open_timeline

_MATCHED = """
    SELECT path, line, entry, text, captures FROM signals WHERE list_contains(?, entry) ORDER BY path, line, signal_id
"""


def run_examples(catalog: Catalog, entries: Sequence[Entry]) -> int:
    """Print one line for each entry and what is wrong with it; how many have something wrong."""
    problems = check_catalog(catalog)
    failed = 0
    for entry in entries:
        wrong = [one for one in problems if one.path == entry.path]
        failed += bool(wrong)
        counts = f"{len(entry.match)} matched, {len(entry.no_match)} near misses, {len(entry.missed)} known gaps"
        sys.stdout.write(f"{'FAILED' if wrong else 'ok    '}  {entry.id}: {counts}\n")
        for one in wrong:
            sys.stdout.write(f"        {one}\n")
    return failed


def lines_matched(logs: Sequence[str], entries: Sequence[Entry], catalogs: Sequence[Path]) -> None:
    """Print each line of some logs that one of the entries matches, with the captures, as a diagnosis would see it."""
    with tempfile.TemporaryDirectory(prefix="firstfault-") as folder:
        database = Path(folder) / "timeline.duckdb"
        read_logs(list(logs), database, IngestOptions(catalogs=tuple(catalogs)), quiet=True)
        with open_timeline(database) as con:
            rows = con.execute(_MATCHED, [[entry.id for entry in entries]]).fetchall()
    for path, line, entry, text, captures in rows:
        taken = "".join(f" {name}={clean(str(value))}" for name, value in sorted(captures.items()))
        sys.stdout.write(f"{clean(path)}:{line}: {entry}{taken}\n        {cut(clean(text or ''), 200)}\n")
