"""What is told of a pattern without running it never rules out a line that the pattern matches."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstfault.ingest.format_front import ALL, BEHIND, END, WIDTH, Gate, masks_of, table_of, text_of, windows
from firstfault.ingest.format_load import fits
from firstfault.ingest.format_model import FormatKind
from firstfault.ingest.format_peel import names_place
from firstfault.ingest.format_regex import for_line
from firstfault.ingest.formats import Formats


def test_no_format_is_ruled_out_on_a_line_that_it_fits(formats: Formats) -> None:
    lines = formats.example_lines()
    window = windows(lines)
    for one in formats.formats:
        if one.kind in (FormatKind.DETAIL, FormatKind.PATH, FormatKind.JSON):
            continue
        table = table_of(one.regex)
        admitted = table[range(WIDTH), window].all(axis=1)
        for line, good in zip(lines, admitted, strict=True):
            assert good or not fits(one, line), (one.id, line)


def test_every_detail_is_found_by_its_text(formats: Formats) -> None:
    for one in formats.formats:
        if one.kind is FormatKind.DETAIL and names_place(one):
            text = text_of(one.regex)
            assert len(text) >= 3, one.id
            assert all(text in it.line for it in one.match), one.id


@pytest.mark.parametrize(
    ("pattern", "first", "second"),
    [
        ("ab", "a", "b"),
        ("a?b", "ab", None),
        ("(?:a|bc)d", "ab", "cd"),
        (r"\[\d", "[", "0123456789"),
        ("a*b", "ab", None),
    ],
)
def test_masks(pattern: str, first: str, second: str | None) -> None:
    masks = masks_of(pattern)
    assert {chr(bit) for bit in range(256) if masks[0] >> bit & 1} == set(first)
    if second is not None:
        assert {chr(bit) for bit in range(256) if masks[1] >> bit & 1} == set(second)
    assert masks[-1] == ALL


def test_windows_know_the_end_of_the_line() -> None:
    end = BEHIND
    assert windows(pl.Series(["ab", "", "é"]))[:, :3].tolist() == [[97, 98, end], [end, end, end], [0xC3, 0xA9, end]]
    assert END == 1 << 256


@pytest.mark.parametrize("repeat", [1, 200])
def test_a_gate_admits_what_every_single_table_admits(formats: Formats, repeat: int) -> None:
    patterns = [one.regex for one in formats.formats if one.kind in (FormatKind.WRAPPER, FormatKind.HEADER)]
    lines = formats.example_lines()
    lines = pl.concat([lines[:150]] * repeat) if repeat > 1 else lines[:90]
    admitted, window = Gate(patterns).admitted(lines), windows(lines)
    for number, pattern in enumerate(patterns):
        single = table_of(pattern)[range(WIDTH), window].all(axis=1)
        assert ((admitted[number // 64] >> np.uint64(number % 64) & np.uint64(1)) == single).all(), pattern


PATTERNS = (r"[^x]{1,3}y", r"\[(?:a|bc)?\] ?z", r"\w+: ", r"(?:ab){2}c*\d", r".*q", r"é+x", r"[^\]]+\]")


@settings(max_examples=200, deadline=None)
@given(line=st.text(alphabet="abcxyzq[]: é🏖1\r", max_size=40), pattern=st.sampled_from(PATTERNS))
def test_tables_admit_all_matches(line: str, pattern: str) -> None:
    if for_line(pattern).match(line):
        window = windows(pl.Series([line]))
        assert table_of(pattern)[range(WIDTH), window[0]].all()
