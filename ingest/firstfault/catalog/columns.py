"""Patterns for the column engine, Rust's regex in polars, with the meaning that they have in RE2.

The patterns are written in the common part of both; what `\\d`, `\\w` and `\\s` cover differs and is spelled out here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_COUNT = re.compile(r"\{\d+(?:,\d*)?\}")
_ANCHORS = frozenset(("^", "$", r"\b", r"\B", r"\A", r"\z"))
_ASCII = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\r\n\f"}


@cache
def for_polars(pattern: str) -> str:
    """The pattern for Rust's regex: classes are ASCII, as in RE2."""
    return "".join(_escape(token, inside) for token, inside in _tokens(pattern))


@cache
def loose(pattern: str) -> str:
    """The pattern for Rust's regex without its anchors: found in every text that a text with a match is a piece of."""
    kept = ((token, inside) for token, inside in _tokens(pattern) if inside or token not in _ANCHORS)
    return "".join(_escape(token, inside) for token, inside in kept)


def _tokens(pattern: str) -> Iterator[tuple[str, bool]]:
    """The characters and escapes of a pattern, with whether they stand inside a class."""
    inside = False
    position = 0
    while position < len(pattern):
        size, within = 1, inside
        if pattern[position] == "\\":
            size = 2
        elif pattern[position] == "[" and not inside:
            inside = True
            size = 2 if pattern.startswith("[^", position) else 1
            if pattern.startswith("]", position + size):
                yield pattern[position : position + size], False
                position, size, within = position + size, 1, True
        elif pattern[position] == "]":
            inside = within = False
        elif _special(pattern, position, inside):
            yield "\\" + pattern[position], inside
            position += 1
            continue
        yield pattern[position : position + size], within
        position += size


def _special(pattern: str, at: int, inside: bool) -> bool:
    """Whether a character stands for itself in RE2 alone."""
    if inside:
        return pattern[at] in "&~" or (pattern[at] == "[" and pattern[at + 1 : at + 2] != ":")
    return pattern[at] == "{" and _COUNT.match(pattern, at) is None


def _escape(token: str, inside: bool) -> str:
    if len(token) < 2 or token[0] != "\\":
        return "\\]" if token == "]" and inside else token
    kind = token[1:]
    if kind in _ASCII:
        return _ASCII[kind] if inside else f"[{_ASCII[kind]}]"
    if kind.lower() in _ASCII and not inside:
        return f"[^{_ASCII[kind.lower()]}]"
    return r"(?-u:\b)" if token == r"\b" and not inside else token
