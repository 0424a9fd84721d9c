"""Owns the translation of one pattern for three engines: RE2 (one line), Rust's regex in polars (columns), Hyperscan (a chunk).

The patterns are written in the common part of the three. What differs is what `\\d`, `\\w`, `\\s` cover and what may cross a
line end; both are spelled out here.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import re2

_ASCII = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\r\n\f"}
_SHORT = re.compile(r"\[\^?\]?|\\.|\]|\(\?P<(\w+)>|.", re.DOTALL)
GROUP = re.compile(r"\(\?P<(\w+)>")
REST = ("rest", "message")


def _walk(pattern: str, *, newline: bool, names: bool, anchors: bool = True) -> str:
    out: list[str] = []
    inside = False
    position = 0
    while position < len(pattern):
        char = pattern[position]
        pair = pattern[position : position + 2]
        if inside:
            if char == "\\" and pair[1] in _ASCII:
                piece = _ASCII[pair[1]]
                out.append(piece.replace(r"\n", "") if newline else piece)
                position += 2
            elif char == "\\":
                out.append(pair)
                position += 2
            else:
                inside = char != "]"
                out.append(char)
                position += 1
        elif char == "\\":
            if pair[1] in _ASCII:
                piece = _ASCII[pair[1]]
                out.append(f"[{piece.replace(chr(92) + 'n', '') if newline else piece}]")
            elif pair[1].lower() in _ASCII:
                extra = r"\n" if newline and pair[1] != "S" else ""
                out.append(f"[^{_ASCII[pair[1].lower()]}{extra}]")
            elif pair == r"\b":
                out.append(r"\b" if newline else r"(?-u:\b)")
            else:
                out.append(pair)
            position += 2
        elif char == "[":
            inside = True
            if pair == "[^":
                out.append(r"[^\n" if newline else "[^")
                position += 2
            else:
                out.append("[")
                position += 1
            if pattern[position : position + 1] == "]":
                out.append(r"\]")
                position += 1
        elif not names and pattern.startswith("(?P<", position):
            out.append("(?:")
            position = pattern.index(">", position) + 1
        else:
            out.append(char)
            position += 1
    return "".join(out)


@cache
def for_polars(pattern: str) -> str:
    """The pattern for Rust's regex: classes are ASCII, as in the other two engines."""
    return _walk(pattern, newline=False, names=True)


@cache
def head_of(pattern: str) -> str:
    """The part of the pattern before the remaining text: what the multi-pattern engine has to see."""
    cut = min((pattern.find(f"(?P<{name}>") for name in REST if f"(?P<{name}>" in pattern), default=-1)
    return pattern if cut < 0 else pattern[:cut]


@cache
def for_hyperscan(pattern: str) -> str:
    """The head of the pattern without names, unable to cross a line end."""
    return _walk(head_of(pattern), newline=True, names=False)


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
