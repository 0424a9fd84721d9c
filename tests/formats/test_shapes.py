"""Lines that look alike are peeled together; what comes out is what each line gives by itself."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstfault.ingest.format_reach import DIGIT, END, Reach
from firstfault.ingest.format_shapes import FEW
from firstfault.ingest.formats import PLAIN, Formats, SourceFormat

TAILS = ("", " ", "x", ": done", "45%|####  | 9/20 [00:10<00:12,  1.15s/it]", "ö", " é und mehr davon hinter dem Kopf")


def others(line: str, chance: random.Random) -> str:
    """The line with other digits."""
    return "".join(chance.choice("0123456789") if "0" <= one <= "9" else one for one in line)


def alike(lines: list[str], copies: int, seed: int) -> list[str]:
    """Every line several times, with other digits, other ends, and cut off."""
    chance = random.Random(seed)
    out = []
    for line in lines:
        line = line.replace("\n", " ")
        for form in (line, line + chance.choice(TAILS), line[: chance.randrange(len(line) + 1)]):
            out += [form, *(others(form, chance) for _ in range(copies - 1))]
    chance.shuffle(out)
    return out


def by_few(formats: Formats, lines: pl.Series, source: SourceFormat) -> pl.DataFrame:
    """What the lines give in portions so small that each line is looked at."""
    size = FEW - 1
    return pl.concat([formats.peel_many(lines[at : at + size], source) for at in range(0, len(lines), size)])


@pytest.mark.parametrize("believing", [False, True])
def test_examples_of_all_formats_many_times(formats: Formats, believing: bool) -> None:
    source = PLAIN.trusting(*(one.id for one in formats.formats if one.trust)) if believing else PLAIN
    lines = pl.Series(
        alike(formats.example_lines().to_list()[:: 4 if believing else 2], 5, seed=believing), dtype=pl.String
    )
    want = by_few(formats, lines, source)
    assert formats.peel_many(lines, source).equals(want)  # shapes are learnt
    assert formats.peel_many(lines, source).equals(want)  # and known


def test_each_line_follows_what_is_believed_of_its_own_source(formats: Formats) -> None:
    lines = pl.Series([f"{number % 7}: ready" for number in range(2 * FEW)])
    of = np.arange(len(lines)) % 2
    peeled = formats.peel_many(lines, [PLAIN, PLAIN.trusting("srun-label")], of)
    assert peeled["task"].to_list() == [number % 7 if number % 2 else None for number in range(len(lines))]
    assert peeled["message"].to_list() == [
        "ready" if number % 2 else f"{number % 7}: ready" for number in range(len(lines))
    ]


def test_digits_that_are_no_time_are_left_alone(formats: Formats) -> None:
    lines = ["2025-05-12 10:11:12,345 - a.b - INFO - x", "2025-13-12 10:11:12,345 - a.b - INFO - x"] * FEW
    peeled = formats.peel_many(pl.Series(lines))
    assert peeled["stamp_ns"].is_null().to_list() == [False, True] * FEW
    assert peeled["message"].unique().to_list() == ["x"]


def test_a_bar_in_front_of_a_glued_line_is_seen(formats: Formats) -> None:
    plain = "Fetching shard 11 of the cache, please wait here"
    glued = "Fetching  11%|###  | 9/20 [00:10<00:12,  1.15s/it][rank3]: died"
    peeled = formats.peel_many(pl.Series([plain, glued] * FEW))
    assert peeled["rank"].to_list() == [None, 3] * FEW
    assert peeled["message"].to_list() == [plain, "died"] * FEW


def test_bytes_that_a_pattern_looks_at() -> None:
    reach = Reach(r"\[rank(?P<rank>\d{1,3})\]: ?", 32)
    line = b"[rank000]: text".translate(None) + bytes((END,))
    assert reach.even
    assert reach.of(line, 0) == (12, True)  # what stands behind the blank decides nothing
    assert reach.of(b"[node0]: text", 0) == (3, False)
    assert reach.of(b"[rank00", 0) == (None, True)
    assert not Reach(r"\[[0-3]\]", 32).even
    assert Reach(r"a.*b", 32).of(b"a" * 20, 0) == (None, True)


HEADS = st.lists(st.sampled_from(("a", "1", "23", " ", ":", "[", "]", "-")), max_size=6).map("".join)


@settings(max_examples=200, deadline=None)
@given(head=HEADS, tails=st.tuples(st.text(max_size=5), st.text(max_size=5)), seed=st.integers(0, 9))
@pytest.mark.parametrize(
    "pattern", [r"\[?(?P<a>\w+)(?::(?P<b>\d+))?\]?(?: -)?", r"a+?:? *\d{2}\b", r"(?:a|\d)*?[ :]-?"]
)
def test_what_follows_the_bytes_changes_nothing(pattern: str, head: str, tails: tuple[str, str], seed: int) -> None:
    import re

    shape = "".join(chr(DIGIT) if one.isdigit() else one for one in head)
    far, may = Reach(pattern, 32).of(shape.encode(), 0)
    if far is None:
        return
    lines = (head + tails[0], others(head, random.Random(seed)) + tails[1])
    found = [re.match(pattern, line, re.ASCII) for line in lines]
    assert may or found == [None, None]
    assert len({None if one is None else one.span() for one in found}) == 1
