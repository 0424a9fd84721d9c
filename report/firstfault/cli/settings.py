"""Command-line arguments and options that several commands share, and how they become `IngestOptions`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstfault.cli.messages import CommandError, Status

if TYPE_CHECKING:
    from firstfault.ingest import IngestOptions

FORMATS = ("text", "markdown", "html", "json")

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="Directories, files, archives, or '-' for standard input.")
]
SomePaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...", show_default=False, help="Directories, files, archives, or '-' for standard input."
    ),
]
Timeline = Annotated[Path, typer.Argument(metavar="DB", help="A timeline made by ingest --db or diagnose --output.")]
Format = Annotated[
    str | None, typer.Option("--format", metavar="|".join(FORMATS), help="What to print; text by default.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        help="Folder for report.md, report.html, diagnosis.json, swimlanes.svg; of diagnose, timeline.duckdb too.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
HostMap = Annotated[
    list[str] | None,
    typer.Option("--host-map", metavar="GLOB=HOST", help="Host of the files that match a glob; may be repeated."),
]
RankMap = Annotated[
    list[str] | None,
    typer.Option(
        "--rank-map", metavar="GLOB=RANK", help="Global rank of the files that match a glob; may be repeated."
    ),
]
Zone = Annotated[
    str | None,
    typer.Option("--tz", metavar="ZONE", help="Time zone of stamps that carry none, such as UTC or Europe/Berlin."),
]
Year = Annotated[int | None, typer.Option("--year", metavar="YEAR", help="Year of stamps that carry none.")]
Follow = Annotated[bool, typer.Option("--follow-links", help="Follow links that lead out of the given directories.")]
Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", help="Processes that read; by default as many as cores.")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE", help="Memory for all processes together, such as 2G; by default 256M each."
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="local|ray",
        help="What reads: this machine, or the nodes of a Ray cluster (firstfault[ray]).",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="HOST:PORT", help="With --engine ray: the cluster; by default the one of this machine."
    ),
]
PerNode = Annotated[
    list[str] | None,
    typer.Option(
        "--per-node",
        metavar="PATH",
        help="With --engine ray: logs that each node has for itself under this path; may be repeated.",
    ),
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Read everything again, also what has not changed, and keep nothing in the cache."),
]
KeepText = Annotated[
    bool | None,
    typer.Option(
        "--keep-text/--leave-text",
        show_default=False,
        help="Keep the text of every line in the timeline, or leave ordinary lines in the logs; by default kept up to"
        " 4 GB of logs.",
    ),
]
CatalogDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--catalog",
        metavar="DIR",
        envvar="FIRSTFAULT_CATALOG",
        help="Folder of catalog entries of your own; may be repeated. By default those of $FIRSTFAULT_CATALOG.",
    ),
]


def check_format(name: str | None) -> str:
    """The format to print."""
    chosen = name or "text"
    if chosen not in FORMATS:
        raise CommandError(f"--format {chosen}: choose one of {', '.join(FORMATS)}", Status.USAGE)
    return chosen


def pairs(values: list[str] | None, option: str) -> dict[str, str]:
    """'GLOB=VALUE' texts as a mapping."""
    found = {}
    for value in values or ():
        glob, equals, name = value.rpartition("=")
        if not equals or not glob or not name:
            raise CommandError(f"{option} {value!r}: write it as GLOB=VALUE, such as 'node1/*=gpu-a01'", Status.USAGE)
        found[glob] = name
    return found


def existing(catalogs: list[Path] | None) -> tuple[Path, ...]:
    """The folders of --catalog, which have to be there."""
    for folder in catalogs or ():
        if not folder.exists():
            raise CommandError(f"{folder}: no such file or folder of catalog entries", Status.USAGE)
    return tuple(catalogs or ())


def ingest_options(
    host_map: list[str] | None,
    rank_map: list[str] | None,
    tz: str | None,
    year: int | None,
    follow_links: bool,
    workers: int | None,
    catalogs: list[Path] | None,
    keep_text: bool | None = None,
    memory_limit: str | None = None,
    fresh: bool = False,
) -> IngestOptions:
    """The options of an ingest from those of the command line."""
    from firstfault.ingest import IngestOptions

    ranks = {}
    for glob, text in pairs(rank_map, "--rank-map").items():
        if not (text.isascii() and text.isdigit()):
            raise CommandError(f"--rank-map {glob}={text}: a global rank is a whole number", Status.USAGE)
        ranks[glob] = int(text)
    return IngestOptions(
        hosts=pairs(host_map, "--host-map"),
        ranks=ranks,
        tz=tz,
        year=year,
        follow_links=follow_links,
        workers=workers,
        catalogs=existing(catalogs),
        keep_text=keep_text,
        reuse=not fresh,
        memory_limit=None if memory_limit is None else size(memory_limit),
    )


def with_engine(
    options: IngestOptions, paths: list[str], engine: str, address: str | None, per_node: list[str] | None
) -> IngestOptions:
    """The options with who is to read; refuses what does not go together."""
    from firstfault.ingest import Cluster

    if engine not in ("local", "ray"):
        raise CommandError(f"--engine {engine}: choose local or ray", Status.USAGE)
    for name, given in (("--address", address), ("--per-node", per_node)):
        if given and engine == "local":
            raise CommandError(f"{name}: it says what a cluster reads; give --engine ray too", Status.USAGE)
    if not paths and not per_node:
        raise CommandError(
            "missing PATH: give the logs of the job, a directory, a file, an archive, or '-'", Status.USAGE
        )
    if engine == "local":
        return options
    if "-" in paths:
        raise CommandError("--engine ray: standard input cannot be shared out; give files or directories", Status.USAGE)
    return replace(options, cluster=Cluster(address, tuple(per_node or ())))


def size(text: str) -> int:
    """Bytes of a text such as 512M or 2G."""
    number, unit = text[:-1], text[-1:].upper()
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(unit)
    if factor is None:
        number, factor = text, 1
    if not (number.isascii() and number.isdigit()):
        raise CommandError(f"--memory-limit {text}: write a number of bytes, or one with K, M or G", Status.USAGE)
    return int(number) * factor
