"""The exact pattern gives the same answer for one message and for a column of them."""

from __future__ import annotations

import random

import polars as pl
import pytest

from firstfault.catalog import load_catalog
from firstfault.catalog.exact import ExactPattern

MANY = 40
"""Enough messages for the column engine."""


def both(regex: str, messages: list[str]) -> None:
    """Ask one by one and all together."""
    exact = ExactPattern(regex)
    single = [exact.search(message) for message in messages]
    column = pl.Series(messages, dtype=pl.String)
    held = exact.holds(column)
    assert held.tolist() == [captures is not None for captures in single]
    found = [message for message, there in zip(messages, held.tolist(), strict=True) if there]
    expected = [captures for captures in single if captures is not None]
    assert exact.captures(pl.Series(found, dtype=pl.String)) == expected
    assert exact.captures(pl.Series(found * MANY, dtype=pl.String)) == expected * MANY


@pytest.mark.parametrize(
    ("regex", "message", "captures"),
    [
        (r"rank (?P<rank>\d+)", "rank 3", {"rank": "3"}),
        (r"rank (?P<rank>\d+)", "rank ٣", None),
        (r"\bgone\b", "peer é gone", {}),
        (r"\bgone\b", "égone", {}),
        (r"lost (?P<peer>\w+)|peer (?P<peer2>\S+) lost", "peer a:1 lost", {"peer": "a:1"}),
        (r"^[\w~&[]+ {a}$", "x~[& {a}", {}),
        (r"code (?P<code>\d+)?", "code ", {}),
        (r"(?i)k\s", "K\N{NO-BREAK SPACE}", None),
    ],
)
def test_a_column_means_what_a_line_means(regex: str, message: str, captures: dict[str, str] | None) -> None:
    exact = ExactPattern(regex)
    assert exact.search(message) == captures
    column = pl.Series([message] * MANY)
    assert exact.holds(column).tolist() == [captures is not None] * MANY
    if captures is not None:
        assert exact.captures(column) == [captures] * MANY


def test_all_patterns_of_the_catalog_mean_the_same_in_both_engines() -> None:
    catalog = load_catalog()
    own = [
        (pattern.regex, [one.line for one in (*entry.match, *entry.no_match)])
        for entry in catalog.entries.values()
        for pattern in entry.patterns
    ]
    own += [(fact.regex, [one.line for one in (*fact.match, *fact.no_match)]) for fact in catalog.facts.values()]
    lines = sorted({line for _, some in own for line in some})
    chance = random.Random(1)
    for regex, some in own:
        both(regex, [*some, *(f"{line} é٣ 5" for line in some), *chance.sample(lines, MANY)])
