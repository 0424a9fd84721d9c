"""What a comparison with a run that went well found, as values: lines by template, timings, versions, topology."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TemplateChange:
    """A kind of line (numbers, paths and identifiers taken out) that one of the runs prints, or prints oftener.

    `change` is new, gone, more or fewer; counts are lines of each run; the example is of the run that prints it.
    """

    change: str
    template: str
    now: int
    then: int
    ranks: tuple[int, ...]
    level: str | None
    entry: str | None
    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class TimingChange:
    """A duration that ranks print, or the time between steps: medians of each run in seconds, and who is slow."""

    name: str
    now: float
    then: float
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A version, a size or a variable of the environment that differs; None where a run does not show it."""

    kind: str
    name: str
    now: str | None
    then: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The job against a run that went well. `completed` says whether that run proves that it did."""

    of: str
    completed: bool
    lines_now: int
    lines_then: int
    templates: tuple[TemplateChange, ...] = ()
    left_out: int = 0
    timings: tuple[TimingChange, ...] = ()
    settings: tuple[SettingChange, ...] = ()
