"""Finds entries for a person: by words (`search`), and for a pasted line, traceback, id or code (`explain`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import log

from firstfault.catalog.decode import CodeKind, Meaning, decode, decoded
from firstfault.catalog.loader import Catalog
from firstfault.catalog.matcher import CompiledPattern, Matcher
from firstfault.catalog.model import FALLBACK_ENTRIES, Entry, Fact, FailureClass, Role

_FIELDS = {"id": 6.0, "title": 5.0, "class": 3.0, "lines": 2.0, "text": 1.0}
"""How much a word counts by where it stands."""

_ROLES = {Role.INITIATING: 0, Role.AMBIGUOUS: 1, Role.COLLATERAL: 2, Role.CONTEXT: 3}
_WORD = re.compile(r"[a-z0-9]+(?:[._/-][a-z0-9]+)*")
_MANY_LINES = 2000
_LONG_LINE = 20_000
_HEADER_ENDS = ("]: ", "] ", ": ", " - ", "| ", "> ", " ")
_HEADER_PARTS = 8

_CODES: tuple[tuple[str, CodeKind], ...] = (
    (r"\bsxid\W*(\d+)\b", CodeKind.SXID),
    (r"\bxid\b\W*(?:\(.{1,40}?\): )?(\d+)\b", CodeKind.XID),
    (r"\berrno\W*(\d+)\b", CodeKind.ERRNO),
    (r"\b(E[A-Z0-9]{3,})\b", CodeKind.ERRNO),
    (r"\b(SIG[A-Z0-9]{2,})\b", CodeKind.SIGNAL),
    (r"\bsignal\W*(\d+)\b", CodeKind.SIGNAL),
    (r"\b(?:exit(?: ?code)?|exitcode)\W*?(-?\d+)\b(?!:\d)", CodeKind.EXIT_CODE),
    (r"(?:\A\s*|ExitCode=)(\d{1,3}:\d{1,3})(?:\s*\Z|\s)", CodeKind.SLURM_EXIT),
    (r"\b(IBV_WC_\w+)\b", CodeKind.IB_STATUS),
    (r"\b(nccl(?:Success|Unhandled\w+|\w+Error|Invalid\w+|InProgress))\b", CodeKind.NCCL_RESULT),
    (r"\b(cudaError\w+)\b", CodeKind.CUDA_ERROR),
    (r"\b(hipError\w+)\b", CodeKind.HIP_ERROR),
)


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that a word search found, the best first."""

    entry: Entry
    score: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that a line of the text leads to."""

    entry: Entry
    pattern_id: str
    weak: bool
    line: int
    text: str
    captures: dict[str, str]
    meanings: tuple[Meaning, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the catalog says about a text: entries in order, codes in words, facts on the lines, related entries."""

    candidates: tuple[Candidate, ...] = ()
    meanings: tuple[Meaning, ...] = ()
    facts: tuple[Fact, ...] = ()
    failure_class: FailureClass | None = None
    related: tuple[Entry, ...] = field(default=())


def search(catalog: Catalog, words: str, limit: int = 20) -> list[Found]:
    """The entries that the words fit best. Every word counts, rare ones more; a beginning of a word counts half."""
    index = _index(catalog)
    wanted = list(dict.fromkeys(_words(words)))
    scores: dict[str, float] = {}
    hit: Counter[str] = Counter()
    for word in wanted:
        for entry_id, weight in index.weights(word).items():
            scores[entry_id] = scores.get(entry_id, 0.0) + weight
            hit[entry_id] += 1
    ranked = sorted(scores, key=lambda name: (-scores[name] * hit[name], name))
    return [Found(catalog.entries[name], round(scores[name] * hit[name], 4)) for name in ranked[:limit]]


def explain(catalog: Catalog, matcher: Matcher, text: str) -> Explanation:
    """What a pasted text leads to: an entry or class by its id, or the entries on its lines, the likely root first."""
    name = text.strip()
    if name in catalog.entries:
        entry = catalog.entries[name]
        first = entry.patterns[0]
        by_id = Candidate(entry, first.id, first.weak, 0, "", {}, ())
        return Explanation((by_id,), related=_linked(catalog, entry))
    if name in catalog.classes:
        inside = tuple(entry for entry in catalog.entries.values() if entry.cls == name)
        return Explanation(failure_class=catalog.classes[name], related=inside)
    candidates, facts = _on_lines(catalog, matcher, text)
    narrow = {(one.id, one.pattern_id): one.specificity for one in matcher.patterns if one.kind == "entry"}
    ranked = sorted(candidates, key=lambda found: _order(found, candidates, narrow))
    meanings = dict.fromkeys([meaning for one in ranked for meaning in one.meanings] + list(_codes(text)))
    known = {one.entry.id for one in ranked}
    related: tuple[Entry, ...]
    if ranked:
        related = _linked(catalog, ranked[0].entry)
    else:
        related = tuple(one.entry for one in search(catalog, text[:_LONG_LINE], 8))
    related = tuple(one for one in related if one.id not in known)
    return Explanation(tuple(ranked), tuple(meanings), tuple(facts), related=related)


def _on_lines(catalog: Catalog, matcher: Matcher, text: str) -> tuple[list[Candidate], list[Fact]]:
    """One candidate for each entry, at the first line that it matches, and the facts."""
    candidates: dict[str, Candidate] = {}
    facts: dict[str, Fact] = {}
    for number, line in enumerate(text.splitlines()[:_MANY_LINES], 1):
        for pattern, captures in _matches(matcher, line[:_LONG_LINE]):
            if pattern.kind == "fact":
                facts.setdefault(pattern.id, catalog.facts[pattern.id])
                continue
            known = candidates.get(pattern.id)
            if known is None or (known.weak and not pattern.weak):
                candidates[pattern.id] = Candidate(
                    catalog.entries[pattern.id],
                    pattern.pattern_id,
                    pattern.weak,
                    number,
                    line.strip()[:500],
                    captures,
                    decoded(captures),
                )
    return list(candidates.values()), list(facts.values())


def _matches(matcher: Matcher, line: str) -> Iterator[tuple[CompiledPattern, dict[str, str]]]:
    """Patterns on a line with whatever header: anchored ones are tried behind each thing that may end a header."""
    _, numbers = matcher.scan(line.encode("utf-8", "replace"))
    for number in dict.fromkeys(numbers.tolist()):
        for message in _without_header(line):
            captures = matcher.confirm(number, message)
            if captures is not None:
                yield matcher.patterns[number], captures
                break


def _without_header(line: str) -> Iterator[str]:
    yield line
    rest = line
    for _ in range(_HEADER_PARTS):
        ends = [at + len(mark) for mark in _HEADER_ENDS if (at := rest.find(mark)) >= 0]
        if not ends:
            return
        rest = rest[min(ends) :]
        yield rest.lstrip()


def _order(
    found: Candidate, candidates: list[Candidate], narrow: dict[tuple[str, str], int]
) -> tuple[bool, bool, int, int, str]:
    """The likely root first; an entry does not come before a narrower one of the same line that claims the overlap."""

    def specificity(one: Candidate) -> int:
        return narrow[one.entry.id, one.pattern_id]

    role = max(
        _ROLES[one.entry.role]
        for one in candidates
        if one is found
        or (
            one.line == found.line
            and found.entry.id in one.entry.overlaps
            and one.weak <= found.weak
            and specificity(one) > specificity(found)
        )
    )
    return found.weak, found.entry.id in FALLBACK_ENTRIES, role, -specificity(found), found.entry.id


def _codes(text: str) -> Iterator[Meaning]:
    """Codes that stand in the text by themselves: 'Xid 79', 'errno 28', 'SIGKILL', 'exit code 137'."""
    for expression, kind in _CODES:
        flags = re.IGNORECASE if kind in (CodeKind.XID, CodeKind.SXID, CodeKind.EXIT_CODE, CodeKind.SIGNAL) else 0
        for code in re.findall(expression, text[:_LONG_LINE], flags)[:5]:
            meaning = decode(kind, code)
            if meaning is not None:
                yield meaning


def _linked(catalog: Catalog, entry: Entry) -> tuple[Entry, ...]:
    names = dict.fromkeys((*entry.upstream, *entry.siblings, *entry.downstream))
    return tuple(catalog.entries[name] for name in names if name in catalog.entries)


def _words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text.lower()):
        yield word
        yield from (part for part in re.split(r"[._/-]", word) if part != word and part)


class _Index:
    """Words of all entries with their weights."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._weights: dict[str, dict[str, float]] = {}
        count = 0
        for entry in entries:
            count += 1
            for place, text in _texts(entry):
                for word, times in Counter(_words(text)).items():
                    row = self._weights.setdefault(word, {})
                    row[entry.id] = row.get(entry.id, 0.0) + _FIELDS[place] * times / (times + 1)
        for row in self._weights.values():
            rarity = log(1 + count / len(row))
            for name in row:
                row[name] *= rarity
        self._sorted = sorted(self._weights)

    def weights(self, word: str) -> dict[str, float]:
        """By entry: the weight of the word, or of words that begin with it."""
        found = dict(self._weights.get(word, {}))
        if len(word) >= 3:
            for other in self._sorted:
                if other != word and other.startswith(word):
                    for name, weight in self._weights[other].items():
                        found[name] = max(found.get(name, 0.0), weight / 2)
        return found


_indexes: dict[str, _Index] = {}


def _index(catalog: Catalog) -> _Index:
    """The index of the catalog that was asked last, kept for the next question."""
    if catalog.digest not in _indexes:
        _indexes.clear()
        _indexes[catalog.digest] = _Index(catalog.entries.values())
    return _indexes[catalog.digest]


def _texts(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "id", entry.id
    yield "title", entry.title
    yield "class", entry.cls
    yield "lines", " ".join([*(one.line for one in entry.match), *(one.program for one in entry.patterns)])
    sentences = (entry.mechanism, entry.observe, entry.decides, entry.affects, entry.cannot_prove, entry.missing_fact)
    lists = (*entry.confirm, *entry.fix, *entry.verify, *entry.prevent, *entry.sequence)
    yield "text", " ".join([*sentences, *lists, *(one.do for one in entry.fix_for)])
