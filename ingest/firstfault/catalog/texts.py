"""Finds the texts of which every match of a pattern holds at least one, with the bytes that may stand beside them."""

from __future__ import annotations

import re
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
_COMMON = {
    0.3: b"rank info loss training step",
    0.1: b"python torch file line default nccl packages distributed cpp time",
    0.05: (
        b"node data the run epoch env grad norm for checkpoint init process size comm iteration error learning rate pid"
    ),
    0.02: (
        b"backward elastic local global multiprocessing gpu api return call main net mem scratch total using not "
        b"group worker max last engine batch with warning args this cuda from frame socket scale agent most recent "
        b"model number traceback samples server root self device setting module version skipped elapsed log cache "
        b"dist utils nan trainer memory consumed world tokens use timeout function plugin tensor successfully set "
        b"and client failed cannot all host detected signal peer transport connection load complete exception saved "
        b"running barrier found code state"
    ),
}
"""Words of ordinary lines, by the share of lines that hold them in logs of many frameworks."""

_SHARES = {word: share for share, words in sorted(_COMMON.items()) for word in words.split()}
_BY_LENGTH = (0.5, 0.3, 0.2, 0.03, 0.01, 0.006, 0.004, 0.002, 0.001)
_DIGITS = reduce(or_, (1 << byte for byte in b"0123456789"))
_LETTERS = WORD & ~_DIGITS & ~(1 << ord("_"))
_WORDS = re.compile(rb"[a-z]+|[0-9]+")


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
        exact = _exact_at(items, at)
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
    """How rarely the texts are likely to stand in ordinary lines: bits of the share of lines that hold one of them."""
    if min(len(one.text) for one in texts) < SHORTEST:
        return 0.0
    return -log2(min(1.0, sum(map(_share, texts))))


def _share(one: Text) -> float:
    """A guess at the share of ordinary lines that hold the text: of its rarest word, less the more words it holds.

    Lines that hold it with other neighbours count little: they cost the search of the text, and no look at the line.
    """
    left, right = bool(one.before & _LETTERS), bool(one.behind & _LETTERS) and not one.skip
    return _guess(one.text.lower(), left, right) + 0.05 * _guess(one.text.lower(), True, True)


def _fits(word: bytes, other: bytes, left: bool, right: bool) -> bool:
    if left and right:
        return word in other
    if left or right:
        return other.endswith(word) if left else other.startswith(word)
    return word == other


@lru_cache(maxsize=8192)
def _guess(text: bytes, left: bool, right: bool) -> float:
    """Where `left`, the first word may be the end of a longer one; where `right`, the last may be a beginning."""
    words = list(_WORDS.finditer(text))
    shares = sorted(_share_of_word(m[0], left and m.start() == 0, right and m.end() == len(text)) for m in words)
    signs = len(re.sub(rb"[a-z0-9 ]", b"", text))
    return (shares[0] if shares else 0.6) * 0.5 ** max(0, len(words) - 1) * 0.75**signs


@lru_cache(maxsize=8192)
def _share_of_word(word: bytes, left: bool, right: bool) -> float:
    known = max((share for other, share in _SHARES.items() if _fits(word, other, left, right)), default=0.0)
    return max(known, _BY_LENGTH[min(len(word), len(_BY_LENGTH) - 1)])


def _exact_at(items: list[Node], at: int) -> list[tuple[bytes, bool]] | None:
    """All texts of one item. A letter in both cases beside letters in one case, as in [Nn]aN, is two texts."""
    exact = _exact(items[at])
    beside = [one.mask for one in items[max(0, at - 1) : at + 2] if isinstance(one, Atom) and one is not items[at]]
    if exact is not None and isinstance(items[at], Atom) and len(exact) == 1 and exact[0][1]:
        letter = exact[0][0]
        if any(mask.bit_count() == 1 and mask & _LETTERS for mask in beside):
            return [(letter.upper(), False), (letter, False)]
    return exact


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
