"""Sentences that every rendering shares: places, counts, times and clocks in words, and text made safe to show."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from firstfault.correlate.diagnosis import Clock, CollateralGroup, Diagnosis, Evidence, Hypothesis, Place, Verdict

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
        hosts = hosts_words(place.hosts)
        parts.append(f"on {hosts}" if parts else hosts)
    if place.gpus:
        parts.append(f"(GPU {', '.join(map(clean, place.gpus))})")
    return " ".join(parts) or _OUTSIDE.get(place.component or "", "common to the whole job, no single rank or host")


_OUTSIDE = {
    "scheduler": "the scheduler",
    "network": "the network",
    "storage": "the storage",
    "launcher": "the launcher",
}


def suspect_words(one: Hypothesis) -> str:
    """Where a candidate lies: 'ranks 0-7', 'n1, n2', 'no single place'."""
    if one.ranks:
        return short(ranks_words(one.ranks), 200)
    more = f" and {len(one.hosts) - 4} more" if len(one.hosts) > 5 else ""
    return ", ".join(map(clean, one.hosts[: 4 if more else 5])) + more or "no single place"


def verdict_words(diagnosis: Diagnosis) -> str:
    """The verdict in two or three words."""
    return {
        Verdict.IDENTIFIED: "first failure identified",
        Verdict.UNDETERMINED: "not determined",
        Verdict.NO_FAILURE: "no failure",
    }[diagnosis.verdict]


def many(count: int, noun: str) -> str:
    """'1 rank', '1,485 lines', '8 processes'."""
    return f"{count:,} {noun}{'' if count == 1 else 'es' if noun.endswith('s') else 's'}"


def time_words(at: str) -> str:
    """An ISO time for people: '2026-05-04 10:11:12.345 UTC'; without a zone where no log fixes it."""
    return at.replace("T", " ").replace("Z", " UTC")


def span_of(begun: str | None, ended: str | None) -> tuple[str, float] | None:
    """How long it is from one ISO time to another, in words and in seconds; None where either is unknown."""
    try:
        first, last = (datetime.fromisoformat(at) if at else None for at in (begun, ended))
    except ValueError:
        return None
    if first is None or last is None or (first.tzinfo is None) != (last.tzinfo is None):
        return None
    seconds = (last - first).total_seconds()
    return duration_words(seconds), seconds


def duration_words(seconds: float) -> str:
    """'850 ms', '12.3 s', '12 min 30 s', '2 h 5 min', '3 d 4 h'."""
    size = abs(seconds)
    if size < 1:
        return f"{seconds * 1000:.0f} ms"
    if size < 60:
        return f"{seconds:.3g} s"
    whole = round(size)
    for name, unit, small, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= unit:
            rest = whole % unit // part
            return f"{'-' if seconds < 0 else ''}{whole // unit} {name}{f' {rest} {small}' if rest else ''}"
    return f"{seconds:.3g} s"


def hosts_words(hosts: Iterable[str]) -> str:
    """'host a', 'hosts a, b and 3 more'."""
    named = [clean(host) for host in hosts]
    more = f" and {len(named) - 6} more" if len(named) > 6 else ""
    return f"host{'' if len(named) == 1 else 's'} {', '.join(named[:6])}{more}"


def lower_first(text: str) -> str:
    """A title inside a sentence: a leading article or plain word loses its capital, a name keeps it."""
    word = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if word in _PLAIN_FIRST else text


_PLAIN_FIRST = frozenset(
    {"A", "An", "The", "One", "Every", "Some", "Ranks", "Out", "Another", "Uncorrectable", "Crash"}
)


def span_words(started: str, ended: str) -> str:
    """From when to when, the day and the zone once where they are the same."""
    first, last = time_words(started), time_words(ended)
    if first.split(" ")[2:] == last.split(" ")[2:]:
        first = " ".join(first.split(" ")[:2])
    if first.split(" ")[0] == last.split(" ")[0]:
        last = last.partition(" ")[2]
    return f"{first} to {last}"


def job_words(diagnosis: Diagnosis) -> str:
    """Size and span of the job in one line."""
    job = diagnosis.job
    parts = [
        many(job.ranks, "rank") if job.ranks is not None else "unknown number of ranks",
        many(job.hosts, "host") if job.hosts is not None else "unknown number of hosts",
        many(job.attempts, "attempt"),
        many(job.sources, "file"),
        many(job.lines, "line"),
    ]
    if job.started and job.ended:
        parts.append(span_words(job.started, job.ended))
    return " · ".join(parts)


_PLURAL = {"was": "were", "its": "their", "itself": "themselves", "shows": "show"}


def group_words(group: CollateralGroup) -> str:
    """What several ranks suffered, in one sentence: '7 ranks lost the connection to a peer'."""
    count = len(group.ranks)
    what = clean(group.what)
    if count != 1:
        what = " ".join(_PLURAL.get(word, word) for word in what.split(" "))
    return f"{many(count, 'rank')} {what}"


def clock_name(host: str) -> str:
    """Whose clock it is: a host, or a file whose host no line tells."""
    path = host.removeprefix("file:")
    return clean(host) if path == host else f"{clean(path)} (its host is not known)"


def clock_words(clock: Clock) -> str:
    """One clock in words."""
    name = clock_name(clock.host)
    if clock.offset_seconds is None:
        return f"{name}: cannot be compared, {clean(clock.how)}"
    if clock.how == REFERENCE:
        return f"{name}: the clock that the others are compared with"
    sign = "ahead" if clock.offset_seconds >= 0 else "behind"
    bound = f" ± {clock.uncertainty_seconds:.3g} s" if clock.uncertainty_seconds is not None else ""
    return f"{name}: {abs(clock.offset_seconds):.3f} s {sign}{bound} ({clean(clock.how)})"


REFERENCE = "the reference"


def clocks_words(clocks: Iterable[Clock], most: int) -> list[str]:
    """All clocks in so many lines and a few more: the furthest off first, those that cannot be compared folded."""
    listed = list(clocks)
    if len(listed) == 1 and listed[0].how == REFERENCE:
        return [f"{clock_name(listed[0].host)}: the only clock"]
    linked = [one for one in listed if one.offset_seconds is not None]
    if linked and all(one.how == REFERENCE for one in linked):
        said = [f"times are those of {clock_name(linked[0].host)}"]
    else:
        first = [one for one in linked if one.how == REFERENCE]
        rest = sorted(
            (one for one in linked if one.how != REFERENCE), key=lambda one: (-abs(one.offset_seconds or 0.0), one.host)
        )
        said = [clock_words(one) for one in (*first, *rest[: max(1, most - len(first))])]
        if len(rest) > most - len(first):
            said.append(f"and {len(linked) - len(said):,} clocks that are closer")
    reasons: dict[str, list[str]] = {}
    for one in listed:
        if one.offset_seconds is None:
            reasons.setdefault(one.how, []).append(clock_name(one.host))
    for how, names in sorted(reasons.items()):
        more = f" and {len(names) - 4:,} more" if len(names) > 4 else ""
        said.append(f"cannot be compared, {clean(how)}: {', '.join(names[:4])}{more}")
    return said


def one_sentence(text: str) -> str:
    """Text of a catalog entry, which may be folded over lines, on one line."""
    return clean(" ".join(text.split()))


def says_again(sentence: str, *others: str | None) -> bool:
    """Whether a sentence only repeats what stands in one of the others already."""
    plain = sentence.strip().rstrip(".").lower()
    return any(other and (plain in other.lower() or other.strip().rstrip(".").lower() in plain) for other in others)


@dataclass(frozen=True, slots=True)
class Witness:
    """Lines that say the same: one is shown with its text, the others by their places."""

    shown: Evidence
    again: tuple[Evidence, ...] = ()


def witnesses(evidence: Iterable[Evidence]) -> tuple[Witness, ...]:
    """Evidence with equal texts put together, in the order of the first of each."""
    groups: dict[tuple[str, str], list[Evidence]] = {}
    for number, one in enumerate(evidence):
        key = ("text", one.text) if one.text else ("line", str(number))
        groups.setdefault(key, []).append(one)
    return tuple(Witness(group[0], tuple(group[1:])) for group in groups.values())
