"""Whether messages hold patterns, asked once of all messages that a pattern cannot tell apart.

Most patterns take all digits alike, so that messages which differ in nothing else have one answer; of the others only
equal messages have. Answers are kept from chunk to chunk in a table of fixed size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from firstfault.catalog.alike import SEED, hashed, masked
from firstfault.catalog.exact import MANY, ExactPattern
from firstfault.catalog.known import Known
from firstfault.catalog.together import Together

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.integer[Any]]
    Marks = NDArray[np.bool_]
    Hashes = NDArray[np.uint64]

FEW = 100
"""Questions below which it is quicker to ask the patterns."""

_ODD = np.uint64(0x9E3779B97F4A7C15)


class Answers:
    """What is known so far of patterns that are known by number. Serves one thread at a time.

    `even` says which of them take all digits alike.
    """

    def __init__(self, exact: Callable[[int], ExactPattern], even: Sequence[bool], together: Together) -> None:
        self._exact = exact
        self._even = np.array(even, dtype=np.bool_)
        self._together = together
        self._known = Known()

    def hold(self, patterns: Numbers, messages: pl.Series, which: Numbers) -> Marks:
        """Of each question whether the message, that at `which` of these, holds the pattern of that number."""
        if len(patterns) < FEW:
            return self._ask(patterns, messages, which)
        keys = self._keyed(patterns, messages, which)
        said, there = self._known.get(keys)
        open_ = np.flatnonzero(~there)
        if len(open_):
            found, first, each = np.unique(keys[open_], return_index=True, return_inverse=True)
            asked = open_[first]
            answers = self._ask(patterns[asked], messages, which[asked]).astype(np.int64)
            said[open_] = answers[each]
            self._known.put(found, answers)
        return said.astype(np.bool_)

    def _keyed(self, patterns: Numbers, messages: pl.Series, which: Numbers) -> Hashes:
        """Equal keys have equal answers."""
        even = self._even[patterns]
        keys = np.empty(len(patterns), dtype=np.uint64)
        keys[even] = _alike(messages)[which[even]]
        keys[~even] = messages.hash(SEED + 1).to_numpy()[which[~even]]
        return np.maximum(keys + (patterns.astype(np.uint64) + np.uint64(1)) * _ODD, np.uint64(1))

    def _ask(self, patterns: Numbers, messages: pl.Series, which: Numbers) -> Marks:
        """Ask the patterns: those of a group together of each message, each other one of all its messages."""
        answers = np.zeros(len(patterns), dtype=np.bool_)
        if not len(patterns):
            return answers
        alone = self._together.group[patterns] < 0
        order = np.flatnonzero(alone)
        order = order[np.argsort(patterns[order], kind="stable")]
        ordered, asked = patterns[order], which[order]
        some, places = np.unique(which, return_inverse=True)
        texts = messages.gather(some).cast(pl.Binary).to_list()
        cuts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(order)]
        own = places[order].tolist()
        for start, stop in itertools.pairwise(cuts if len(order) else []):
            exact = self._exact(int(ordered[start]))
            if stop - start < MANY:
                held = exact.held([texts[place] for place in own[start:stop]])
            else:
                held = exact.holds(messages.gather(asked[start:stop]))
            answers[order[start:stop]] = held
        if not alone.all():
            answers[~alone] = self._together.hold(patterns[~alone], texts, places[~alone])
        return answers


def _alike(messages: pl.Series) -> Hashes:
    """A hash of each message with all digits taken for one."""
    array = messages.to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, text = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(text, dtype=np.uint8)[: int(bounds[-1])] if text is not None else np.empty(0, dtype=np.uint8)
    return hashed(masked(data, np.empty(len(data), dtype=np.uint8)), bounds)
