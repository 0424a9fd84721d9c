"""Regular expressions for lines of unknown files: RE2 behind a typed face, linear in the length of a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

import re2  # type: ignore[import-untyped]


class Found(Protocol):
    """A match."""

    def __getitem__(self, group: int | str, /) -> str | None: ...
    def groupdict(self) -> dict[str, str | None]: ...
    def start(self, group: int | str = 0, /) -> int: ...
    def end(self, group: int | str = 0, /) -> int: ...


class Pattern(Protocol):
    """A compiled expression."""

    def match(self, text: str, /) -> Found | None: ...
    def fullmatch(self, text: str, /) -> Found | None: ...
    def search(self, text: str, /) -> Found | None: ...
    def finditer(self, text: str, /) -> Iterator[Found]: ...


def compiled(expression: str) -> Pattern:
    """Compile an expression in RE2 syntax."""
    options = re2.Options()
    options.log_errors = False
    return cast(Pattern, re2.compile(expression, options))


def texts(found: Found, *names: str) -> dict[str, str]:
    """The named groups that took part in a match, all of them where no names are given."""
    got = found.groupdict()
    return {name: value for name in (names or got) if (value := got.get(name)) is not None}
