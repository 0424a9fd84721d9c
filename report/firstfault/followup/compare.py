"""Several diagnoses beside each other: is it the same root as last time, and which hosts come again?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from firstfault.followup.saved import Saved


class Likeness(StrEnum):
    """How alike two roots are."""

    SAME = "same"  # class, entry and place
    SAME_KIND = "same-kind"  # class and entry, but on other hosts
    RELATED = "same-class"  # the class only: another entry of it
    SAME_PLACE = "same-place"  # another class on the same host or GPU
    DIFFERENT = "different"
    NO_FAILURE = "no-failure"  # one of them completed
    UNKNOWN = "unknown"  # one of them names no root


@dataclass(frozen=True, slots=True)
class Pair:
    """Two diagnoses, by their names, and how alike their roots are."""

    one: str
    other: str
    likeness: Likeness
    shared: tuple[str, ...]  # hosts and GPUs that both name


@dataclass(frozen=True, slots=True)
class Recurring:
    """A host or GPU that several diagnoses name as the place of the root."""

    name: str
    kind: str  # host, gpu
    times: int
    where: tuple[str, ...]  # names of the diagnoses
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The whole comparison: each diagnosis against the one before it, and what comes again over all."""

    jobs: tuple[Saved, ...]
    pairs: tuple[Pair, ...]
    recurring: tuple[Recurring, ...]


def compare(jobs: Sequence[Saved]) -> Compared:
    """Compare two diagnoses or more."""
    pairs = tuple(_pair(jobs[at - 1], jobs[at]) for at in range(1, len(jobs)))
    recurring = (*_recurring(jobs, "gpu", lambda one: one.gpus), *_recurring(jobs, "host", lambda one: one.hosts))
    return Compared(tuple(jobs), pairs, tuple(sorted(recurring, key=lambda one: (-one.times, one.kind, one.name))))


def _pair(one: Saved, other: Saved) -> Pair:
    shared = (*sorted(set(one.gpus) & set(other.gpus)), *sorted(set(one.hosts) & set(other.hosts)))
    return Pair(one.name, other.name, likeness(one, other), shared)


def likeness(one: Saved, other: Saved) -> Likeness:
    """How alike two roots are. Roots without a place, common to the whole job, count as at the same one."""
    if "no-failure" in (one.verdict, other.verdict):
        return Likeness.NO_FAILURE
    if one.cls is None or other.cls is None:
        return Likeness.UNKNOWN
    placeless = not one.hosts and not other.hosts
    here = placeless or bool(set(one.hosts) & set(other.hosts))
    if one.cls != other.cls:
        return Likeness.SAME_PLACE if here and not placeless else Likeness.DIFFERENT
    if one.entry != other.entry:
        return Likeness.RELATED
    return Likeness.SAME if here else Likeness.SAME_KIND


def _recurring(jobs: Sequence[Saved], kind: str, names: Callable[[Saved], tuple[str, ...]]) -> list[Recurring]:
    found: dict[str, list[Saved]] = {}
    for job in jobs:
        for name in sorted(set(names(job))):
            found.setdefault(name, []).append(job)
    return [
        Recurring(
            name,
            kind,
            len(where),
            tuple(job.name for job in where),
            tuple(sorted({job.cls for job in where if job.cls is not None})),
        )
        for name, where in sorted(found.items())
        if len(where) > 1
    ]
