"""The rows that extraction makes out of lines that say something; everything else stays in columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

TEXT_LIMIT = 4096


class Own(NamedTuple):
    """What the header of a line says about its writer and its time."""

    level: str | None = None
    host: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    task: int | None = None
    pid: int | None = None
    gpu: int | None = None
    stamp_ns: int | None = None
    stamp_kind: str | None = None
    stamp_res_ns: int | None = None
    utc_offset_s: int | None = None


NOTHING = Own()


@dataclass(frozen=True, slots=True)
class About:
    """Who a record is about, where that is not who wrote it, and when it happened."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    attempt: int | None = None
    pid: int | None = None
    gpu: int | None = None
    level: str | None = None
    stamp_ns: int | None = None
    stamp_kind: str | None = None
    stamp_res_ns: int | None = None
    utc_offset_s: int | None = None


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A row of `signal_rows` before its source has a number. `pattern` is the matcher's number, -1 for none."""

    line: int
    event: str | None
    text: str
    entry: str | None = None
    fact: str | None = None
    cls: str | None = None
    role: str | None = None
    weak: bool = False
    first_line: int | None = None
    last_line: int | None = None
    pattern: int = -1
    captures: Mapping[str, str] = field(default_factory=dict)
    own: Own = NOTHING
    owner: Own | None = None  # who raised what the record says, where its line does not say so
    about: About | None = None
