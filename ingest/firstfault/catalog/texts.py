"""Finds the texts of which every match of a pattern holds at least one, with the bytes that may stand beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from itertools import product
from math import log2
from operator import or_

from firstfault.catalog.regex import WORD, Atom, Boundary, Choice, Node, Repeat, Sequence

Items = Several[Node]
ANY = (1 << 256) - 1
SHORTEST = 3
"""A text of fewer bytes fires everywhere."""

_LONGEST = 120
_ALTERNATIVES = 48
_SMALL_CLASS = 4
_COMMON = {
    0.3: b"rank info loss training step",
    0.1: b"python torch file line default nccl packages distributed cpp time node train",
    0.05: (
        b"data the run epoch env grad norm for checkpoint init process size comm iteration error learning rate pid "
        b"not with cuda kernel nan"
    ),
    0.02: (
        b"backward elastic local global multiprocessing gpu api return call main net mem scratch total using "
        b"group worker max last engine batch warning args this from frame socket scale agent most recent "
        b"model number traceback samples server root self device setting module version skipped elapsed log cache "
        b"dist utils trainer memory consumed world tokens use timeout function plugin tensor successfully set "
        b"and client failed cannot all host detected signal peer transport connection load complete exception saved "
        b"running barrier found code state core could completed available service start started nvidia bytes errors "
        b"seconds status finished normal after waiting iterations stream already request runtime launch initialized "
        b"enabled logging network devices workers gradient starting initializing connected channel backend"
    ),
}
"""Words of ordinary lines, by the share of lines that hold them in logs of many frameworks."""

_SHARES = {word: share for share, words in sorted(_COMMON.items()) for word in words.split()}
_OFTEN, _VERY_OFTEN = 0.004, 0.04
"""Texts in this share of ordinary lines are common, or very common."""
_NEIGHBOURS = 24
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


def required(node: Node, before: Items = (), behind: Items = ()) -> tuple[Text, ...] | None:
    """The best set of texts of which every match of the node holds one; None where there is none.

    `before` and `behind` are what surrounds the node, the nearest first, as far as it is known.
    """
    match node:
        case Atom() | Boundary() | Sequence():
            return max(candidates(flat(node), before, behind), key=worth, default=None)
        case Repeat(inner, low, _):
            return required(inner) if low else None
        case Choice(options):
            together: list[Text] = []
            for option in options:
                texts = required(option, before, behind)
                if texts is None:
                    return None
                together.extend(texts)
            return pruned(together)


def flat(node: Node) -> list[Node]:
    """The items of a sequence, those of sequences in it included."""
    return [one for item in node.items for one in flat(item)] if isinstance(node, Sequence) else [node]


def candidates(items: list[Node], before: Items = (), behind: Items = ()) -> Iterator[tuple[Text, ...]]:
    """Sets of texts of which every match holds one: from runs of exact items, and from what single items require."""
    start, run = 0, [(b"", False)]
    for at, item in enumerate(items):
        exact = _exact_at(items, at)
        joined = _joined(run, exact) if exact is not None else None
        if joined is None:
            yield from _run((*items[:start][::-1], *before), (*items[at:], *behind), run)
            start, run = at + 1, [(b"", False)]
            if exact is not None:
                start, run = at, exact
            elif isinstance(item, Repeat | Choice):
                texts = required(item, (*items[:at][::-1], *before), (*items[at + 1 :], *behind))
                if texts is not None:
                    yield texts
        else:
            run = joined
    yield from _run((*items[:start][::-1], *before), behind, run)


def _run(before: Items, behind: Items, run: list[tuple[bytes, bool]]) -> Iterator[tuple[Text, ...]]:
    """A run of exact items as texts, where none of them is empty."""
    if not all(text for text, _ in run):
        return
    texts = []
    for text, folded in run:
        left = _neighbours(before, text[0], ahead=False)
        right, skip = _behind(behind, text[-1]) if len(text) <= _LONGEST else (ANY, False)
        texts.append(Text((text.lower() if folded else text)[:_LONGEST], folded, left, right, skip))
    yield pruned(texts)


def pruned(texts: list[Text]) -> tuple[Text, ...]:
    """The texts without those that hold another one of them, which then may have their bytes as neighbours too.

    A very common text stays beside the longer ones where that would make it more common still.
    """
    kept: list[Text] = []
    for one in sorted(texts, key=lambda text: (len(text.text), text.text, text.folded)):
        for at, other in enumerate(kept):
            place = (one.text.lower() if other.folded else one.text).find(other.text)
            if place >= 0 and (other.folded or not one.folded):
                wider = _widened(other, one, place)
                if wider == other or not _is_common(other, _VERY_OFTEN):
                    kept[at] = wider
                    break
        else:
            kept.append(one)
    return tuple(kept)


def _widened(inner: Text, outer: Text, place: int) -> Text:
    """`inner` with the neighbours that it has inside `outer` at this place."""
    end = place + len(inner.text)
    before, behind = outer.before, outer.behind if inner.skip == outer.skip else ANY
    if place:
        before = _cases(outer.text[place - 1], outer.folded)
    if end < len(outer.text):
        behind = _cases(outer.text[end], outer.folded) if not (inner.skip and BLANKS >> outer.text[end] & 1) else ANY
    return replace(inner, before=inner.before | before, behind=inner.behind | behind)


def _cases(byte: int, folded: bool) -> int:
    """A byte as a set, of both cases where they do not count."""
    return 1 << byte | (1 << bytes((byte,)).upper()[0] if folded else 0)


def _is_common(one: Text, often: float) -> bool:
    return _guess(one.text.lower(), True, True) >= often


def literals(one: Text) -> Iterator[tuple[bytes, int, int]]:
    """What is searched for a text, with how many bytes of it stand before and behind the text.

    A common text is searched with each of the few bytes that may touch it, so that it is found where it counts.
    """
    before, behind = [b""], [b""]
    if _is_common(one, _OFTEN):
        before = _each(one.before, one.folded) or before
        behind = _each(one.behind | (BLANKS if one.skip else 0), one.folded) or behind
        if len(before) * len(behind) > _NEIGHBOURS:
            before, behind = ([b""], behind) if len(behind) > 1 else (before, behind)
    for front, back in product(before, behind):
        yield front + one.text + back, len(front), len(back)


def _each(mask: int, folded: bool) -> list[bytes]:
    """The bytes of a small set."""
    some = [bytes((byte,)) for byte in range(256) if mask >> byte & 1] if mask.bit_count() <= 2 * _NEIGHBOURS else []
    if folded:
        some = sorted({byte.lower() for byte in some})
    return some if len(some) <= _NEIGHBOURS else []


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


def _behind(items: Items, edge: int) -> tuple[int, bool]:
    """The bytes that may follow a text, and whether blanks between the two do not count."""
    match items:
        case [Repeat(Atom(mask), _, _), *rest] if mask and not mask & ~BLANKS:
            first = _neighbours(rest, edge, ahead=True)
            if first != ANY and not any(isinstance(item, Boundary) for item in rest[:1]):
                return first & ~BLANKS, True
    return _neighbours(items, edge, ahead=True), False


def _neighbours(items: Items, edge: int, ahead: bool) -> int:
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
