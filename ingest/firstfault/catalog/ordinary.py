"""How often a text stands in ordinary logs: from `ordinary.tsv`, lines of many programs with their shares.

The file is written by `bench/ordinary.py`. Numbers in its lines are `0`, so a digit of a text counts as that.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


LINES = files(__package__).joinpath("ordinary.tsv")
_PARTS = 10_000
_GRAMS = (8, 6, 4, 3)
"""A text is as rare as the rarest of its pieces that are as long as the first of these that fits."""

_ZERO = bytes.maketrans(b"123456789", b"000000000")


@lru_cache(maxsize=1)
def _lines() -> tuple[bytes, tuple[int, ...], tuple[float, ...]]:
    """All lines as one text, where each begins, the share of each."""
    rows = [row.split("\t", 1) for row in LINES.read_text("utf-8").splitlines()]
    lines = [b"\n" + text.encode() for _, text in rows]
    starts = accumulate(map(len, lines), initial=0)
    return b"".join(lines) + b"\n", tuple(starts)[:-1], tuple(float(share) / _PARTS for share, _ in rows)


@cache
def _grams(length: int, folded: bool) -> dict[int, float]:
    """The pieces of this length that stand in ordinary lines, as little-endian numbers; how often in one line."""
    text, count = _bytes(folded), len(_lines()[0])
    places = np.arange(count)
    keys = np.zeros((count, 8), dtype=np.uint8)
    for at in range(length):
        keys[:, at] = text[places + at]
    found, which = np.unique(keys.view(np.uint64).ravel(), return_inverse=True)
    sums = np.bincount(which, weights=_shares_at(places))
    return dict(zip(found.tolist(), sums.tolist(), strict=True))


def _shares_at(places: NDArray[np.int64]) -> NDArray[np.float64]:
    """The shares of the lines that hold these places."""
    _, starts, shares = _lines()
    return np.array(shares)[np.searchsorted(np.array(starts), places, side="right") - 1]


@lru_cache(maxsize=1 << 16)
def often(text: bytes, folded: bool) -> float:
    """How often a text stands in an ordinary line, at the most."""
    text = (text.lower() if folded else text).translate(_ZERO)
    length = next((one for one in _GRAMS if one <= len(text)), 0)
    if not length:
        return 1.0
    grams = _grams(length, folded)
    pieces = (int.from_bytes(text[at : at + length], "little") for at in range(len(text) - length + 1))
    return min(grams.get(piece, 0.0) for piece in pieces)


def often_beside(text: bytes, folded: bool, before: tuple[int, ...], behind: tuple[int, ...]) -> float:
    """How often it stands there with these sets of bytes beside it, in the order of the line."""
    places, shares = _places(text.lower() if folded else text, folded)
    beside = [*enumerate(before, -len(before)), *enumerate(behind, len(text))]
    fits = np.ones(len(places), dtype=np.bool_)
    for offset, mask in beside:
        fits &= _table(mask)[_bytes(folded=False)[places + offset]]
    return float(shares[fits].sum())


@lru_cache(maxsize=1 << 14)
def _places(text: bytes, folded: bool) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Where the text stands in all lines, and the share of each of those lines."""
    found = re.finditer(re.escape(text.translate(_ZERO)), _bytes(folded).tobytes())
    places = np.array([one.start() for one in found], dtype=np.int64)
    return places, _shares_at(places)


@lru_cache(maxsize=2)
def _bytes(folded: bool) -> NDArray[np.uint8]:
    """All lines, and room for what would stand beside a text at their end."""
    text = _lines()[0] + b"\n" * 16
    return np.frombuffer(text.lower() if folded else text, dtype=np.uint8)


@lru_cache(maxsize=1 << 12)
def _table(mask: int) -> NDArray[np.bool_]:
    """Which bytes are in a set."""
    return np.unpackbits(np.frombuffer(mask.to_bytes(32, "little"), dtype=np.uint8), bitorder="little").view(np.bool_)
