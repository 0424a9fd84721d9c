"""What ranks called, compared: an operation with its sizes, of which each witness tells another part.

The watchdog prints the operation and the number of elements, a flight recorder shapes and types as well, some lines the
operation alone (ProcessGroupNCCL.cpp, FlightRecorder.hpp). Two calls differ only in what both witnesses tell.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from firstfault.correlate.model import Signal

_FIELDS = ("numel_in", "shape", "dtype")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """One call of a rank as a witness tells it; `parts` are number of elements, shape and type, empty where untold."""

    op: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join([self.op, *filter(None, self.parts)])

    def agrees(self, other: Call) -> bool:
        """Whether both can be the same call."""
        mine, its = map(_words, self.parts), map(_words, other.parts)
        return self.op == other.op and all(a == b for a, b in zip(mine, its, strict=True) if a and b)


def _words(part: str) -> list[str]:
    """Numbers or names of a part, whatever brackets and quotes a witness puts around them."""
    return _WORD.findall(part)


def call_of(signal: Signal) -> Call | None:
    """What a line says that its rank called, None where it does not say it."""
    op = signal.captures.get("op", "")
    return Call(op, tuple(signal.captures.get(name) or "" for name in _FIELDS)) if op else None


def usual_call(calls: dict[int, Call]) -> Call:
    """The call that most ranks can have made; the one told most fully of those that as many agree with."""
    told = Counter(calls.values())
    support = {one: sum(count for other, count in told.items() if one.agrees(other)) for one in told}
    return min(told, key=lambda one: (-support[one], -sum(map(bool, one.parts)), one))


def odd_ranks(calls: dict[int, Call]) -> list[int]:
    """Ranks whose call cannot be that of the others, in order; none where the others are no majority."""
    if not calls:
        return []
    usual = usual_call(calls)
    odd = sorted(rank for rank, call in calls.items() if not call.agrees(usual))
    return odd if len(odd) < len(calls) - len(odd) else []
