"""Wrapping by terminal cells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firstfault.report.layout import Piece, cells, cut, plain, wrapped


def texts(*pieces: Piece, width: int, indent: str = "", head: str | None = None) -> list[str]:
    return [plain(line) for line in wrapped(pieces, width, indent, None if head is None else Piece(head))]


def test_lines_break_at_blanks_and_hang_under_the_first() -> None:
    assert texts(Piece("one two three four"), width=14, indent="    ", head="fix ") == [
        "fix one two",
        "    three four",
    ]


def test_a_place_is_never_broken_and_keeps_its_blanks() -> None:
    assert texts(Piece("see "), Piece("my logs/a very long name.log:12", whole=True), width=20, indent="  ") == [
        "  see",
        "  my logs/a very long name.log:12",
    ]


def test_any_other_long_word_is_folded() -> None:
    assert texts(Piece("abcdefghij kl"), width=6, indent="  ") == ["  abcd", "  efgh", "  ij", "  kl"]


def test_wide_characters_count_twice_and_marks_not_at_all() -> None:
    assert (cells("日本"), cells("e\u0301"), cells("ab")) == (4, 1, 2)
    assert cut("日本語ログ", 5) == "日本…"
    assert texts(Piece("日本 語語"), width=6) == ["日本", "語語"]


@given(st.text(st.characters(exclude_characters=" ", exclude_categories=["C", "Z"]) | st.just(" ")), st.integers(6, 40))
def test_no_line_is_too_wide_and_no_word_is_lost(text: str, width: int) -> None:
    lines = texts(Piece(text), width=width, indent="  ", head="- ")
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()).removeprefix("-") == "".join(text.split())
