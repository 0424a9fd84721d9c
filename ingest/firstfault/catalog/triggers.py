"""Derives the trigger of a pattern: what the multi-pattern engine looks for in undecoded chunks.

A trigger matches inside every raw line whose message the pattern matches, ends once instead of once per byte of a
trailing capture, and never crosses a line end. It may match more: the exact pattern decides afterwards on the message.
This relies on two habits of headers: the message is a piece of its raw line, and no word character touches it in front.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from firstfault.catalog.regex import HIGH, NEWLINE, Atom, Boundary, Choice, Node, Repeat, Sequence, parse

_BROAD = 100  # an ASCII set of this many characters says next to nothing about a text
_ENOUGH = 8  # literal characters that single a line out well enough to drop a weak rest
_WEAK_REST = 4  # literal characters behind a broad repeat below which that rest is weak
_LONG = 16  # a bounded repeat of broad sets beyond this is cheaper without a bound


@dataclass(frozen=True, slots=True)
class Trigger:
    """The expression for the engine, how many literal characters it needs, and how many the whole pattern needs."""

    expression: bytes
    literals: int
    specificity: int


@lru_cache(maxsize=8192)
def derive(pattern: str) -> Trigger:
    """The trigger of a pattern. Raises PatternError where the pattern is not in the syntax that both engines share."""
    whole = _flat(parse(pattern))
    trimmed = _without_weak_ends(_trim(whole, head=True))
    trimmed = _trim(_trim(trimmed, head=True), head=False)
    return Trigger(_emit(trimmed), literal_count(trimmed), literal_count(whole))


def literal_count(node: Node) -> int:
    """How many characters of a match are fixed, at the least."""
    match node:
        case Atom(mask):
            return int(mask.bit_count() <= 2)
        case Boundary():
            return 0
        case Repeat(inner, low, _):
            return literal_count(inner) * low
        case Sequence(items):
            return sum(map(literal_count, items))
        case Choice(options):
            return min(map(literal_count, options))


def _flat(node: Node) -> Node:
    """Sequences without nested sequences, and without line anchors: a header may stand in front of the message."""
    match node:
        case Boundary(kind) if kind in "^$B":
            return Sequence(())
        case Atom() | Boundary():
            return node
        case Repeat(inner, low, high):
            if isinstance(inner, Atom) and _broad(inner) and high is not None and high > _LONG:
                high = None
            return Repeat(_flat(inner), low, high)
        case Choice(options):
            return Choice(tuple(map(_flat, options)))
        case Sequence(items):
            flat: list[Node] = []
            for item in map(_flat, items):
                flat.extend(item.items if isinstance(item, Sequence) else (item,))
            return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def _broad(atom: Atom) -> bool:
    return (atom.mask & ~HIGH).bit_count() >= _BROAD


def _empty(node: Node) -> bool:
    return isinstance(node, Sequence) and not node.items


def _trim(node: Node, head: bool) -> Node:
    """Drops what is optional or broad from one end, and repeats there no more often than needed."""
    match node:
        case Atom() if _broad(node):
            return Sequence(())
        case Atom() | Boundary():
            return node
        case Repeat(inner, low, _):
            if low == 0 or (isinstance(inner, Atom) and _broad(inner)):
                return Sequence(())
            edge = _trim(inner, head)
            if low == 1 or _empty(edge):
                return edge
            return Repeat(inner, low, low)
        case Choice(options):
            trimmed = tuple(_trim(option, head) for option in options)
            return Sequence(()) if any(map(_empty, trimmed)) else Choice(trimmed)
        case Sequence(items):
            rest = list(items)
            while rest:
                at = 0 if head else -1
                edge = _trim(rest[at], head)
                if not _empty(edge):
                    rest[at] = edge
                    break
                rest.pop(at)
            return _flat(Sequence(tuple(rest)))


def _without_weak_ends(node: Node) -> Node:
    """Cuts a sequence at broad repeats whose far side holds too little text to be worth the search."""
    if not isinstance(node, Sequence):
        return node
    items = list(node.items)
    total = sum(map(literal_count, items))
    tail = 0
    for at in range(len(items) - 1, 0, -1):
        tail += literal_count(items[at])
        if tail >= _WEAK_REST or total - tail < _ENOUGH:
            break
        if _unbounded(items[at]):
            del items[at:]
    total, head, cut = sum(map(literal_count, items)), 0, 0
    for at, item in enumerate(items[:-1]):
        head += literal_count(item)
        if head >= _WEAK_REST or total - head < _ENOUGH:
            break
        if _unbounded(item):
            cut = at + 1
    return Sequence(tuple(items[cut:]))


def _unbounded(node: Node) -> bool:
    match node:
        case Repeat(inner, _, high):
            return (high is None and isinstance(inner, Atom) and _broad(inner)) or _unbounded(inner)
        case Sequence(items):
            return any(map(_unbounded, items))
        case Choice(options):
            return any(map(_unbounded, options))
        case _:
            return False


def _emit(node: Node) -> bytes:
    match node:
        case Atom(mask, wide):
            return _emit_set(mask) + (b"{1,4}" if wide else b"")
        case Boundary(kind):
            return b"\\" + kind.encode()
        case Repeat(Atom(mask, wide), low, high):
            return _emit_set(mask) + _times(low, None if high is None else high * 4 if wide else high)
        case Repeat(inner, low, high):
            return b"(?:" + _emit(inner) + b")" + _times(low, high)
        case Sequence(items):
            return b"".join(map(_emit, items))
        case Choice(options):
            return b"(?:" + b"|".join(map(_emit, options)) + b")"


def _times(low: int, high: int | None) -> bytes:
    if high is None:
        return {0: b"*", 1: b"+"}.get(low, b"{%d,}" % low)
    if (low, high) == (0, 1):
        return b"?"
    return b"{%d}" % low if low == high else b"{%d,%d}" % (low, high)


def _emit_set(mask: int) -> bytes:
    mask &= ~NEWLINE
    if mask.bit_count() == 1:
        return _emit_byte(mask.bit_length() - 1)
    ranges: list[bytes] = []
    byte = 0
    while byte < 256:
        if mask >> byte & 1:
            end = byte
            while end < 255 and mask >> (end + 1) & 1:
                end += 1
            ranges.append(_emit_byte(byte) + (b"-" + _emit_byte(end) if end > byte else b""))
            byte = end
        byte += 1
    return b"[" + b"".join(ranges) + b"]"


def _emit_byte(byte: int) -> bytes:
    char = bytes((byte,))
    return char if char.isalnum() else b"\\x%02x" % byte
