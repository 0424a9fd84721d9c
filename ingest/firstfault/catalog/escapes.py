"""How JSON writers put a text down, so that a search of raw bytes finds it there too.

A quote is `\\"` there, a backslash `\\\\`, a tab `\\t`; Go writes `<`, `>` and `&` as `\\u003c` and the like, json-c
(rsyslog, syslog-ng) a slash as `\\/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import or_

from firstfault.catalog.texts import Text

_PLAIN = {b'"': b'\\"', b"\\": b"\\\\", b"\t": b"\\t"}
_GO = _PLAIN | {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}
_JSON_C = _PLAIN | {b"/": b"\\/"}

_BACKSLASH = 1 << ord("\\")
_LAST = {1 << char[0]: 1 << written[-1] for char, written in (_GO | _JSON_C).items()}
_ESCAPED = reduce(or_, _LAST)
_TAB = 1 << 9


def written(texts: tuple[Text, ...]) -> tuple[Text, ...]:
    """The texts, and how they look inside of JSON where that differs; what may touch them includes escapes."""
    found: dict[tuple[bytes, bool], Text] = {}
    for one in texts:
        touched = replace(one, before=_before(one.before), behind=_behind(one.behind))
        for escapes in ({}, _PLAIN, _GO, _JSON_C):
            text = _escaped(one.text, escapes)
            found.setdefault((text, one.folded), replace(touched, text=text))
    return tuple(found.values())


def _escaped(text: bytes, escapes: Mapping[bytes, bytes]) -> bytes:
    return b"".join(escapes.get(text[at : at + 1], text[at : at + 1]) for at in range(len(text)))


def _before(mask: int) -> int:
    return reduce(or_, (last for char, last in _LAST.items() if mask & char), mask)


def _behind(mask: int) -> int:
    return mask | _BACKSLASH if mask & _ESCAPED & ~_TAB else mask
