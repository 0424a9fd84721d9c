"""Many questions at once, and those asked again, have the answers that each pattern gives to each message."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstfault.catalog import answers
from firstfault.catalog.answers import Answers
from firstfault.catalog.exact import ExactPattern
from firstfault.catalog.regex import parse, takes_digits_alike
from firstfault.catalog.together import Together

EVEN = (r"^step \d+ of (?P<steps>\d+)$", r"\b[0-9a-f]{4}:\d\d\b", r"lost")
UNEVEN = (
    r"Xid.*: 79\b",
    r"Xid: (?:9|79)\b",
    r"^Xid.*(?P<xid>12|79)",
    r"exit code (?:9|137)$",
    r"H100 is lost",
    r"[1-9]\d* errors",
)
REGEXES = (*EVEN, *UNEVEN)
PATTERNS = [ExactPattern(regex) for regex in REGEXES]


def _answers() -> Answers:
    together = [-1] * len(EVEN) + [0, 0, 0] + [-1] * (len(UNEVEN) - 3)
    even = [True] * len(EVEN) + [False] * len(UNEVEN)
    return Answers(PATTERNS.__getitem__, even, Together(REGEXES, together))


def test_a_pattern_that_names_digits_or_some_of_them_tells_them_apart() -> None:
    assert [takes_digits_alike(parse(regex)[0]) for regex in REGEXES] == [True] * len(EVEN) + [False] * len(UNEVEN)


@pytest.fixture(autouse=True)
def _every_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "FEW", 1)


def test_only_the_digits_asked_for_count() -> None:
    messages = pl.Series(
        ["Xid (0000:17): 79", "Xid (0000:18): 31", "7 errors", "0 errors", "step 7 of 9", "step x of 9"]
    )
    asked = [(3, 0), (3, 1), (8, 2), (8, 3), (0, 4), (0, 5), (1, 0), (1, 1)]
    known = _answers()
    for _ in range(2):
        numbers, which = np.array(asked).T
        assert known.hold(numbers, messages, which).tolist() == [True, False, True, False, True, False, True, True]


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                ["step ", "1", "12", "0", " of ", "9", "Xid: ", "79", "exit code ", "137", "é", "H100 is lost"]
            )
        ).map("".join),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 3),
)
def test_many_are_answered_as_one(texts: list[str], offset: int) -> None:
    messages = pl.Series([""] * offset + texts, dtype=pl.String)[offset:]
    asked = [(pattern, message) for pattern in range(len(PATTERNS)) for message in range(len(texts))]
    numbers, which = np.array(asked).T
    expected = [PATTERNS[pattern].search(texts[message]) is not None for pattern, message in asked]
    for _ in range(2):
        assert KNOWN.hold(numbers, messages, which).tolist() == expected


KNOWN = _answers()
