"""One pass over undecoded bytes for the trigger pieces of many patterns, as arrays: where a piece ends, whose it is."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import hyperscan
import numpy as np

from firstfault.catalog.regex import DIGITS
from firstfault.catalog.triggers import LONG, Piece, Trigger

if TYPE_CHECKING:
    from numpy.typing import NDArray

Buffer = bytes | bytearray | memoryview

_NUMBER_BITS = 24  # a hit is packed into one integer: offset above, number below
_NUMBER = (1 << _NUMBER_BITS) - 1
_BLOCK = 512 * 1024
_TAIL = 16 * 1024
BYTES_PER_HIT = 16  # fewer are a storm
_FEW_HITS = 1024
NEWLINE = 10
_RETURN = 13
_LINE_END = np.array([NEWLINE], dtype=np.uint8)


class TextSearch:
    """Finds trigger pieces. Serves one thread at a time.

    Long plain texts have a database of their own: the engine is much faster there without short ones. A piece with sets
    of bytes beside it is an expression of fixed length, for which the engine looks at a few bytes beside a text; whole
    expressions lose matches in releases that are in use (https://github.com/VectorCamp/vectorscan/issues/358).
    """

    def __init__(self, pieces: tuple[Piece, ...], first: NDArray[np.int32], patterns: NDArray[np.int32]) -> None:
        self._pieces = pieces
        self._first = first  # the first[n]-th to first[n + 1]-th of `patterns` are those of piece n
        self._patterns = patterns
        self.behind = np.array([len(piece.behind) for piece in pieces], dtype=np.int64)
        self.lengths = np.array([len(piece.sets) for piece in pieces], dtype=np.int64)
        self._uneven = np.array([is_uneven(piece) for piece in pieces], dtype=np.bool_)
        long = sum(_is_long(piece) for piece in pieces)
        groups = (range(long), range(long, len(pieces)))
        self._groups = tuple((group, pieces[group.start : group.stop]) for group in groups if group)
        self._databases: list[Any] = []
        self._once: list[Any] = []

    @classmethod
    def of(cls, triggers: Sequence[Trigger]) -> TextSearch:
        """A search for the triggers; a pattern is known by the place of its trigger."""
        wanted: dict[Piece, list[int]] = {}
        for number, trigger in enumerate(triggers):
            for piece in trigger.pieces:
                wanted.setdefault(piece, []).append(number)
        for piece in sorted(wanted):  # what is looked for in either case is found once for both
            either = Piece(piece.text.lower(), True, piece.before, piece.behind)
            if not piece.folded and not piece.before and not piece.behind and either in wanted:
                wanted[either] += wanted.pop(piece)
        pieces = tuple(sorted(wanted, key=lambda piece: (not _is_long(piece), piece)))
        first = np.cumsum([0, *(len(wanted[piece]) for piece in pieces)], dtype=np.int32)
        patterns = np.array([number for piece in pieces for number in wanted[piece]], dtype=np.int32)
        search = cls(pieces, first, patterns)
        search._databases = [_compile(*group) for group in search._groups]
        uneven = np.flatnonzero(search._uneven).tolist()
        search._databases += [_compile(uneven, [pieces[at] for at in uneven], alike=True)] if uneven else []
        return search

    def dump(self) -> bytes:
        """Everything that `load` needs."""
        pieces = [(one.text.decode("latin-1"), one.folded, one.before, one.behind) for one in self._pieces]
        parts = [json.dumps(pieces).encode(), self._first.tobytes(), self._patterns.tobytes()]
        parts += map(hyperscan.dumpb, self._databases)
        return b"".join(struct.pack("<I", len(part)) + part for part in parts)

    @classmethod
    def load(cls, dumped: bytes) -> TextSearch | None:
        """What was dumped, None where it was compiled for another processor or version of the engine."""
        try:
            parts, at = [], 0
            while at < len(dumped):
                (length,) = struct.unpack_from("<I", dumped, at)
                parts.append(dumped[at + 4 : at + 4 + length])
                at += 4 + length
            pieces = tuple(
                Piece(text.encode("latin-1"), folded, tuple(before), tuple(behind))
                for text, folded, before, behind in json.loads(parts[0])
            )
            search = cls(pieces, *(np.frombuffer(part, dtype=np.int32) for part in parts[1:3]))
            for part in parts[3:]:
                database = hyperscan.loadb(part, hyperscan.HS_MODE_BLOCK)
                database.scratch = hyperscan.Scratch(database)
                search._databases.append(database)
        except (hyperscan.HyperscanError, struct.error, ValueError):
            return None
        return search if len(search._databases) == len(search._groups) + bool(search._uneven.any()) else None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """What is looked for."""
        return self._pieces

    def scan(self, chunk: Buffer) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where texts end, and the pattern each stands for, in order and without doubles.

        Where a block holds a storm of hits it is searched again line by line, for at most one hit of a pattern and
        line: the answer stays bounded, and no line is lost.
        """
        data = np.frombuffer(chunk, dtype=np.uint8)
        if not len(data) or data[-1] != NEWLINE:
            data = np.append(data, np.uint8(NEWLINE))
        ends, patterns = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int32)]
        for start, stop in _blocks(data):
            # the byte that may stand before a text stands there at the beginning of the chunk too
            block = data[start - 1 : stop] if start else np.concatenate((_LINE_END, data[:stop]))
            hits = self._hits(block, len(self._groups))
            storm = len(hits) > max(len(block) // BYTES_PER_HIT, _FEW_HITS)
            if storm:
                hits = self._hits_by_line(block)
            one = self.of_patterns(hits[:, 0], hits[:, 1])
            if storm:
                one = _once_a_line(block, *one)
            ends.append(one[0] + (start - 1))
            patterns.append(one[1])
        return np.concatenate(ends), np.concatenate(patterns)

    def alike(self, text: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where pieces and what stands behind them end, and which these are, with any digit for each of theirs."""
        data = np.frombuffer(text, dtype=np.uint8)
        found = [np.empty((0, 2), dtype=np.int64)]
        for start, stop in _blocks(data):
            block = data[start - 1 : stop] if start else np.concatenate((_LINE_END, data[:stop]))
            hits = self._hits(block, len(self._groups))
            hits = hits[~self._uneven[hits[:, 1]]]
            one = np.concatenate((hits, self._hits(block, None, len(self._groups))))
            one[:, 0] += start - 1
            found.append(one)
        hits = np.concatenate(found)
        return hits[:, 0], hits[:, 1]

    def _hits(self, block: NDArray[np.uint8], stop: int | None, start: int = 0) -> NDArray[np.int64]:
        """Rows of where a piece and what stands behind it end, and which piece it is, of some of the databases."""
        hits: list[int] = []
        append = hits.append

        def hit(number: int, start: int, end: int, flags: int, context: object) -> None:
            append(end)
            append(number)

        for database in self._databases[start:stop]:
            database.scan(block, match_event_handler=hit)
        return np.array(hits, dtype=np.int64).reshape(-1, 2)

    def of_patterns(
        self, ends: NDArray[np.int64], pieces: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Hits of pieces as hits of patterns."""
        first = self._first[pieces].astype(np.int64)
        counts = self._first[pieces + 1] - first
        rows = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return ordered(np.repeat(ends - self.behind[pieces], counts), self._patterns[rows])

    def _hits_by_line(self, block: NDArray[np.uint8]) -> NDArray[np.int64]:
        if not self._once:
            self._once = [_compile(*group, hyperscan.HS_FLAG_SINGLEMATCH) for group in self._groups]
        hits: list[int] = []

        def hit(number: int, start: int, end: int, flags: int, base: int) -> None:
            hits.append(base + end)
            hits.append(number)

        cuts = _cuts(block)
        for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            for database in self._once if stop > start + 1 else ():
                database.scan(block[start : stop + 1], match_event_handler=hit, context=start)
        return np.array(hits, dtype=np.int64).reshape(-1, 2)


def _is_long(piece: Piece) -> bool:
    return len(piece.text) >= LONG and not piece.before and not piece.behind


def _once_a_line(
    data: NDArray[np.uint8], ends: NDArray[np.int64], patterns: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The first hit of each pattern in each line, or piece of a line that carriage returns cut."""
    lines = np.searchsorted(_cuts(data), ends - 1)
    first = np.sort(np.unique(lines << _NUMBER_BITS | patterns, return_index=True)[1])
    return ends[first], patterns[first]


def _cuts(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    return np.flatnonzero((data == NEWLINE) | (data == _RETURN))


def _blocks(data: NDArray[np.uint8]) -> Iterator[tuple[int, int]]:
    """Pieces of about one block, each up to the end of a line."""
    start = 0
    while start < len(data):
        stop = start + _BLOCK
        while stop < len(data):
            ends = np.flatnonzero(data[stop - _TAIL : stop] == NEWLINE)
            if len(ends):
                stop += int(ends[-1]) + 1 - _TAIL
                break
            stop += _TAIL
        yield start, min(stop, len(data))
        start = stop


def ordered(ends: NDArray[np.int64], patterns: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Hits sorted and without doubles; most answers of the engine are that already."""
    packed = ends << _NUMBER_BITS | patterns
    if not (packed[1:] > packed[:-1]).all():
        packed = np.sort(packed)
        packed = packed[np.concatenate(([True], packed[1:] != packed[:-1]))]
    return packed >> _NUMBER_BITS, (packed & _NUMBER).astype(np.int32)


def _compile(numbers: Sequence[int], pieces: Sequence[Piece], flag: int = 0, *, alike: bool = False) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[_expression(piece, alike) for piece in pieces],
        ids=list(numbers),
        elements=len(pieces),
        flags=[flag | (hyperscan.HS_FLAG_CASELESS if piece.folded else 0) for piece in pieces],
    )
    return database


def is_uneven(piece: Piece) -> bool:
    """Whether it asks for certain digits."""
    return any(one & DIGITS not in (0, DIGITS) for one in piece.sets)


def _expression(piece: Piece, alike: bool) -> bytes:
    """The piece as the engine reads it, with any digit for each of its own where all are `alike`."""
    first, stop = len(piece.before), len(piece.before) + len(piece.text)
    sets = [one | DIGITS if alike and one & DIGITS else one for one in piece.sets]
    text = b"".join(_class(one) if one & DIGITS == DIGITS else b"\\x%02x" % _only(one) for one in sets[first:stop])
    return b"".join((*map(_class, sets[:first]), text, *map(_class, sets[stop:])))


def _only(mask: int) -> int:
    return mask.bit_length() - 1


def _class(mask: int) -> bytes:
    """A set of bytes as the engine writes it, in ranges."""
    some = [byte for byte in range(256) if mask >> byte & 1]
    starts = [byte for byte in some if byte == 0 or not mask >> (byte - 1) & 1]
    stops = [byte for byte in some if not mask >> (byte + 1) & 1]
    return b"[" + b"".join(b"\\x%02x-\\x%02x" % pair for pair in zip(starts, stops, strict=True)) + b"]"
