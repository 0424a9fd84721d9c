"""The working objects of the correlate stage: signals with their place, states of ranks and hosts, moments with bounds.

They are read from the timeline once (`load`), never written back as they are; what the stage finds out goes to
tables of its own (`store`) and into the `Diagnosis`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from firstfault.catalog.model import Event, Role

PRIMARY_EVENTS = frozenset(
    {
        Event.EXCEPTION,
        Event.CUDA_ERROR,
        Event.NATIVE_CRASH,
        Event.NUMERIC,
        Event.HANG,
        Event.INIT_FAILURE,
        Event.IO_ERROR,
    }
)
"""Kinds of signals with which a rank's own process can start a failure."""

DERIVED_EVENTS = frozenset(
    {Event.COLL_TIMEOUT, Event.PEER_LOSS, Event.STORE_LOST, Event.TEARDOWN, Event.DUMP_SIGNAL, Event.SIGNAL_RECEIVED}
)
"""Kinds of signals that a rank prints because something else failed."""

MACHINE_EVENTS = frozenset(
    {
        Event.NODE_FAULT,
        Event.OOM_KILL,
        Event.LINK_FAULT,
        Event.IO_STALL,
        Event.NODE_LOST,
        Event.SCHED_ACTION,
        Event.SLOW,
    }
)
"""Kinds of signals from outside the ranks, joined to them by identity."""

FACT_EVENTS = frozenset(
    {
        Event.IDENTITY,
        Event.PROGRESS,
        Event.COMPLETION,
        Event.CHECKPOINT,
        Event.START,
        Event.SYNC,
        Event.CLOCK,
        Event.PHASE,
        Event.NOISE,
    }
)


class Moment(NamedTuple):
    """A time on the job's aligned clock, in nanoseconds: from `ns` less the bound to `late_ns` (or `ns`) plus the
    bound.

    A line without a stamp of its own lies somewhere between its stamped neighbours, so it has a late end.
    """

    ns: int
    bound_ns: int
    late_ns: int | None = None

    @property
    def end_ns(self) -> int:
        """The latest that it can have been."""
        return max(self.ns, self.late_ns or 0) + self.bound_ns

    def surely_before(self, other: Moment) -> bool:
        """True where the two cannot lie in the other order within their bounds."""
        return self.end_ns < other.ns - other.bound_ns


@dataclass(frozen=True, slots=True)
class Source:
    """One log of the job."""

    id: int
    path: str
    kind: str
    format: str | None
    host: str | None
    node_rank: int | None
    rank: int | None
    local_rank: int | None
    attempt: int | None
    stream: str | None
    clock: str | None
    utc_offset_s: int | None
    lines: int


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """One line that says something, with everything known about its place. Compared and hashed by identity.

    `uncaught`: torch's exception hook put the rank in front of the line, so nothing had caught the exception.
    """

    id: int
    source: Source
    line: int
    first_line: int
    last_line: int
    entry: str | None
    fact: str | None
    event: Event | None
    cls: str | None
    role: Role | None
    weak: bool
    level: str | None
    rank: int | None
    local_rank: int | None
    host: str | None
    attempt: int
    pid: int | None
    gpu: int | None
    stamp_ns: int | None
    stamp_kind: str | None
    res_ns: int
    own_stamp: bool
    utc_offset_s: int | None
    text: str
    captures: dict[str, str] = field(default_factory=dict)
    uncaught: bool = False

    def number(self, name: str) -> int | None:
        """A capture as an integer, None where it is absent or no number."""
        value = self.captures.get(name)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            return None

    @property
    def place(self) -> tuple[str, int]:
        """Path and line: the order in which signals are shown and ties are broken."""
        return (self.source.path, self.line)


@dataclass(frozen=True, slots=True)
class Extent:
    """The lines of one rank in one source."""

    rank: int
    attempt: int
    source: Source
    first_line: int
    last_line: int
    first_ns: int | None
    last_ns: int | None
    lines: int
    last_text: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """The furthest step of one rank (or of the job, rank None) in one source."""

    rank: int | None
    attempt: int
    source: Source
    line: int
    step: int
    stamp_ns: int | None
    count: int
    host: str | None = None


def short_host(name: str) -> str:
    """A host's name cut at the first dot; an IP address as it is."""
    if not name or ":" in name or name.replace(".", "").isdigit():
        return name
    return name.split(".", 1)[0]


def parse_ranks(text: str) -> tuple[int, ...]:
    """Numbers of a printed list such as '1, 3' or '0-6,8' or '[0, 1]', sorted; at most 1,000,000 of them."""
    found: set[int] = set()
    for part in text.replace("[", " ").replace("]", " ").replace(",", " ").split():
        low, dash, high = part.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            continue
        first, last = int(low), int(high) if dash else int(low)
        if last - first > 1_000_000:
            continue
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def rank_ranges(ranks: Iterable[int], most: int = 8) -> str:
    """Numbers with runs folded, at most so many parts: '0-2, 5, 7-9 ...'."""
    parts: list[list[int]] = []
    for number in sorted(set(ranks)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    said = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in parts[:most]]
    return ", ".join(said) + (" ..." if len(parts) > most else "")
