"""Finds the texts of which every match of a pattern holds at least one, with what stands beside them in the pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product
from operator import or_

from firstfault.catalog.context import Items
from firstfault.catalog.regex import WORD, Atom, Boundary, Choice, Node, Repeat, Sequence

SHORTEST = 3
"""A text of fewer bytes fires everywhere."""

_LONGEST = 120
_ALTERNATIVES = 48
_SMALL_CLASS = 4
_DIGITS = reduce(or_, (1 << byte for byte in b"0123456789"))
_LETTERS = WORD & ~_DIGITS & ~(1 << ord("_"))


@dataclass(frozen=True, slots=True)
class Text:
    """A text, in either case and written in lower case where `folded`; the items beside it, the nearest first."""

    text: bytes
    folded: bool = False
    before: Items = ()
    behind: Items = ()


Texts = tuple[Text, ...]
Cost = Callable[[Texts], float]


def by_length(texts: Texts) -> float:
    """Long texts are better than short ones, few better than many."""
    shortest = min(len(one.text) for one in texts)
    return len(texts) / 4 - shortest if shortest >= SHORTEST else 1e6


def required(node: Node, before: Items = (), behind: Items = (), cost: Cost = by_length) -> Texts | None:
    """The cheapest set of texts of which every match of the node holds one; None where there is none.

    `before` and `behind` are what surrounds the node, the nearest first, as far as it is known.
    """
    match node:
        case Atom() | Boundary() | Sequence():
            return min(candidates(flat(node), before, behind, cost), key=cost, default=None)
        case Repeat(inner, low, _):
            return required(inner, cost=cost) if low else None
        case Choice(options):
            together: list[Text] = []
            for option in options:
                texts = required(option, before, behind, cost)
                if texts is None:
                    return None
                together.extend(texts)
            return tuple(together)


def flat(node: Node) -> list[Node]:
    """The items of a sequence, those of sequences in it included."""
    return [one for item in node.items for one in flat(item)] if isinstance(node, Sequence) else [node]


def candidates(items: list[Node], before: Items = (), behind: Items = (), cost: Cost = by_length) -> Iterator[Texts]:
    """Sets of texts of which every match holds one: from runs of exact items, and from what single items require."""
    runs = list(_runs(items, before, behind, _ALTERNATIVES))
    yield from runs
    if any(len(texts) > 1 for texts in runs):
        yield from _runs(items, before, behind, 1)
    for at, item in enumerate(items):
        if isinstance(item, Repeat | Choice):
            texts = required(item, (*items[:at][::-1], *before), (*items[at + 1 :], *behind), cost)
            if texts is not None:
                yield texts


def _runs(items: list[Node], before: Items, behind: Items, alternatives: int) -> Iterator[Texts]:
    """The texts of runs of items that have so many alternatives at the most."""
    start, run = 0, [(b"", False)]
    for at in range(len(items)):
        exact = _exact_at(items, at)
        if exact is not None and len(exact) > alternatives:
            exact = None
        joined = _joined(run, exact) if exact is not None and len(run) * len(exact) <= alternatives else None
        if joined is None:
            yield from _run((*items[:start][::-1], *before), (*items[at:], *behind), run)
            start, run = (at, exact) if exact is not None else (at + 1, [(b"", False)])
        else:
            run = joined
    yield from _run((*items[:start][::-1], *before), behind, run)


def _run(before: Items, behind: Items, run: list[tuple[bytes, bool]]) -> Iterator[Texts]:
    """A run of exact items as texts, where none of them is empty."""
    if not all(text for text, _ in run):
        return
    texts = []
    for text, folded in run:
        right = behind if len(text) <= _LONGEST else ()
        texts.append(Text((text.lower() if folded else text)[:_LONGEST], folded, tuple(before), tuple(right)))
    yield tuple(texts)


def _exact_at(items: list[Node], at: int) -> list[tuple[bytes, bool]] | None:
    """All texts of one item. A letter in both cases beside letters in one case, as in [Nn]aN, is two texts."""
    exact = _exact(items[at])
    beside = [one.mask for one in items[max(0, at - 1) : at + 2] if isinstance(one, Atom) and one is not items[at]]
    if exact is not None and isinstance(items[at], Atom) and len(exact) == 1 and exact[0][1]:
        letter = exact[0][0]
        if any(mask.bit_count() == 1 and mask & _LETTERS for mask in beside):
            return [(letter.upper(), False), (letter, False)]
    return exact


@lru_cache(maxsize=1 << 14)
def _exact(node: Node) -> list[tuple[bytes, bool]] | None:
    """All texts that the node matches, with whether each stands for both cases; None where they are too many."""
    match node:
        case Atom(mask, wide):
            return None if wide else _of_class(mask)
        case Boundary():
            return None
        case Repeat(inner, low, high):
            one = _exact(inner)
            if one is None or high is None or high > 3:
                return None
            found: list[tuple[bytes, bool]] = []
            for times in range(low, high + 1):
                power: list[tuple[bytes, bool]] | None = [(b"", False)]
                for _ in range(times):
                    power = _joined(power, one) if power is not None else None
                if power is None:
                    return None
                found += power
            return found if len(found) <= _ALTERNATIVES else None
        case Choice(options):
            exact = list(map(_exact, options))
            together = [text for one in exact if one is not None for text in one]
            return together if None not in exact and len(together) <= _ALTERNATIVES else None
        case Sequence():
            joined: list[tuple[bytes, bool]] | None = [(b"", False)]
            parts = flat(node)
            for at in range(len(parts)):
                one = _exact_at(parts, at)
                joined = _joined(joined, one) if one is not None and joined is not None else None
            return joined


@lru_cache(maxsize=1024)
def _of_class(mask: int) -> list[tuple[bytes, bool]] | None:
    if mask.bit_count() == 1:
        return [(bytes((mask.bit_length() - 1,)), False)]
    if mask.bit_count() > _SMALL_CLASS:
        return None
    chars = [bytes((byte,)) for byte in range(256) if mask >> byte & 1]
    if len(chars) == 2 and chars[0] != chars[1] and chars[0].lower() == chars[1]:
        return [(chars[1], True)]
    return [(char, False) for char in chars]


def _joined(heads: list[tuple[bytes, bool]], tails: list[tuple[bytes, bool]]) -> list[tuple[bytes, bool]] | None:
    """Each head with each tail; None where they are too many."""
    if len(heads) * len(tails) > _ALTERNATIVES:
        return None
    return [(head + tail, fold or folded) for (head, fold), (tail, folded) in product(heads, tails)]
