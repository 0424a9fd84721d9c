"""Derives the trigger of a pattern: pieces of text of which every raw line that it matches in holds at least one.

A piece is chosen by how rarely it stands in ordinary logs. One that is rare is looked for as it is. One that is common
is looked for with the bytes that may stand beside it, so that it is found where it may count and not everywhere; the
exact pattern decides afterwards on the message.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from firstfault.catalog.context import beside, united
from firstfault.catalog.escapes import ESCAPES, written
from firstfault.catalog.ordinary import often, often_beside
from firstfault.catalog.regex import (
    Atom,
    Boundary,
    Choice,
    Node,
    PatternError,
    Repeat,
    Sequence,
    parse,
    takes_digits_alike,
)
from firstfault.catalog.texts import SHORTEST, Text, Texts, candidates, flat

LONG = 8
"""Texts of so many bytes are searched fastest."""

_WIDEST = 16
_COMMON = 0.001
"""Found so often in an ordinary line, a text is common."""

_HIT = 6000.0
"""What it costs to look at a hit in every line, in units of one more text to search for."""

_WAY = 1.0
"""What it costs in that unit to look beside a text."""

_SHORT = {3: 20.0, 4: 10.0, 5: 6.0, 6: 4.0, 7: 3.0}
"""What a short text costs in that unit."""


@dataclass(frozen=True, slots=True, order=True)
class Piece:
    """A text to look for, in either case and lower case here where `folded`.

    `before` and `behind` are sets of bytes, in the order of the line, that have to stand beside it.
    """

    text: bytes
    folded: bool = False
    before: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()

    @property
    def sets(self) -> tuple[int, ...]:
        """The sets of bytes of all its places, without regard to case."""
        return (*self.before, *(1 << byte for byte in self.text), *self.behind)


@dataclass(frozen=True, slots=True)
class Trigger:
    """The pieces of a pattern, how many fixed characters a match has at the least, the names of its captures.

    `texts` are the whole texts that the pieces are cut out of, with whether in either case. `even` says whether the
    pattern takes all digits alike, so that it does not matter which they are.
    """

    pieces: tuple[Piece, ...]
    texts: tuple[tuple[bytes, bool], ...]
    specificity: int
    captures: tuple[str, ...]
    even: bool


@lru_cache(maxsize=8192)
def derive(pattern: str) -> Trigger:
    """The trigger of a pattern. Raises PatternError where the pattern is not usable."""
    node, captures = parse(pattern)
    chosen = [_chosen(option) for option in _options(node)]
    pieces = dict.fromkeys(piece for _, some in chosen for piece in some)
    texts = dict.fromkeys((one.text, one.folded) for some, _ in chosen for one in some)
    return Trigger(tuple(pieces), tuple(texts), _fixed(node), captures, takes_digits_alike(node))


def _options(node: Node) -> tuple[Node, ...]:
    """The alternatives of a pattern that is nothing but alternatives; the boundaries around them go to each."""
    items = flat(node)
    solid = [at for at, item in enumerate(items) if not isinstance(item, Boundary)]
    if len(solid) == 1 and isinstance(choice := items[solid[0]], Choice):
        before, behind = items[: solid[0]], items[solid[0] + 1 :]
        return tuple(Sequence((*before, option, *behind)) for option in choice.options)
    return (node,)


def _chosen(node: Node) -> tuple[Texts, list[Piece]]:
    """Of the sets of texts that every match holds one of, the one that costs least to look for, and its pieces."""
    usable = [texts for texts in candidates(flat(node), cost=_cost) if min(len(one.text) for one in texts) >= SHORTEST]
    if not usable:
        raise PatternError(f"no text of {SHORTEST} or more characters that every match holds", 0)
    best = min(usable, key=_cost)
    if _cost(best) < _HIT * _COMMON:
        return best, _pieces(best, narrow=False)
    both = [(texts, _pieces(texts, narrow=True)) for texts in usable]
    return min(both, key=lambda one: _cost_of_all(one[1]))


def _cost(texts: Texts) -> float:
    if min(len(one.text) for one in texts) < SHORTEST:
        return 1e6
    return _cost_of_all(_pieces(texts, narrow=False))


def _cost_of_all(pieces: list[Piece]) -> float:
    """A text with several ways beside it is searched once."""
    return sum(_cost_of(piece) for piece in pieces) - sum(
        _to_search(piece.text) for piece, before in zip(pieces[1:], pieces, strict=False) if piece.text == before.text
    )


def _pieces(texts: Texts, narrow: bool) -> list[Piece]:
    """What is looked for so that one of the texts is found."""
    pieces: dict[Piece, None] = {}
    for one in _unfolded(texts):
        cut = _cut(one.text, one.folded)
        narrowed = _narrowed(one) if narrow and often(cut.text, cut.folded) >= _COMMON else [cut]
        for each in narrowed:
            for form in written(each.text):
                pieces[Piece(form, each.folded, each.before, each.behind)] = None
    plain = [piece for piece in pieces if not piece.before and not piece.behind]
    return [piece for piece in pieces if not any(_within(other, piece) for other in plain)]


def _unfolded(texts: Texts) -> Texts:
    """Rare texts that differ in their cases alone as one in either case."""
    cases: dict[bytes, list[Text]] = {}
    for one in texts:
        cases.setdefault(one.text.lower(), []).append(one)
    united: list[Text] = []
    for low, some in cases.items():
        if len(some) > 1 and often(low, True) < _COMMON:
            united.append(Text(low, True))
        else:
            united += some
    return tuple(united)


@lru_cache(maxsize=1 << 16)
def _cut(text: bytes, folded: bool) -> Piece:
    """The piece of a text that is searched best: it ends where ordinary lines hold it least."""
    if len(text) <= LONG:
        return Piece(text, folded)
    ends = range(LONG, len(text) + 1)
    end = min(ends, key=lambda end: (_cost_of(Piece(text[end - LONG : end], folded)), -end))
    start = end - LONG
    while start > max(0, end - _WIDEST) and text[start - 1 : start] not in ESCAPES:
        start -= 1
    return Piece(text[start:end], folded)


def _narrowed(one: Text) -> list[Piece]:
    """A common text with the ways in which the places beside it can be filled, told apart where that is worth it."""
    before = beside(one.before, one.text[0], ahead=False)
    behind = beside(one.behind, one.text[-1], ahead=True)
    pieces = [
        [Piece(one.text, one.folded, left[::-1], right) for left in lefts for right in rights]
        for lefts in dict.fromkeys(((united(before),), before))
        for rights in dict.fromkeys(((united(behind),), behind))
    ]
    return min(pieces, key=_cost_of_all)


def _within(inner: Piece, outer: Piece) -> bool:
    """Whether the second is found only where the first, a plain text, is found too."""
    text = outer.text.lower() if inner.folded else outer.text
    return inner != outer and inner.text in text and (inner.folded or not outer.folded)


@lru_cache(maxsize=1 << 16)
def _cost_of(piece: Piece) -> float:
    found = often(piece.text, piece.folded)
    if piece.before or piece.behind:
        found = 0.02 * found + often_beside(piece.text, piece.folded, piece.before, piece.behind)
        return _to_search(piece.text) + _WAY + _HIT * found
    return _to_search(piece.text) + _HIT * found


def _to_search(text: bytes) -> float:
    forms = 3 if any(char in text for char in ESCAPES) else 1
    return forms * _SHORT.get(len(text), 1.0)


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
