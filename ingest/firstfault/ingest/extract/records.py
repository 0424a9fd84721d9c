"""Records of several lines: Python tracebacks, C++ frame blocks, and the failure table of torchrun.

A reader follows one source line by line, but only from a line that opens a record to the line that closes it.
Lines of different ranks in one file are separated first: each stream of a file has its own open record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from firstfault.ingest.extract.rows import NOTHING, Own

HEAD = "Traceback (most recent call last)"
FRAMES_HEAD = "Exception raised from "
TABLE = "ChildFailedError"

CHAINS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_IGNORED = "Exception ignored in"
_IN_THREAD = "Exception in thread"
OPENERS = (HEAD, FRAMES_HEAD, _IGNORED, _IN_THREAD, *CHAINS)
"""Texts without which no line opens a record or says something of the next."""

ORIGINAL = "Original Traceback"
_QUOTING = ("ProcessRaisedException", "_RemoteTraceback", "RemoteError", "RayTaskError")
_MAX_QUOTE = 6
_MAX_ANNOUNCED = 2
_MAX_LINES = 5000
_MAX_STRAY = 200
_MAX_CONTINUATION = 40
_FRAME = re.compile(r'^\s*File "([^"]{1,4096})", line (\d{1,9})(?:, in (.{1,512}))?')
_FINAL = re.compile(r"^([A-Za-z_][\w.]{0,200})(?:\[[^\]]{0,80}\])?(?::(?: (.*))?)?$", re.S)
_THREAD = re.compile(r"^Exception in thread ([^\n(:]{1,200}?)(?: \([^\n)]{0,200}\))?:\s*$")
_ITEM = re.compile(r"^\s*\[(\d{1,6})\]:\s*$")
_FIELD = re.compile(r"^\s*(time|host|rank|exitcode|error_file|msg|traceback)\s*: ?(.*)$", re.S)
_RANK = re.compile(r"^(\d+) \(local_rank: (\d+)\)")
_EXIT = re.compile(r"^(-?\d+) \(pid: (\d+)\)")
_SIGNAL = re.compile(r"^Signal (\d+) \((\w+)\) received by PID (\d+)")
_LIBRARY = re.compile(r"(?:^|/)(?:site-packages|dist-packages)/|/lib(?:64)?/python\d|^<frozen |^<string>")


class Row(NamedTuple):
    """One line as the reader sees it. `key` names its stream inside the file, `headed` says that it has a header."""

    line: int
    key: tuple[object, ...]
    text: str
    headed: bool
    own: Own = NOTHING


@dataclass(slots=True)
class Failure:
    """What a closed record says: the exception of a traceback (a launcher's with its table), or an item of a table."""

    line: int
    lines: list[int]
    captures: dict[str, str]
    text: str
    item: bool = False
    table: bool = False
    own: Own = NOTHING


@dataclass(slots=True)
class _Open:
    key: tuple[object, ...]
    kind: str
    indent: int
    lines: list[int]
    frames: list[tuple[str, str, str]] = field(default_factory=list)
    stray: int = 0
    final: int | None = None
    captures: dict[str, str] = field(default_factory=dict)
    text: str = ""
    tail: int = 0
    headed: bool = False
    cause: int | None = None
    quotes: Failure | None = None
    said: dict[str, str] = field(default_factory=dict)
    table: _Table | None = None
    own: Own = NOTHING


@dataclass(slots=True)
class _Table:
    """A failure table that is being read."""

    part: str = "other"
    item: dict[str, str] = field(default_factory=dict)
    item_lines: list[int] = field(default_factory=list)
    line: int | None = None
    text: str = ""
    indent: int | None = None
    frames: list[tuple[str, str, str]] = field(default_factory=list)
    rules: int = 0


class RecordReader:
    """Follows the lines of one source. `failures` and `spans` hold what was closed so far."""

    def __init__(self) -> None:
        self.closing = False
        """Whether only what is open is still followed: the lines belong to somebody else."""
        self.failures: list[Failure] = []
        self.spans: list[list[int]] = []
        self._open: dict[tuple[object, ...], _Open] = {}
        self._roots: dict[tuple[object, ...], tuple[int, int]] = {}
        self._chained: dict[tuple[object, ...], int] = {}
        self._last: dict[tuple[object, ...], Failure] = {}
        self._announced: dict[tuple[object, ...], tuple[int, dict[str, str]]] = {}

    @property
    def busy(self) -> bool:
        """Whether the next line matters even if it opens nothing."""
        return bool(self._open)

    def finish(self) -> None:
        """The source ends: close what is open."""
        for key in list(self._open):
            self._close(key)

    def step(self, row: Row) -> None:
        """Take the next line. Lines that no record is open for may be left out, unless they open one."""
        record = self._open.get(row.key)
        if record is None and self.closing:
            return
        if record is None:
            if row.text.rstrip() in CHAINS:
                self._note_chain(row)
                return
            if row.text.startswith("Exception "):
                self._announce(row)
            self._begin(row)
            return
        if len(record.lines) > _MAX_LINES:
            self._close(row.key)
            self._begin(row)
            return
        take = {"traceback": self._traceback, "tail": self._tail, "table": self._table, "frames": self._frame_block}
        take[record.kind](record, row)

    def _begin(self, row: Row) -> None:
        if self.closing:
            return
        at = row.text.find(HEAD)
        if at >= 0:
            indent = len(row.text) - len(row.text.lstrip(" "))
            opened = _Open(row.key, "traceback", indent, [row.line], headed=row.headed)
            root = self._chained.pop(row.key, None)
            opened.cause = root
            opened.quotes = self._quoting(row)
            line, said = self._announced.pop(row.key, (0, {}))
            if row.line - line <= _MAX_ANNOUNCED:
                opened.said = said
            self._open[row.key] = opened
        elif row.text.startswith((FRAMES_HEAD, "frame #")):
            self._open[row.key] = _Open(row.key, "frames", 0, [row.line])
        elif _FRAME.match(row.text):
            self._adopt(row)

    def _announce(self, row: Row) -> None:
        """A line before a traceback that says what becomes of it: the process goes on, or only a thread ends."""
        if row.text.startswith(_IGNORED):
            self._announced[row.key] = row.line, {"state": "ignored"}
        elif found := _THREAD.match(row.text):
            self._announced[row.key] = row.line, {"thread": found[1]}

    def _quoting(self, row: Row) -> Failure | None:
        """The exception that carries this traceback of another process in its message, if one does."""
        last = self._last.get(row.key)
        if last is None or row.line - last.lines[-1] > _MAX_QUOTE:
            return None
        quoted = ORIGINAL in row.text or any(mark in last.text for mark in _QUOTING)
        return last if quoted and "cause_line" not in last.captures else None

    def _adopt(self, row: Row) -> None:
        """A traceback whose head carries a header goes on in lines without one."""
        for record in self._open.values():
            if (
                record.kind == "traceback"
                and record.headed
                and len(record.lines) == 1
                and row.line - record.lines[0] < _MAX_STRAY
            ):
                del self._open[record.key]
                record.key, record.headed = row.key, False
                self._open[row.key] = record
                self._traceback(record, row)
                return

    def _note_chain(self, row: Row) -> None:
        known = self._roots.get(row.key)
        if known is not None and row.line - known[1] <= _MAX_STRAY:
            self._chained[row.key] = known[0]

    def _traceback(self, record: _Open, row: Row) -> None:
        text = row.text
        stripped = text.lstrip(" ")
        indent = len(text) - len(stripped)
        if HEAD in text:
            self._close(row.key)
            self._begin(row)
            return
        if not stripped.strip():
            record.lines.append(row.line)
            return
        if indent > record.indent:
            record.lines.append(row.line)
            record.headed = record.headed and row.headed
            frame = _FRAME.match(text)
            if frame:
                record.frames.append((frame[1], frame[2], (frame[3] or "").strip()))
            return
        found = _FINAL.match(stripped.rstrip()) if row.headed <= record.headed else None
        if found is None:
            record.stray += 1
            if record.stray > _MAX_STRAY:
                self._close(row.key)
            return
        record.lines.append(row.line)
        record.final, record.own = row.line, row.own
        record.text = stripped.rstrip()
        record.captures = {**_exception(found[1], found[2] or "", record.frames), **record.said}
        if found[1].rpartition(".")[2] == TABLE:
            record.kind, record.table = "table", _Table()
        else:
            record.kind = "tail"

    def _tail(self, record: _Open, row: Row) -> None:
        """Lines after the exception: the rest of its message, or something else."""
        text = row.text.rstrip()
        if text in CHAINS:
            record.lines.append(row.line)
            self._close(row.key)
            self._note_chain(row)
            return
        if HEAD in text or (row.headed and not record.headed) or record.headed or record.tail >= _MAX_CONTINUATION:
            self._close(row.key)
            self._begin(row)
            return
        if not text:
            record.tail = max(record.tail, _MAX_CONTINUATION - 2)
            record.tail += 1
            return
        if record.tail >= _MAX_CONTINUATION - 2 and not text.startswith(("frame #", FRAMES_HEAD)):
            self._close(row.key)
            self._begin(row)
            return
        record.tail += 1
        if text.startswith("frame #"):
            record.tail = 0
        record.lines.append(row.line)

    def _frame_block(self, record: _Open, row: Row) -> None:
        if row.text.startswith("frame #") or row.text.startswith("<omitting python frames>"):
            record.lines.append(row.line)
            return
        self._close(row.key)
        self._begin(row)

    def _table(self, record: _Open, row: Row) -> None:
        table = record.table
        assert table is not None
        text = row.text.rstrip()
        if row.headed and not record.headed:
            record.stray += 1
            if record.stray > _MAX_STRAY:
                self._end_table(record)
            return
        if HEAD in text and not table.item:
            self._end_table(record)
            self._begin(row)
            return
        record.lines.append(row.line)
        bare = text.strip()
        if len(bare) >= 10 and not bare.strip("="):
            table.rules += 1
            if table.rules >= 2:
                self._end_table(record)
        elif bare == "Failures:":
            table.part = "other"
        elif bare.startswith("Root Cause (first observed failure)"):
            self._end_item(record, table)
            table.part = "first"
        elif _ITEM.match(text):
            self._end_item(record, table)
            table.item, table.item_lines = {"reported": table.part}, [row.line]
        elif table.item:
            table.item_lines.append(row.line)
            self._item_line(table, row.line, text)

    def _item_line(self, table: _Table, line: int, text: str) -> None:
        found = _FIELD.match(text) if table.indent is None else None
        if found:
            name, value = found[1], found[2].strip()
            if name == "rank" and (rank := _RANK.match(value)):
                table.item["rank"], table.item["local_rank"] = rank[1], rank[2]
            elif name == "exitcode" and (code := _EXIT.match(value)):
                table.item["exitcode"], table.item["child_pid"] = code[1], code[2]
                table.line, table.text = line, text.strip()
            elif name == "error_file":
                if value != "<N/A>":
                    table.item["path"] = value
            elif name in ("traceback", "msg"):
                if HEAD in value:
                    table.indent = len(text) - len(text.lstrip(" "))
                    return
                table.line, table.text = line, text.strip()
                if sign := _SIGNAL.match(value):
                    table.item["signal_no"], table.item["signal"] = sign[1], sign[2]
            else:
                table.item[name] = value
            return
        if table.indent is None:
            return
        stripped = text.lstrip(" ")
        if not stripped:
            return
        frame = _FRAME.match(text)
        if frame:
            table.frames.append((frame[1], frame[2], (frame[3] or "").strip()))
        elif len(text) - len(stripped) <= table.indent and (final := _FINAL.match(stripped)):
            table.item.update(_exception(final[1], final[2] or "", table.frames))
            table.line, table.text = line, stripped
            table.frames = []

    def _end_item(self, record: _Open, table: _Table) -> None:
        if table.item and table.line is not None:
            self.failures.append(
                Failure(table.line, list(table.item_lines), dict(table.item), table.text, item=True, own=record.own)
            )
        table.item, table.item_lines, table.line, table.text, table.indent, table.frames = {}, [], None, "", None, []

    def _end_table(self, record: _Open) -> None:
        assert record.table is not None
        self._end_item(record, record.table)
        self._close(record.key)

    def _close(self, key: tuple[object, ...]) -> None:
        record = self._open.pop(key, None)
        if record is None:
            return
        if record.table is not None:
            self._end_item(record, record.table)
        if len(record.lines) > 1:
            self.spans.append(record.lines)
        if record.final is not None:
            if record.cause is not None:
                record.captures["cause_line"] = str(record.cause)
            failure = Failure(
                record.final,
                record.lines,
                record.captures,
                record.text,
                table=record.table is not None,
                own=record.own,
            )
            self.failures.append(failure)
            self._last[key] = failure
            if record.quotes is not None:
                record.quotes.captures["cause_line"] = record.captures.get("cause_line", str(record.final))
            root = record.cause if record.cause is not None else record.final
            self._roots[key] = (root, record.lines[-1])


def _exception(name: str, message: str, frames: list[tuple[str, str, str]]) -> dict[str, str]:
    captures = {"exception": name, "text": message[:2000]}
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    chosen = own[-1] if own else frames[-1] if frames else None
    if chosen is not None:
        captures["src_file"], captures["src_line"] = chosen[0], chosen[1]
        if chosen[2]:
            captures["function"] = chosen[2]
    return captures
