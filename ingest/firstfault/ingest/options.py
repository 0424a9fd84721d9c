"""What a user may say about a job before it is read: hosts, ranks, zone and year of the logs, bounds, workers.

Command line options come in through `IngestOptions`; a file `.firstfault.toml` beside the logs says the same things
for everyone who reads that folder, and loses against the command line.
"""

from __future__ import annotations

import tomllib
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

PER_PROCESS = 320 << 20
"""Bytes that a process is reckoned to need."""

LEAST_MEMORY = 2 * PER_PROCESS
SETTINGS_NAME = ".firstfault.toml"


class OptionError(ValueError):
    """A setting that cannot be used, with where it stands."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits against hostile or accidental giants."""

    line: int = 65536
    """Bytes of text that are kept of one line."""
    dump: int = 512 << 20
    """Bytes of a file that a dump reader or a nested archive may hold in memory."""
    archive_depth: int = 3
    """Archives inside archives."""
    archive_members: int = 100_000
    directory: int = 16 << 20
    """Bytes of the list of members of a zip."""
    archive_bytes: int = 1 << 40
    ratio: int = 2000
    """Decompressed bytes for each compressed byte, once more than 64 MB came out."""
    hole: int = 64 << 30
    """Bytes of a file that need not be there; a log that was cut while its writer went on has a hole before its end."""
    chunk: int = 8 << 20
    """Bytes that are worked on at once."""
    unit: int = 16 << 20
    """Bytes of small files that travel to a worker together."""
    shard: int = 64 << 20
    """Bytes after which a big file is cut for several workers."""
    file_cost: int = 16 << 10
    """What opening a file costs, in bytes read meanwhile."""
    in_process: int = 20 << 20
    """Bytes of a job that is read without starting workers."""
    memory: int = 64 << 20
    """Bytes of a job whose rows may stay in memory until they are written."""
    text: int = 4 << 30
    """Bytes of a job whose text is kept unless the user says otherwise."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that reads instead of this machine alone: by default the one that this machine is part of."""

    address: str | None = None
    per_node: tuple[str, ...] = ()
    """Paths that each node of the cluster has for itself."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How to read a job. Glob patterns of the maps are matched against the path as cited in evidence."""

    hosts: Mapping[str, str] = field(default_factory=dict)
    ranks: Mapping[str, int] = field(default_factory=dict)
    tz: str | None = None
    year: int | None = None
    follow_links: bool = False
    keep_text: bool | None = None
    workers: int | None = None
    memory_limit: int | None = None
    catalogs: tuple[Path, ...] = ()
    reuse: bool = True
    """Whether what was read before and has not changed may be taken as it is."""
    cluster: Cluster | None = None
    bounds: Bounds = field(default_factory=Bounds)


def with_settings(options: IngestOptions, folder: Path) -> IngestOptions:
    """The options, completed by the settings file of a folder where there is one."""
    file = folder / SETTINGS_NAME
    if not file.is_file():
        return options
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OptionError(f"{file}: cannot be read: {error}") from error
    unknown = sorted(set(settings) - {"hosts", "ranks", "tz", "year"})
    if unknown:
        raise OptionError(f"{file}: unknown setting {unknown[0]!r}; known are hosts, ranks, tz, year")
    return replace(
        options,
        hosts={**_table(file, settings, "hosts", str), **options.hosts},
        ranks={**_table(file, settings, "ranks", int), **options.ranks},
        tz=options.tz if options.tz is not None else _value(file, settings, "tz", str),
        year=options.year if options.year is not None else _value(file, settings, "year", int),
    )


def check(options: IngestOptions) -> None:
    """Refuse what cannot be meant, before anything is read."""
    if options.tz is not None:
        zone(options.tz)
    if options.year is not None and not 1970 <= options.year <= 2200:
        raise OptionError(f"year {options.year}: expected a year between 1970 and 2200")
    if options.workers is not None and options.workers < 1:
        raise OptionError(f"workers {options.workers}: at least one is needed")
    if options.memory_limit is not None and options.memory_limit < LEAST_MEMORY:
        raise OptionError(f"memory limit {options.memory_limit}: at least {LEAST_MEMORY >> 20}M are needed")


def zone(name: str) -> zoneinfo.ZoneInfo:
    """The time zone of a name such as `Europe/Berlin` or `UTC`."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise OptionError(f"time zone {name!r}: not known; use a name such as 'UTC' or 'America/New_York'") from error


def _table(file: Path, settings: Mapping[str, Any], name: str, kind: type) -> dict[str, Any]:
    table = settings.get(name, {})
    if not isinstance(table, dict) or not all(type(value) is kind for value in table.values()):
        raise OptionError(f"{file}: {name} must be a table of path patterns with a {kind.__name__} each")
    return dict(table)


def _value(file: Path, settings: Mapping[str, Any], name: str, kind: type) -> Any:
    value = settings.get(name)
    if value is not None and type(value) is not kind:
        raise OptionError(f"{file}: {name} must be a {kind.__name__}")
    return value
