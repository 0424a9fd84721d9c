"""Patterns for the column engine, Rust's regex in polars, with the meaning that they have in RE2.

The patterns are written in the common part of both; what `\\d`, `\\w` and `\\s` cover differs and is spelled out here.
"""

from __future__ import annotations

import re
from functools import cache

_COUNT = re.compile(r"\{\d+(?:,\d*)?\}")
_ASCII = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\r\n\f"}


@cache
def for_polars(pattern: str) -> str:
    """The pattern for Rust's regex: classes are ASCII, as in RE2."""
    out: list[str] = []
    inside = False
    position = 0
    while position < len(pattern):
        char, pair = pattern[position], pattern[position : position + 2]
        if char == "\\":
            out.append(_escape(pair, inside))
            position += 2
            continue
        if char == "[" and not inside:
            inside = True
            opening = "[^" if pair == "[^" else "["
            out.append(opening)
            position += len(opening)
            if pattern[position : position + 1] == "]":
                out.append(r"\]")
                position += 1
            continue
        inside = inside and char != "]"
        out.append("\\" + char if _special(pattern, position, inside) else char)
        position += 1
    return "".join(out)


def _special(pattern: str, at: int, inside: bool) -> bool:
    """Whether a character stands for itself in RE2 alone."""
    if inside:
        return pattern[at] in "&~" or (pattern[at] == "[" and pattern[at + 1 : at + 2] != ":")
    return pattern[at] == "{" and _COUNT.match(pattern, at) is None


def _escape(pair: str, inside: bool) -> str:
    kind = pair[1:]
    if kind in _ASCII:
        return _ASCII[kind] if inside else f"[{_ASCII[kind]}]"
    if kind.lower() in _ASCII and not inside:
        return f"[^{_ASCII[kind.lower()]}]"
    return r"(?-u:\b)" if pair == r"\b" and not inside else pair
