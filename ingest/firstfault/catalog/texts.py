"""Finds the texts of which every match of a pattern holds at least one, with the bytes that may stand beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from itertools import product
from math import log2
from operator import or_

from firstfault.catalog.regex import WORD, Atom, Boundary, Choice, Node, Repeat, Sequence

ANY = (1 << 256) - 1
SHORTEST = 3
"""A text of fewer bytes fires everywhere."""

_LONGEST = 120
_ALTERNATIVES = 48
_SMALL_CLASS = 4
_COMMON = (
    *b"iteration checkpoint distributed completed training finished elapsed running started loading learning".split(),
    *b"trainer setting default version process memory global python kernel server worker device number failed".split(),
    *b"socket saving total torch train model error batch epoch scale group local using token state rank loss".split(),
    *b"info warn nccl step time host node size data file line from with code cuda norm grad gpu".split(),
    *(b"the ", b" in ", b" to ", b" of ", b" is ", b" on "),
)
"""Words of ordinary lines: a text that consists of them says little."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text to look for, in either case where `folded`, with the sets of bytes that may stand before and behind it.

    The end of the chunk counts as a line end. Where `folded`, the text is in lower case. Where `skip`, what counts
    behind the text is the first byte that is no blank.
    """

    text: bytes
    folded: bool = False
    before: int = ANY
    behind: int = ANY
    skip: bool = False


def required(node: Node) -> tuple[Text, ...] | None:
    """The best set of texts of which every match of the node holds one; None where there is none."""
    match node:
        case Atom() | Boundary() | Sequence():
            return max(candidates(flat(node)), key=worth, default=None)
        case Repeat(inner, low, _):
            return required(inner) if low else None
        case Choice(options):
            together: list[Text] = []
            for option in options:
                texts = required(option)
                if texts is None:
                    return None
                together.extend(texts)
            return pruned(together)


def flat(node: Node) -> list[Node]:
    """The items of a sequence, those of sequences in it included."""
    return [one for item in node.items for one in flat(item)] if isinstance(node, Sequence) else [node]


def candidates(items: list[Node]) -> Iterator[tuple[Text, ...]]:
    """Sets of texts of which every match holds one: from runs of exact items, and from what single items require."""
    start, run = 0, [(b"", False)]
    for at, item in enumerate(items):
        exact = _exact(item)
        joined = _joined(run, exact) if exact is not None else None
        if joined is None:
            yield from _run(items, start, at, run)
            start, run = at + 1, [(b"", False)]
            if exact is not None:
                start, run = at, exact
            elif (texts := required(item) if isinstance(item, Repeat | Choice) else None) is not None:
                yield texts
        else:
            run = joined
    yield from _run(items, start, len(items), run)


def _run(items: list[Node], start: int, stop: int, run: list[tuple[bytes, bool]]) -> Iterator[tuple[Text, ...]]:
    """A run of exact items as texts, where none of them is empty."""
    if not all(text for text, _ in run):
        return
    texts = []
    for text, folded in run:
        before = _neighbours(items[:start][::-1], text[0], ahead=False)
        behind, skip = _behind(items[stop:], text[-1]) if len(text) <= _LONGEST else (ANY, False)
        texts.append(Text((text.lower() if folded else text)[:_LONGEST], folded, before, behind, skip))
    yield pruned(texts)


def pruned(texts: list[Text]) -> tuple[Text, ...]:
    """The texts without those that hold another one of them, which then may have any neighbour at that side."""
    kept: list[Text] = []
    for one in sorted(texts, key=lambda text: (len(text.text), text.text, text.folded)):
        for at, other in enumerate(kept):
            place = (one.text.lower() if other.folded else one.text).find(other.text)
            if place >= 0 and (other.folded or not one.folded):
                kept[at] = _widened(other, one, place)
                break
        else:
            kept.append(one)
    return tuple(kept)


def _widened(inner: Text, outer: Text, place: int) -> Text:
    """`inner` with the neighbours that it has inside `outer` at this place."""
    end = place + len(inner.text)
    exact = not (inner.folded or outer.folded)
    before, behind = outer.before, outer.behind if inner.skip == outer.skip else ANY
    if place:
        before = 1 << outer.text[place - 1] if exact else ANY
    if end < len(outer.text):
        behind = 1 << outer.text[end] if exact and not (inner.skip and BLANKS >> outer.text[end] & 1) else ANY
    return replace(inner, before=inner.before | before, behind=inner.behind | behind)


def worth(texts: tuple[Text, ...]) -> float:
    """How rarely the texts are likely to stand in ordinary lines."""
    too_short = min(len(one.text) for one in texts) < SHORTEST
    return min(map(_rarity, texts)) - log2(len(texts)) / 2 - (100 if too_short else 0)


def _rarity(one: Text) -> float:
    rest = one.text.lower()
    for word in _COMMON:
        rest = rest.replace(word, b"\0")
    return sum(1.0 if bytes((byte,)).isalpha() else 0.5 for byte in rest) - (len(one.text) < 2 * SHORTEST)


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
        case Sequence(items):
            joined: list[tuple[bytes, bool]] | None = [(b"", False)]
            for item in items:
                one = _exact(item)
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


_ESCAPES = reduce(or_, (1 << byte for byte in b"mnrt"))  # ends of a colour code and of \\n, \\r, \\t in a JSON text
_NO_WORD_BEFORE = ANY & ~WORD | _ESCAPES
BLANKS = reduce(or_, (1 << byte for byte in b"\t\f\r "))
_MESSAGE_END = reduce(or_, (1 << byte for byte in b"\t\n\r\x1b \"'\\,;|[](){}<>"))


def _behind(items: list[Node], edge: int) -> tuple[int, bool]:
    """The bytes that may follow a text, and whether blanks between the two do not count."""
    match items:
        case [Repeat(Atom(mask), _, _), *rest] if mask and not mask & ~BLANKS:
            first = _neighbours(rest, edge, ahead=True)
            if first != ANY and not any(isinstance(item, Boundary) for item in rest[:1]):
                return first & ~BLANKS, True
    return _neighbours(items, edge, ahead=True), False


def _neighbours(items: list[Node], edge: int, ahead: bool) -> int:
    """The bytes that may touch a text with the outermost byte `edge`, where these items follow (`ahead`) or precede."""
    mask = 0  # what optional items before a boundary can put there
    allowed = ANY
    for item in items:
        match item:
            case Boundary("b"):
                if mask:
                    return allowed
                if WORD >> edge & 1:
                    allowed &= ANY & ~WORD if ahead else _NO_WORD_BEFORE
                else:
                    allowed &= WORD
            case Boundary("$") if ahead:
                return allowed & (mask | _MESSAGE_END)
            case Boundary("^") if not ahead:
                return allowed & (mask | (_NO_WORD_BEFORE if WORD >> edge & 1 else ANY))
            case Boundary():
                pass
            case _:
                one, empty = _edge(item, ahead)
                mask |= one
                if not empty:
                    return allowed & mask
    return allowed


def _edge(node: Node, ahead: bool) -> tuple[int, bool]:
    """The bytes that a match can begin with (`ahead`) or end with, and whether it can be empty."""
    match node:
        case Atom(mask):
            return mask, False
        case Boundary():
            return ANY, True
        case Repeat(inner, low, _):
            mask, empty = _edge(inner, ahead)
            return mask, empty or low == 0
        case Choice(options):
            edges = [_edge(option, ahead) for option in options]
            return reduce(or_, (mask for mask, _ in edges)), any(empty for _, empty in edges)
        case Sequence(items):
            mask = 0
            for item in items if ahead else reversed(items):
                one, empty = _edge(item, ahead)
                mask |= one
                if not empty:
                    return mask, False
            return mask, True
