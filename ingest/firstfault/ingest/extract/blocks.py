"""Records of several lines that are no traceback: what follows the head of a C++ error, NCCL's way out of a warning,
the words of Slurm or of an MPI launcher at the end, the tails that a launcher prints between marks.

A block whose lines have no header of their own belongs to whoever wrote the line above it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from firstfault.ingest.extract.owners import names_place
from firstfault.ingest.extract.rows import NOTHING, Own

FRAMES_HEAD = "Exception raised from "
FRAME_MARKS = ("frame #", "<omitting python frames>")
NCCL_DETAILS = (
    "ncclUnhandledCudaError: ", "ncclSystemError: ", "ncclInternalError: ", "ncclInvalidArgument: ",
    "ncclInvalidUsage: ", "ncclRemoteError: ",
)  # fmt: skip
DESYNC = "Timeout at collective: "
LAST_ERROR = "Last error:"
RULES = ("-" * 30, "=" * 30)
TAIL = "Begin global rank "
TAIL_END = "End global rank "
OPENERS = (*NCCL_DETAILS, FRAMES_HEAD, FRAME_MARKS[0], DESYNC, *RULES, TAIL, TAIL_END)
"""Texts without which no line opens a block, but for the formats below."""
NCCL, SLURM = "nccl", "slurm-program"
HEADS = frozenset({"c10", "c10-plain", "glog", "torch-python", "torch-log-21"})
"""Formats of torch's own errors, whose further lines bear no header."""

_DETAIL = re.compile(
    r"^(?:nccl[A-Z]\w{1,40}Error: |ncclInvalid\w{1,20}: |Last error:|[\t ]{1,12}- |\t|#\d{1,4} |frame #)"
)
_WAY_OUT = re.compile(r" -> \d{1,3}(?: \[|$)")
_NUMBERS = re.compile(r"\d+")
_TAIL = re.compile(r"^-+(?:Begin|End) global rank (\d{1,7}) STD(?:OUT|ERR)-+$")
_ENDINGS = (
    "mpirun", "mpiexec", "prterun", "PRTE", "ORTE", "MPI_A", "Primary job", "exited on signal", "BAD TERMINATION",
    "non-zero exit", "RUNNING AT",
)  # fmt: skip
_MAX_LINES = 5000
_MAX_RULED = 24
_MAX_WARNINGS = 2000
_NEAR = 3
_FAR = 64


class Row(NamedTuple):
    """One line as the readers see it. `key` names its stream inside the file, `headed` says that a program's own
    header stands on it, `form` the format.
    """

    line: int
    key: tuple[object, ...]
    text: str
    headed: bool
    own: Own = NOTHING
    form: str | None = None


@dataclass(slots=True)
class _Block:
    kind: str
    lines: list[int]
    owner: Own = NOTHING
    telling: bool = False
    ruled: bool = False
    any_next: bool = False


class BlockReader:
    """Follows the lines of one source. `spans` are closed blocks, `owned` those of a writer that their lines lack."""

    def __init__(self) -> None:
        self.spans: list[list[int]] = []
        self.owned: list[tuple[int, int, Own]] = []
        self._open: dict[tuple[object, ...], _Block] = {}
        self._tail: tuple[int, int] | None = None
        self._warnings = 0

    @property
    def busy(self) -> bool:
        """Whether the next line matters even if it opens nothing."""
        return bool(self._open)

    @property
    def quoted(self) -> Own | None:
        """The rank whose output a launcher is printing between marks."""
        return Own(rank=self._tail[1]) if self._tail is not None else None

    def finish(self) -> None:
        """The source ends: close what is open."""
        for key in list(self._open):
            self._close(key)

    def step(self, row: Row, before: Sequence[Row], stop: int | None) -> bool:
        """Take the next line, of which `before` are the two above it; says whether a block has it.

        Behind the line `stop`, where somebody else's lines begin, only that goes on which began before.
        """
        for key in [key for key, block in self._open.items() if row.line - block.lines[-1] > _FAR]:
            self._close(key)
        block = self._open.get(row.key)
        if block is not None and self._goes_on(block, row):
            block.lines.append(row.line)
            if len(block.lines) > _MAX_LINES or (block.kind == "ruled" and self._is_rule(row.text)):
                self._close(row.key)
            return True
        if block is not None:
            self._close(row.key)
        if stop is None:
            return self._opens(row, before)
        head = self._head(row, before)
        return head is not None and head.line <= stop and self._details(row, before)

    def _goes_on(self, block: _Block, row: Row) -> bool:
        if block.kind == "nccl":
            return row.form == NCCL and _WAY_OUT.search(row.text) is not None
        if row.line - block.lines[-1] > (_NEAR if block.kind == "slurm" else 1):
            return False
        if block.kind == "slurm":
            return row.form == SLURM
        if block.kind == "ruled":
            block.telling = block.telling or any(word in row.text for word in _ENDINGS)
            return len(block.lines) < _MAX_RULED
        text = row.text
        if row.headed or not text.strip():
            return False
        known = text.startswith((FRAMES_HEAD, *FRAME_MARKS)) or _DETAIL.match(text) is not None or block.any_next
        block.any_next = text.startswith(LAST_ERROR)
        return known

    def _opens(self, row: Row, before: Sequence[Row]) -> bool:
        text = row.text
        if row.form == NCCL and row.own.level == "WARN" and self._warnings < _MAX_WARNINGS:
            self._warnings += 1
            self._open[row.key] = _Block("nccl", [row.line])
            return True
        if row.form == SLURM:
            self._open[row.key] = _Block("slurm", [row.line])
            return True
        if self._details(row, before):
            return True
        if self._is_rule(text) and not row.headed:
            self._open[row.key] = _Block("ruled", [row.line])
            return False
        if found := _TAIL.match(text):
            self._mark(row.line, int(found[1]), begins=TAIL in text)
        return False

    def _details(self, row: Row, before: Sequence[Row]) -> bool:
        """Open a block at the first line of the details of an error."""
        text = row.text
        desync = DESYNC in text and text[:1] in ("\t", " ")
        if row.headed or not (desync or text.startswith((*NCCL_DETAILS, FRAMES_HEAD, *FRAME_MARKS))):
            return False
        head = self._head(row, before)
        block = _Block("detail", [row.line] if head is None else [head.line, row.line])
        block.any_next = text.startswith(LAST_ERROR)
        if head is not None and names_place(head.own):
            block.owner = head.own
        self._open[row.key] = block
        return True

    @staticmethod
    def _is_rule(text: str) -> bool:
        bare = text.strip()
        return len(bare) >= len(RULES[0]) and not bare.strip(bare[0]) and bare[0] in "-="

    @staticmethod
    def _head(row: Row, before: Sequence[Row]) -> Row | None:
        """The line with a header that the block goes on from; of two heads in a row it may be either's."""
        heads = [one for one in before if one.form in HEADS and one.key[1:] == row.key[1:]]
        if not heads or heads[-1].line != row.line - 1:
            return None
        first = heads[0]
        doubtful = len(heads) > 1 and first.line == row.line - 2 and first.own.rank != heads[-1].own.rank
        alike = len({_NUMBERS.sub("", one.text)[:60] for one in heads}) == 1
        return None if doubtful and alike else heads[-1]

    def _mark(self, line: int, rank: int, begins: bool) -> None:
        if self._tail is not None and not begins and self._tail[1] == rank and line - self._tail[0] <= _MAX_LINES:
            self.owned.append((self._tail[0], line, Own(rank=rank)))
        self._tail = (line, rank) if begins else None

    def _close(self, key: tuple[object, ...]) -> None:
        block = self._open.pop(key)
        if len(block.lines) < 2 or (block.kind == "ruled" and not block.telling):
            return
        self.spans.append(block.lines)
        if names_place(block.owner):
            self.owned.append((block.lines[1], block.lines[-1], block.owner))
