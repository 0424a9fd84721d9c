"""Checks that run the patterns: on their own examples, on those of the others, and on the logs of healthy runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firstfault.catalog.loader import Catalog
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.model import FALLBACK_ENTRIES, Entry, Event, Example, Fact, Role
from firstfault.catalog.problem import Reporter
from firstfault.catalog.quoting import is_quoting

_PEACEFUL = frozenset((Event.IDENTITY, Event.PROGRESS, Event.COMPLETION, Event.CHECKPOINT, Event.START, Event.SYNC))


def check_examples(catalog: Catalog, matcher: Matcher, report: Reporter) -> None:
    """Every pattern finds its examples with their captures, and no near miss."""
    numbers: dict[tuple[str, str], dict[str, int]] = {}
    for one in matcher.patterns:
        numbers.setdefault((one.kind, one.id), {})[one.pattern_id] = one.number
    for entry in catalog.entries.values():
        _Owner(entry, numbers["entry", entry.id], matcher, report).check(entry.match, entry.no_match, entry.missed)
    for fact in catalog.facts.values():
        _Owner(fact, numbers["fact", fact.id], matcher, report).check(fact.match, fact.no_match, ())


class _Owner:
    """One entry or fact and its patterns by their ids."""

    def __init__(self, owner: Entry | Fact, patterns: dict[str, int], matcher: Matcher, report: Reporter) -> None:
        self.owner = owner
        self.patterns = patterns
        self.matcher = matcher
        self.report = report

    def check(self, match: Sequence[Example], no_match: Sequence[Example], missed: Sequence[Example]) -> None:
        exercised: set[str] = set()
        for index, example in enumerate(match):
            self._one_line(example, "match", index)
            exercised.update(self._check_match(example, index))
        for index, example in enumerate(no_match):
            for pattern_id in self._found(example.line):
                self._add(
                    f"the pattern {pattern_id!r} matches the near miss {_short(example.line)}",
                    "this line was written down because it must not count",
                    "narrow the pattern, or move the line to [[match]] if it does count",
                    "no_match",
                    index,
                )
        for index, example in enumerate(missed):
            if self._found(example.line):
                self._add(
                    f"the known gap {_short(example.line)} is matched now",
                    "[[missed]] lists what no pattern finds",
                    "move the line to [[match]]",
                    "missed",
                    index,
                )
        for position, pattern_id in enumerate(self.patterns):
            if pattern_id not in exercised:
                named = f"the pattern {pattern_id!r}" if pattern_id else f"the fact {self.owner.id!r}"
                self._add(
                    f"{named} has no example",
                    "a pattern that was never seen to match may be wrong in one letter",
                    "add a [[match]] with a line as the program prints it",
                    "pattern" if pattern_id else "fact",
                    position,
                )

    def _check_match(self, example: Example, index: int) -> list[str]:
        if example.pattern is not None and example.pattern not in self.patterns:
            self._add(
                f"the example names the pattern {example.pattern!r}, which is not there",
                "an example exercises a pattern of its own entry",
                f"use one of: {', '.join(self.patterns)}",
                "match",
                index,
            )
            return []
        tried = [example.pattern] if example.pattern else list(self.patterns)
        found = self._found(example.line)
        hit = [pattern_id for pattern_id in tried if pattern_id in found]
        if not hit:
            self._add(
                f"{'the pattern ' + repr(example.pattern) if example.pattern else 'no pattern'} does not match "
                f"its example {_short(example.line)}",
                "the example is a line that the entry exists for",
                "mend the pattern; remember that headers are peeled before it is searched",
                "match",
                index,
            )
            return []
        captures = found[hit[0]]
        for name, wanted in example.captures.items():
            if captures.get(name) != wanted:
                self._add(
                    f"the capture {name} of {_short(example.line)} is {captures.get(name)!r}, not {wanted!r}",
                    "later stages act on what is captured",
                    "mend the group in the pattern, or the expectation",
                    "match",
                    index,
                )
        return hit

    def _found(self, line: str) -> dict[str, dict[str, str]]:
        tried = {pattern_id: self.matcher.confirm(number, line) for pattern_id, number in self.patterns.items()}
        return {pattern_id: captures for pattern_id, captures in tried.items() if captures is not None}

    def _one_line(self, example: Example, table: str, index: int) -> None:
        if "\n" in example.line:
            self._add(
                "the example holds a line end",
                "patterns are searched in the message of one line",
                "keep the line that the pattern is about",
                table,
                index,
            )

    def _add(self, what: str, why: str, mend: str, table: str, index: int) -> None:
        if isinstance(self.owner, Fact):  # a file holds many: the line of the fact is the place to look at
            self.report.add(self.owner.path, f"{self.owner.id}: {what}", why, mend, saying=f'id = "{self.owner.id}"')
        else:
            self.report.add(self.owner.path, what, why, mend, table=table, index=index)


def check_overlaps(catalog: Catalog, matcher: Matcher, report: Reporter) -> None:
    """Entries that match each other's examples say so on purpose, and say no more than that."""
    for entry in catalog.entries.values():
        seen: set[str] = set()
        for index, example in enumerate(entry.match):
            for other in _entries_on(matcher, example.line):
                seen.add(other)
                if other != entry.id and other not in entry.overlaps and other not in FALLBACK_ENTRIES:
                    report.add(
                        entry.path,
                        f"{other!r} matches {_short(example.line)} too",
                        "two entries on one line compete for the diagnosis",
                        f'narrow one of the two, or declare overlaps = ["{other}"]',
                        table="match",
                        index=index,
                    )
        for other in entry.overlaps:
            if other not in seen and other in catalog.entries:
                report.add(
                    entry.path,
                    f"overlaps names {other!r}, which matches none of the examples",
                    "a declared overlap is one that the examples show",
                    "remove it, or add the example that shows it",
                    key="overlaps",
                )


def check_healthy(catalog: Catalog, matcher: Matcher, healthy: Mapping[str, Sequence[str]], report: Reporter) -> None:
    """Nothing that may open a diagnosis fires on what healthy runs print: in the given logs, and in peaceful facts."""
    places = [(f"{name}:{at}", line) for name, lines in healthy.items() for at, line in enumerate(lines, 1)]
    for fact in catalog.facts.values():
        if fact.event in _PEACEFUL:
            places += [(f"the example of the fact {fact.id}", one.line) for one in fact.match]
    for place, line in places:
        for number, _ in () if is_quoting(line) else matcher.matches(line):
            pattern = matcher.patterns[number]
            if pattern.role in (Role.INITIATING, Role.AMBIGUOUS) and not pattern.weak:
                entry = catalog.entries[pattern.id]
                report.add(
                    entry.path,
                    f"the pattern {pattern.pattern_id!r} fires on a healthy line, {place}: {_short(line)}",
                    "a run that ended well would be accused",
                    "narrow the pattern, mark it weak, or make the entry one of context",
                    table="pattern",
                    index=[one.id for one in entry.patterns].index(pattern.pattern_id),
                )


def _entries_on(matcher: Matcher, line: str) -> list[str]:
    found = (matcher.patterns[number] for number, _ in matcher.matches(line))
    return sorted({one.id for one in found if one.kind == "entry"})


def _short(line: str) -> str:
    return repr(line if len(line) <= 100 else line[:97] + "...")
