"""Lines that differ only in their digits: what the search says of one it says of all, so that it looks at one.

A line is known by a hash of its bytes with every digit taken for the same one; of a hundred lines of an ordinary log
more than ninety are known before they are searched. Pieces that ask for certain digits are searched with any, and what
they found is checked in each line. The hash has a seed of this process, so that nobody can write lines that collide.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from firstfault.catalog.known import Known
from firstfault.catalog.regex import DIGITS
from firstfault.catalog.textsearch import BYTES_PER_HIT, NEWLINE, Buffer, TextSearch, ordered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

FEW = 32 * 1024
"""Bytes below which it is not worth while."""

_BLOCK = 128 * 1024
_LONGEST = 4096
_COUNT_BITS = 16
_MOST = 1 << 20
_OTHERS = (1 << _COUNT_BITS) - 1
"""Stands for the count of hits of a line that is searched by itself each time: it is long or has too many of them."""

SEED = secrets.randbits(63)


def masked(data: NDArray[np.uint8], room: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bytes moved so that 0 stands for every digit, in that room, which is as large at the least."""
    other = np.empty(_BLOCK, dtype=np.bool_)
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK]
        moved, mine = room[start : start + len(block)], other[: len(block)]
        np.subtract(block, 48, out=moved)
        np.greater_equal(moved, 10, out=mine)
        np.multiply(moved, mine.view(np.uint8), out=moved)
    return room[: len(data)]


def hashed(data: NDArray[np.uint8], bounds: Ints) -> Hashes:
    """A hash of each piece of the data; the n-th is at bounds[n]:bounds[n + 1]. None is 0."""
    import polars as pl
    import pyarrow as pa  # type: ignore[import-untyped]

    array = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    column = pl.from_arrow(array)
    assert isinstance(column, pl.Series)
    hashes: Hashes = np.maximum(column.hash(SEED).to_numpy(), np.uint64(1))
    return hashes


@dataclass(slots=True)
class _Kept:
    """Hits of known lines behind one another: where each ends, counted from the line's beginning, and its piece."""

    ends: NDArray[np.int32]
    pieces: NDArray[np.int32]
    size: int = 0

    def add(self, ends: Ints, pieces: Ints) -> None:
        if self.size + len(ends) > len(self.ends):
            room = max(self.size + len(ends), 2 * self.size)
            self.ends, self.pieces = (np.resize(one, room) for one in (self.ends, self.pieces))
        stop = self.size + len(ends)
        self.ends[self.size : stop] = ends
        self.pieces[self.size : stop] = pieces
        self.size = stop


class LineSearch:
    """Searches chunks line by line alike. Serves one thread at a time."""

    def __init__(self, search: TextSearch) -> None:
        self._search = search
        self._checks = _Checks(search)
        self._known = Known()  # the place of a line's first hit, and in the bits below that how many they are
        self._room = np.empty(0, dtype=np.uint8)
        self._forget()

    def scan(self, chunk: Buffer, line_ends: Ints | None = None) -> tuple[Ints, NDArray[np.int32]]:
        """As `TextSearch.scan`, without hits that only a neighbouring line makes possible.

        `line_ends` are the places of the line ends, where these are known and the chunk ends with one.
        """
        data = np.frombuffer(chunk, dtype=np.uint8)
        if len(data) < FEW:
            return self._search.scan(chunk)
        if data[-1] != NEWLINE:
            data, line_ends = np.append(data, np.uint8(NEWLINE)), None
        bounds = np.zeros(1, dtype=np.int64)
        bounds = np.append(bounds, (np.flatnonzero(data == NEWLINE) if line_ends is None else line_ends) + 1)
        where = self._places(data, bounds)
        counts = where & _OTHERS
        if counts.sum() > len(data) // BYTES_PER_HIT:  # a storm, which the other search bounds
            counts[counts > np.diff(bounds) // BYTES_PER_HIT] = _OTHERS
        others = np.flatnonzero(counts == _OTHERS)
        counts[others] = 0
        own = np.flatnonzero(counts)
        counts = counts[own]
        places = _ranges(where[own] >> _COUNT_BITS, counts)
        pieces = self._kept.pieces[places].astype(np.int64)
        ends = np.repeat(bounds[own], counts) + self._kept.ends[places]
        fits = self._checks.fit(data, ends, pieces)
        found = self._search.of_patterns(ends[fits], pieces[fits])
        if not len(others):
            return found
        text, shifts = _gathered(data, bounds, others)
        ends, patterns = self._search.scan(text)
        ends += shifts[np.searchsorted(np.cumsum(np.diff(bounds)[others]), ends - 1, side="right")]
        return ordered(np.concatenate((found[0], ends)), np.concatenate((found[1], patterns)))

    def _places(self, data: NDArray[np.uint8], bounds: Ints) -> Ints:
        """Of each line where its hits are kept and how many they are, as in the table."""
        if self._kept.size > _MOST:
            self._forget()
        if len(self._room) < len(data):
            self._room = np.empty(len(data), dtype=np.uint8)
        hashes = hashed(masked(data, self._room), bounds)
        where, there = self._known.get(hashes)
        fresh = ~there
        long = np.diff(bounds) > _LONGEST
        if long.any():
            fresh &= ~long
            where[long] = _OTHERS
        rows = np.flatnonzero(fresh)
        if len(rows):
            found, one, which = np.unique(hashes[rows], return_index=True, return_inverse=True)
            learnt = self._learn(data, bounds, rows[one])
            where[rows] = learnt[which]
            self._known.put(found, learnt)
        return where

    def _learn(self, data: NDArray[np.uint8], bounds: Ints, rows: Ints) -> Ints:
        """Search these lines, keep their hits and say where."""
        text, _ = _gathered(data, bounds, rows)
        ends, pieces = self._search.alike(text)
        starts = np.append(np.zeros(1, dtype=np.int64), np.cumsum(np.diff(bounds)[rows]))
        lines = np.searchsorted(starts, ends - self._search.behind[pieces] - 1, side="right") - 1
        # what a neighbour has a part in is not found by this line
        whole = (ends <= starts[lines + 1]) & (ends - self._search.lengths[pieces] >= starts[lines] - 1)
        kept = np.flatnonzero(whole)[np.argsort(lines[whole], kind="stable")]
        lines = lines[kept]
        count = np.bincount(lines, minlength=len(rows))
        first = np.cumsum(count) - count + self._kept.size
        self._kept.add(ends[kept] - starts[lines], pieces[kept])
        return first << _COUNT_BITS | np.minimum(count, _OTHERS)

    def _forget(self) -> None:
        self._known.clear()
        self._kept = _Kept(np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32))


class _Checks:
    """Which bytes of a hit have to be looked at because its piece does not take all digits alike."""

    def __init__(self, search: TextSearch) -> None:
        tables: dict[int, int] = {}
        rows: list[list[tuple[int, int]]] = []
        for piece in search.pieces:
            sets = piece.sets
            uneven = [at for at, one in enumerate(sets) if one & DIGITS not in (0, DIGITS)]
            rows.append([(at - len(sets), tables.setdefault(sets[at] & DIGITS, len(tables))) for at in uneven])
        self._count = np.array([len(row) for row in rows], dtype=np.int8)
        most = max(map(len, rows), default=0)
        padded = [row + [(0, 0)] * (most - len(row)) for row in rows]
        self._checks = np.array(padded, dtype=np.int32).reshape(len(rows), most, 2)
        # other bytes are as the search found them
        masks = [np.frombuffer((mask | ~DIGITS & (1 << 256) - 1).to_bytes(32, "little"), np.uint8) for mask in tables]
        self._tables = np.unpackbits(np.array(masks, dtype=np.uint8).reshape(-1, 32), axis=1, bitorder="little")

    def fit(self, data: NDArray[np.uint8], ends: Ints, pieces: Ints) -> NDArray[np.bool_]:
        """Which hits are those of their pieces with the digits that stand there."""
        fits = np.ones(len(ends), dtype=np.bool_)
        counts = self._count[pieces]
        rows = np.flatnonzero(counts)
        for at in range(self._checks.shape[1]):
            rows = rows[counts[rows] > at]
            if not len(rows):
                break
            offsets, tables = self._checks[pieces[rows], at].T
            fits[rows] &= self._tables[tables, data[ends[rows] + offsets]].view(np.bool_)
        return fits


def _ranges(first: Ints, counts: Ints) -> Ints:
    """All places from first[n] on, counts[n] of them, one after another."""
    return np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())


def _gathered(data: NDArray[np.uint8], bounds: Ints, rows: Ints) -> tuple[bytes, Ints]:
    """The text of some lines, and how much further back each stands in the data."""
    view = data.data
    starts, stops = bounds[rows], bounds[rows + 1]
    text = b"".join(view[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True))
    lengths = stops - starts
    return text, starts - (np.cumsum(lengths) - lengths)
