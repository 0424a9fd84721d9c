"""A table of fixed size from hashes to numbers, asked and filled in bulk; what does not fit is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Keys = NDArray[np.uint64]
    Ints = NDArray[np.int64]

_SLOTS = 1 << 17
_SHIFT = np.uint64(40)
_MASK = np.uint64(_SLOTS - 1)


class Known:
    """Each key has one place in two halves, by other bits. No key is 0."""

    def __init__(self) -> None:
        self._keys = np.zeros((2, _SLOTS), dtype=np.uint64)
        self._values = np.zeros((2, _SLOTS), dtype=np.int64)

    def get(self, keys: Keys) -> tuple[Ints, NDArray[np.bool_]]:
        """The value of each key, and which keys are there."""
        slots = _first(keys)
        values: Ints = self._values[0, slots]
        there: NDArray[np.bool_] = self._keys[0, slots] == keys
        missing = np.flatnonzero(~there)
        slots = _second(keys[missing])
        found = self._keys[1, slots] == keys[missing]
        values[missing] = self._values[1, slots]
        there[missing] = found
        return values, there

    def put(self, keys: Keys, values: Ints) -> None:
        """Keep these; what had their places in the first half moves to the second."""
        slots = _first(keys)
        old = self._keys[0, slots]
        moved = np.flatnonzero(old)
        places = _second(old[moved])
        self._keys[1, places], self._values[1, places] = old[moved], self._values[0, slots[moved]]
        self._keys[0, slots], self._values[0, slots] = keys, values

    def clear(self) -> None:
        """Forget all."""
        self._keys[:] = 0


def _first(keys: Keys) -> Ints:
    return (keys & _MASK).view(np.int64)


def _second(keys: Keys) -> Ints:
    return (keys >> _SHIFT & _MASK).view(np.int64)
