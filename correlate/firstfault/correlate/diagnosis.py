"""The answer: one frozen `Diagnosis`, everything a report may say, and nothing that needs another look at the logs.

Field names and meanings follow the document `firstfault.diagnosis/1`; the JSON reporter writes exactly these.
Times are ISO 8601 text on the job's aligned clock (with 'Z' where some stream fixes the zone), seconds are floats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from firstfault.correlate.comparison import Comparison
from firstfault.correlate.picture import CausalGraph, Context, ProgressUpTo, Swim


class Verdict(StrEnum):
    """What the diagnosis settles."""

    IDENTIFIED = "identified"
    UNDETERMINED = "undetermined"
    NO_FAILURE = "no-failure"


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed: a class of the taxonomy, the catalog entry that says more, and its title."""

    cls: str | None
    entry: str | None
    title: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where it began. `ranks` are global ranks, `gpus` are 'host/ordinal', `aliases` other names of the hosts."""

    component: str | None = None
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of a log and why it counts. `text` holds at most 500 characters."""

    path: str
    line: int
    text: str
    why: str
    at: str | None = None
    rank: int | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class CollateralGroup:
    """Ranks that failed in the same way because of the root, folded into one sentence."""

    what: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    example: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Collateral:
    """Everyone who only followed."""

    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    groups: tuple[CollateralGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A candidate root with what speaks for and against it."""

    cls: str
    entry: str | None
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    confidence: float
    for_: tuple[str, ...]
    against: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlsoFailed:
    """A later failure that does not follow from the root."""

    failure: Failure
    initiating: Place
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of the workers and how it ended."""

    attempt: int
    verdict: Verdict
    failure: Failure
    initiating: Place
    evidence: tuple[Evidence, ...] = ()
    started: str | None = None
    ended: str | None = None
    same_as_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last checkpoint that a line before the failure calls written, and that line."""

    path: str | None
    step: int | None
    at: str | None
    source: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Job:
    """Size and span of what was read."""

    ranks: int | None
    hosts: int | None
    attempts: int
    sources: int
    lines: int
    started: str | None
    ended: str | None
    last_step: int | None = None
    last_checkpoint: str | None = None
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """A host's clock against the reference: its reading minus the reference's. None where nothing links it."""

    host: str
    offset_seconds: float | None
    uncertainty_seconds: float | None
    how: str


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One step of the chain from the root to the collateral: the rule that joins cause and effect, and its lines."""

    cause: str
    effect: str
    rule: str
    why: str
    strength: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class RankFate:
    """How one rank ended: for the grid of fates."""

    rank: int
    host: str | None
    fate: str
    last_step: int | None = None
    last_seen: str | None = None
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do: from the catalog entry, already chosen for this job.

    `group`, `owner` and `restart` are of the class: its family, whose part it is, and what a restart needs.
    """

    fix: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    prevent: tuple[str, ...] = ()
    resume: str = ""
    mechanism: str = ""
    references: tuple[str, ...] = ()
    group: str = ""
    owner: str = ""
    restart: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was read and what was not."""

    sources_by_kind: tuple[tuple[str, int], ...] = ()
    problems: tuple[tuple[str, str, int, str], ...] = ()  # (severity, kind, count, detail)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole answer of one job."""

    verdict: Verdict
    failure: Failure
    initiating: Place
    evidence: tuple[Evidence, ...]
    collateral: Collateral
    confidence: float
    hypotheses: tuple[Hypothesis, ...]
    missing_fact: str | None
    next_action: str
    job: Job
    clocks: tuple[Clock, ...]
    summary: str = ""
    why_not: tuple[tuple[str, str], ...] = ()  # ('rank 3', 'its error names ...'): why others were not accused
    also: tuple[AlsoFailed, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    chain: tuple[ChainLink, ...] = ()
    fates: tuple[RankFate, ...] = ()
    advice: Advice = field(default_factory=Advice)
    coverage: Coverage = field(default_factory=Coverage)
    refusals: tuple[str, ...] = ()
    swim: Swim = field(default_factory=Swim)
    graph: CausalGraph = field(default_factory=CausalGraph)
    progress: ProgressUpTo = field(default_factory=ProgressUpTo)
    contexts: tuple[Context, ...] = ()
    comparison: Comparison | None = None
