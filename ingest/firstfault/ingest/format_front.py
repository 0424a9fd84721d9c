"""Owns what can be told of a pattern without running it: which bytes may stand at each of a line's first places, and
which text every match holds. Both say too much rather than too little; the exact pattern decides.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from firstfault.catalog.regex import HIGH, Atom, Boundary, Choice, Node, Repeat, Sequence, parse
from firstfault.ingest.text_bytes import first_bytes

WIDTH = 30
"""Bytes at the start of a line that are looked at."""

SMALL = 256
"""Lines below which a loop is faster than columns."""

BEHIND = 255
"""Stands behind the end of a line, where UTF-8 has no such byte."""

END = 1 << 256
"""Bit of a place behind the end of the line."""

ALL = (1 << 257) - 1


@cache
def masks_of(pattern: str) -> tuple[int, ...]:
    """For each of the first places the bytes that a line may have there, as bits; `END` where the line may be over."""
    masks = [0] * WIDTH
    ends = _walk(parse(pattern)[0], frozenset((0,)), masks)
    for place in range(min(ends, default=WIDTH), WIDTH):
        masks[place] = ALL
    return tuple(masks)


def _walk(node: Node, starts: frozenset[int], masks: list[int]) -> frozenset[int]:
    """The places at which the node may end, its bytes entered into the masks."""
    match node:
        case Boundary():
            return starts
        case Atom(mask):
            ends: set[int] = set()
            for start in starts:
                masks[start] |= mask & ~HIGH
                ends.add(start + 1)
                if mask & HIGH:  # a character outside ASCII takes up to four bytes
                    for place in range(start, min(start + 4, WIDTH)):
                        masks[place] |= HIGH
                    ends.update(range(start + 2, start + 5))
            return frozenset(end for end in ends if end < WIDTH)
        case Sequence(items):
            for item in items:
                if not starts:
                    break
                starts = _walk(item, starts, masks)
            return starts
        case Choice(options):
            return frozenset().union(*(_walk(option, starts, masks) for option in options))
        case Repeat(inner, low, high):
            reached = starts if low == 0 else frozenset()
            for count in range(1, WIDTH + 1 if high is None else min(high, WIDTH) + 1):
                starts = _walk(inner, starts, masks)
                if not starts:
                    break
                if count >= low:
                    before = len(reached)
                    reached |= starts
                    if high is None and len(reached) == before:
                        break
            return reached


@cache
def table_of(pattern: str) -> NDArray[np.bool_]:
    """The masks as a table to look bytes up in: place by byte, `BEHIND` for the end of the line."""
    out = np.zeros((WIDTH, 256), dtype=np.bool_)
    for place, mask in enumerate(masks_of(pattern)):
        bits = np.frombuffer(mask.to_bytes(33, "little"), dtype=np.uint8)
        out[place] = np.unpackbits(bits, bitorder="little")[:256]
        out[place, BEHIND] = bool(mask & END)
    return out


def windows(lines: pl.Series) -> NDArray[np.uint8]:
    """The first bytes of each line, `BEHIND` behind its end."""
    return first_bytes(lines, WIDTH, BEHIND)[0]


class Gate:
    """Patterns of which the first bytes of a line rule out most, all at once."""

    def __init__(self, patterns: Several[str]) -> None:
        self.words = (len(patterns) + 63) // 64 or 1
        self._table = np.zeros((WIDTH, self.words, 256), dtype=np.uint64)
        for number, pattern in enumerate(patterns):
            word, bit = divmod(number, 64)
            self._table[:, word] |= table_of(pattern).astype(np.uint64) << np.uint64(bit)

    def admitted(self, lines: pl.Series) -> NDArray[np.uint64]:
        """For each line the patterns that it may begin with, as bits: word by line."""
        window = np.ascontiguousarray(windows(lines).T)
        out = np.full((self.words, len(lines)), ~np.uint64(0), dtype=np.uint64)
        for table, column in zip(self._table, window, strict=True):
            for word, bits in zip(out, table, strict=True):
                word &= np.take(bits, column)
        return out


@cache
def text_of(pattern: str) -> str:
    """The longest text that every match of the pattern holds."""
    return max(_texts(parse(pattern)[0]), key=len)


def _texts(node: Node) -> list[str]:
    out: list[str] = []
    run: list[str] = []

    def flush() -> None:
        out.append("".join(run))
        run.clear()

    def visit(part: Node) -> None:
        match part:
            case Atom(mask) if mask.bit_count() == 1:
                run.append(chr(mask.bit_length() - 1))
            case Sequence(items):
                for item in items:
                    visit(item)
            case Repeat(inner, low, high) if low == high and low < WIDTH:
                for _ in range(low):
                    visit(inner)
            case Boundary():
                return
            case _:
                flush()

    visit(node)
    flush()
    return out
