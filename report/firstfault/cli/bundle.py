"""`firstfault bundle`: diagnoses, and packs what another person needs to see into one file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from firstfault.cli.contexts import ContextLines, ContextRanks, wanted_context
from firstfault.cli.healthy import HealthyRun, read_healthy
from firstfault.cli.messages import CommandError, Status, errors_in_words, say
from firstfault.cli.redaction import Redact, redactor
from firstfault.cli.settings import (
    CatalogDirs,
    Follow,
    HostMap,
    Paths,
    Quiet,
    RankMap,
    Workers,
    Year,
    Zone,
    ingest_options,
)


def bundle(
    paths: Paths,
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="The archive to write, a .tar.gz.")],
    redact: Redact = False,
    healthy: HealthyRun = None,
    context: ContextLines = None,
    context_ranks: ContextRanks = None,
    host_map: HostMap = None,
    rank_map: RankMap = None,
    tz: Zone = None,
    year: Year = None,
    follow_links: Follow = False,
    workers: Workers = None,
    catalog_dirs: CatalogDirs = None,
    quiet: Quiet = False,
) -> None:
    """Put report, timeline and the cited logs into one file that can be passed on."""
    with errors_in_words():
        if not output.name.endswith((".tar.gz", ".tgz")):
            raise CommandError(f"--output {output}: name it .tar.gz", Status.USAGE)
        wanted = wanted_context(context, context_ranks)
        options = ingest_options(host_map, rank_map, tz, year, follow_links, workers, catalog_dirs)
        from firstfault.cli.run import judge, read_logs
        from firstfault.correlate.secrets import masked
        from firstfault.report.bundle import write_bundle
        from firstfault.report.redact_timeline import copy_timeline

        with tempfile.TemporaryDirectory(prefix="firstfault-") as name:
            folder = Path(name)
            database, shared = folder / "timeline.duckdb", folder / "shared.duckdb"
            read_logs(paths, database, options, quiet)
            answer = judge(database, options.catalogs, wanted, read_healthy(healthy, folder, options, quiet))
            one = redactor(database, answer) if redact else None
            shown = one.answer(answer) if one else answer
            copy_timeline(database, shared, one.text if one else masked, one.path if one else None)
            left = write_bundle(
                output, answer, shown, shared, paths, one.text if one else masked, one.path if one else None
            )
        for missing in left:
            say(f"firstfault: left out of the bundle: {missing}")
        say(f"{output}: {output.stat().st_size:,} bytes")
