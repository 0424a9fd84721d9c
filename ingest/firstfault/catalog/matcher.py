"""Finds the patterns of the catalog in logs: one pass over undecoded bytes, then the exact pattern on one message.

`scan` names candidates (where a trigger ends, which pattern), `confirm` decides on the peeled message of that line and
takes out the captures, `best` chooses among the confirmed patterns of one line. A matcher serves one thread at a time.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from firstfault.catalog import cache, context, escapes, ordinary, regex, texts, textsearch, together, triggers
from firstfault.catalog.alike import LineSearch
from firstfault.catalog.answers import Answers
from firstfault.catalog.exact import ExactPattern
from firstfault.catalog.loader import Catalog
from firstfault.catalog.model import FALLBACK_ENTRIES, Event, Role
from firstfault.catalog.textsearch import TextSearch
from firstfault.catalog.together import Together

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CompiledPattern:
    """One pattern as the matcher numbers it, with what its entry or fact says. Facts have no class and no role."""

    number: int
    kind: str
    id: str
    pattern_id: str
    regex: str
    event: Event
    cls: str | None
    role: Role | None
    weak: bool
    names_peer: bool
    specificity: int


class _Exact(dict[int, ExactPattern]):
    """Exact patterns by number, compiled when they are first asked for."""

    def __init__(self, patterns: tuple[CompiledPattern, ...]) -> None:
        self._patterns = patterns

    def __missing__(self, number: int) -> ExactPattern:
        return self.setdefault(number, ExactPattern(self._patterns[number].regex))


class Matcher:
    """All patterns of a catalog. Make one with `Matcher.load`."""

    def __init__(self, bare: list[_Bare], derived: _Derived, search: TextSearch) -> None:
        self.patterns = patterns = tuple(
            CompiledPattern(number, *pattern, specificity)
            for number, (pattern, specificity) in enumerate(zip(bare, derived["specificity"], strict=True))
        )
        self._search = search
        self._lines = LineSearch(search)
        # a bound method would tie a knot that only the collector of cycles can undo, and megabytes hang on it
        self._exact = _Exact(patterns)
        groups = Together([pattern.regex for pattern in patterns], derived["group"])
        self._answers = Answers(self._exact.__getitem__, derived["even"], groups)
        order = sorted(range(len(patterns)), key=lambda number: _precedence(patterns[number]))
        self._rank = [0] * len(patterns)
        for place, number in enumerate(order):
            self._rank[number] = place

    @classmethod
    def load(cls, catalog: Catalog, cache_dir: Path | None = None) -> Matcher:
        """Derives and compiles the triggers of a catalog's patterns, or takes them from the cache."""
        bare = _patterns(catalog)
        root = cache.cache_root(cache_dir)
        key = _key(bare)
        kept = cache.read(root, "matcher", key)
        if kept is not None:
            (length,) = struct.unpack_from("<I", kept)
            search = TextSearch.load(kept[4 + length :])
            if search is not None:
                return cls(bare, json.loads(kept[4 : 4 + length]), search)
        found = [triggers.derive(pattern[3]) for pattern in bare]
        search = TextSearch.of(found)
        derived = _Derived(
            specificity=[trigger.specificity for trigger in found],
            even=[trigger.even for trigger in found],
            group=together.groups(found),
        )
        meta = json.dumps(derived).encode()
        cache.write(root, "matcher", key, struct.pack("<I", len(meta)) + meta + search.dump())
        return cls(bare, derived, search)

    @property
    def pieces(self) -> tuple[triggers.Piece, ...]:
        """The texts that are looked for, with what may stand beside them."""
        return self._search.pieces

    def scan(
        self, chunk: bytes | bytearray | memoryview, line_ends: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where triggers end in the chunk (the byte before lies in the line) and the pattern of each, in order.

        Chunks end with a whole line; `line_ends` are the places of its line ends, where the caller knows them. One line
        may hold the same pattern several times.
        """
        return self._lines.scan(chunk, line_ends)

    def confirm(self, pattern: int, message: str) -> dict[str, str] | None:
        """The captures where the exact pattern is found in the message, None where it is not."""
        return self.exact(pattern).search(message)

    def hold(self, patterns: NDArray[Any], messages: pl.Series, which: NDArray[Any]) -> NDArray[np.bool_]:
        """For many candidates at once: whether the message, that at `which` of these, holds the pattern's text."""
        return self._answers.hold(patterns, messages, which)

    def exact(self, pattern: int) -> ExactPattern:
        """The exact pattern, which also answers for many messages at once."""
        return self._exact[pattern]

    def matches(self, message: str) -> list[tuple[int, dict[str, str]]]:
        """All patterns found in one message, the best first, with their captures."""
        _, numbers = self.scan(message.encode("utf-8", "replace"))
        ranked = sorted(set(numbers.tolist()), key=self._rank.__getitem__)
        found = [(number, self.confirm(number, message)) for number in ranked]
        return [(number, captures) for number, captures in found if captures is not None]

    def precedence(self, pattern: int) -> int:
        """The place of a pattern among all: of those on a line, the one with the lowest speaks for it."""
        return self._rank[pattern]

    def best(self, patterns: Iterable[int]) -> int:
        """The pattern that speaks for a line: entries before facts, fallbacks last, strong before weak, then narrow."""
        return min(patterns, key=self._rank.__getitem__)


_Bare = tuple[str, str, str, str, Event, str | None, Role | None, bool, bool]


class _Derived(TypedDict):
    """What is kept of the triggers of the patterns, by number."""

    specificity: list[int]
    even: list[bool]
    group: list[int]


def _patterns(catalog: Catalog) -> list[_Bare]:
    """Every pattern of a catalog in the order that numbers it."""
    bare: list[_Bare] = []
    for entry in catalog.entries.values():
        for one in entry.patterns:
            bare.append(
                ("entry", entry.id, one.id, one.regex, entry.event, entry.cls, entry.role, one.weak, one.names_peer)
            )
    for fact in catalog.facts.values():
        bare.append(("fact", fact.id, "", fact.regex, fact.event, None, None, False, False))
    return bare


def _precedence(pattern: CompiledPattern) -> tuple[bool, bool, bool, int, str, int]:
    return (
        pattern.kind != "entry",
        pattern.id in FALLBACK_ENTRIES,
        pattern.weak,
        -pattern.specificity,
        pattern.id,
        pattern.number,
    )


def _code() -> bytes:
    """What stands for the code that makes triggers, as it is when it is loaded."""
    digest = hashlib.sha256(version("hyperscan").encode())
    for module in (context, escapes, ordinary, regex, texts, together, triggers, textsearch):
        try:
            digest.update(Path(str(module.__file__)).read_bytes())
        except OSError:  # running from an archive
            digest.update(version("firstfault").encode())
    digest.update(ordinary.LINES.read_bytes())
    return digest.digest()


_CODE = _code()


def _key(bare: list[_Bare]) -> str:
    digest = hashlib.sha256(_CODE)
    for kind, name, pattern_id, expression, *_ in bare:
        digest.update("\0".join((kind, name, pattern_id, expression, "")).encode())
    return digest.hexdigest()[:32]
