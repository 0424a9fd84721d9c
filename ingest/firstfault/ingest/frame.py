"""Bytes to lines: where each line lies in its source, and its text as clean UTF-8.

Lines end with `\\n` and with nothing else; offsets and lengths speak of the decompressed bytes as they are.
The text of a line is what is left when damage is replaced by U+FFFD and NUL bytes and colours are taken out.
Carriage returns stay in it: a progress bar is one line of many pieces, and `fold` takes the piece that was seen last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from firstfault.ingest.stages import count, stage

Positions = npt.NDArray[np.int64]

_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78DEHMNOcZ])"
)
_BAR = re.compile(rb"\d%\|[^|\r\n]{0,400}\|[^\[\r\n]{0,200}\[[^\]\r\n]{0,300}\]")
_PIECE = 32 << 10
LONG = 1 << 20
"""Bytes beyond which a line is not read as a whole, whatever the size of chunks."""
_RETURN, _PERCENT, _BAR_SIDE = b"\r%|"
_GLUED = r"(?s)^.*\d%\|[^|\r]{0,400}\|[^\[\r]{0,200}\[[^\]\r]{0,300}\] *(\S.*)$"


class Stream(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of whole lines of a source. `long` has, by index, the true length of a line that was cut while read."""

    data: bytes
    offset: int
    encoding: str = "utf-8"
    long: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of one chunk. `text` has exactly one `\\n` after each line; `ends` are their positions in it."""

    offsets: Positions
    lengths: Positions
    text: bytes
    ends: Positions
    undecodable: Positions
    cut: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets)


def chunks(stream: Stream, size: int, bound: int, offset: int = 0, long: int = LONG) -> Iterator[Chunk]:
    """Cut a stream into chunks of about `size` bytes that end with a line, whatever the stream holds.

    `offset` is where the stream begins in its source. A line of up to `long` bytes lies in one chunk, however small
    chunks are; of a longer one its two ends are kept, `bound` bytes together.
    """
    size = max(size, 2)
    pending = _read(stream, size)
    encoding = encoding_of(pending) if offset == 0 else "utf-8"
    ended = len(pending) < size
    while pending:
        cut = _last_newline(pending, encoding)
        while cut < 0 and not ended and len(pending) <= long:
            wanted = max(size, len(pending)) & ~1
            more = _read(stream, wanted)
            ended = len(more) < wanted
            pending += more
            cut = _last_newline(pending, encoding)
        if ended:
            yield from _shortened(Chunk(pending, offset, encoding), bound, long)
            return
        if cut < 0:
            chunk, pending, length = _long_line(stream, pending, size, encoding, offset, bound)
            yield chunk
            offset += length
        else:
            yield from _shortened(Chunk(pending[:cut], offset, encoding), bound, long)
            offset += cut
            pending = pending[cut:]
        if len(pending) < size:
            more = _read(stream, size - len(pending))
            ended = len(more) < size - len(pending)
            pending += more


def _shortened(chunk: Chunk, bound: int, long: int) -> Iterator[Chunk]:
    """The chunk, its lines beyond `long` cut out of it and cut down to their ends."""
    data, encoding = chunk.data, chunk.encoding
    if len(data) <= long:
        yield chunk
        return
    unit = _unit(encoding)
    ends = _newlines(data, encoding)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends + unit])
    stops = np.append(ends, len(data))
    at = 0
    for row in np.flatnonzero(stops - starts > long).tolist():
        start, stop = int(starts[row]), int(stops[row])
        if start > at:
            yield Chunk(data[at:start], chunk.offset + at, encoding)
        line, after = data[start:stop], min(stop + unit, len(data))
        half = _half(bound)
        text = _ends(line[:half], line[-half:], after > stop, encoding)
        yield Chunk(text, chunk.offset + start, encoding, ((0, stop - start),))
        at = after
    if at < len(data):
        yield Chunk(data[at:], chunk.offset + at, encoding)


def _half(bound: int) -> int:
    return max(bound // 2, 2) & ~1


def _ends(head: bytes, tail: bytes, ended: bool, encoding: str) -> bytes:
    """The two ends of a line as one, without the halves of characters that were cut."""
    text = head.decode(encoding, "ignore") + tail.decode(encoding, "ignore") + ("\n" if ended else "")
    return text.encode(encoding, "ignore")


@stage("read")
def _read(stream: Stream, size: int) -> bytes:
    """As many bytes as asked for, less only at the end of the stream."""
    parts, missing = [], size
    while missing > 0 and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    count("read", size - missing)
    return b"".join(parts)


def encoding_of(head: bytes) -> str:
    """The encoding that the first bytes of a source announce."""
    if head.startswith(b"\xff\xfe") and not head.startswith(b"\xff\xfe\0\0"):
        return "utf-16-le"
    return "utf-16-be" if head.startswith(b"\xfe\xff") else "utf-8"


def _unit(encoding: str) -> int:
    return 1 if encoding == "utf-8" else 2


def _newlines(data: bytes, encoding: str = "utf-8") -> Positions:
    """Offsets of the line ends."""
    if encoding == "utf-8":
        return np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10).astype(np.int64)
    kind = "<u2" if encoding == "utf-16-le" else ">u2"
    units = np.frombuffer(data, dtype=kind, count=len(data) // 2)
    return np.flatnonzero(units == 10).astype(np.int64) * 2


def _last_newline(data: bytes, encoding: str) -> int:
    """Position after the last line end of a chunk that starts on a character, -1 where there is none."""
    if encoding == "utf-8":
        return data.rfind(b"\n") + 1 or -1
    found = _newlines(data, encoding)
    return int(found[-1]) + 2 if len(found) else -1


def _long_line(
    stream: Stream, pending: bytes, size: int, encoding: str, offset: int, bound: int
) -> tuple[Chunk, bytes, int]:
    """Read to the end of a line that is longer than a chunk: the chunk of that line, what follows, bytes consumed."""
    unit, half = _unit(encoding), _half(bound)
    head, tail = pending[:half], pending[-half:]
    length, rest, ended = len(pending), _read(stream, size), False
    while rest:
        found = _newlines(rest, encoding)
        stop = int(found[0]) if len(found) else len(rest)
        tail = (tail + rest[:stop])[-half:] if stop < half else rest[stop - half : stop]
        length += stop
        if len(found):
            rest, ended = rest[stop + unit :], True
            break
        rest = _read(stream, size)
    data = _ends(head, tail[-half:], ended, encoding)
    return Chunk(data, offset, encoding, ((0, length),)), rest, length + (unit if ended else 0)


@stage("frame")
def frame(chunk: Chunk) -> Lines:
    """The lines of a chunk."""
    unit, size = _unit(chunk.encoding), len(chunk.data)
    ends = _newlines(chunk.data, chunk.encoding)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends + unit])
    if len(ends) and ends[-1] + unit == size:
        starts = starts[:-1]
    else:
        ends = np.append(ends, size)
    lengths = ends - starts
    text, undecodable = _text(chunk, starts, ends)
    text_ends = ends if text is chunk.data else _newlines(text)
    offsets = starts + chunk.offset
    for index, length in chunk.long:
        offsets[index + 1 :] += length - lengths[index]
        lengths[index] = length
    return Lines(offsets, lengths, text, text_ends, undecodable, tuple(index for index, _ in chunk.long))


def _text(chunk: Chunk, starts: Positions, ends: Positions) -> tuple[bytes, Positions]:
    """The text of a chunk as clean UTF-8 with a line end after every line, and which lines held damage."""
    damaged = np.zeros(0, dtype=np.int64)
    data = chunk.data
    if chunk.encoding == "utf-8":
        if not data.isascii() and not _valid(data):
            data = b"".join(_mended(data))
            damaged = _lines_with(data, "\ufffd".encode())
        if chunk.offset == 0:
            data = data.removeprefix(b"\xef\xbb\xbf")
    else:
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        lines = [data[start:end].decode(chunk.encoding, "replace").replace("\n", " ") for start, end in spans]
        damaged = np.array([row for row, line in enumerate(lines) if "\ufffd" in line], dtype=np.int64)
        data = "".join(line + "\n" for line in lines).encode("utf-8", "replace")
        if chunk.offset == 0:
            data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    if b"\x1b" in data:
        data = _ESCAPE.sub(b"", data)
    if not chunk.data.endswith("\n".encode(chunk.encoding)) and chunk.encoding == "utf-8":
        data += b"\n"
    return data, damaged


def _mended(data: bytes) -> Iterator[bytes]:
    """The bytes in pieces of whole lines, damage replaced; only the pieces that hold some are taken apart for it."""
    start = 0
    while start < len(data):
        stop = data.find(b"\n", start + _PIECE) + 1 or len(data)
        piece = data[start:stop]
        yield piece if _valid(piece) else piece.decode("utf-8", "replace").encode("utf-8")
        start = stop


def _valid(data: bytes) -> bool:
    """Whether the bytes are UTF-8."""
    array = pa.LargeStringArray.from_buffers(1, pa.py_buffer(np.array([0, len(data)])), pa.py_buffer(data))
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _lines_with(data: bytes, needle: bytes) -> Positions:
    """Numbers (from 0) of the lines that hold a needle."""
    found, ends, at = [], _newlines(data), data.find(needle)
    while at >= 0:
        line = int(np.searchsorted(ends, at))
        found.append(line)
        at = data.find(needle, int(ends[line])) if line < len(ends) else -1
    return np.array(found, dtype=np.int64)


def series(text: bytes, ends: Positions) -> pl.Series:
    """The lines of a framed text as a column, line ends taken off."""
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends + 1])
    array = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(text))
    column = pl.from_arrow(array)
    assert isinstance(column, pl.Series)
    return column.alias("raw").str.strip_chars_end("\r\n")


@stage("fold")
def fold(column: pl.Series) -> pl.Series:
    """Of a line of several pieces the last that is not empty; a record glued onto a progress bar comes off it."""
    column = where(column, "\r", _last_piece)
    return where(column, "%|", lambda lines: lines.str.replace(_GLUED, "$1"))


def _last_piece(lines: pl.Series) -> pl.Series:
    """The last piece of each line that is not blank; of a blank line its returns become blanks."""
    seen = pl.col("line").str.strip_chars_end()
    place = seen.str.len_bytes().cast(pl.Int64) - seen.str.split("\r").list.last().str.len_bytes()
    # the bytes behind the last return before the last letter, up to the next return
    piece = pl.col("line").cast(pl.Binary).bin.slice(place).cast(pl.String).str.split("\r").list.first()
    blanks = pl.col("line").str.replace_all("\r", " ", literal=True)
    return lines.alias("line").to_frame().select(pl.when(seen != "").then(piece).otherwise(blanks)).to_series()


def where(lines: pl.Series, mark: str, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """The lines, those that hold a mark changed."""
    rows = lines.str.contains(mark, literal=True).arg_true()
    return lines.clone().scatter(rows, change(lines.gather(rows))) if len(rows) else lines


def in_pieces(text: bytes, ends: Positions, bound: int) -> npt.NDArray[np.bool_] | None:
    """Which lines of a framed text may be of several pieces or beyond the bound, None where none is."""
    lengths = np.diff(ends, prepend=-1)
    marked = lengths > bound
    data = np.frombuffer(text, dtype=np.uint8)
    if b"\r" in text:
        marked[np.searchsorted(ends, np.flatnonzero(data == _RETURN))] = True
    if b"%|" in text:
        percent = np.flatnonzero(data[:-1] == _PERCENT)
        marked[np.searchsorted(ends, percent[data[percent + 1] == _BAR_SIDE])] = True
    return marked if marked.any() else None


def piece(text: bytes, start: int, stop: int, end: int, bound: int) -> bytes | None:
    """The piece of the line at `start:stop` that a hit ends in, None where the line is one piece within the bound."""
    first = text.rfind(b"\r", start, end) + 1 or start
    last = text.find(b"\r", end, stop)
    last = stop if last < 0 else last
    for bar in _BAR.finditer(text, first, last):
        if bar.end() < end:
            first = bar.end()
        elif text[bar.end() : last].strip():
            last = bar.end()
            break
    if first == start and last == stop and stop - start <= bound:
        return None
    if last - first > bound:
        first, last = max(first, end - bound // 2), min(last, end + bound // 2)
    return text[first:last].lstrip(b" ") if first > start else text[first:last]
