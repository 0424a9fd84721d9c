"""Owns the shapes of the format layer: a format as data, what is decided for a whole file, and one peeled line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

Value: TypeAlias = str | int | float | bool | None


class FormatKind(StrEnum):
    """Where a format stands on a line."""

    WRAPPER = "wrapper"  # something put in front by a collector, scheduler or launcher: peeling goes on behind it
    HEADER = "header"  # the program's own header: only tags may follow
    TAG = "tag"  # a rank in brackets that a framework puts behind or instead of a header
    JSON = "json"  # a line that is one JSON object: its message is peeled on
    DETAIL = "detail"  # a message that names the place it is about; searched in what remains
    PATH = "path"  # a file name that tells who wrote the file


@dataclass(frozen=True, slots=True)
class FormatExample:
    """A line and the fields that must come out of it, or a line the format must leave alone."""

    line: str
    expect: Mapping[str, Value] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True)
class LineFormat:
    """One format: a linear-time pattern whose group names are field names.

    A group `t_<shape>` is a stamp of that shape of `stamps.SHAPES`; `sev`, `pri` and `level` give the level; the text
    behind the pattern, or its group `rest`, is what remains.
    """

    id: str
    kind: FormatKind
    regex: str
    title: str = ""
    source: str = ""
    notes: str = ""
    trust: bool = False  # applies only in files where `sniff` found reason to believe it
    open: bool = False  # of a header: another header or a wrapper may follow, this one was a collector's
    own: bool = False  # of a detail: the places it names are the writer's own
    final: bool = False  # no tag may follow: what looks like one belongs to the message
    sniff: Mapping[str, Value] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # JSON: field to key paths, first that is there
    need: tuple[str, ...] = ()  # JSON: keys without which it is another format
    match: tuple[FormatExample, ...] = ()
    no_match: tuple[FormatExample, ...] = ()
    path: str = ""


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """What holds for all lines of one source, decided from a sample of it."""

    trusted: frozenset[str] = frozenset()
    tee_role: str | None = None
    task_means: str | None = None  # of srun labels: 'rank', 'node', None where only 'task' is sure
    year: int | None = None
    boot_ns: int | None = None
    why: str = ""

    def trusting(self, *formats: str) -> SourceFormat:
        return replace(self, trusted=self.trusted | set(formats))


PLAIN = SourceFormat()

PLACE_FIELDS = ("host", "rank", "local_rank", "pid", "gpu")


@dataclass(frozen=True, slots=True)
class Peeled:
    """One line without its wrappers and headers, and what they said."""

    message: str
    stamp_ns: int | None = None
    stamp_kind: str | None = None
    stamp_res_ns: int | None = None
    utc_offset_s: int | None = None
    collect_ns: int | None = None
    ts: str | None = None
    ts_collect: str | None = None
    level: str | None = None
    host: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    task: int | None = None
    pid: int | None = None
    tid: int | None = None
    gpu: int | None = None
    pod: str | None = None
    container: str | None = None
    stream: str | None = None
    ip: str | None = None
    mono_frac_ns: int | None = None
    mono_ns: int | None = None
    step: int | None = None
    about: Mapping[str, Value] = field(default_factory=dict)  # places that the message speaks of, not who wrote it
    format: str | None = None
    wrappers: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    fields: Mapping[str, Value] = field(default_factory=dict)

    def flat(self) -> dict[str, Value]:
        """Every field by its name, those of the message included."""
        out: dict[str, Value] = {**self.about, **self.fields}
        for name in (
            "ts",
            "ts_collect",
            "level",
            "host",
            "rank",
            "local_rank",
            "task",
            "pid",
            "tid",
            "gpu",
            "pod",
            "container",
            "stream",
            "ip",
            "step",
            "mono_frac_ns",
            "message",
        ):
            value = getattr(self, name)
            if value is not None or name not in out:
                out[name] = value
        if self.mono_ns is not None:
            out["mono_s"] = self.mono_ns / 1e9
        return out
