"""Owns peeling one line, with every field that a format or the message itself names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from firstfault.ingest import format_json, stamps
from firstfault.ingest.format_load import fits
from firstfault.ingest.format_model import PLACE_FIELDS, PLAIN, FormatKind, LineFormat, Peeled, SourceFormat, Value
from firstfault.ingest.format_peel import fix_tee_role
from firstfault.ingest.format_regex import REST, for_line, has_rest
from firstfault.ingest.format_shapes import MAX_ROUNDS
from firstfault.ingest.format_state import INT_COLUMNS, SMALL, TEXT_FIELDS
from firstfault.ingest.format_text import clean_line
from firstfault.ingest.format_words import FLOAT_FIELDS, INT_FIELDS, LEVEL_GROUPS, base_name, level_of
from firstfault.ingest.stamps import NO_OFFSET, StampKind

_FRONT = (FormatKind.WRAPPER, FormatKind.HEADER, FormatKind.TAG, FormatKind.JSON)


class _Line:
    """What is known of one line so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.known: dict[str, Any] = {}
        self.fields: dict[str, Value] = {}
        self.wrappers: list[str] = []
        self.headers: list[str] = []
        self.format: str | None = None

    def take(self, groups: dict[str, str | None]) -> None:
        for group, value in groups.items():
            name = base_name(group)
            if value is None or name in REST:
                continue
            if name.startswith("t_"):
                self.take_stamp(name[2:], value)
            elif name in LEVEL_GROUPS:
                self.known["level"] = level_of(name, value) or self.known.get("level")
            elif name in INT_COLUMNS:
                number = as_place(value, small=name in SMALL)
                if number is not None:
                    self.known[name] = number
            elif name in TEXT_FIELDS:
                self.known[name] = value
            else:
                self.fields[name] = as_value(name, value)

    def take_stamp(self, shape: str, text: str) -> None:
        found = stamps.parse(pl.Series([text]), shape)
        kind = StampKind(int(found.kind[0]))
        before = self.known.get("kind", StampKind.NONE)
        if kind is StampKind.NONE:
            return
        if kind is StampKind.MONOTONIC:
            self.known["mono_ns"] = int(found.ns[0])
            if before not in (StampKind.NONE, StampKind.MONOTONIC):
                return
        if before not in (StampKind.NONE, StampKind.MONOTONIC):
            offset = self.known["offset"]
            if offset is not None and "collect_ns" not in self.known:
                self.known["collect_ns"] = self.known["ns"] - offset * stamps.SECOND
            if "ts_collect" not in self.known:
                self.known["ts_collect"] = stamps.iso(self.known["ns"], self.known["res"], offset)
        offset = int(found.offset[0])
        self.known.update(
            ns=int(found.ns[0]), res=int(found.res[0]), kind=kind, offset=None if offset == NO_OFFSET else offset
        )
        if shape == "c10":
            self.known["mono_frac_ns"] = int(found.frac[0])


def as_value(name: str, text: str) -> Value:
    """A field's text as the number it is, where the field holds numbers."""
    if name in INT_FIELDS:
        digits = text.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) < 40:
            return int(text)
    if name in FLOAT_FIELDS:
        try:
            return float(text)
        except ValueError:
            return text
    return text


def read_path(formats: Sequence[LineFormat], path: str) -> dict[str, Value]:
    """What a file name says about who wrote the file."""
    for one in formats:
        if one.kind is FormatKind.PATH and (match := for_line(one.regex).search(path)):
            found = {base_name(group): value for group, value in match.groupdict().items() if value is not None}
            return {name: as_value(name, value) for name, value in found.items()}
    return {}


def peel(formats: Sequence[LineFormat], text: str, source: SourceFormat = PLAIN) -> Peeled:
    """One line, peeled by the formats in their order."""
    line = _Line(clean_line(text))
    ordered = [one for one in formats if one.trust and one.id in source.trusted]
    ordered += [one for one in formats if not one.trust]
    used: set[str] = set()
    last = ""
    closed = False
    for _ in range(MAX_ROUNDS):
        for one in ordered:
            if one.kind not in _FRONT or one.id in used or (one.open and one.id == last):
                continue
            if closed and one.kind is not FormatKind.TAG:
                continue
            if _apply(one, line):
                break
        else:
            break
        last = one.id
        if one.kind in (FormatKind.WRAPPER, FormatKind.JSON):
            used.add(one.id)
        elif not one.open:
            closed = True
        if one.final:
            break
    if source.tee_role and source.tee_role[-1].isdigit() and "role" in line.fields:
        fixed = fix_tee_role(str(line.fields["role"]), line.known.get("local_rank", 0), source.tee_role)
        line.known["local_rank"], line.fields["role"] = fixed, source.tee_role
    about = _details(formats, line)
    return _made(line, source, about)


def _apply(one: LineFormat, line: _Line) -> bool:
    if one.kind is FormatKind.JSON:
        if not fits(one, line.text):
            return False
        found = format_json.extract(one, pl.Series([line.text], dtype=pl.String)).row(0, named=True)
        if found["rest"] is None:
            return False
        line.take(found)
        line.text = found["rest"]
    else:
        whole = has_rest(one.regex)
        match = for_line(f"(?:{one.regex})$" if whole else one.regex).match(line.text)
        if match is None:
            return False
        groups = match.groupdict()
        line.take(groups)
        line.text = next(groups[name] for name in REST if name in groups) if whole else line.text[match.end() :]
    (line.headers if one.kind is FormatKind.HEADER else line.wrappers).append(one.id)
    if one.kind is not FormatKind.TAG or line.format is None:
        line.format = one.id
    return True


def _details(formats: Sequence[LineFormat], line: _Line) -> dict[str, Value]:
    """Takes what the message names. Places that it is about and that are not the writer's own are the result."""
    about: dict[str, Value] = {}
    for one in formats:
        if one.kind is not FormatKind.DETAIL:
            continue
        match = for_line(one.regex).search(line.text)
        if match is None:
            continue
        for group, value in match.groupdict().items():
            name = base_name(group)
            if value is None:
                continue
            if name in PLACE_FIELDS:
                places = line.known if one.own else about
                number = value if name == "host" else as_place(value, small=name in SMALL)
                if number is not None:
                    places.setdefault(name, number)
            elif name.startswith("t_"):
                if "ns" not in line.known:
                    line.take_stamp(name[2:], value)
            else:
                line.fields.setdefault(name, as_value(name, value))
    return about


def as_place(text: str, small: bool) -> int | None:
    """A number that a column of the timeline can hold."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
    return number if 0 <= number < (2**31 if small else 2**63) else None


def _made(line: _Line, source: SourceFormat, about: dict[str, Value]) -> Peeled:
    known = line.known
    kind: StampKind = known.get("kind", StampKind.NONE)
    ns = known.get("ns")
    text: str | None = None
    if ns is not None:
        if kind is StampKind.NO_YEAR and source.year is not None:
            filled = int(stamps.fill_year(pl.Series([ns]).to_numpy(), source.year)[0])
            text = stamps.iso(filled, known["res"], None)
        elif kind is StampKind.MONOTONIC:
            text = None if source.boot_ns is None else stamps.iso(source.boot_ns + ns, known["res"], 0)
        else:
            text = stamps.iso(ns, known["res"], known["offset"])
    return Peeled(
        message=line.text, stamp_ns=ns, stamp_kind=kind.word, stamp_res_ns=known.get("res"),
        utc_offset_s=known.get("offset"), collect_ns=known.get("collect_ns"), ts=text,
        ts_collect=known.get("ts_collect"), level=known.get("level"), host=known.get("host"), rank=known.get("rank"),
        local_rank=known.get("local_rank"), task=known.get("task"), pid=known.get("pid"), tid=known.get("tid"),
        gpu=known.get("gpu"), pod=known.get("pod"), container=known.get("container"), stream=known.get("stream"),
        ip=known.get("ip"), mono_frac_ns=known.get("mono_frac_ns"), mono_ns=known.get("mono_ns"),
        step=known.get("step"), about=about,
        format=line.format, wrappers=tuple(line.wrappers), headers=tuple(line.headers), fields=line.fields,
    )  # fmt: skip
