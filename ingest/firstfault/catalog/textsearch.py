"""One pass over undecoded bytes for the trigger texts of many patterns, as arrays: where a text ends, whose it is."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import hyperscan
import numpy as np

from firstfault.catalog.texts import BLANKS, Text, literals
from firstfault.catalog.triggers import Branch, Trigger

if TYPE_CHECKING:
    from numpy.typing import NDArray

Buffer = bytes | bytearray | memoryview

_NUMBER_BITS = 24  # a hit is packed into one integer: offset above, number below
_NUMBER = (1 << _NUMBER_BITS) - 1
_BLOCK = 512 * 1024
_TAIL = 16 * 1024
_BYTES_PER_HIT = 16  # fewer are a storm
_FEW_HITS = 1024
_NEWLINE = 10
_LINE_END = np.array([_NEWLINE], dtype=np.uint8)
_BLANK = np.array([BLANKS >> byte & 1 for byte in range(256)], dtype=np.bool_)
_BLANKS_SKIPPED = 16


@dataclass(frozen=True, slots=True)
class _Tables:
    """What a text stands for. The `first[text]`-th to `first[text + 1]`-th row belong to a text.

    A row is one text of one branch: of its texts where `part` is 0, of what has to be on the line too where it is 1.
    """

    first: NDArray[np.int32]
    branch: NDArray[np.int32]
    part: NDArray[np.int32]
    length: NDArray[np.int32]
    tail: NDArray[np.int32]  # bytes of what is searched that stand behind the text
    before: NDArray[np.int32]  # number of the set of bytes allowed there
    behind: NDArray[np.int32]
    skip: NDArray[np.int32]  # 1 where blanks behind the text do not count
    pattern: NDArray[np.int32]  # by branch
    paired: NDArray[np.int32]  # by branch: 1 where both parts have to be on the line
    sets: NDArray[np.bool_]

    def dump(self) -> bytes:
        columns = [getattr(self, name).tobytes() for name in _NUMBERS]
        columns.append(np.packbits(self.sets, axis=1).tobytes())
        return b"".join(struct.pack("<I", len(column)) + column for column in columns)

    @classmethod
    def parse(cls, dumped: bytes) -> _Tables:
        columns, at = [], 0
        while at < len(dumped):
            (size,) = struct.unpack_from("<I", dumped, at)
            columns.append(dumped[at + 4 : at + 4 + size])
            at += 4 + size
        numbers = {
            name: np.frombuffer(column, dtype=np.int32) for name, column in zip(_NUMBERS, columns[:-1], strict=True)
        }
        sets = np.unpackbits(np.frombuffer(columns[-1], dtype=np.uint8).reshape(-1, 32), axis=1).view(np.bool_)
        return cls(**numbers, sets=sets)

    @classmethod
    def of(cls, rows: Sequence[Sequence[_Row]], branches: Sequence[tuple[int, Branch]]) -> _Tables:
        """The tables of the rows of each text, and of the branches with their patterns."""
        flat = [row for of_text in rows for row in of_text]
        texts = [text for _, _, text, _ in flat]
        sets = {
            mask: at for at, mask in enumerate(sorted({mask for one in texts for mask in (one.before, one.behind)}))
        }
        bits = [[mask >> byte & 1 for byte in range(256)] for mask in sets]
        return cls(
            first=np.cumsum([0, *map(len, rows)], dtype=np.int32),
            branch=np.array([branch for branch, _, _, _ in flat], dtype=np.int32),
            part=np.array([part for _, part, _, _ in flat], dtype=np.int32),
            length=np.array([len(one.text) for one in texts], dtype=np.int32),
            tail=np.array([tail for _, _, _, tail in flat], dtype=np.int32),
            before=np.array([sets[one.before] for one in texts], dtype=np.int32),
            behind=np.array([sets[one.behind] for one in texts], dtype=np.int32),
            skip=np.array([one.skip for one in texts], dtype=np.int32),
            pattern=np.array([pattern for pattern, _ in branches], dtype=np.int32),
            paired=np.array([bool(branch.also) for _, branch in branches], dtype=np.int32),
            sets=np.array(bits, dtype=np.bool_).reshape(-1, 256),
        )


_NUMBERS = ("first", "branch", "part", "length", "tail", "before", "behind", "skip", "pattern", "paired")
_Row = tuple[int, int, Text, int]


class TextSearch:
    """Finds trigger texts. Serves one thread at a time."""

    def __init__(self, texts: tuple[tuple[bytes, bool], ...], tables: _Tables, database: Any) -> None:
        self._texts = texts
        self._tables = tables
        self._database = database
        self._once: Any = None

    @classmethod
    def of(cls, triggers: Sequence[Trigger]) -> TextSearch:
        """A search for the triggers; a pattern is known by the place of its trigger."""
        branches = [(number, branch) for number, trigger in enumerate(triggers) for branch in trigger.branches]
        wanted: dict[tuple[bytes, bool], list[_Row]] = {}
        for number, (_, branch) in enumerate(branches):
            for part, some in enumerate((branch.texts, branch.also)):
                for text in some:
                    for literal, _, tail in literals(text):
                        wanted.setdefault((literal, text.folded), []).append((number, part, text, tail))
        for exact, folded in sorted(wanted):  # what is looked for in either case is found once for both
            if not folded and (exact.lower(), True) in wanted:
                wanted[exact.lower(), True] += wanted.pop((exact, False))
        texts = tuple(sorted(wanted))
        return cls(texts, _Tables.of([wanted[text] for text in texts], branches), _compile(texts))

    def dump(self) -> bytes:
        """Everything that `load` needs, except the texts."""
        tables = self._tables.dump()
        return struct.pack("<I", len(tables)) + tables + hyperscan.dumpb(self._database)

    @classmethod
    def load(cls, texts: tuple[tuple[bytes, bool], ...], dumped: bytes) -> TextSearch | None:
        """What was dumped, None where it was compiled for another processor or version of the engine."""
        try:
            (length,) = struct.unpack_from("<I", dumped)
            tables = _Tables.parse(dumped[4 : 4 + length])
            database = hyperscan.loadb(dumped[4 + length :], hyperscan.HS_MODE_BLOCK)
            database.scratch = hyperscan.Scratch(database)
        except (hyperscan.HyperscanError, struct.error, ValueError):
            return None
        return cls(texts, tables, database)

    @property
    def texts(self) -> tuple[tuple[bytes, bool], ...]:
        """The texts that are looked for, with whether in either case."""
        return self._texts

    def scan(self, chunk: Buffer) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where texts end, and the pattern each stands for, in order and without doubles.

        Where a block holds a storm of hits it is searched again line by line, for at most one hit of a pattern and
        line: the answer stays bounded, and no line is lost.
        """
        data = np.frombuffer(chunk, dtype=np.uint8)
        if not len(data) or data[-1] != _NEWLINE:
            data = np.append(data, np.uint8(_NEWLINE))
        ends, patterns = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int32)]
        for start, stop in _blocks(data):
            block = data[start:stop]
            packed = self._hits(block)
            storm = len(packed) > max(len(block) // _BYTES_PER_HIT, _FEW_HITS)
            if storm:
                packed = self._hits_by_line(block)
            one = self._patterns(block, packed >> _NUMBER_BITS, (packed & _NUMBER).astype(np.int32), check=not storm)
            if storm:
                one = _once_a_line(block, *one)
            ends.append(one[0] + start)
            patterns.append(one[1])
        return np.concatenate(ends), np.concatenate(patterns)

    def _hits(self, block: NDArray[np.uint8]) -> NDArray[np.int64]:
        hits: list[int] = []
        append = hits.append

        def hit(number: int, start: int, end: int, flags: int, context: object) -> None:
            append(end << _NUMBER_BITS | number)

        # the byte that may stand before a text stands there at the beginning of a block too
        self._database.scan(np.concatenate((_LINE_END, block)), match_event_handler=hit)
        return np.array(hits, dtype=np.int64) - (1 << _NUMBER_BITS)

    def _patterns(
        self, data: NDArray[np.uint8], ends: NDArray[np.int64], texts: NDArray[np.int32], check: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Hits of texts as hits of patterns, without those whose neighbours do not fit."""
        table = self._tables
        counts = table.first[texts + 1] - table.first[texts]
        ends = np.repeat(ends, counts)
        rows = np.repeat(table.first[texts] - np.cumsum(counts) + counts, counts) + np.arange(len(ends))
        ends -= table.tail[rows]
        if check and len(ends):
            starts = ends - table.length[rows]
            places = _past_blanks(data, ends, table.skip[rows])
            before = np.where(starts > 0, data[np.maximum(starts - 1, 0)], _NEWLINE)
            behind = data[np.minimum(places, len(data) - 1)]
            fits = table.sets[table.before[rows], before]
            fits &= table.sets[table.behind[rows], behind] | ((table.skip[rows] == 1) & _BLANK[behind])
            ends, rows = ends[fits], rows[fits]
        ends, rows = self._paired(data, ends, rows)
        packed = _ordered(ends << _NUMBER_BITS | table.pattern[table.branch[rows]])
        return packed >> _NUMBER_BITS, (packed & _NUMBER).astype(np.int32)

    def _paired(
        self, data: NDArray[np.uint8], ends: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The hits of first parts, of branches in two parts those with the second on their line."""
        table = self._tables
        keep = table.paired[table.branch[rows]] == 0
        two = np.flatnonzero(~keep)
        if not len(two):
            return ends, rows
        second = table.part[rows[two]] == 1
        lines = np.searchsorted(np.flatnonzero(data == _NEWLINE), ends[two] - 1)
        places = lines << _NUMBER_BITS | table.branch[rows[two]]
        keep[two[~second]] = np.isin(places[~second], places[second])
        return ends[keep], rows[keep]

    def _hits_by_line(self, block: NDArray[np.uint8]) -> NDArray[np.int64]:
        if self._once is None:
            self._once = _compile(self._texts, hyperscan.HS_FLAG_SINGLEMATCH)
        hits: list[int] = []

        def hit(number: int, start: int, end: int, flags: int, base: int) -> None:
            hits.append(base + end << _NUMBER_BITS | number)

        at = 0
        for stop in [*np.flatnonzero(block == _NEWLINE).tolist(), len(block)]:
            if stop > at:
                line = np.concatenate((_LINE_END, block[at:stop], _LINE_END))
                self._once.scan(line, match_event_handler=hit, context=at - 1)
            at = stop + 1
        return np.array(hits, dtype=np.int64)


def _once_a_line(
    data: NDArray[np.uint8], ends: NDArray[np.int64], patterns: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The first hit of each pattern in each line."""
    lines = np.searchsorted(np.flatnonzero(data == _NEWLINE), ends - 1)
    first = np.sort(np.unique(lines << _NUMBER_BITS | patterns, return_index=True)[1])
    return ends[first], patterns[first]


def _blocks(data: NDArray[np.uint8]) -> Iterator[tuple[int, int]]:
    """Pieces of about one block, each up to the end of a line."""
    start = 0
    while start < len(data):
        stop = start + _BLOCK
        while stop < len(data):
            ends = np.flatnonzero(data[stop - _TAIL : stop] == _NEWLINE)
            if len(ends):
                stop += int(ends[-1]) + 1 - _TAIL
                break
            stop += _TAIL
        yield start, min(stop, len(data))
        start = stop


def _past_blanks(data: NDArray[np.uint8], ends: NDArray[np.int64], skip: NDArray[np.int32]) -> NDArray[np.int64]:
    """Where the first byte behind each text stands, without blanks where they are to be skipped (a few of them)."""
    places = ends.copy()
    some = np.flatnonzero(skip)
    for _ in range(_BLANKS_SKIPPED):
        some = some[_BLANK[data[np.minimum(places[some], len(data) - 1)]]]
        if not len(some):
            break
        places[some] += 1
    return places


def _ordered(packed: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sorted and without doubles; most answers of the engine are that already."""
    rising = packed[1:] > packed[:-1]
    if rising.all():
        return packed
    packed = np.sort(packed)
    return packed[np.concatenate(([True], packed[1:] != packed[:-1]))]


def _compile(texts: tuple[tuple[bytes, bool], ...], flag: int = 0) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    chosen = texts or ((b"no pattern", False),)  # the engine refuses an empty set
    database.compile(
        expressions=[b"".join(b"\\x%02x" % byte for byte in text) for text, _ in chosen],
        ids=list(range(len(chosen))),
        elements=len(chosen),
        flags=[flag | (hyperscan.HS_FLAG_CASELESS if folded else 0) for _, folded in chosen],
    )
    return database
