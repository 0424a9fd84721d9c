"""Owns the multi-pattern pass: which formats may stand at the start of which line, and which details a line may hold."""

from __future__ import annotations

from collections.abc import Sequence

import hyperscan
import numpy as np
import polars as pl
from numpy.typing import NDArray

from .format_load import cache_folder, write_cache
from .format_model import PLACE_FIELDS, FormatKind, LineFormat
from .format_regex import for_hyperscan, groups_of
from .format_words import base_name

Rows = NDArray[np.intp]
_FRONT = (FormatKind.WRAPPER, FormatKind.HEADER, FormatKind.TAG)
_SHIFT = 12


def _front(one: LineFormat) -> list[bytes]:
    return [f"^(?:{for_hyperscan(pattern)})".encode() for pattern in without_optional_head(one.trigger or one.regex)]


def without_optional_head(pattern: str) -> list[str]:
    """The pattern with and without each optional group at its start, as patterns of their own.

    Hyperscan loses matches of a literal behind an optional group of some twenty characters at the start of a line.
    """
    if not pattern.startswith("(?:"):
        return [pattern]
    depth, position, inside = 0, 0, False
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
        elif inside:
            inside = char != "]"
        elif char == "[":
            inside = True
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth == 0:
                break
        position += 1
    group, rest = pattern[: position + 1], pattern[position + 1 :]
    if not rest.startswith("?") or rest.startswith("??"):
        return [pattern]
    tails = without_optional_head(rest[1:])
    return [group + tail for tail in tails] + tails


def _detail(one: LineFormat) -> bytes:
    return for_hyperscan(one.trigger or one.regex).removeprefix("^").removesuffix("$").encode()


def names_place(one: LineFormat) -> bool:
    return any(base_name(group) in PLACE_FIELDS or group.startswith("t_") for group in groups_of(one.regex))


class Scanner:
    """The compiled patterns of all formats; the first round also looks for details."""

    def __init__(self, formats: Sequence[LineFormat], key: str) -> None:
        front = [
            (place, pattern) for place, one in enumerate(formats) if one.kind in _FRONT for pattern in _front(one)
        ]
        objects = [place for place, one in enumerate(formats) if one.kind is FormatKind.JSON]
        self.json = objects[0] if objects else None
        if self.json is not None:
            front.append((self.json, rb"^\{[ \t]*\x22"))
        inside = [
            (place, _detail(one)) for place, one in enumerate(formats) if one.kind is FormatKind.DETAIL and names_place(one)
        ]
        self._front = _compiled(front, f"{key}-front")
        self._all = _compiled([*front, *inside], f"{key}-all") if inside else self._front
        self._scratch_of: dict[int, object] = {}

    def scan(self, lines: pl.Series, *, with_details: bool) -> tuple[Rows, Rows]:
        """Pairs of row and format, each once."""
        data = lines.str.join("\n").item().encode()
        hits: list[int] = []
        append = hits.append

        def found(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append(end << _SHIFT | number)

        (self._all if with_details else self._front).scan(data, match_event_handler=found)
        if not hits:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        pairs = np.array(hits, dtype=np.int64)
        ends = np.cumsum(lines.str.len_bytes().to_numpy().astype(np.int64) + 1)
        rows = np.searchsorted(ends, (pairs >> _SHIFT) - 1, side="right")
        both = np.unique(rows << _SHIFT | pairs & ((1 << _SHIFT) - 1))
        return (both >> _SHIFT).astype(np.intp), (both & ((1 << _SHIFT) - 1)).astype(np.intp)


def _compiled(patterns: Sequence[tuple[int, bytes]], key: str) -> hyperscan.Database:
    path = cache_folder() / f"formats-{key}-{hyperscan.__version__}.hs"
    try:
        database = hyperscan.loadb(path.read_bytes(), hyperscan.HS_MODE_BLOCK)
        database.scratch = hyperscan.Scratch(database)  # a loaded database comes without
        return database
    except (OSError, hyperscan.error):
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        database.compile(
            expressions=[pattern for _, pattern in patterns],
            ids=[place for place, _ in patterns],
            elements=len(patterns),
            flags=[hyperscan.HS_FLAG_MULTILINE] * len(patterns),
        )
        write_cache(path, hyperscan.dumpb(database))
        return database
