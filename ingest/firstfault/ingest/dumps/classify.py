"""Looks the texts of dump signals up in the catalog: the message of an error file, the words of a scheduler.

A reader leaves `entry` and `fact` empty where it only passes on a text that some program wrote.
"""

from __future__ import annotations

from dataclasses import replace

from firstfault.catalog.matcher import CompiledPattern, Matcher
from firstfault.catalog.model import Event, Role
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import DumpRows, DumpSignal

EXCEPTION = compiled(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit|Timeout)\b")
LINES_LIMIT = 200
GENERIC = "python-traceback"


def classified(rows: DumpRows, matcher: Matcher) -> DumpRows:
    """The same rows; signals whose text an entry explains have its event, class and role."""
    return replace(rows, signals=tuple(_classified(one, matcher) for one in rows.signals))


def _classified(signal: DumpSignal, matcher: Matcher) -> DumpSignal:
    if signal.entry is not None or signal.fact is not None:
        return signal
    for line in _innermost_first(signal.text):
        found = {
            number: captures for number, captures in matcher.matches(line) if matcher.patterns[number].kind == "entry"
        }
        if not found:
            continue
        best = matcher.best(found)
        pattern = matcher.patterns[best]
        if _fits(signal, pattern):
            return _as(signal, pattern, found[best])
    if signal.event == Event.EXCEPTION:
        generic = next((one for one in matcher.patterns if one.id == GENERIC), None)
        return _as(signal, generic, {}) if generic is not None else signal
    return signal


def _fits(signal: DumpSignal, pattern: CompiledPattern) -> bool:
    """Whether an entry says more than the reader did, and makes no cause of what the reader calls an effect."""
    if pattern.id == GENERIC or pattern.role == Role.CONTEXT or (signal.cls is not None and pattern.weak):
        return False
    return signal.role != Role.COLLATERAL or pattern.role == Role.COLLATERAL


def _innermost_first(text: str) -> list[str]:
    """Lines in the order in which they explain: of nested exceptions the last, then other lines from the last up."""
    lines = text.splitlines()[-LINES_LIMIT:][::-1]
    heads = [line for line in lines if EXCEPTION.match(line[:400])]
    return [*heads, *(line for line in lines if line not in set(heads))]


def _as(signal: DumpSignal, pattern: CompiledPattern, captures: dict[str, str]) -> DumpSignal:
    return replace(
        signal,
        entry=pattern.id,
        event=str(pattern.event),
        cls=pattern.cls,
        role=None if pattern.role is None else str(pattern.role),
        weak=pattern.weak,
        captures={**captures, **signal.captures},
    )
