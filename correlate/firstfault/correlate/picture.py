"""What the pictures of a report show, as values: lanes over time, progress, the causal graph, lines before the failure.

Seconds count from `Swim.origin`, on the job's aligned clock. Sizes are bounded where they are made, so that the picture
of 16,384 ranks can be drawn as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MarkKind(StrEnum):
    """What a mark on a lane stands for."""

    ROOT = "root"  # a line of the first failure
    ERROR = "error"  # an error of the rank itself that follows from the root or is not to blame
    ECHO = "echo"  # the first line that only says that somebody else failed
    KILL = "kill"  # a launcher or scheduler ended the process
    EXIT = "exit"  # the process ended by itself, as its launcher saw it
    MACHINE = "machine"  # a record of a kernel, driver, switch, scheduler or platform
    SAVED = "saved"  # the last checkpoint before the failure
    DONE = "done"  # a line that states a good end


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that happened on a lane, with the line that says it."""

    at: float
    kind: MarkKind
    what: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Lane:
    """One rank, one host with several ranks, several hosts that fared alike, or one machine's own records.

    `spans` are stretches with lines, in seconds; between and behind them the lane is silent. Empty where no clock
    places the lane's lines. `loose` says that nothing links its clock to the others: its times are as printed.
    """

    name: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    fate: str
    root: bool
    loose: bool
    spans: tuple[tuple[float, float], ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Swim:
    """The swim lanes: `until` seconds from `origin`; `focus` is the stretch around the failure."""

    origin: str | None = None
    until: float = 0.0
    focus: tuple[float, float] = (0.0, 0.0)
    failed_at: float | None = None
    lanes: tuple[Lane, ...] = ()
    unplaced: int = 0  # lanes that are not shown: no clock places their lines


@dataclass(frozen=True, slots=True)
class Series:
    """How far one rank (or the whole job) came: pairs of seconds from the origin and steps."""

    name: str
    root: bool
    points: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class Reached:
    """Ranks whose last step is the same."""

    step: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProgressUpTo:
    """Progress up to the failure: where each rank stopped, and steps over time of a few telling ranks."""

    reached: tuple[Reached, ...] = ()
    series: tuple[Series, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A vertex of the causal graph; ranks that follow in the same way are one. `depth` counts links from the root."""

    key: str
    kind: str
    label: str
    ranks: tuple[int, ...]
    root: bool
    depth: int


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """From cause to effect (keys of vertices), the rule that joins them, and one line that shows it."""

    cause: str
    effect: str
    rule: str
    strength: str
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class CausalGraph:
    """The causal graph, folded. `left_out` counts vertices that a picture of this size cannot hold."""

    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """Lines of one source up to a moment: those before the first evidence, for one rank or one log."""

    who: str
    path: str
    until: int
    lines: tuple[tuple[int, str], ...]
    evidence: bool  # the last line is evidence itself
