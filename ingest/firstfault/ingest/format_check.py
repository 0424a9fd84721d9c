"""Owns the checks of format files.

Each pattern runs in both engines, finds its examples with their fields, leaves its near misses alone, and wins its own
lines against all other formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from firstfault.catalog.regex import PatternError, parse
from firstfault.ingest.format_front import text_of
from firstfault.ingest.format_load import fits, meetings
from firstfault.ingest.format_model import PLAIN, FormatKind, LineFormat, Value
from firstfault.ingest.format_one import peel, read_path
from firstfault.ingest.format_peel import names_place
from firstfault.ingest.format_regex import GROUP, for_line, for_polars, has_rest
from firstfault.ingest.format_words import base_name
from firstfault.ingest.stamps import SHAPES

_MARKS = (FormatKind.WRAPPER, FormatKind.HEADER, FormatKind.TAG)


def check(formats: Sequence[LineFormat]) -> list[str]:
    """What is wrong with the formats, one line each, the file in front."""
    found = [f"{one.path}: {one.id}: {what}" for one in formats for what in _of_one(one)]
    if not found:
        found = [f"{one.path}: {one.id}: {what}" for one in formats for what in _examples(one, formats)]
        found += [f"{one}: {other}: each matches the examples of the other" for one, other in twins(formats)]
    return sorted(found)


def twins(formats: Sequence[LineFormat]) -> list[tuple[str, str]]:
    """Formats between which the examples cannot decide; where a format is taken on trust, the file decides."""
    hits = meetings([one for one in formats if one.kind in _MARKS and not one.trust])
    return sorted((one, other) for one in hits for other in hits[one] if one < other and one in hits[other])


def _of_one(one: LineFormat) -> Iterator[str]:
    if not one.match:
        yield "no [[match]]"
    if not one.no_match:
        yield "no [[no_match]]"
    if not one.title:
        yield "no title"
    if not one.source and not one.notes:
        yield "neither a source nor a note on where the shape comes from"
    if one.kind is FormatKind.JSON:
        if "message" not in one.keys and not one.final:
            yield "a JSON format without a message is final"
        names = list(one.keys)
    else:
        yield from _pattern(one)
        names = GROUP.findall(one.regex)
    for name in names:
        base = base_name(name)
        if base.startswith("t_") and base[2:] not in SHAPES:
            yield f"{name}: no such shape of a stamp"
    if one.trust and not one.sniff and not one.notes:
        yield "believed on trust, but nothing says what a file must show"
    if one.open and one.kind is not FormatKind.HEADER:
        yield "only a header can be open"
    if one.own and one.kind is not FormatKind.DETAIL:
        yield "only a detail can speak of its own places"


def _pattern(one: LineFormat) -> Iterator[str]:
    try:
        parse(one.regex)
        for_line(one.regex)
        pl.Series([""]).str.extract_groups(f"^(?:{for_polars(one.regex)})")
    except (PatternError, ValueError, pl.exceptions.PolarsError) as error:
        yield f"pattern refused: {error}"
        return
    if one.kind is FormatKind.DETAIL and names_place(one) and len(text_of(one.regex)) < 3:
        yield "no text of three characters that every match holds"
    if one.kind in _MARKS and one.regex.startswith("^"):
        yield "stands at the start of a line by its kind, without '^'"
    if one.kind in _MARKS and for_line(one.regex).match("") is not None:
        yield "matches the empty line"


def _examples(one: LineFormat, formats: Sequence[LineFormat]) -> Iterator[str]:
    source = PLAIN.trusting(one.id) if one.trust else PLAIN
    for example in one.match:
        if not fits(one, example.line) and one.kind is not FormatKind.TAG and not _behind(one, example.line, formats):
            yield f"does not match {example.line!r}"
            continue
        if one.kind is FormatKind.PATH:
            got: dict[str, Value] = read_path(formats, example.line)
            taken = True
        else:
            peeled = peel(formats, example.line, source)
            got = peeled.flat()
            taken = one.kind is FormatKind.DETAIL or one.id in (*peeled.wrappers, *peeled.headers)
        if not taken:
            yield f"another format takes {example.line!r}"
        for name, value in example.expect.items():
            if got.get(name) != value:
                yield f"{name} of {example.line!r} is {got.get(name)!r}, not {value!r}"
    for example in one.no_match:
        if one.kind is FormatKind.JSON:
            continue
        pattern = f"(?:{one.regex})$" if has_rest(one.regex) else one.regex
        anchored = one.kind not in (FormatKind.DETAIL, FormatKind.PATH)
        match = for_line(pattern).match(example.line) if anchored else for_line(pattern).search(example.line)
        if match is not None:
            yield f"matches the near miss {example.line!r}"


def _behind(one: LineFormat, line: str, formats: Sequence[LineFormat]) -> bool:
    """Whether the format applies behind the wrappers of the line."""
    peeled = peel(formats, line)
    return one.id in (*peeled.wrappers, *peeled.headers) or one.kind is FormatKind.DETAIL
