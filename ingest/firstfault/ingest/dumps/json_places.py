"""JSON with the line of every key, so that a finding in a dump can be cited.

Values are plain; an object is a `Placed` dictionary that also knows the line of its brace and of each key.
Depth and number of tokens are bounded; beyond the bound the standard parser takes over and all lines are 1.
"""

from __future__ import annotations

import json
import re
from typing import Any

from firstfault.ingest.dumps.text import clean

TOKEN_LIMIT = 3_000_000
DEPTH_LIMIT = 200
TOKEN = re.compile(
    r'[ \t\r]*(?:(?P<space>\n)|(?P<mark>[{}\[\],:])|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<word>true|false|null|NaN|-?Infinity))"
)
WORDS = {"true": True, "false": False, "null": None, "NaN": None, "Infinity": None, "-Infinity": None}


class Placed(dict[str, Any]):
    """A JSON object that knows where it stands."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


def line_of(value: Any, key: str | None = None) -> int:
    """The line of an object, or of one of its keys."""
    if isinstance(value, Placed):
        return value.lines.get(key, value.line) if key is not None else value.line
    return 1


def parse(data: bytes) -> Any:
    """The value of a JSON text. Raises ValueError where it is none."""
    text = data.decode("utf-8-sig", "replace")
    try:
        return _Parser(text).run()
    except _TooLongError:
        return json.loads(text, parse_constant=lambda _: None)


class _TooLongError(Exception):
    """More tokens than this parser takes."""


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._line, self._count = text, 0, 1, 0
        self._kind, self._token = "", ""

    def run(self) -> Any:
        self._next()
        value = self._value(0)
        self._next()
        if self._kind:
            raise ValueError(f"line {self._line}: text behind the JSON value")
        return value

    def _next(self) -> None:
        while True:
            match = TOKEN.match(self._text, self._at)
            if match is None:
                if self._text[self._at :].strip():
                    raise ValueError(f"line {self._line}: no JSON")
                self._kind = self._token = ""
                return
            self._at = match.end()
            if match.lastgroup == "space":
                self._line += 1
                continue
            self._count += 1
            if self._count > TOKEN_LIMIT:
                raise _TooLongError
            self._kind, self._token = match.lastgroup or "", match[match.lastgroup or 0]
            return

    def _value(self, depth: int) -> Any:
        if depth > DEPTH_LIMIT:
            raise ValueError(f"line {self._line}: nested too deeply")
        if self._kind == "string":
            return clean(json.loads(self._token, strict=False))
        if self._kind == "number":
            return float(self._token) if set(self._token) & set(".eE") else int(self._token)
        if self._kind == "word":
            return WORDS[self._token]
        if self._token == "{":
            return self._object(depth)
        if self._token == "[":
            return self._array(depth)
        raise ValueError(f"line {self._line}: a value is missing")

    def _object(self, depth: int) -> Placed:
        found = Placed(self._line)
        self._next()
        while self._token != "}" or self._kind != "mark":
            if self._kind != "string":
                raise ValueError(f"line {self._line}: a key is missing")
            key, line = clean(json.loads(self._token, strict=False)), self._line
            self._next()
            if self._token != ":":
                raise ValueError(f"line {self._line}: a colon is missing")
            self._next()
            found[key] = self._value(depth + 1)
            found.lines[key] = line
            self._next()
            if self._kind == "mark" and self._token == ",":
                self._next()
            elif self._kind != "mark" or self._token != "}":
                raise ValueError(f"line {self._line}: an object does not end")
        return found

    def _array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self._next()
        while self._token != "]" or self._kind != "mark":
            found.append(self._value(depth + 1))
            self._next()
            if self._kind == "mark" and self._token == ",":
                self._next()
            elif self._kind != "mark" or self._token != "]":
                raise ValueError(f"line {self._line}: a list does not end")
        return found
