"""Bytes to lines: every byte has its line, whatever the bytes and however they are cut."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstfault.ingest.frame import LONG, Chunk, chunks, fold, frame, piece, series

LOGGED = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from(
            [b"\n", b"\r", b"\r\n", b"\0", b"\xff\xfe", b"\xe2\x82", "é€".encode(), b"\x1b[31m", b"x" * 70]
        ),
    ),
    max_size=30,
).map(b"".join)


def framed(data: bytes, size: int = 1 << 20, bound: int = 65536, long: int = LONG) -> list[tuple[int, int, str]]:
    """Offset, length and text of every line."""
    found = []
    for chunk in chunks(io.BytesIO(data), size, bound, long=long):
        lines = frame(chunk)
        texts = series(lines.text, lines.ends).to_list()
        found += list(zip(lines.offsets.tolist(), lines.lengths.tolist(), texts, strict=True))
    return found


def expected(data: bytes) -> list[tuple[int, int]]:
    """Offset and length of every line, split the plain way."""
    pieces = data.split(b"\n")
    if pieces[-1] == b"":
        pieces.pop()
    spans, at = [], 0
    for one in pieces:
        spans.append((at, len(one)))
        at += len(one) + 1
    return spans


@given(LOGGED)
def test_lines_give_back_the_bytes_of_the_file(data: bytes) -> None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = b"\n" + data
    spans = [(offset, length) for offset, length, _ in framed(data)]
    joined = b"\n".join(data[offset : offset + length] for offset, length in spans)
    assert spans == expected(data)
    assert joined == data.removesuffix(b"\n")


@given(LOGGED, st.integers(min_value=2, max_value=200), st.integers(min_value=4, max_value=80))
def test_the_size_of_chunks_changes_nothing(data: bytes, size: int, long: int) -> None:
    assert framed(data, size, 8, long) == framed(data, 1 << 20, 8, long)


@given(
    st.lists(st.sampled_from(["\n", "a", "\u00e9", "\u4e2d", "step 7\n", "x" * 30]), max_size=30).map("".join),
    st.booleans(),
)
def test_nor_does_it_where_characters_are_wide(text: str, big: bool) -> None:
    data = ("\ufeff" + text).encode("utf-16-be" if big else "utf-16-le")
    for size in (2, 10, 64):
        assert framed(data, size, 8, 20) == framed(data, 1 << 20, 8, 20)


@given(LOGGED)
def test_any_bytes_become_valid_text(data: bytes) -> None:
    for _, _, text in framed(data):
        assert "\n" not in text
        assert "\0" not in text


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0\x1b\ufeff"), max_size=40), st.booleans()
)
def test_wide_text_is_read_by_its_mark(text: str, big: bool) -> None:
    encoding = "utf-16-be" if big else "utf-16-le"
    data = ("\ufeff" + text + "\nsecond\n").encode(encoding)
    lines = framed(data)
    assert [line[2] for line in lines] == [text, "second"]
    assert lines[1][0] == len(("\ufeff" + text + "\n").encode(encoding))


def test_only_newlines_end_lines() -> None:
    assert [text for _, _, text in framed("a\u2028b\x0bc\x85\nd\r\n\ne".encode())] == [
        "a\u2028b\x0bc\x85",
        "d",
        "",
        "e",
    ]


def test_damage_is_shown_and_keeps_its_line() -> None:
    [chunk] = chunks(io.BytesIO(b"good\nba\xffd\n\xe2\x82\nend\n"), 1 << 20, 65536)
    lines = frame(chunk)
    assert series(lines.text, lines.ends).to_list() == ["good", "ba\ufffdd", "\ufffd", "end"]
    assert lines.undecodable.tolist() == [1, 2]


def test_colours_and_holes_are_taken_out() -> None:
    data = b"\x1b[36m(Worker pid=7)\x1b[0m hello\n\0\0\0\0after a hole\n\x1b]0;title\x07shell\n"
    assert [text for _, _, text in framed(data)] == ["(Worker pid=7) hello", "after a hole", "shell"]


def test_a_line_longer_than_a_chunk_keeps_both_ends_and_its_length() -> None:
    data = b"first\n" + b"A" * 5000 + b"B" * 5000 + b"\nlast"
    lines = framed(data, size=512, bound=100, long=2000)
    assert [(offset, length) for offset, length, _ in lines] == [(0, 5), (6, 10000), (10007, 4)]
    assert lines[1][2] == "A" * 50 + "B" * 50
    assert lines[2][2] == "last"


@pytest.mark.parametrize(
    ("line", "last"),
    [
        ("10%|#  | 1/9 [00:01<00:08]\r20%|## | 2/9 [00:02<00:07]\r", "20%|## | 2/9 [00:02<00:07]"),
        ("downloading\rdone", "done"),
        ("text\r   \r  ", "text"),
        ("plain", "plain"),
        ("\r 12%|#| 12/100 [00:01<00:09, 9.5it/s][rank3]:[E x.cpp:6] boom", "[rank3]:[E x.cpp:6] boom"),
        ("12%|#| 12/100 [00:01<00:09, 9.5it/s]", "12%|#| 12/100 [00:01<00:09, 9.5it/s]"),
    ],
)  # fmt: skip
def test_the_last_piece_of_a_line_is_its_text(line: str, last: str) -> None:
    import polars as pl

    assert fold(pl.Series([line])).to_list() == [last]


def test_a_hit_is_looked_for_in_its_own_piece() -> None:
    text = b"1%|#| 1/9 [00:01]RuntimeError: lost\r2%|#| 2/9 [00:02]\n"
    assert piece(text, 0, len(text) - 1, text.find(b"lost") + 4, 100) == b"RuntimeError: lost"
    assert piece(text, 0, len(text) - 1, text.find(b"2/9") + 3, 100) == b"2%|#| 2/9 [00:02]"
    assert piece(b"one piece\n", 0, 9, 5, 100) is None


@given(
    data=st.lists(
        st.sampled_from([b"\n", b"a", b"\xc3", b"\xa9", b"\xff", b"\xe2\x82", b"\xac", b"\xf0\x9f"]), max_size=60
    )
)
def test_damage_is_mended_piece_by_piece_as_in_one_go(data: list[bytes]) -> None:
    text = b"".join(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firstfault.ingest.frame._PIECE", 4)
        assert frame(Chunk(text or b"\n", 1)).text.rstrip(b"\n") == text.decode("utf-8", "replace").encode().rstrip(
            b"\n"
        )
