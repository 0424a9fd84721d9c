"""The bytes that may stand beside a text of a pattern, place by place, in a raw line whose message the pattern matches.

This relies on habits of headers and wrappers: the message is a piece of its raw line, as it is or as a JSON writer puts
it; no word character touches it in front (but the end of an escape), and what follows it, if anything, begins with a
blank, bracket, quote or control code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Sequence as Several
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_

from firstfault.catalog.regex import HIGH, WORD, Atom, Boundary, Choice, Node, Repeat, Sequence

ANY = (1 << 256) - 1
Items = Several[Node]
"""What stands beside a text, the nearest first."""

PLACES = 4
"""Places beside a text that are looked at, on each side."""

_NEAR = 10
"""Items beside a text that are looked at; behind them anything may stand."""

_MOST = 10
"""So many ways are told apart; more are taken for one."""


def mask_of(chars: bytes) -> int:
    """The set of these bytes."""
    return reduce(or_, (1 << byte for byte in chars), 0)


_NO_WORD = ANY & ~WORD
_NO_WORD_BEFORE = _NO_WORD | mask_of(b"mnrtce0123456789")  # ends of a colour code, of \\n, \\t, \\u003c and \\u0026
_MESSAGE_END = mask_of(b"\t\n\r\x1b \"'\\,;|[](){}<>")
_BACKSLASH = mask_of(b"\\")
_HEX = mask_of(b"0123456789abcdef")
_ESCAPES = {char: b"\\" + second for char, second in ((b'"', b'"'), (b"\\", b"\\"), (b"\t", b"t"), (b"/", b"/"))} | {
    char: b"\\u00" + code for char, code in ((b"<", b"3c"), (b">", b"3e"), (b"&", b"26"))
}


@dataclass(frozen=True, slots=True)
class _Byte:
    """A byte of an escape, out of `mask`: unlike an atom it is never written in another way."""

    mask: int


_WRITTEN = tuple(
    (mask_of(char), tuple(_Byte(1 << byte) for byte in escaped)) for char, escaped in sorted(_ESCAPES.items())
)
_Piece = Node | _Byte
_State = tuple[_Piece, ...]
_Way = tuple[tuple[int, ...], frozenset[_State]]
_Step = tuple[int, _State | None]
"""A set for the next byte, and what follows; None where that is unknown."""


def beside(items: Items, edge: int, ahead: bool) -> tuple[tuple[int, ...], ...]:
    """Ways in which up to `PLACES` places beside a text can be filled: sets of bytes, that of the nearest place first.

    A way ends where the next place can hold anything. `edge` is the outermost byte of the text on this side; `ahead` is
    for what follows the text, else for what precedes it.
    """
    ways: list[_Way] = [((), frozenset({tuple(items[:_NEAR])}))]
    for place in range(PLACES):
        longer: list[_Way] = []
        for way, states in ways:
            steps = [step for state in states for step in _steps(state, ahead, None if place else edge)]
            longer += [(way, states)] if not states else [((*way, mask), rest) for mask, rest in _grouped(steps)]
        ways = _few(longer)
    found = {way[: max((at + 1 for at, mask in enumerate(way) if mask != ANY), default=0)] for way, _ in ways}
    return tuple(sorted(way for way in found if not any(_wider(other, way) for other in found)))


def united(ways: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """One way that is as wide as all of these."""
    return tuple(reduce(or_, masks) for masks in zip(*ways, strict=False))


def _grouped(steps: list[_Step]) -> Iterator[tuple[int, frozenset[_State]]]:
    """Steps with equal sets together; those after which all is open end there."""
    masks: dict[_State | None, int] = defaultdict(int)
    for mask, rest in steps:
        masks[rest] |= mask
    groups: dict[int, set[_State]] = defaultdict(set)
    for rest, mask in masks.items():
        if rest is not None and mask & ~masks.get(None, 0):
            groups[mask].add(rest)
    yield from ((mask, frozenset(states)) for mask, states in groups.items())
    if None in masks:
        yield masks[None], frozenset()


def _few(ways: list[_Way]) -> list[_Way]:
    """The ways, where they are too many those that begin alike as one that is as wide as all of them."""
    for alike in range(PLACES, -1, -1):
        groups: dict[tuple[int, ...], list[_Way]] = defaultdict(list)
        for way in ways:
            groups[way[0][:alike]].append(way)
        if len(groups) <= _MOST:
            break
    return [_together(some) for some in groups.values()]


def _together(ways: list[_Way]) -> _Way:
    """One way as wide as all of them, as long as the shortest that has ended."""
    ended = [len(way) for way, states in ways if not states]
    length = min(ended, default=len(ways[0][0]))
    masks = tuple(reduce(or_, (way[at] for way, _ in ways), 0) for at in range(length))
    return masks, frozenset() if ended else frozenset().union(*(states for _, states in ways))


def _wider(other: tuple[int, ...], way: tuple[int, ...]) -> bool:
    """Whether everything that fits a way fits the other way too."""
    return other != way and len(other) <= len(way) and all(not b & ~a for a, b in zip(other, way, strict=False))


def _steps(items: tuple[_Piece, ...], ahead: bool, edge: int | None, limit: int = ANY) -> Iterator[_Step]:
    """The sets of the next byte with what follows each. `edge` is the byte that it touches, where that is known.

    A boundary lets only characters of `limit` be next.
    """
    if not items:
        yield limit if ahead or limit != _NO_WORD else _NO_WORD_BEFORE, None
        return
    head, rest = items[0], items[1:]
    match head:
        case _Byte(mask):
            yield mask, rest
        case Atom(mask):
            yield from _atom(mask & limit, rest, ahead)
        case Sequence(inner):
            yield from _steps((*(inner if ahead else reversed(inner)), *rest), ahead, edge, limit)
        case Choice(options):
            for option in options:
                yield from _steps((option, *rest), ahead, edge, limit)
        case Repeat(inner, low, high) if not _empty(inner):
            if low == 0:
                yield from _steps(rest, ahead, edge, limit)
            if high is None or high > 0:
                yield from _steps((inner, _again(inner, low, high), *rest), ahead, edge, limit)
        case Boundary("$") if ahead:
            yield _MESSAGE_END & limit, None
        case Boundary("^") if not ahead:
            yield _NO_WORD_BEFORE if edge is not None and WORD >> edge & 1 else ANY, None
        case Boundary("b") if edge is not None:
            yield from _steps(rest, ahead, edge, limit & (_NO_WORD if WORD >> edge & 1 else WORD))
        case Boundary():
            yield from _steps(rest, ahead, edge, limit)
        case _:
            yield ANY, None


@lru_cache(maxsize=8192)
def _again(inner: Node, low: int, high: int | None) -> Repeat:
    """What is left of a repeat after one of its times, always the same object."""
    return Repeat(inner, max(low - 1, 0), None if high is None else high - 1)


def _atom(mask: int, rest: tuple[_Piece, ...], ahead: bool) -> Iterator[_Step]:
    if mask & HIGH:  # one character of several bytes, or its escape
        yield mask | (_BACKSLASH if ahead else _HEX | mask_of(b'"\\t/')), None
        return
    if mask:
        yield mask, rest
    for char, escaped in _WRITTEN:
        if mask & char:
            first, *others = escaped if ahead else escaped[::-1]
            yield first.mask, (*others, *rest)


@lru_cache(maxsize=8192)
def _empty(node: Node) -> bool:
    """Whether it can match nothing."""
    match node:
        case Atom():
            return False
        case Boundary():
            return True
        case Repeat(inner, low, _):
            return low == 0 or _empty(inner)
        case Sequence(items):
            return all(map(_empty, items))
        case Choice(options):
            return any(map(_empty, options))
