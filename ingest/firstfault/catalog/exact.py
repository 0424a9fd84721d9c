"""The exact pattern, in a linear-time engine: says whether a message holds it and takes out the captures."""

from __future__ import annotations

import re2  # type: ignore[import-untyped]

from firstfault.catalog.captures import base_name


class ExactPattern:
    """One compiled pattern. Raises ValueError with the engine's words where it does not compile."""

    __slots__ = ("_groups", "_regexp")

    def __init__(self, regex: str) -> None:
        options = re2.Options()
        options.log_errors = False
        try:
            self._regexp = re2.compile(regex, options)
        except re2.error as error:
            raise ValueError(_words(error)) from error
        groups = sorted((index, name) for name, index in self._regexp.groupindex.items())
        self._groups = tuple((index, base_name(name) or name) for index, name in groups)

    def search(self, message: str) -> dict[str, str] | None:
        """The captures by name, of alternatives the one that took part; None where the message does not hold it."""
        found = self._regexp.search(message.encode("utf-8", "replace"))
        if found is None:
            return None
        captures: dict[str, str] = {}
        for index, name in self._groups:
            value = found.group(index)
            if value is not None and name not in captures:
                captures[name] = value.decode("utf-8", "replace")
        return captures


def _words(error: Exception) -> str:
    first = error.args[0] if error.args else error
    return first.decode("utf-8", "replace") if isinstance(first, bytes) else str(first)
