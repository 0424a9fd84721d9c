"""Finds the patterns of the catalog in logs: one pass over undecoded bytes, then the exact pattern on one message.

`scan` names candidates (where a trigger ends, which pattern), `confirm` decides on the peeled message of that line and
takes out the captures, `best` chooses among the confirmed patterns of one line. A matcher serves one thread at a time.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hyperscan
import numpy as np

from firstfault.catalog import cache, regex, triggers
from firstfault.catalog.exact import ExactPattern
from firstfault.catalog.loader import Catalog
from firstfault.catalog.model import FALLBACK_ENTRIES, Event, Role
from firstfault.catalog.problem import CatalogError, Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBER_BITS = 20  # a hit is packed into one integer: offset above, number of the pattern below
_HITS_PER_CHUNK = 4096
_BYTES_PER_HIT = 16  # denser hits than this are a storm
_FLAGS = hyperscan.HS_FLAG_MULTILINE


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


class Matcher:
    """All patterns of a catalog. Make one with `Matcher.load`."""

    def __init__(self, patterns: tuple[CompiledPattern, ...], database: Any, compile_single: Callable[[], Any]) -> None:
        self.patterns = patterns
        self._database = database
        self._compile_single = compile_single
        self._single: Any = None
        self._exact: list[ExactPattern | None] = [None] * len(patterns)
        order = sorted(range(len(patterns)), key=lambda number: _precedence(patterns[number]))
        self._rank = [0] * len(patterns)
        for place, number in enumerate(order):
            self._rank[number] = place

    @classmethod
    def load(cls, catalog: Catalog, cache_dir: Path | None = None) -> Matcher:
        """Compiles the patterns of a catalog, or takes them from the cache."""
        bare = _patterns(catalog)
        root = cache.cache_root(cache_dir)
        key = _key(bare)

        def single() -> Any:
            return _compile(bare, hyperscan.HS_FLAG_SINGLEMATCH)

        kept = cache.read(root, "matcher", key)
        if kept is not None:
            (length,) = struct.unpack_from("<I", kept)
            specificities = json.loads(kept[4 : 4 + length])
            database = _loaded(kept[4 + length :])
            if database is not None:
                return cls(_numbered(bare, specificities), database, single)
        database = _compile(bare)
        specificities = [triggers.derive(pattern[3]).specificity for pattern in bare]
        meta = json.dumps(specificities).encode()
        cache.write(root, "matcher", key, struct.pack("<I", len(meta)) + meta + hyperscan.dumpb(database))
        return cls(_numbered(bare, specificities), database, single)

    def scan(self, chunk: bytes | bytearray | memoryview) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where triggers end in the chunk (the byte before lies in the line) and the pattern of each, in order.

        One line may hold the same pattern several times. In a storm of hits the chunk is searched again line by
        line for at most one hit of a pattern and line, so the result is bounded and still names every line.
        """
        hits: list[int] = []
        limit = _HITS_PER_CHUNK + len(chunk) // _BYTES_PER_HIT
        append = hits.append

        def hit(number: int, start: int, end: int, flags: int, context: object) -> bool | None:
            append(end << _NUMBER_BITS | number)
            return True if len(hits) > limit else None

        try:
            self._database.scan(chunk, match_event_handler=hit)
        except hyperscan.ScanTerminated:
            hits = self._scan_lines(chunk)
        packed = np.unique(np.array(hits, dtype=np.int64))
        return packed >> _NUMBER_BITS, (packed & ((1 << _NUMBER_BITS) - 1)).astype(np.int32)

    def _scan_lines(self, chunk: bytes | bytearray | memoryview) -> list[int]:
        if self._single is None:
            self._single = self._compile_single()
        data = memoryview(chunk)
        hits: list[int] = []

        def hit(number: int, start: int, end: int, flags: int, base: int) -> None:
            hits.append(base + end << _NUMBER_BITS | number)

        at = 0
        for stop in [*np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10).tolist(), len(data)]:
            if stop > at:
                self._single.scan(data[at:stop], match_event_handler=hit, context=at)
            at = stop + 1
        return hits

    def confirm(self, pattern: int, message: str) -> dict[str, str] | None:
        """The captures where the exact pattern is found in the message, None where it is not."""
        exact = self._exact[pattern]
        if exact is None:
            exact = self._exact[pattern] = ExactPattern(self.patterns[pattern].regex)
        return exact.search(message)

    def matches(self, message: str) -> list[tuple[int, dict[str, str]]]:
        """All patterns found in one message, the best first, with their captures."""
        _, numbers = self.scan(message.encode("utf-8", "replace"))
        ranked = sorted(set(numbers.tolist()), key=self._rank.__getitem__)
        found = [(number, self.confirm(number, message)) for number in ranked]
        return [(number, captures) for number, captures in found if captures is not None]

    def best(self, patterns: Iterable[int]) -> int:
        """The pattern that speaks for a line: entries before facts, strong before weak, narrow before wide."""
        return min(patterns, key=self._rank.__getitem__)


_Bare = tuple[str, str, str, str, Event, str | None, Role | None, bool, bool]


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


def _numbered(bare: list[_Bare], specificities: list[int]) -> tuple[CompiledPattern, ...]:
    return tuple(
        CompiledPattern(number, *pattern, specificity)
        for number, (pattern, specificity) in enumerate(zip(bare, specificities, strict=True))
    )


def _precedence(pattern: CompiledPattern) -> tuple[bool, bool, bool, int, str, int]:
    return (
        pattern.kind != "entry",
        pattern.weak,
        pattern.id in FALLBACK_ENTRIES,
        -pattern.specificity,
        pattern.id,
        pattern.number,
    )


def _key(bare: list[_Bare]) -> str:
    digest = hashlib.sha256(version("hyperscan").encode())
    for module in (regex, triggers):
        try:
            digest.update(Path(str(module.__file__)).read_bytes())
        except OSError:  # running from an archive
            digest.update(b"\0")
    for kind, name, pattern_id, expression, *_ in bare:
        digest.update("\0".join((kind, name, pattern_id, expression, "")).encode())
    return digest.hexdigest()[:32]


def _compile(bare: list[_Bare], flag: int = 0) -> Any:
    expressions = [triggers.derive(pattern[3]).expression for pattern in bare]
    try:
        return _database(expressions, flag)
    except hyperscan.CompilerError as error:
        raise CatalogError(_refused(bare, expressions) or [_too_much(error)]) from error


def _database(expressions: list[bytes], flag: int = 0) -> Any:
    count = len(expressions)
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=expressions, ids=list(range(count)), elements=count, flags=[_FLAGS | flag] * count)
    return database


def _loaded(serialized: bytes) -> Any:
    """The database, None where it was compiled for another processor or version."""
    try:
        database = hyperscan.loadb(serialized, hyperscan.HS_MODE_BLOCK)
        database.scratch = hyperscan.Scratch(database)
    except hyperscan.HyperscanError:
        return None
    return database


def _refused(bare: list[_Bare], expressions: list[bytes]) -> list[Problem]:
    problems = []
    for (_, name, pattern_id, *_), expression in zip(bare, expressions, strict=True):
        try:
            _database([expression])
        except hyperscan.CompilerError as error:
            problems.append(
                Problem(
                    name,
                    0,
                    f"Hyperscan refuses the pattern {pattern_id!r}: {error}",
                    "all patterns are searched together in one pass",
                    "write it shorter, with smaller bounded repeats",
                )
            )
    return problems


def _too_much(error: Exception) -> Problem:
    what = f"Hyperscan cannot compile all patterns together: {error}"
    return Problem("catalog", 0, what, "one pass needs them all", "load fewer folders of entries")
