"""Lines of a report as styled pieces, wrapped by terminal cells, with hanging indents. Knows widths, nothing else."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text in one style: a name such as 'label' or 'dim', '' for plain. A whole piece breaks at no blank."""

    text: str
    style: str = ""
    whole: bool = False


Line = tuple[Piece, ...]


def plain(line: Line) -> str:
    """A line without its styles."""
    return "".join(piece.text for piece in line).rstrip()


def cells(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def wrapped(pieces: Iterable[Piece], width: int, indent: str = "", head: Piece | None = None) -> Iterator[Line]:
    """Pieces as lines of at most `width` cells; the first line begins with `head`, the others with `indent`.

    What is longer than a line is folded, but for whole pieces: places have to survive a copy.
    """
    lead = head or Piece(indent)
    line, used, empty = [lead], cells(lead.text), True
    for word in _words(pieces):
        size = sum(cells(piece.text) for piece in word)
        if not empty and used + 1 + size > width:
            yield _merged(line)
            line, used, empty = [Piece(indent)], cells(indent), True
        while size > width - used and empty and len(word) == 1 and not word[0].whole:
            end = _fitting(word[0].text, width - used)
            yield _merged([*line, Piece(word[0].text[:end], word[0].style)])
            word = [Piece(word[0].text[end:], word[0].style)]
            line, used, size = [Piece(indent)], cells(indent), cells(word[0].text)
        if not empty:
            same = bool(word) and word[0].style == line[-1].style
            line.append(Piece(" ", line[-1].style if same else ""))
            used += 1
        line.extend(word)
        used += size
        empty = empty and not word
    yield _merged(line)


def _merged(line: Iterable[Piece]) -> Line:
    """A line whose neighbours of one style are one piece."""
    merged: list[Piece] = []
    for piece in line:
        if merged and merged[-1].style == piece.style:
            merged[-1] = Piece(merged[-1].text + piece.text, piece.style)
        elif piece.text:
            merged.append(piece)
    return tuple(merged)


def _words(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """What must stay together, cut at the blanks of pieces that are not whole."""
    words: list[list[Piece]] = [[]]
    for piece in pieces:
        for number, part in enumerate([piece.text] if piece.whole else piece.text.split(" ")):
            if number:
                words.append([])
            if part:
                words[-1].append(Piece(part, piece.style, piece.whole))
    return words


def cut(text: str, room: int) -> str:
    """Text of at most `room` cells, with an ellipsis where something is missing."""
    return text if cells(text) <= room else text[: _fitting(text, room - 1)] + "…"


def _fitting(text: str, room: int) -> int:
    """How many characters fit into so many cells, one at least."""
    used = 0
    for number, char in enumerate(text):
        used += cells(char)
        if used > room:
            return max(1, number)
    return len(text)
