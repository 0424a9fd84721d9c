"""Derives the triggers of a pattern: texts of which every match holds at least one, for a search in undecoded chunks.

A trigger is a plain text with the bytes that may stand before and behind it, so that all patterns of the catalog are
found in one pass by the part of the engine that searches texts. (Its automata for whole expressions lose matches in
releases that are in use: https://github.com/VectorCamp/vectorscan/issues/358.) A trigger fires inside every raw line
whose message the pattern matches, and may fire elsewhere: the exact pattern decides afterwards on the message.

This relies on habits of headers and wrappers: the message is a piece of its raw line, no word character touches it in
front (but the end of an escape), and what follows it, if anything, begins with a blank, bracket, quote or control code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from firstfault.catalog.escapes import written
from firstfault.catalog.regex import Atom, Boundary, Choice, Node, PatternError, Repeat, Sequence, parse
from firstfault.catalog.texts import SHORTEST, Text, candidates, flat, worth

_TELLING = 8.0
"""Texts of fewer bits stand in many ordinary lines: a second text has to be on the line too."""

_HELPFUL = 5.0
"""A second text of fewer bits is found too often to be worth its search."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One way to match: a line holds one of `texts`, and one of `also` where there are any."""

    texts: tuple[Text, ...]
    also: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True)
class Trigger:
    """The branches of a pattern, how many fixed characters a match has at the least, the names of its captures."""

    branches: tuple[Branch, ...]
    specificity: int
    captures: tuple[str, ...]


@lru_cache(maxsize=8192)
def derive(pattern: str) -> Trigger:
    """The trigger of a pattern. Raises PatternError where the pattern is not usable."""
    node, captures = parse(pattern)
    branches = tuple(map(_branch, _options(node)))
    return Trigger(branches, _fixed(node), captures)


def _options(node: Node) -> tuple[Node, ...]:
    """The alternatives of a pattern that is nothing but alternatives; the boundaries around them go to each."""
    items = flat(node)
    solid = [at for at, item in enumerate(items) if not isinstance(item, Boundary)]
    if len(solid) == 1 and isinstance(choice := items[solid[0]], Choice):
        before, behind = items[: solid[0]], items[solid[0] + 1 :]
        return tuple(Sequence((*before, option, *behind)) for option in choice.options)
    return (node,)


def _branch(node: Node) -> Branch:
    ranked = sorted((texts for texts in candidates(flat(node)) if _usable(texts)), key=worth, reverse=True)
    if not ranked:
        raise PatternError(f"no text of {SHORTEST} or more characters that every match holds", 0)
    best = ranked[0]
    if worth(best) < _TELLING and len(ranked) > 1 and worth(ranked[1]) > _HELPFUL:
        return Branch(written(best), written(ranked[1]))
    return Branch(written(best))


def _usable(texts: tuple[Text, ...]) -> bool:
    return min(len(one.text) for one in texts) >= SHORTEST


def _fixed(node: Node) -> int:
    """How many characters of a match are fixed, at the least."""
    match node:
        case Atom(mask):
            return int(mask.bit_count() <= 2)
        case Boundary():
            return 0
        case Repeat(inner, low, _):
            return _fixed(inner) * low
        case Sequence(items):
            return sum(map(_fixed, items))
        case Choice(options):
            return min(map(_fixed, options))
