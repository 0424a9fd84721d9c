"""Owns the translation of one pattern for two engines: RE2 for a line, Rust's regex in polars for columns.

The patterns are written in the common part of both; what `\\d`, `\\w` and `\\s` cover differs and is spelled out here.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import re2  # type: ignore[import-untyped]

_ASCII = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\r\n\f"}
GROUP = re.compile(r"\(\?P<(\w+)>")
REST = ("rest", "message")


def _spelled_out(pattern: str) -> str:
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
        out.append(char)
        position += 1
    return "".join(out)


def _escape(pair: str, inside: bool) -> str:
    kind = pair[1:]
    if kind in _ASCII:
        return _ASCII[kind] if inside else f"[{_ASCII[kind]}]"
    if kind.lower() in _ASCII and not inside:
        return f"[^{_ASCII[kind.lower()]}]"
    return r"(?-u:\b)" if pair == r"\b" and not inside else pair


@cache
def for_polars(pattern: str) -> str:
    """The pattern for Rust's regex: classes are ASCII, as in the other two engines."""
    return _spelled_out(pattern)


@cache
def for_line(pattern: str) -> Any:
    """The pattern compiled for one line."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    return re2.compile(pattern, options)


def groups_of(pattern: str) -> tuple[str, ...]:
    return tuple(GROUP.findall(pattern))


def has_rest(pattern: str) -> bool:
    return any(name in REST for name in groups_of(pattern))
