"""Reading a part of a plain file: the lines that begin between two offsets, and what follows them."""

from __future__ import annotations

from typing import IO

LOOK_AHEAD = 1 << 20
"""Bytes behind a shard in which a record that it began may end."""

_STEP = 256 << 10
_SAMPLE_BYTES = 64 << 10
_SAMPLE_LINES = 100


class ShardStream:
    """The bytes of the lines that begin in `start:stop` of a file. `offset` is where the first of them begins."""

    def __init__(self, file: IO[bytes], start: int, stop: int) -> None:
        self._file = file
        self.offset = _line_start(file, start)
        self._stop = max(_line_start(file, stop), self.offset)
        self._at = self.offset
        file.seek(self.offset)

    def read(self, size: int, /) -> bytes:
        """The next bytes of the shard."""
        data = self._file.read(max(min(size, self._stop - self._at), 0))
        self._at += len(data)
        return data

    def after(self, size: int) -> ShardStream:
        """About as many bytes behind the shard, in whole lines."""
        return ShardStream(self._file, self._stop, self._stop + size)


def _line_start(file: IO[bytes], offset: int) -> int:
    """Where the first line begins that begins at the offset or after it; the end of the file where none does."""
    if offset <= 0:
        return 0
    at = offset - 1
    file.seek(at)
    while data := file.read(_STEP):
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
    return at


def in_reach(file: IO[bytes], offset: int) -> bool:
    """Whether a line begins within `LOOK_AHEAD` bytes of an offset: only there is a file worth cutting."""
    file.seek(offset - 1)
    for _ in range(LOOK_AHEAD // _STEP):
        data = file.read(_STEP)
        if b"\n" in data:
            return True
        if not data:
            break
    return False


def sample_lines(file: IO[bytes], size: int) -> list[str]:
    """Some lines of the beginning, the middle and the end of a file."""
    found: list[str] = []
    for start in (0, size // 2, max(size - _SAMPLE_BYTES, 0)):
        file.seek(start)
        lines = file.read(_SAMPLE_BYTES).split(b"\n")
        whole = lines[1:-1] if start else lines[:-1]
        found += [line[:4096].decode("utf-8", "replace") for line in whole[:_SAMPLE_LINES]]
    return found
