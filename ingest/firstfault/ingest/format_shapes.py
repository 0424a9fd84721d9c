"""Owns lines of one shape: one is asked for all, and its fields are read at the same places in the others.

The shape of a line is its first bytes, all digits taken for one. What the patterns say of a shape is worked out once,
by running them over a line of it, and holds only where nothing behind the shape and no digit in it can change what any
pattern says (`format_reach`); where a line differs, or a shape is rare, the patterns run over the line itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from firstfault.ingest import stamps
from firstfault.ingest.format_load import JSON_START
from firstfault.ingest.format_model import FormatKind, LineFormat
from firstfault.ingest.format_reach import DIGIT, END, Reach
from firstfault.ingest.format_regex import REST, for_line, groups_of, has_rest
from firstfault.ingest.format_state import INT_COLUMNS, TEXT_FIELDS, State, level_code
from firstfault.ingest.format_words import LEVEL_GROUPS, base_name
from firstfault.ingest.text_bytes import Texts

Rows = NDArray[np.intp]
Ints = NDArray[np.int64]

WIDTHS = (24, 48, 88)
"""Bytes that make a shape: as few as say enough, since what follows differs from line to line."""
FEW = 512
"""Lines below which it is not worth while."""
COMMON = 4
"""Lines of a shape in a batch below which the patterns run over each of them."""
_AT_ONCE = 256
_MOST = 1 << 14
_SLOTS = 18
_WORDS = WIDTHS[-1] // 8
_ODD = np.random.default_rng(20).integers(0, 1 << 63, _WORDS + 2, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_UNKNOWN, _LONGER = -1, -2
MAX_ROUNDS = 12
_DIGITS = 18


@dataclass(frozen=True, slots=True)
class _Field:
    """A group of a format that the timeline keeps."""

    name: str
    digits: bool


@dataclass(frozen=True, slots=True)
class _Program:
    """The formats that stand on a line, one behind the other, and which of their groups are there."""

    places: tuple[int, ...]
    fields: tuple[_Field, ...]
    absent: tuple[str, ...]
    """Texts that would make it another line, wherever they stand."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What one format takes off a line: its groups with the bytes they lie between, and where it ends."""

    place: int
    groups: tuple[tuple[str, int, int], ...]
    end: int


@dataclass(frozen=True, slots=True)
class _Walk:
    """All that the patterns take off a line, and of how many of its bytes that depends."""

    steps: tuple[_Step, ...]
    absent: tuple[str, ...]
    needed: int


@dataclass(slots=True)
class _Shapes:
    """The shapes of one program: where each field begins and how long it is, the level, where the message begins."""

    spans: list[tuple[int, ...]]
    levels: list[int]
    starts: list[int]


class Shapes:
    """What is known of shapes so far."""

    def __init__(self, formats: Sequence[LineFormat], front: Sequence[int], held: Mapping[int, str]) -> None:
        self._formats, self._front, self._held = formats, front, held
        self._reach: dict[int, Reach] = {}
        self._kinds: dict[frozenset[str], int] = {}
        self._keys = np.zeros(1 << _SLOTS, dtype=np.uint64)
        self._said = np.full(1 << _SLOTS, _UNKNOWN, dtype=np.int32)
        self._shown = np.zeros((_MOST, _WORDS), dtype=np.uint64)
        self._kind_of = np.zeros(_MOST, dtype=np.int64)
        self._program_of = np.full(_MOST, _LONGER, dtype=np.int64)
        self._place_of = np.zeros(_MOST, dtype=np.int64)
        self._count = 0
        self._programs: dict[_Program, int] = {}
        self._shapes: list[_Shapes] = []

    def peel(self, state: State, lines: pl.Series, trusted: Sequence[frozenset[str]], source_of: Rows | None) -> Rows:
        """Take the headers off all lines whose shape is known. The result are the rows of the others."""
        texts = Texts(lines, WIDTHS[-1], END)
        shown = texts.window.copy()
        np.putmask(shown, shown - np.uint8(DIGIT) < 10, DIGIT)
        words = shown.view(np.uint64)
        numbers = np.array([self._kinds.setdefault(one, len(self._kinds)) for one in trusted], dtype=np.int64)
        kinds = np.full(len(lines), numbers[0]) if source_of is None else numbers[source_of]
        found = np.full(len(lines), _UNKNOWN, dtype=np.int64)
        rows: Rows = np.arange(len(lines))
        hashed = kinds.astype(np.uint64) * _ODD[-1]
        begin = 0
        for width in WIDTHS:
            hashed += words[:, begin : width // 8] @ _ODD[begin : width // 8]
            begin = width // 8
            keys = _mixed(hashed[rows])
            said = self._look_up(keys, words, kinds, rows, begin)
            if self._learn(
                keys[said == _UNKNOWN], rows[said == _UNKNOWN], words, texts, trusted, kinds, numbers, width
            ):
                said = self._look_up(keys, words, kinds, rows, begin)
            found[rows] = said
            rows = rows[said == _LONGER]
            if not len(rows):
                break
        return self._apply(state, lines, texts, found)

    def _look_up(
        self, keys: NDArray[np.uint64], words: NDArray[np.uint64], kinds: Ints, rows: Rows, count: int
    ) -> NDArray[np.int64]:
        """The shape of each row by its first words, `_LONGER` where more of it is needed, `_UNKNOWN` where unknown."""
        slots = keys >> np.uint64(64 - _SLOTS)
        shapes = np.where(self._keys[slots] == keys, self._said[slots], _UNKNOWN).astype(np.int64)
        apart = words[rows, :count] ^ self._shown[shapes, :count]
        other = kinds[rows] != self._kind_of[shapes]
        for word in range(count):
            other |= apart[:, word] != 0
        shapes[other] = _UNKNOWN
        return np.where((shapes >= 0) & (self._program_of[shapes] == _LONGER), _LONGER, shapes)

    def _learn(
        self,
        keys: NDArray[np.uint64],
        rows: Rows,
        words: NDArray[np.uint64],
        texts: Texts,
        trusted: Sequence[frozenset[str]],
        kinds: Ints,
        numbers: Ints,
        width: int,
    ) -> bool:
        """Find out about the shapes that many of these rows have; whether there were any."""
        if not len(rows):
            return False
        new, first, counts = np.unique(keys, return_index=True, return_counts=True)
        order = np.lexsort((first, -counts))[:_AT_ONCE]
        order = order[counts[order] >= COMMON][: _MOST - self._count]
        believed = dict(zip(numbers.tolist(), trusted, strict=True))
        for key, row in zip(new[order], rows[first[order]].tolist(), strict=True):
            slot = int(key) >> (64 - _SLOTS)
            if self._said[slot] != _UNKNOWN:
                continue
            shape = self._count
            self._count += 1
            self._keys[slot], self._said[slot] = key, shape
            self._shown[shape], self._kind_of[shape] = words[row], kinds[row]
            line, symbols = texts.window[row].tobytes(), words[row].tobytes()
            self._program_of[shape], self._place_of[shape] = self._plan(line, symbols, width, believed[int(kinds[row])])
        return bool(len(order))

    def _plan(self, line: bytes, symbols: bytes, width: int, trusted: frozenset[str]) -> tuple[int, int]:
        """The program of a shape and its place there; `_LONGER` or `_UNKNOWN` instead of a program."""
        walk = self._walk(line, symbols, trusted)
        if walk is None or walk.needed > width:
            return (_LONGER if width < WIDTHS[-1] else _UNKNOWN), 0
        head = line[: walk.needed]
        if any((byte > 127 and byte != END) or (byte < 32 and byte != 9) for byte in head):
            return _UNKNOWN, 0
        fields: list[_Field] = []
        spans: list[int] = []
        level, start = -1, 0
        for step in walk.steps:
            start = step.end
            for name, first, last in step.groups:
                text, base = line[first:last], base_name(name)
                if base in LEVEL_GROUPS:
                    if any(48 <= byte < 58 for byte in text):
                        return _UNKNOWN, 0
                    code = level_code(base, text.decode())
                    level = level if code is None else code
                else:
                    fields.append(_Field(base, base in INT_COLUMNS and text.isdigit() and len(text) <= _DIGITS))
                    spans += [first, last - first]
        if start > WIDTHS[-1] - Texts.INLINE:
            return _UNKNOWN, 0
        program = _Program(tuple(step.place for step in walk.steps), tuple(fields), walk.absent)
        number = self._programs.setdefault(program, len(self._shapes))
        if number == len(self._shapes):
            self._shapes.append(_Shapes([], [], []))
        own = self._shapes[number]
        own.spans.append(tuple(spans))
        own.levels.append(level)
        own.starts.append(start)
        return number, len(own.starts) - 1

    def _walk(self, line: bytes, symbols: bytes, trusted: frozenset[str]) -> _Walk | None:
        """What the patterns take off a line, None where that cannot be told from its first bytes."""
        steps: list[_Step] = []
        absent: set[str] = set()
        used: set[int] = set()
        start, needed, closed, last = 0, 1, False, -1
        while len(steps) < MAX_ROUNDS:
            for place in self._front:
                one = self._formats[place]
                if (one.trust and one.id not in trusted) or place in used or (one.open and place == last):
                    continue
                if closed and one.kind is not FormatKind.TAG:
                    continue
                reach = self._reach_of(place)
                far, may = reach.of(symbols, start)
                if far is None and place in self._held:
                    absent.add(self._held[place])
                    continue
                if far is None or (may and (not reach.even or one.kind is FormatKind.JSON or has_rest(one.regex))):
                    return None
                needed = max(needed, far)
                if may and (step := _taken(one, place, line, start, far)) is not None:
                    break
            else:
                break
            steps.append(step)
            start, last = step.end, place
            if one.kind is FormatKind.WRAPPER:
                used.add(place)
            elif not one.open:
                closed = True
            if one.final:
                break
        return _Walk(tuple(steps), tuple(sorted(absent)), needed)

    def _reach_of(self, place: int) -> Reach:
        if place not in self._reach:
            self._reach[place] = Reach(front_pattern(self._formats[place]), WIDTHS[-1])
        return self._reach[place]

    def _apply(self, state: State, lines: pl.Series, texts: Texts, found: Ints) -> Rows:
        """Write down what the headers of lines of known shapes say. The result are the rows of the others."""
        programs = np.where(found >= 0, self._program_of[found], _UNKNOWN)
        names = list(self._programs)
        for text in sorted({text for number in np.unique(programs[programs >= 0]) for text in names[number].absent}):
            holding = lines.str.contains(text, literal=True).to_numpy()
            with_it = np.array([text in program.absent for program in names] + [False])
            programs[holding & with_it[programs]] = _UNKNOWN
        order = np.argsort(programs.astype(np.int16), kind="stable")
        cuts = np.flatnonzero(np.diff(programs[order])) + 1
        left: Rows = np.zeros(0, dtype=np.intp)
        for rows in np.split(order, cuts):
            if not len(rows):
                continue
            number = int(programs[rows[0]])
            if number < 0:
                left = rows
            elif names[number].places:
                self._take(state, names[number], self._shapes[number], rows, self._place_of[found[rows]], texts)
        return left

    def _take(self, state: State, program: _Program, shapes: _Shapes, rows: Rows, shape_of: Ints, texts: Texts) -> None:
        spans = np.array(shapes.spans, dtype=np.int64)[shape_of]
        for number, one in enumerate(program.fields):
            begin, length = spans[:, 2 * number], spans[:, 2 * number + 1]
            if one.digits:
                state.put_int(one.name, rows, _number(texts, rows, begin, length))
                continue
            if one.name.startswith("t_"):
                bytes_ = texts.read(rows, begin, int(length.max()))
                stamp = stamps.parse_bytes(bytes_, length, one.name[2:])
                if stamp is None:
                    stamp = stamps.parse(texts.cut(rows, begin, length), one.name[2:])
                state.take_stamps(rows, stamp)
                if one.name == "t_c10":
                    state.frac[rows] = stamp.frac
            elif one.name in TEXT_FIELDS:
                state.texts[one.name].append((rows, texts.cut(rows, begin, length)))
            else:
                state.take_int(one.name, rows, texts.cut(rows, begin, length))
        levels = np.array(shapes.levels, dtype=np.int8)[shape_of]
        state.level[rows] = np.where(levels < 0, state.level[rows], levels)
        kinds = [self._formats[place].kind for place in program.places]
        last = next((at for at in reversed(range(len(kinds))) if kinds[at] is not FormatKind.TAG), 0)
        state.format[rows] = program.places[last]
        code = 0
        for place, kind in zip(program.places, kinds, strict=True):
            if kind is not FormatKind.HEADER:
                code = state.chains.setdefault((code, place), len(state.chains) + 1)
        state.chain[rows] = code
        starts = np.array(shapes.starts, dtype=np.int64)[shape_of]
        state.messages.append((rows, texts.cut(rows, starts, texts.lengths[rows] - starts)))


def front_pattern(one: LineFormat) -> str:
    """The pattern that a line begins with where the format stands on it."""
    return JSON_START if one.kind is FormatKind.JSON else one.regex


def is_kept(group: str) -> bool:
    """Whether a group gives something that is kept of a line."""
    name = base_name(group)
    known = name in INT_COLUMNS or name in TEXT_FIELDS or name in LEVEL_GROUPS
    return known or name.startswith("t_") or group in REST


def _taken(one: LineFormat, place: int, line: bytes, start: int, far: int) -> _Step | None:
    """What a format takes off a line from `start` on, of which it looks at the bytes before `far`."""
    text = line[start:far].split(bytes((END,)))[0]
    match = for_line(one.regex).match(text)
    if match is None:
        return None
    spans = {name: match.span(number) for name, number in match.re.groupindex.items() if is_kept(name)}
    groups = [
        (name, start + spans[name][0], start + spans[name][1])
        for name in groups_of(one.regex)
        if name in spans and match[name] is not None
    ]
    return _Step(place, tuple(groups), start + match.end())


def _number(texts: Texts, rows: Rows, begin: Ints, length: Ints) -> Ints:
    """Digits of different lengths as numbers."""
    longest = int(length.max())
    digits = texts.read(rows, begin, longest).astype(np.int64) - DIGIT
    out = digits[:, 0]
    for at in range(1, longest):
        out = np.where(length > at, out * 10 + digits[:, at], out)
    return out


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hashes whose upper bits depend on all of them."""
    mixed: NDArray[np.uint64] = (keys ^ keys >> np.uint64(29)) * _ODD[-2]
    return mixed
