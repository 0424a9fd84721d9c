"""The multi-pattern pass finds every format that a line can be, whatever stands in front of the line."""

from __future__ import annotations

import polars as pl
import pytest

from firstfault.ingest.format_load import fits
from firstfault.ingest.format_model import FormatKind
from firstfault.ingest.format_scan import Scanner, names_place, without_optional_head
from firstfault.ingest.formats import Formats

FRONT = (FormatKind.WRAPPER, FormatKind.HEADER, FormatKind.TAG)


@pytest.mark.parametrize("before", [0, 1, 20, 100, 1000])
def test_no_format_is_missed(formats: Formats, before: int) -> None:
    scanner = Scanner(formats.formats, "test")
    for line in formats.example_lines():
        where, what = scanner.scan(pl.Series(["x" * before, line, "next"]), with_details=True)
        found = {formats.formats[place].id for row, place in zip(where, what, strict=True) if row == 1}
        for one in formats.formats:
            place = one.kind in FRONT or (one.kind is FormatKind.DETAIL and names_place(one))
            if place and fits(one, line):
                assert one.id in found, (one.id, line)


def test_an_optional_head_becomes_two_patterns() -> None:
    assert without_optional_head(r"(?:\[[)]x(?:y)\])?(?:z)?ab") == [
        r"(?:\[[)]x(?:y)\])(?:z)ab", r"(?:\[[)]x(?:y)\])ab", "(?:z)ab", "ab",
    ]  # fmt: skip
    assert without_optional_head("(?:a|b)c") == ["(?:a|b)c"]
