"""Sentences that every rendering shares: places, counts, times and clocks in words, and text made safe to show."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from firstfault.correlate.diagnosis import Clock, Diagnosis, Place, Verdict

_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def clean(text: str) -> str:
    """Log text without anything that acts on a terminal: control characters and bidirectional marks become visible."""
    if text.isascii() and text.isprintable():
        return text
    out = []
    for char in text:
        if char == "\t":
            out.append(" ")
        elif char in _BIDI or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn"):
            out.append(f"\\u{ord(char):04x}" if ord(char) > 0xFF else f"\\x{ord(char):02x}")
        else:
            out.append(char)
    return "".join(out)


def short(text: str, width: int) -> str:
    """Text cut to a width, with an ellipsis where something is missing."""
    text = clean(text)
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def number_ranges(numbers: Iterable[int]) -> str:
    """Numbers with runs folded: '0-2, 5, 7-9'."""
    parts: list[str] = []
    run: list[int] = []
    for number in sorted(set(numbers)):
        if run and number == run[-1] + 1:
            run.append(number)
            continue
        if run:
            parts.append(_run(run))
        run = [number]
    if run:
        parts.append(_run(run))
    return ", ".join(parts)


def _run(run: list[int]) -> str:
    if len(run) > 2:
        return f"{run[0]}-{run[-1]}"
    return ", ".join(map(str, run))


def ranks_words(ranks: Iterable[int]) -> str:
    """'rank 3', 'ranks 0-2, 4'."""
    listed = sorted(set(ranks))
    return f"rank{'' if len(listed) == 1 else 's'} {number_ranges(listed)}"


def place_words(place: Place) -> str:
    """Where it began, in words."""
    parts = []
    if place.ranks:
        parts.append(ranks_words(place.ranks))
    if place.hosts:
        parts.append(f"host{'' if len(place.hosts) == 1 else 's'} {', '.join(map(clean, place.hosts))}")
    if place.gpus:
        parts.append(f"GPU {', '.join(map(clean, place.gpus))}")
    if not parts:
        where = {
            "scheduler": "the scheduler",
            "network": "the network",
            "storage": "the storage",
            "launcher": "the launcher",
        }
        return where.get(place.component or "", "common to the whole job, no single rank or host")
    return ", ".join(parts)


def verdict_words(diagnosis: Diagnosis) -> str:
    """The verdict in two or three words."""
    return {
        Verdict.IDENTIFIED: "first failure identified",
        Verdict.UNDETERMINED: "not determined",
        Verdict.NO_FAILURE: "no failure",
    }[diagnosis.verdict]


def job_words(diagnosis: Diagnosis) -> str:
    """Size and span of the job in one line."""
    job = diagnosis.job
    parts = [
        f"{job.ranks if job.ranks is not None else 'unknown number of'} rank{'' if job.ranks == 1 else 's'}",
        f"{job.hosts if job.hosts is not None else 'unknown number of'} host{'' if job.hosts == 1 else 's'}",
        f"{job.attempts} attempt{'' if job.attempts == 1 else 's'}",
        f"{job.sources} file{'' if job.sources == 1 else 's'}",
        f"{job.lines:,} lines",
    ]
    if job.started and job.ended:
        parts.append(f"{job.started} to {job.ended}")
    return " · ".join(parts)


def clock_words(clock: Clock) -> str:
    """One clock in words."""
    if clock.offset_seconds is None:
        return f"{clean(clock.host)}: not linked ({clock.how})"
    if clock.how == "the reference":
        return f"{clean(clock.host)}: the reference"
    sign = "ahead" if clock.offset_seconds >= 0 else "behind"
    bound = f" ± {clock.uncertainty_seconds:.3g} s" if clock.uncertainty_seconds is not None else ""
    return f"{clean(clock.host)}: {abs(clock.offset_seconds):.3f} s {sign}{bound} ({clock.how})"
