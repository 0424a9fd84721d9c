"""A candidate root: what failed where, the lines that say so, and how much that alone is worth.

Base scores are log-odds-like and set by hand from how a kind of evidence behaves (causal model, ranking); only their
order matters much. Below `ANSWERABLE` evidence is a suspicion: it is shown, never convicted on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from firstfault.correlate.collectives import Collective, Group
from firstfault.correlate.exits import Exit
from firstfault.correlate.load import Timeline
from firstfault.correlate.model import Extent, Moment, Signal
from firstfault.correlate.names import Names
from firstfault.correlate.states import RankState
from firstfault.correlate.times import Times

ANSWERABLE = 2.0
NULL_SCORE = 2.2
SHARPNESS = 1.6

BASE = {
    "authored-action": 5.0,
    "common-error": 5.0,
    "device-fault": 4.3,
    "oom-kill": 4.3,
    "node-lost": 4.0,
    "link-fault": 4.0,
    "own-error-witnessed": 4.0,
    "launcher-error": 4.0,
    "odd-operation": 3.8,
    "odd-version": 3.8,
    "named-absent": 3.6,
    "exit-code": 3.4,
    "nothing-enqueued": 3.4,
    "elsewhere": 3.4,
    "silent-host": 3.4,
    "killed-by-signal": 3.2,
    "stuck-in-completed": 3.2,
    "never-ran": 3.6,
    "absent": 3.0,
    "odd-call-site": 3.0,
    "straggler": 3.0,
    "full-network": 3.0,
    "dropped-packets": 3.0,
    "io-stall": 3.0,
    "own-abort": 3.0,
    "own-error": 2.8,
    "mute": 2.8,
    "last-member": 2.8,
    "device-fault-unjoined": 2.4,
    "between": 2.8,
    "lost-store": 2.4,
    "raised-desync": 2.4,
    "own-error-ambiguous": 2.3,
    "own-error-doubtful": 1.9,
    "peer-common-end": 1.8,
    "behind": 1.6,
    "bare-abort": 1.5,
    "fabric": 1.5,
    "unauthored-signal": 1.0,
    "unlogged": 0.4,
}
"""Rule of a candidate and what its evidence alone is worth."""


@dataclass(slots=True, eq=False)
class Candidate:
    """One possible root of one attempt."""

    rule: str
    cls: str
    entry: str | None
    component: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    base: float
    signals: list[tuple[Signal, str]]
    moment: Moment | None = None
    aliases: tuple[str, ...] = ()
    scope_ranks: tuple[int, ...] = ()
    for_: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    missing: str | None = None
    score: float = 0.0
    explained_by: Candidate | None = None
    common: bool = False
    outweighs_completion: bool = False

    def key(self) -> tuple[str, tuple[int, ...], tuple[str, ...], str]:
        """Stable order among equals."""
        return (self.cls, self.ranks, self.hosts, self.rule)

    def support(self, signal: Signal, why: str) -> None:
        """Add a line that speaks for the candidate, once."""
        if all(known is not signal for known, _ in self.signals):
            self.signals.append((signal, why))

    @property
    def own_evidence(self) -> bool:
        """Whether some line of the suspect itself, or of the machine about it, says that it failed."""
        return self.base >= 3.2 or self.rule in ("own-error", "own-error-ambiguous")


def _of_job(one: Signal | Extent) -> bool:
    return one.source.kind == "job"


@dataclass(slots=True)
class View:
    """Everything known about one attempt, gathered for the rules."""

    attempt: int
    timeline: Timeline
    names: Names
    times: Times
    signals: list[Signal]
    states: dict[int, RankState]
    exits: list[Exit]
    groups: dict[str, Group]
    collectives: list[Collective]
    later_steps: dict[int, tuple[int, int]]
    step_times: list[int] = field(default_factory=list)
    last_progress: Moment | None = None
    first_echo: Moment | None = None
    waiting_since: tuple[Moment | None] | None = None

    @property
    def usual_step_ns(self) -> int:
        """Nanoseconds that a printed step took on average, 0 where the logs do not show it."""
        spans = [
            (state.progress.stamp_ns - extent.first_ns) // max(1, state.progress.count)
            for state in self.states.values()
            if state.progress is not None and state.progress.stamp_ns is not None
            for extent in state.extents
            if extent.source is state.progress.source and extent.first_ns
        ]
        return max(spans, default=0)

    def logged(self) -> list[RankState]:
        """States of ranks of which lines were read."""
        return [state for state in self.states.values() if state.logged]

    def unread(self) -> tuple[int, ...]:
        """Ranks of which nothing was read, or not their error stream, as far as the others' numbers and the size of the
        job tell of them.
        """
        known = {state.rank for state in self.logged() if not state.half_read}
        world = max(self.names.world or 0, max(self.states, default=-1) + 1)
        return tuple(rank for rank in range(world) if rank not in known)

    def host_unread(self) -> bool:
        """Whether a whole host is missing: some rank that left no log is placed beside none that did.

        Where ranks of the whole job print in one log, none is.
        """
        together = {
            (one.source.id, one.rank) for state in self.states.values() for one in state.extents if _of_job(one)
        } | {(one.source.id, one.host) for one in self.signals if one.host and _of_job(one)}
        if any(count > 1 for count in Counter(source for source, _ in together).values()):
            return False
        read = {state.host for state in self.logged()}
        return any(self.names.host_of(rank, self.attempt) not in read for rank in self.unread())

    def failing(self) -> list[RankState]:
        """States of ranks that show any failure or were ended with one."""
        return [
            state
            for state in self.states.values()
            if state.own or state.derived or state.secondary or (state.exit_code not in (None, 0))
        ]
