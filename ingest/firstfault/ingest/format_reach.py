"""Owns how far a pattern looks into a line: behind how many bytes nothing that follows can change what it says.

A pattern is walked over a line in which all digits are one. Where no way through the pattern is left, what it says of
one such line it says of all, whatever stands behind: most headers are over there, and most lines are no such header.
"""

from __future__ import annotations

from firstfault.catalog.regex import Atom, Boundary, Choice, Node, Repeat, Sequence, parse

DIGIT = 48
"""Stands for every digit."""

END = 255
"""Stands behind the end of a line, where UTF-8 has no such byte."""

_DIGITS = sum(1 << byte for byte in range(48, 58))
_MATCH = 0


class Reach:
    """One pattern, walked over lines of at most `width` bytes. `even` says that it takes all digits alike."""

    def __init__(self, pattern: str, width: int) -> None:
        self._width = width
        self._masks = [0]  # by place in the pattern; 0 for places without a byte, such as the end of the pattern
        self._next: list[list[int]] = [[]]
        first = self._build(parse(pattern)[0], _MATCH)
        self.even = all(mask & _DIGITS in (0, _DIGITS) for mask in self._masks)
        self._numbers: dict[frozenset[int], int] = {}
        self._places: list[frozenset[int]] = []
        self._steps: list[dict[int, int]] = []
        self._first = self._state([first])

    def of(self, symbols: bytes, start: int) -> tuple[int | None, bool]:
        """Bytes of a line that have to be known for what the pattern says from `start` on, and whether it may match.

        None where more of the line than there is may matter.
        """
        state, may = self._first, False
        for at in range(start, len(symbols)):
            places = self._places[state]
            may = may or _MATCH in places
            if len(places) <= (_MATCH in places):
                return at + 1, may  # the byte here may be what an assertion looks at
            symbol = symbols[at]
            if symbol == END:
                return at + 1, may
            after = self._steps[state].get(symbol)
            state = self._step(state, symbol) if after is None else after
        return None, True

    def _step(self, state: int, symbol: int) -> int:
        wanted = _DIGITS if symbol == DIGIT else 1 << symbol
        after = [to for place in self._places[state] if self._masks[place] & wanted for to in self._next[place]]
        found = self._steps[state][symbol] = self._state(after)
        return found

    def _state(self, waiting: list[int]) -> int:
        """The number of the state of these places and of those that are reached from them without a byte."""
        seen: set[int] = set()
        while waiting:
            place = waiting.pop()
            if place not in seen:
                seen.add(place)
                if not self._masks[place]:
                    waiting += self._next[place]
        kept = frozenset(place for place in seen if self._masks[place] or place == _MATCH)
        number = self._numbers.setdefault(kept, len(self._places))
        if number == len(self._places):
            self._places.append(kept)
            self._steps.append({})
        return number

    def _place(self, mask: int, after: list[int]) -> int:
        self._masks.append(mask)
        self._next.append(after)
        return len(self._masks) - 1

    def _build(self, node: Node, after: int) -> int:
        """The place at which a part of the pattern begins; `after` is the place behind it."""
        match node:
            case Atom(mask):
                return self._place(mask, [after])
            case Boundary():
                return after
            case Sequence(items):
                for item in reversed(items):
                    after = self._build(item, after)
                return after
            case Choice(options):
                return self._place(0, [self._build(option, after) for option in options])
            case Repeat(inner, low, high):
                begin = after
                if high is None or high > self._width:
                    begin = self._place(0, [after])
                    self._next[begin].append(self._build(inner, begin))
                else:
                    for _ in range(high - low):
                        begin = self._place(0, [self._build(inner, begin), after])
                for _ in range(min(low, self._width)):
                    begin = self._build(inner, begin)
                return begin
