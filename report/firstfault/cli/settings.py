"""Command-line options that several commands share, and how they become `IngestOptions`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from firstfault.ingest import IngestOptions

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="Directories, files, archives, or '-' for standard input.")
]
Format = Annotated[str | None, typer.Option("--format", help="text, markdown or json; text by default.")]
HostMap = Annotated[
    list[str] | None,
    typer.Option(
        "--host-map", metavar="GLOB=HOST", help="Host of the files that match a glob, where nothing in them says it."
    ),
]
RankMap = Annotated[
    list[str] | None,
    typer.Option("--rank-map", metavar="GLOB=RANK", help="Global rank of the files that match a glob."),
]
Zone = Annotated[
    str | None, typer.Option("--tz", help="Time zone of stamps that carry none, such as Europe/Berlin or UTC.")
]
Year = Annotated[int | None, typer.Option("--year", help="Year of stamps that carry none.")]
Follow = Annotated[bool, typer.Option("--follow-links", help="Follow links that lead out of the given directories.")]
Workers = Annotated[int | None, typer.Option("--workers", help="Processes that read; by default as many as cores.")]
CatalogDirs = Annotated[
    list[Path] | None,
    typer.Option("--catalog", help="Folder of catalog entries that extend or override those that ship."),
]


def pairs(values: list[str] | None, option: str) -> dict[str, str]:
    """'GLOB=VALUE' texts as a mapping."""
    from firstfault.cli.messages import CommandError, Status

    found = {}
    for value in values or ():
        glob, equals, name = value.rpartition("=")
        if not equals or not glob or not name:
            raise CommandError(f"{option} {value!r}: write it as GLOB=VALUE, such as 'node1/*=gpu-a01'", Status.USAGE)
        found[glob] = name
    return found


def ingest_options(
    host_map: list[str] | None,
    rank_map: list[str] | None,
    tz: str | None,
    year: int | None,
    follow_links: bool,
    workers: int | None,
    catalogs: list[Path] | None,
) -> IngestOptions:
    """The options of an ingest from those of the command line."""
    from firstfault.cli.messages import CommandError, Status
    from firstfault.ingest import IngestOptions

    ranks = {}
    for glob, text in pairs(rank_map, "--rank-map").items():
        if not text.isdigit():
            raise CommandError(f"--rank-map {glob}={text}: a global rank is a whole number", Status.USAGE)
        ranks[glob] = int(text)
    return IngestOptions(
        hosts=pairs(host_map, "--host-map"),
        ranks=ranks,
        tz=tz,
        year=year,
        follow_links=follow_links,
        workers=workers,
        catalogs=tuple(catalogs or ()),
    )
