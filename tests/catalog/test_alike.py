"""Lines that differ in their digits alone are searched once, and each is answered as if it had been searched itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstfault.catalog import Catalog, alike
from firstfault.catalog.alike import LineSearch
from firstfault.catalog.textsearch import TextSearch
from firstfault.catalog.triggers import derive

PATTERNS = (
    r"Xid \(PCI:[0-9a-f:.]+\): 79\b",
    r"Xid \(PCI:[0-9a-f:.]+\): (?:31|13)\b",
    r"^step (?P<step>\d+)\b",
    r"exit code: (?:137|9)$",
    r"number of nan iterations: [1-9]",
    r"(?i)h100 is lost",
    r"out of memory",
)


@pytest.fixture(autouse=True)
def _every_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "FEW", 1)


def search(*patterns: str) -> TextSearch:
    return TextSearch.of([derive(pattern) for pattern in patterns])


def pairs(found: tuple[np.ndarray, np.ndarray], chunk: bytes) -> set[tuple[int, int]]:
    """Lines and patterns."""
    ends, patterns = found
    newlines = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == 10)
    return set(zip(np.searchsorted(newlines, ends - 1).tolist(), patterns.tolist(), strict=True))


def each(one: TextSearch, chunk: bytes) -> set[tuple[int, int]]:
    """The same, every line searched by itself."""
    lines = chunk.split(b"\n")
    return {(at, pattern) for at, line in enumerate(lines) for pattern in one.scan(line)[1].tolist()}


def test_a_pattern_that_asks_for_certain_digits_finds_only_those() -> None:
    lines = [
        b"a fault 31 seen",
        b"a fault 79 seen",
        b"a fault 43 seen",
        b"A100 is lost",
        b"H100 is lost",
        b"H200 is lost",
    ]
    chunk = b"\n".join(lines * 9)
    searched = LineSearch(search(r"fault 79 seen", r"fault (?:31|13) seen", r"(?i)h100 is lost"))
    for _ in range(2):
        assert {(at % 6, pattern) for at, pattern in pairs(searched.scan(chunk), chunk)} == {(1, 0), (0, 1), (4, 2)}


def test_what_stands_in_the_neighbouring_lines_changes_nothing() -> None:
    one = search(r"^step (?P<step>\d+)\b", r"exit code: (?:137|9)$")
    lines = LineSearch(one)
    first, second = b"step 1\nexit code: 9\n", b"9\nstep 2\n7\nexit code: 8\nstep 3"
    for chunk in (first, second, first):
        assert pairs(lines.scan(chunk), chunk) == each(one, chunk)
    assert {(0, 0), (1, 1)} <= pairs(lines.scan(first), first)


def test_long_lines_are_searched_too() -> None:
    one = search(r"out of memory")
    chunk = b"short out of memory\n" + b"x" * 10_000 + b" out of memory\n" + b"short\n"
    assert pairs(LineSearch(one).scan(chunk), chunk) == {(0, 0), (1, 0)}


def test_pieces_of_a_line_each_have_their_hit_in_a_storm() -> None:
    one = search(r"out of memory")
    piece = b"out of memory" * 4 + b"\r"
    chunk = (piece * 40 + b"\n") * 60
    ends, _ = LineSearch(one).scan(chunk)
    assert len(ends) == 40 * 60
    assert len({end // len(piece) for end in ends.tolist()}) >= 40 * 59


def test_little_is_kept_and_what_is_forgotten_is_learnt_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "_MOST", 2)
    one = search(*PATTERNS)
    lines = LineSearch(one)
    chunk = b"".join(b"%c step 7 out of memory\n" % char for char in b"abcdefgh")
    for _ in range(3):
        assert pairs(lines.scan(chunk), chunk) == each(one, chunk)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_many_lines_are_answered_as_each_is_by_itself(catalog: Catalog, data: st.DataObject) -> None:
    known = [one.line.encode() for entry in catalog.entries.values() for one in (*entry.match, *entry.no_match)]
    chosen = data.draw(st.lists(st.sampled_from(known or [b"step 1"]), min_size=1, max_size=4))
    patterns = [*PATTERNS, *(one.regex for entry in catalog.entries.values() for one in entry.patterns)][:60]
    one = _SEARCHES.setdefault(0, search(*patterns))
    digits = data.draw(st.lists(st.binary(min_size=10, max_size=10), min_size=1, max_size=5))
    tables = [bytes.maketrans(b"0123456789", bytes(48 + byte % 10 for byte in some)) for some in digits]
    lines = [line.replace(b"\n", b" ").translate(table) for table in tables for line in (*chosen, b"step 5", b"")]
    chunk = b"\n".join(lines)
    searched = LineSearch(one)
    for _ in range(2):
        found = pairs(searched.scan(chunk), chunk)
        assert found == each(one, chunk)


_SEARCHES: dict[int, TextSearch] = {}
