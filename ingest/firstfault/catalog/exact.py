"""The exact pattern, in a linear-time engine: says whether a message holds it and takes out the captures.

One message goes to RE2, many messages go to the column engine together; both give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import re2  # type: ignore[import-untyped]

from firstfault.catalog.captures import base_name
from firstfault.catalog.columns import for_polars, loose

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

MANY = 300
"""Messages from which on the column engine is faster: it keeps only a few patterns compiled."""


class ExactPattern:
    """One compiled pattern. Raises ValueError with the engine's words where it does not compile."""

    __slots__ = ("_groups", "_loose", "_regex", "_regexp", "_set")

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._loose: Any = None
        self._set: Any = None
        try:
            self._regexp = _compiled(regex)
        except re2.error as error:
            raise ValueError(_words(error)) from error
        groups = sorted((index, name) for name, index in self._regexp.groupindex.items())
        self._groups = tuple((index, name, base_name(name) or name) for index, name in groups)

    def search(self, message: str) -> dict[str, str] | None:
        """The captures by name, of alternatives the one that took part; None where the message does not hold it."""
        found = self._regexp.search(message.encode("utf-8", "replace"))
        if found is None:
            return None
        captures: dict[str, str] = {}
        for index, _, name in self._groups:
            value = found.group(index)
            if value is not None and name not in captures:
                captures[name] = value.decode("utf-8", "replace")
        return captures

    def holds(self, messages: pl.Series) -> NDArray[np.bool_]:
        """Which of the messages hold the pattern."""
        import polars as pl

        if len(messages) >= MANY:
            try:
                found: NDArray[np.bool_] = messages.str.contains(for_polars(self._regex)).to_numpy()
                return found
            except pl.exceptions.ComputeError:  # too large for that engine
                pass
        return self.held(messages.cast(pl.Binary).to_list())

    def held(self, messages: list[bytes]) -> NDArray[np.bool_]:
        """The same for a few encoded messages."""
        import numpy as np

        holds = self._holder()
        return np.array([holds(message) is not None for message in messages], dtype=np.bool_)

    def _holder(self) -> Callable[[bytes], list[int] | None]:
        """What says whether a message holds the pattern without a look for its captures, twice as fast."""
        if self._set is None:
            self._set = re2.Set.SearchSet(quiet_options())
            self._set.Add(self._regex)
            self._set.Compile()
        match: Callable[[bytes], list[int] | None] = self._set.Match
        return match

    def may_hold(self, texts: pl.Series) -> NDArray[np.bool_]:
        """Which of the texts may hold a message that holds the pattern, as a piece of them."""
        import numpy as np
        import polars as pl

        if len(texts) < MANY:
            try:
                self._loose = self._loose or _compiled(loose(self._regex))
            except re2.error:  # what is left without anchors is too large
                return np.ones(len(texts), dtype=np.bool_)
            return np.array([self._loose.search(text.encode()) is not None for text in texts], dtype=np.bool_)
        try:
            found: NDArray[np.bool_] = texts.str.contains(loose(self._regex)).to_numpy()
        except pl.exceptions.ComputeError:  # too large for that engine
            return np.ones(len(texts), dtype=np.bool_)
        return found

    def captures(self, messages: pl.Series) -> list[dict[str, str]]:
        """The captures of messages that hold the pattern."""
        import polars as pl

        if not self._groups:
            return [{} for _ in range(len(messages))]
        if len(messages) >= MANY:
            try:
                table = messages.str.extract_groups(for_polars(self._regex)).struct.unnest()
            except pl.exceptions.ComputeError:
                pass
            else:
                values = zip(*(table[name].to_list() for _, name, _ in self._groups), strict=True)
                return [self._named(row) for row in values]
        return [self.search(message) or {} for message in messages]

    def _named(self, values: tuple[Any, ...]) -> dict[str, str]:
        captures: dict[str, str] = {}
        for value, (_, _, name) in zip(values, self._groups, strict=True):
            if value is not None and name not in captures:
                captures[name] = value
        return captures


def _compiled(regex: str) -> Any:
    return re2.compile(regex, quiet_options())


def quiet_options() -> Any:
    """Options of the engine with which it writes no errors of its own."""
    options = re2.Options()
    options.log_errors = False
    return options


def _words(error: Exception) -> str:
    first = error.args[0] if error.args else error
    return first.decode("utf-8", "replace") if isinstance(first, bytes) else str(first)
