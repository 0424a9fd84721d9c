"""The first bytes of texts, wherever the column keeps them."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstfault.ingest.text_bytes import first_bytes

TEXTS = st.lists(st.text(alphabet="abé\U0001f3d6 \0", max_size=60), min_size=1, max_size=40)


def expected(texts: list[str], width: int) -> list[list[int]]:
    return [list(text.encode()[:width].ljust(width, b"\xff")) for text in texts]


@settings(max_examples=100, deadline=None)
@given(texts=TEXTS, width=st.sampled_from([1, 8, 12, 13, 30, 40]), times=st.sampled_from([1, 30]))
def test_bytes_and_lengths(texts: list[str], width: int, times: int) -> None:
    texts = texts * times
    rows, lengths = first_bytes(pl.Series(texts, dtype=pl.String), width, 255)
    assert rows.tolist() == expected(texts, width)
    assert lengths.tolist() == [len(text.encode()) for text in texts]


@pytest.mark.parametrize("change", ["slice", "gather", "concat"])
def test_columns_that_were_cut_out_of_others(change: str) -> None:
    texts = [f"line {number} " * (number % 7) for number in range(1000)]
    column = pl.Series(texts)
    if change == "slice":
        texts, column = texts[100:900], column[100:900]
    elif change == "gather":
        texts, column = texts[::-3], column.gather(list(range(999, -1, -3)))
    else:
        texts, column = texts + texts[:500], pl.concat([column, column[:500]])
    rows, _ = first_bytes(column, 30, 255)
    assert rows.tolist() == expected(texts, 30)
