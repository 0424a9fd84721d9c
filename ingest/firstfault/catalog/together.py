"""Patterns that tell digits apart and are found by the same text, asked of a message all at once.

The entries of numbered errors are such: a line of one of them is a candidate for all, and what they say of it is worth
nothing for the next line with other numbers. One pass over the message answers for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import re2  # type: ignore[import-untyped]

from firstfault.catalog.exact import quiet_options
from firstfault.catalog.triggers import Trigger

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.integer[Any]]

_SMALLEST = 3
_MOST = 200
_MEMORY = 32 * 1024 * 1024
_NUMBER_BITS = 24


def groups(triggers: Sequence[Trigger]) -> list[int]:
    """The group of each pattern, -1 of those that are asked alone."""
    found: dict[bytes, list[int]] = {}
    for number, trigger in enumerate(triggers):
        if not trigger.even:
            found.setdefault(trigger.pieces[0].text, []).append(number)
    group, made = [-1] * len(triggers), 0
    for numbers in found.values():
        for start in range(0, len(numbers), _MOST):
            some = numbers[start : start + _MOST]
            if len(some) >= _SMALLEST:
                for number in some:
                    group[number] = made
                made += 1
    return group


class Together:
    """The groups, each compiled when it is first asked for. Serves one thread at a time."""

    def __init__(self, regexes: Sequence[str], group: Sequence[int]) -> None:
        import numpy as np

        self._regexes = regexes
        self.group = np.array(group, dtype=np.int64)
        self._sets: dict[int, tuple[Any, list[int]]] = {}

    def hold(self, patterns: Numbers, messages: list[bytes], which: Numbers) -> NDArray[np.bool_]:
        """Of each question whether the message, that at `which` of these, holds the pattern, which is of a group."""
        import numpy as np

        asked, places = np.unique(self.group[patterns] << 32 | which, return_inverse=True)
        found: list[int] = []
        for place, one in enumerate(asked.tolist()):
            match, numbers = self._set(one >> 32)
            for at in match(messages[one & 0xFFFFFFFF]) or ():
                found.append(place << _NUMBER_BITS | numbers[at])
        return np.isin(places << _NUMBER_BITS | patterns, np.array(found, dtype=np.int64))

    def _set(self, group: int) -> tuple[Any, list[int]]:
        """What says which patterns of a group a message holds, by their places, and their numbers."""
        if group not in self._sets:
            import numpy as np

            numbers = np.flatnonzero(self.group == group).tolist()
            options = quiet_options()
            options.max_mem = _MEMORY
            made = re2.Set.SearchSet(options)
            try:
                for number in numbers:
                    made.Add(self._regexes[number])
                made.Compile()
            except re2.error:
                made = _OneByOne([self._regexes[number] for number in numbers])
            self._sets[group] = made.Match, numbers
        return self._sets[group]


class _OneByOne:
    """The same for patterns that are too large together."""

    def __init__(self, regexes: list[str]) -> None:
        self._patterns = [re2.compile(regex, quiet_options()) for regex in regexes]

    def Match(self, message: bytes) -> list[int]:
        """The places of the patterns that the message holds."""
        return [at for at, pattern in enumerate(self._patterns) if pattern.search(message) is not None]
