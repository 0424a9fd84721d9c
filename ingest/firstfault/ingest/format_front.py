"""Owns what can be told of a pattern without running it: which bytes may stand at each of a line's first places, and
which text every match holds. Both say too much rather than too little; the exact pattern decides.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from firstfault.catalog.regex import HIGH, Atom, Boundary, Choice, Node, Repeat, Sequence, parse

WIDTH = 30
"""Bytes at the start of a line that are looked at."""

SMALL = 256
"""Lines below which a loop is faster than columns."""

END = 1 << 256
"""Bit of a place behind the end of the line."""

ALL = (1 << 257) - 1
Window = NDArray[np.uint16]


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
    """The masks as a table to look bytes up in: place by byte, 256 for the end of the line."""
    out = np.zeros((WIDTH, 257), dtype=np.bool_)
    for place, mask in enumerate(masks_of(pattern)):
        bits = np.frombuffer(mask.to_bytes(33, "little"), dtype=np.uint8)
        out[place] = np.unpackbits(bits, bitorder="little")[:257].astype(np.bool_)
    return out


def windows(lines: pl.Series) -> Window:
    """The first bytes of each line, 256 behind its end."""
    if len(lines) < SMALL:
        heads = [line[:WIDTH].encode() for line in lines.to_list()]
        lengths = np.array([len(head) for head in heads], dtype=np.int64)
        raw = b"".join(heads)
    else:
        short = lines.str.slice(0, WIDTH)
        lengths = short.str.len_bytes().to_numpy().astype(np.int64)
        raw = short.str.join("").item().encode()
    data = np.frombuffer(raw + b"\0" * WIDTH, dtype=np.uint8)
    starts = np.cumsum(lengths) - lengths
    places = np.arange(WIDTH)
    out = data[starts[:, None] + places].astype(np.uint16)
    out[places >= lengths[:, None]] = 256
    made: Window = out
    return made


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
