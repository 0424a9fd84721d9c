"""How JSON writers put a text down, so that a search of raw bytes finds it there too.

A quote is `\\"` there, a backslash `\\\\`, a tab `\\t`; Go writes `<`, `>` and `&` as `\\u003c` and the like, json-c
(rsyslog, syslog-ng) a slash as `\\/`.
"""

from __future__ import annotations

from collections.abc import Mapping

_PLAIN = {b'"': b'\\"', b"\\": b"\\\\", b"\t": b"\\t"}
_GO = _PLAIN | {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}
_JSON_C = _PLAIN | {b"/": b"\\/"}
_KINDS: tuple[Mapping[bytes, bytes], ...] = ({}, _PLAIN, _GO, _JSON_C)

ESCAPES: Mapping[bytes, bytes] = _GO | _JSON_C
"""Every byte that is written in another way by some writer."""

_ESCAPED = frozenset(b"".join(ESCAPES))


def written(text: bytes) -> tuple[bytes, ...]:
    """The text, and how it looks inside of JSON where that differs."""
    if _ESCAPED.isdisjoint(text):
        return (text,)
    return tuple(dict.fromkeys(_escaped(text, escapes) for escapes in _KINDS))


def _escaped(text: bytes, escapes: Mapping[bytes, bytes]) -> bytes:
    return b"".join(escapes.get(text[at : at + 1], text[at : at + 1]) for at in range(len(text)))
