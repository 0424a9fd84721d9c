"""The failure table that torchrun's agent prints: one item for each of its workers that failed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from firstfault.ingest.extract.tracebacks import FINAL, HEAD, Frame, exception_captures, frame_of, indent_of

NAME = "ChildFailedError"
"""The exception whose message is the table."""

_ITEM = re.compile(r"^\s*\[(\d{1,6})\]:\s*$")
_FIELD = re.compile(r"^\s*(time|host|rank|exitcode|error_file|msg|traceback)\s*: ?(.*)$", re.S)
_RANK = re.compile(r"^(\d+) \(local_rank: (\d+)\)")
_EXIT = re.compile(r"^(-?\d+) \(pid: (\d+)\)")
_SIGNAL = re.compile(r"^Signal (\d+) \((\w+)\) received by PID (\d+)")
_MIN_RULE = 10


@dataclass(slots=True)
class Item:
    """A failure of the table. `line` is that of its exception, else the one that says how the process ended."""

    lines: list[int]
    captures: dict[str, str]
    line: int | None = None
    text: str = ""
    indent: int | None = None
    frames: list[Frame] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Take a line of the item."""
        self.lines.append(line)
        found = _FIELD.match(text) if self.indent is None else None
        if found:
            self._field(line, text, found[1], found[2].strip())
        elif self.indent is not None:
            self._quoted(line, text)

    def _field(self, line: int, text: str, name: str, value: str) -> None:
        if name == "rank" and (rank := _RANK.match(value)):
            self.captures["rank"], self.captures["local_rank"] = rank[1], rank[2]
        elif name == "exitcode" and (code := _EXIT.match(value)):
            self.captures["exitcode"], self.captures["child_pid"] = code[1], code[2]
            self.line, self.text = line, text.strip()
        elif name == "error_file":
            if value != "<N/A>":
                self.captures["path"] = value
        elif name in ("traceback", "msg"):
            if HEAD in value:
                self.indent = indent_of(text)
                return
            self.line, self.text = line, text.strip()
            if sign := _SIGNAL.match(value):
                self.captures["signal_no"], self.captures["signal"] = sign[1], sign[2]
        else:
            self.captures[name] = value

    def _quoted(self, line: int, text: str) -> None:
        """A line of the traceback that the item quotes."""
        stripped = text.strip(" ")
        frame = frame_of(text)
        if frame is not None:
            self.frames.append(frame)
        elif stripped and indent_of(text) <= (self.indent or 0) and (final := FINAL.match(stripped)):
            self.captures.update(exception_captures(final[1], final[2] or "", self.frames))
            self.line, self.text, self.frames = line, stripped, []


class FailureTable:
    """A table that is being read. `items` are its failures that say something, once they are complete."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._part = "other"
        self._item: Item | None = None
        self._rules = 0

    @property
    def quoting(self) -> bool:
        """Whether a traceback may stand here that belongs to an item."""
        return self._item is not None

    def add(self, line: int, text: str) -> bool:
        """Take a line; says whether it ends the table."""
        bare = text.strip()
        if len(bare) >= _MIN_RULE and not bare.strip("="):
            self._rules += 1
            return self._rules >= 2
        if bare == "Failures:":
            self._part = "other"
        elif bare.startswith("Root Cause (first observed failure)"):
            self.end_item()
            self._part = "first"
        elif _ITEM.match(text):
            self.end_item()
            self._item = Item([line], {"reported": self._part})
        elif self._item is not None:
            self._item.add(line, text)
        return False

    def end_item(self) -> None:
        """The item that is being read is complete."""
        if self._item is not None and self._item.line is not None:
            self.items.append(self._item)
        self._item = None
