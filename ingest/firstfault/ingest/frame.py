"""Bytes to lines: where each line lies in its source, and its text as clean UTF-8.

Lines end with `\n` and with nothing else; offsets and lengths speak of the decompressed bytes as they are.
The text of a line is what is left when damage is replaced by U+FFFD, NUL bytes and colours are taken out, and a text
beyond the bound is cut. Carriage returns stay in the text: `fold` takes the last update of a progress bar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Positions = npt.NDArray[np.int64]

_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78DEHMNOcZ])")


class Stream(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of whole lines of one source. `long` holds, by index, the true length of lines that were cut while read."""

    data: bytes
    offset: int
    encoding: str = "utf-8"
    long: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of one chunk. `text` has exactly one `\n` after each line; `ends` are their positions in it."""

    offsets: Positions
    lengths: Positions
    text: bytes
    ends: Positions
    undecodable: Positions
    cut: Positions

    def __len__(self) -> int:
        return len(self.offsets)


def chunks(stream: Stream, size: int, bound: int) -> Iterator[Chunk]:
    """Cut a stream into chunks of about `size` bytes that end with a line, whatever the stream holds."""
    head = stream.read(size)
    encoding = _encoding(head)
    unit = 2 if encoding != "utf-8" else 1
    offset, pending = 0, head
    while pending:
        cut = _last_newline(pending, encoding)
        if len(pending) < size or cut < 0:
            more = stream.read(size)
            if more and cut < 0 and len(pending) >= size:
                chunk, pending = _skip_long_line(stream, pending, more, encoding, offset, bound)
                yield chunk
                offset += chunk.long[0][1] + unit
                continue
            if more:
                pending += more
                continue
            yield Chunk(pending, offset, encoding)
            return
        yield Chunk(pending[:cut], offset, encoding)
        offset += cut
        pending = pending[cut:]
        pending += stream.read(max(size - len(pending), 1))


def _encoding(head: bytes) -> str:
    if head.startswith(b"\xff\xfe") and not head.startswith(b"\xff\xfe\x00\x00"):
        return "utf-16-le"
    if head.startswith(b"\xfe\xff"):
        return "utf-16-be"
    return "utf-8"


def _last_newline(data: bytes, encoding: str) -> int:
    """Position after the last line end of a chunk that starts on a character, -1 where there is none."""
    if encoding == "utf-8":
        return data.rfind(b"\n") + 1 or -1
    found = np.flatnonzero(_units(data, encoding) == 10)
    return int(found[-1] + 1) * 2 if len(found) else -1


def _units(data: bytes, encoding: str) -> npt.NDArray[np.uint16]:
    return np.frombuffer(data, dtype="<u2" if encoding == "utf-16-le" else ">u2", count=len(data) // 2)


def _skip_long_line(
    stream: Stream, pending: bytes, more: bytes, encoding: str, offset: int, bound: int
) -> tuple[Chunk, bytes]:
    """Read to the end of a line that is longer than a chunk, keeping only its beginning."""
    unit = 2 if encoding != "utf-8" else 1
    length, rest = len(pending), more
    while rest:
        if unit == 1:
            end = rest.find(b"\n")
        else:
            if len(rest) % 2:
                rest += stream.read(1)
            found = np.flatnonzero(_units(rest, encoding) == 10)
            end = int(found[0]) * 2 if len(found) else -1
        if end >= 0:
            length += end
            rest = rest[end + unit :]
            break
        length += len(rest)
        rest = stream.read(len(more))
    newline = "\n".encode(encoding)
    return Chunk(pending[: bound + bound % 2] + newline, offset, encoding, ((0, length),)), rest


def frame(chunk: Chunk, bound: int) -> Lines:
    """The lines of a chunk."""
    if chunk.encoding == "utf-8":
        raw_ends = np.flatnonzero(np.frombuffer(chunk.data, dtype=np.uint8) == 10).astype(np.int64)
        size, unit = len(chunk.data), 1
    else:
        raw_ends = np.flatnonzero(_units(chunk.data, chunk.encoding) == 10).astype(np.int64) * 2
        size, unit = len(chunk.data), 2
    starts = np.concatenate([np.zeros(1, dtype=np.int64), raw_ends + unit])
    if len(raw_ends) and raw_ends[-1] + unit == size:
        starts = starts[:-1]
    else:
        raw_ends = np.append(raw_ends, size)
    lengths = raw_ends - starts
    text, undecodable = _text(chunk, starts, raw_ends)
    text, cut = _bounded(text, bound)
    offsets = starts + chunk.offset
    for index, true_length in chunk.long:
        offsets[index + 1 :] += true_length - lengths[index]
        lengths[index] = true_length
        cut = np.union1d(cut, np.array([index], dtype=np.int64))
    return Lines(offsets, lengths, text, _newlines(text), undecodable, cut)


def _text(chunk: Chunk, starts: Positions, ends: Positions) -> tuple[bytes, Positions]:
    """The text of a chunk as clean UTF-8 with a line end after every line, and the lines that held damage."""
    none = np.zeros(0, dtype=np.int64)
    data, damaged = chunk.data, none
    if chunk.encoding == "utf-8":
        if not data.isascii():
            try:
                data.decode("utf-8")
            except UnicodeDecodeError:
                data = data.decode("utf-8", "replace").encode("utf-8")
                damaged = _lines_with(data, "�".encode())
        if chunk.offset == 0 and data.startswith(b"\xef\xbb\xbf"):
            data = data[3:]
    else:
        parts = [_decode_wide(chunk.data[a:b], chunk.encoding) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        data = "".join(part + "\n" for part in parts).encode("utf-8", "replace")
        if chunk.offset == 0:
            data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    if b"\x1b" in data:
        data = _ESCAPE.sub(b"", data)
    if not data.endswith(b"\n") or len(starts) > data.count(b"\n"):
        data += b"\n"
    return data, damaged


def _decode_wide(data: bytes, encoding: str) -> str:
    return data.decode(encoding, "replace").replace("\n", " ")


def _lines_with(data: bytes, needle: bytes) -> Positions:
    """Numbers (from 0) of the lines that hold a needle."""
    found, at = [], data.find(needle)
    ends = _newlines(data)
    while at >= 0:
        line = int(np.searchsorted(ends, at))
        found.append(line)
        if line >= len(ends):
            break
        at = data.find(needle, int(ends[line]))
    return np.array(found, dtype=np.int64)


def _newlines(data: bytes) -> Positions:
    return np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10).astype(np.int64)


def _bounded(text: bytes, bound: int) -> tuple[bytes, Positions]:
    """The text with lines beyond the bound cut, and which lines those are."""
    ends = _newlines(text)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1] + 1])
    too_long = np.flatnonzero(ends - starts > bound).astype(np.int64)
    if not len(too_long):
        return text, too_long
    parts, done = [], 0
    for line in too_long.tolist():
        stop = int(starts[line]) + bound
        while text[stop] & 0xC0 == 0x80:
            stop -= 1
        parts.append(text[done:stop])
        done = int(ends[line])
    parts.append(text[done:])
    return b"".join(parts), too_long


def series(text: bytes, ends: Positions) -> pl.Series:
    """The lines of a framed text as a column, line ends taken off."""
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends + 1])
    array = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(text))
    column = pl.Series("raw", pl.from_arrow(array))
    return column.str.strip_chars_end("\r\n")


def fold(column: pl.Series) -> pl.Series:
    """The last update that is not empty of every line that holds carriage returns."""
    if not column.str.contains("\r", literal=True).any():
        return column
    return column.str.replace(r"(?s)^.*\r([^\r]*[^\r\s][^\r]*)\s*$", "$1").str.replace_all("\r", "")
