"""What was not read, not understood or put right on the way: one frozen row, and the words for its kind."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a problem matters for the answer."""

    INFO = "info"  # put right, nothing lost
    NOTICE = "notice"  # worth knowing
    DATA_LOSS = "data-loss"  # some of the content is missing from the timeline
    ERROR = "error"  # a whole source is missing


@dataclass(frozen=True, slots=True)
class Problem:
    """One row of `problems`; `source` is the path of the source that was opened, None where none was."""

    path: str
    kind: str
    severity: Severity
    detail: str
    line: int | None = None
    count: int = 1
    source: str | None = None
