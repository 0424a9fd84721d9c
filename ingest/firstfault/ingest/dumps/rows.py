"""What a dump reader gives back: rows of the timeline, without the number of the source, which only the pipeline knows.

Field names are the columns of the tables of the same name; what a reader does not know stays None.
Line numbers count from 1; in a binary dump they count its records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from firstfault.ingest.dumps.text import Stamp

TEXT_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class DumpSignal:
    """One row of `signal_rows`: something the record at `line` says that a diagnosis can use."""

    line: int
    event: str
    text: str
    fact: str | None = None
    entry: str | None = None
    cls: str | None = None
    role: str | None = None
    weak: bool = False
    level: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    attempt: int | None = None
    pid: int | None = None
    gpu: int | None = None
    stamp_ns: int | None = None
    stamp_kind: str | None = None
    stamp_res_ns: int | None = None
    utc_offset_s: int | None = None
    first_line: int | None = None
    last_line: int | None = None
    captures: Mapping[str, str] = field(default_factory=dict)

    def at(self, stamp: Stamp | None) -> DumpSignal:
        """The same signal with the time at which it happened, where one is known."""
        if stamp is None:
            return self
        return replace(
            self,
            stamp_ns=stamp.ns,
            stamp_kind=stamp.kind,
            stamp_res_ns=stamp.res_ns,
            utc_offset_s=stamp.utc_offset_s,
        )


@dataclass(frozen=True, slots=True)
class DumpIdentity:
    """One row of `identities`: a statement about who a rank, a host or an address is."""

    line: int
    how: str
    rank: int | None = None
    attempt: int | None = None
    host: str | None = None
    local_rank: int | None = None
    node_rank: int | None = None
    pid: int | None = None
    gpu: int | None = None
    bus_id: str | None = None
    address: str | None = None
    pod: str | None = None
    alias: str | None = None
    comm: str | None = None
    comm_rank: int | None = None
    comm_size: int | None = None
    world_size: int | None = None


@dataclass(frozen=True, slots=True)
class DumpProgress:
    """One row of `progress`."""

    line: int
    step: int
    rank: int | None = None
    epoch: int | None = None
    stamp_ns: int | None = None


@dataclass(frozen=True, slots=True)
class DumpProblem:
    """One row of `problems`."""

    kind: str
    severity: str
    detail: str
    line: int | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class DumpContext:
    """What the path of a source claims, for readers whose bytes do not say it."""

    path: str
    host: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    attempt: int | None = None


@dataclass(frozen=True, slots=True)
class DumpRows:
    """All that one reader took out of one file."""

    signals: tuple[DumpSignal, ...] = ()
    identities: tuple[DumpIdentity, ...] = ()
    progress: tuple[DumpProgress, ...] = ()
    problems: tuple[DumpProblem, ...] = ()


class Reader(Protocol):
    """A reader of one kind of file.

    `kind` goes to `sources.kind`, `name` to `sources.format`.
    `whole` says that the content is no sequence of log lines: neither formats nor patterns of the catalog apply.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def whole(self) -> bool: ...
    def sniff(self, path: str, head: bytes) -> bool: ...
    def read(self, ctx: DumpContext, data: bytes) -> DumpRows: ...
