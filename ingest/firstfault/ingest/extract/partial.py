"""Joins what a container runtime cut: a line of more than 16 KiB comes in parts, each with the runtime's own header.

CRI marks each part `P` and the last `F`, the json-file driver of Docker leaves the line end off all but the last, and
streams of one container take turns. Each part stays a line; the first one gets the whole message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.ingest.marks import Marks

_CRI = re.compile(
    r"^((?:\[pod/[^\]\n]{1,600}\] )?\d{4}-\d\d-\d\dT\S{8,40} (stdout|stderr) )([PF])(?::\S{1,40})? (.*)$", re.S
)
_CRI_PART = r"^(?:\[pod/[^\]]{1,600}\] )?\d{4}-\d\d-\d\dT\S{8,40} (?:stdout|stderr) P[ :]"
_CRI_MARKS = (b" stdout P", b" stderr P")
_JSON_MARK = b'"log":'
_MARKS = Marks((*_CRI_MARKS, _JSON_MARK))
_PATIENCE = 2000
"""Lines of other streams between two parts."""
_KEPT = 64 << 20
"""Bytes of joined lines that are kept of one source."""


class Piece(NamedTuple):
    """A part of a line: its stream, what stands before its content, the content, and whether more follows."""

    stream: str
    front: str
    content: str
    more: bool


@dataclass(slots=True)
class Joined:
    """A line that was cut: the numbers of its parts and, once it is whole, its text with the header of the first."""

    lines: list[int]
    front: str
    contents: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The line as the program wrote it, behind the header that the runtime put in front."""
        content = "".join(self.contents)
        if not self.front.startswith("{"):
            return f"{self.front}F {content}"
        return json.dumps({**json.loads(self.front), "log": content + "\n"}, ensure_ascii=False)


def parts_of(text: bytes, raw: pl.Series) -> npt.NDArray[np.int64]:
    """The rows that hold a part which is not the last of its line."""
    found = np.zeros(0, dtype=np.int64)
    marks = _MARKS.found(text)
    if any((mark, False) in marks for mark in _CRI_MARKS):
        found = raw.str.contains(_CRI_PART).arg_true().to_numpy().astype(np.int64)
    if (_JSON_MARK, False) in marks:
        log = raw.str.contains('"log":', literal=True)
        tagged = raw.str.contains(r'"logtag": ?"P"')
        bare = raw.str.contains('"stream":', literal=True) & ~raw.str.contains(r"\n\"", literal=True)
        bare = bare & ~raw.str.contains('"logtag":', literal=True) & raw.str.starts_with('{"log":')
        found = np.union1d(found, (log & (tagged | bare)).arg_true().to_numpy().astype(np.int64))
    return found


def split(line: str) -> Piece | None:
    """A line as a part, None where no container runtime wrote it."""
    if match := _CRI.match(line):
        pod = match[1].partition("]")[0] if match[1].startswith("[") else ""
        return Piece(f"{match[2]} {pod}", match[1], match[4], match[3] == "P")
    if not line.startswith("{"):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    log = value.get("log") if isinstance(value, dict) else None
    if not isinstance(log, str):
        return None
    tag = value.pop("logtag", None)
    more = tag == "P" if tag in ("P", "F") else not log.endswith("\n")
    value["log"] = ""
    return Piece(str(value.get("stream")), json.dumps(value, ensure_ascii=False), log.removesuffix("\n"), more)


class Joiner:
    """Follows the parts of one source from batch to batch. `whole` are the lines that were joined."""

    def __init__(self) -> None:
        self.whole: list[Joined] = []
        self._open: dict[str, Joined] = {}
        self._kept = 0

    @property
    def busy(self) -> bool:
        """Whether a line is being joined."""
        return bool(self._open)

    def feed(self, raw: Sequence[str] | pl.Series, first_line: int, parts: Sequence[int], opens: bool = True) -> None:
        """Take the lines of a source from `first_line` on; `parts` are the rows of those that are not the last part."""
        row, waiting = 0, iter([*parts, len(raw)])
        part = next(waiting)
        while row < len(raw):
            if not self._open:
                if not opens:
                    return
                while part < row:
                    part = next(waiting)
                row = part
                if row >= len(raw):
                    return
            self._take(raw[row], first_line + row, opens)
            row += 1

    def finish(self) -> Iterator[Joined]:
        """The source ends: what is open is as whole as it gets."""
        self.whole += self._open.values()
        self._open = {}
        return (one for one in sorted(self.whole, key=lambda one: one.lines[0]) if len(one.lines) > 1)

    def _take(self, line: str, number: int, opens: bool) -> None:
        for stream in [stream for stream, one in self._open.items() if number - one.lines[-1] > _PATIENCE]:
            self.whole.append(self._open.pop(stream))
        piece = split(line)
        if piece is None:
            return
        one = self._open.get(piece.stream)
        if one is None and piece.more and opens and self._kept < _KEPT:
            one = self._open[piece.stream] = Joined([], piece.front)
        if one is None:
            return
        one.lines.append(number)
        if self._kept < _KEPT:
            one.contents.append(piece.content)
            self._kept += len(piece.content)
        if not piece.more:
            self.whole.append(self._open.pop(piece.stream))
