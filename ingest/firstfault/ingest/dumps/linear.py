"""Regular expressions for lines of unknown files: RE2 behind a typed face, linear in the length of a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Any, Protocol, cast

import numpy as np
import polars as pl
import re2  # type: ignore[import-untyped]
from numpy.typing import NDArray

from firstfault.catalog.regex import PatternError, parse
from firstfault.catalog.texts import Text, required
from firstfault.ingest.format_regex import for_polars, unnamed
from firstfault.ingest.marks import Marks


class Found(Protocol):
    """A match."""

    def __getitem__(self, group: int | str, /) -> str | None: ...
    def groupdict(self) -> dict[str, str | None]: ...
    def start(self, group: int | str = 0, /) -> int: ...
    def end(self, group: int | str = 0, /) -> int: ...


class Pattern(Protocol):
    """A compiled expression."""

    @property
    def pattern(self) -> str: ...
    def match(self, text: str, /) -> Found | None: ...
    def fullmatch(self, text: str, /) -> Found | None: ...
    def search(self, text: str, /) -> Found | None: ...
    def finditer(self, text: str, /) -> Iterator[Found]: ...


def compiled(expression: str) -> Pattern:
    """Compile an expression in RE2 syntax."""
    options = re2.Options()
    options.log_errors = False
    return cast(Pattern, re2.compile(expression, options))


def matching(lines: Sequence[str], *shapes: Pattern) -> NDArray[np.bool_]:
    """Which lines match one of the shapes from their beginning, all lines at once."""
    if not _possible(lines if isinstance(lines, Lines) else Lines(lines), shapes):
        return np.zeros(len(lines), dtype=np.bool_)
    found: NDArray[np.bool_] = pl.Series(lines, dtype=pl.String).str.contains(_either(shapes)).to_numpy()
    return found


@cache
def _either(shapes: tuple[Pattern, ...]) -> str:
    return "|".join(f"^(?:{for_polars(unnamed(shape.pattern))})" for shape in shapes)


class Lines(list[str]):
    """Lines that are asked for many shapes, with all of them as one text."""

    @cached_property
    def text(self) -> bytes:
        return "\n".join(self).encode("utf-8", "replace")

    @cached_property
    def small(self) -> bytes:
        return self.text.lower()

    @cached_property
    def _looked(self) -> tuple[Marks, set[tuple[bytes, bool]]]:
        """What was looked for in one pass, and what of it was found."""
        marks = _WANTED.marks()
        return marks, marks.found(self.text)

    def hold(self, text: bytes, folded: bool) -> bool:
        """Whether they hold a text."""
        marks, found = self._looked
        if (text, folded) in marks:
            return (text, folded) in found
        return text in (self.small if folded else self.text)


class Wanted:
    """The texts of which every match of a shape holds one, of all shapes that were asked for so far."""

    def __init__(self) -> None:
        self._of: dict[Any, tuple[Text, ...] | None] = {}
        self._marks: Marks | None = Marks(())

    def of(self, shape: Any) -> tuple[Text, ...] | None:
        """Those of a shape, None where that cannot be told."""
        if shape not in self._of:
            try:
                self._of[shape] = required(parse(unnamed(shape.pattern))[0])
            except PatternError:
                self._of[shape] = None
            self._marks = None
        return self._of[shape]

    def marks(self) -> Marks:
        """All of them, to be looked for in one pass."""
        if self._marks is None:
            every = {(one.text, one.folded) for texts in self._of.values() for one in texts or () if one.text}
            self._marks = Marks(*(sorted(text for text, folded in every if folded == kind) for kind in (False, True)))
        return self._marks


_WANTED = Wanted()


def _possible(lines: Lines, shapes: tuple[Pattern, ...]) -> bool:
    """Whether a text holds what every match of one of the shapes holds: most files are known by it in a moment."""
    for shape in shapes:
        marks = _WANTED.of(shape)
        if marks is None or any(lines.hold(one.text, one.folded) for one in marks):
            return True
    return False


def texts(found: Found, *names: str) -> dict[str, str]:
    """The named groups that took part in a match, all of them where no names are given."""
    got = found.groupdict()
    return {name: value for name in (names or got) if (value := got.get(name)) is not None}
