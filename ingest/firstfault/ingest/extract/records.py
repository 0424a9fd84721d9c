"""Records of several lines: Python tracebacks and the failure table of torchrun; `blocks` are all others.

A reader follows one source line by line, but only from a line that opens a record to the line that closes it.
Lines of different ranks in one file are separated first: each stream of a file has its own open record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from firstfault.ingest.extract.blocks import FRAMES_HEAD, HEADS, BlockReader, Row
from firstfault.ingest.extract.blocks import OPENERS as BLOCK_OPENERS
from firstfault.ingest.extract.failure_table import NAME as TABLE
from firstfault.ingest.extract.failure_table import FailureTable
from firstfault.ingest.extract.owners import REMOTE, SPAWNED, announced, headed, names_place, remote, signed
from firstfault.ingest.extract.partial import Joiner
from firstfault.ingest.extract.rows import NOTHING, Own
from firstfault.ingest.extract.tracebacks import CHAINS, FINAL, HEAD, Frame, exception_captures, frame_of, indent_of

_IGNORED = "Exception ignored in"
_IN_THREAD = "Exception in thread"
OPENERS = (HEAD, _IGNORED, _IN_THREAD, SPAWNED, REMOTE, f"{TABLE}:", *CHAINS, *BLOCK_OPENERS)
"""Texts without which no line opens a record or says something of the next."""

_RULES = ("-" * 10, "=" * 10)
_ORIGINAL = "Original Traceback"
_QUOTING = ("ProcessRaisedException", "_RemoteTraceback", "RemoteError", "RayTaskError", "CheckpointException")
_MAX_QUOTE = 6
_MAX_ANNOUNCED = 2
_MAX_LINES = 5000
_MAX_STRAY = 200
_MAX_CONTINUATION = 40
_LAST_LINES = _MAX_CONTINUATION - 2
_THREAD = re.compile(r"^Exception in thread ([^\n(:]{1,200}?)(?: \([^\n)]{0,200}\))?:\s*$")


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
    owner: Own | None = None
    """Who raised it, where its own line does not say so."""
    named: int | None = None
    """The rank that raised it, where every rank prints what one raised."""


@dataclass(slots=True)
class _Open:
    key: tuple[object, ...]
    kind: str
    indent: int
    lines: list[int]
    frames: list[Frame] = field(default_factory=list)
    stray: int = 0
    final: int | None = None
    captures: dict[str, str] = field(default_factory=dict)
    text: str = ""
    tail: int = 0
    headed: bool = False
    cause: int | None = None
    quotes: Failure | None = None
    said: dict[str, str] = field(default_factory=dict)
    table: FailureTable | None = None
    own: Own = NOTHING
    owner: Own | None = None
    named: int | None = None


class RecordReader:
    """Follows the lines of one source. `failures` and `spans` hold what was closed so far."""

    def __init__(self, headers: frozenset[str] = frozenset()) -> None:
        self.headers = headers
        """Formats that are a program's own header, not something put in front of a line."""
        self.last: tuple[Row, ...] = ()
        """The last two lines of what was followed so far."""
        self.blocks = BlockReader()
        self.joiner = Joiner()
        self.stop: int | None = None
        """The last line of one's own: behind it, only what is open is still followed."""
        self.failures: list[Failure] = []
        self.spans: list[list[int]] = []
        self._open: dict[tuple[object, ...], _Open] = {}
        self._roots: dict[tuple[object, ...], tuple[int, int]] = {}
        self._chained: dict[tuple[object, ...], int] = {}
        self._last: dict[tuple[object, ...], Failure] = {}
        self._announced: dict[tuple[object, ...], tuple[int, dict[str, str]]] = {}
        self._owners: dict[tuple[object, ...], tuple[int, Own]] = {}

    @property
    def waiting(self) -> bool:
        """Whether the next lines may belong to a record that has begun."""
        return self.busy or any(row.form in HEADS for row in self.last[-1:])

    @property
    def busy(self) -> bool:
        """Whether the next line matters even if it opens nothing."""
        return bool(self._open) or self.blocks.busy

    def finish(self) -> None:
        """The source ends: close what is open."""
        for key in list(self._open):
            self._close(key)
        self.blocks.finish()
        self.spans += self.blocks.spans

    def step(self, row: Row) -> None:
        """Take the next line. Lines that no record is open for may be left out, unless they open one."""
        self._step(row)
        self.last = (*self.last[-1:], row)

    def _step(self, row: Row) -> None:
        record = self._open.get(row.key)
        if record is None:
            self._fresh(row)
            return
        if len(record.lines) > _MAX_LINES:
            self._close(row.key)
            self._fresh(row)
            return
        take = {"traceback": self._traceback, "tail": self._tail, "table": self._table}
        take[record.kind](record, row)

    def _fresh(self, row: Row) -> None:
        """A line for which nothing is open: it may open a record, or say something of the next."""
        if self.blocks.step(row, self.last, self.stop) or self.stop is not None:
            return
        if row.text.rstrip() in CHAINS:
            self._note_chain(row)
            return
        if row.text.startswith("Exception "):
            self._announce(row)
        elif named := announced(row.text):
            self._owners[row.key] = row.line, named
        if HEAD in row.text:
            opened = _Open(row.key, "traceback", indent_of(row.text), [row.line], headed=row.headed)
            root = self._chained.pop(row.key, None)
            opened.cause = root
            opened.quotes = self._quoting(row)
            line, said = self._announced.pop(row.key, (0, {}))
            if row.line - line <= _MAX_ANNOUNCED:
                opened.said = said
            announced_at, owner = self._owners.pop(row.key, (-_MAX_STRAY, NOTHING))
            if row.line - announced_at <= _MAX_ANNOUNCED:
                opened.owner = owner
            elif names_place(row.own):
                opened.owner = row.own
            else:
                opened.owner = self.blocks.quoted
            opened.named = headed(row.text)
            self._open[row.key] = opened
        elif owned := remote(row.text):
            self._open[row.key] = self._carried(row, owned)
        elif f"{TABLE}:" in row.text and (found := FINAL.match(row.text.strip())) and found[1].endswith(TABLE):
            self._open[row.key] = self._headless_table(row, found[1])
        elif frame_of(row.text) is not None:
            self._adopt(row)

    def _announce(self, row: Row) -> None:
        """A line before a traceback that says what becomes of it: the process goes on, or only a thread ends."""
        if row.text.startswith(_IGNORED):
            self._announced[row.key] = row.line, {"state": "ignored"}
        elif found := _THREAD.match(row.text):
            self._announced[row.key] = row.line, {"thread": found[1]}

    def _carried(self, row: Row, owner: Own) -> _Open:
        """A traceback of another process that Ray carried over: it has no head of its own but this line."""
        opened = _Open(row.key, "traceback", indent_of(row.text), [row.line], headed=row.headed, owner=owner)
        opened.quotes = self._quoting(row)
        return opened

    def _headless_table(self, row: Row, name: str) -> _Open:
        """A table whose traceback was cut off."""
        opened = _Open(row.key, "table", 0, [row.line], headed=row.headed, final=row.line, own=row.own)
        opened.text, opened.captures, opened.table = row.text.strip(), exception_captures(name, "", []), FailureTable()
        return opened

    def _quoting(self, row: Row) -> Failure | None:
        """The exception that carries this traceback of another process in its message, if one does."""
        last = self._last.get(row.key)
        if last is None or row.line - last.lines[-1] > _MAX_QUOTE:
            return None
        quoted = _ORIGINAL in row.text or any(mark in last.text for mark in _QUOTING)
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
        stripped = text.strip(" ")
        if HEAD in text:
            self._close(row.key)
            self._fresh(row)
            return
        if not stripped.strip():
            record.lines.append(row.line)
            return
        if indent_of(text) > record.indent:
            record.lines.append(row.line)
            record.headed = record.headed and row.headed
            frame = frame_of(text)
            if frame is not None:
                record.frames.append(frame)
            return
        found = FINAL.match(stripped.rstrip()) if row.headed <= record.headed else None
        if found is None and (owned := remote(text)) and len(record.lines) > 1:
            self._close(row.key)
            self._open[row.key] = self._carried(row, owned)
            return
        if found is None:
            self.blocks.step(row, self.last, self.stop)
            record.stray += 1
            if record.stray > _MAX_STRAY:
                self._close(row.key)
            return
        record.lines.append(row.line)
        record.final, record.own = row.line, row.own
        record.text = stripped.rstrip()
        record.captures = {**exception_captures(found[1], found[2] or "", record.frames), **record.said}
        if found[1].rpartition(".")[2] == TABLE:
            record.kind, record.table = "table", FailureTable()
        else:
            record.kind = "tail"

    def _tail(self, record: _Open, row: Row) -> None:
        """Lines after the exception: the rest of its message, or something else."""
        text = row.text.rstrip()
        record.owner = signed(text) or record.owner
        if text in CHAINS:
            record.lines.append(row.line)
            self._close(row.key)
            self._note_chain(row)
            return
        over = record.headed or row.headed or text.startswith(_RULES) or record.tail >= _MAX_CONTINUATION
        if HEAD in text or over:
            self._close(row.key)
            self._fresh(row)
            return
        if not text:
            record.tail = max(record.tail, _LAST_LINES)
            record.tail += 1
            return
        if record.tail >= _LAST_LINES and not text.startswith(("frame #", FRAMES_HEAD)):
            self._close(row.key)
            self._fresh(row)
            return
        record.tail += 1
        if text.startswith("frame #"):
            record.tail = 0
        record.lines.append(row.line)

    def _table(self, record: _Open, row: Row) -> None:
        table = record.table
        assert table is not None
        text = row.text.rstrip()
        if row.headed and not record.headed:
            record.stray += 1
            if record.stray > _MAX_STRAY:
                self._close(row.key)
        elif HEAD in text and not table.quoting:
            self._close(row.key)
            self._fresh(row)
        else:
            record.lines.append(row.line)
            if table.add(row.line, text):
                self._close(row.key)

    def _report(self, record: _Open, table: FailureTable) -> None:
        """The items of a launcher's table."""
        table.end_item()
        for item in table.items:
            assert item.line is not None
            self.failures.append(Failure(item.line, item.lines, item.captures, item.text, item=True, own=record.own))

    def _close(self, key: tuple[object, ...]) -> None:
        record = self._open.pop(key, None)
        if record is None:
            return
        if record.table is not None:
            self._report(record, record.table)
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
                owner=record.owner if not names_place(record.own) else None,
                named=record.named,
            )
            self.failures.append(failure)
            self._last[key] = failure
            if record.quotes is not None:
                record.quotes.captures["cause_line"] = record.captures.get("cause_line", str(record.final))
            root = record.cause if record.cause is not None else record.final
            self._roots[key] = (root, record.lines[-1])
