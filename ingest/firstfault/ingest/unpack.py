"""Streams of plain bytes: with a look ahead, out of compressed data, ending where the input breaks or explodes."""

from __future__ import annotations

import bz2
import lzma
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Protocol

from firstfault.ingest.problems import Problem, Severity

_PIECE = 256 << 10
_SMALL_PIECE = 4 << 10
_TINY_PIECE = 1 << 10
"""zstd gives all that comes out of a piece at once, and may blow up one byte to ten thousand."""
BOMB_FREE = 64 << 20
_WINDOW = 128 << 20
"""What zstd and xz may hold of what they unpacked; what the programs themselves make and take without being told."""


BROKEN = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError, ValueError,
    ArithmeticError, LookupError, RuntimeError, TypeError,
)  # fmt: skip
"""What the readers of archives raise over damage."""


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class Plain:
    """A readable stream with a look ahead, which ends quietly where its input breaks and remembers why."""

    def __init__(self, source: IO[bytes] | Plain, path: str) -> None:
        self._source = source
        self._ahead = b""
        self.path = path
        self.trouble: Problem | None = None

    def read(self, size: int = -1, /) -> bytes:
        """As many bytes as asked for, less only at the end."""
        if size < 0:
            size = sys.maxsize
        parts, missing = [self._ahead[:size]], size - len(self._ahead)
        self._ahead = self._ahead[size:]
        while missing > 0 and self.trouble is None:
            try:
                part = self._take(min(missing, _PIECE * 16))
            except BROKEN as error:
                self.trouble = Problem(
                    self.path, "truncated", Severity.DATA_LOSS, f"reading stopped early: {error}", source=self.path
                )
                break
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay in the stream."""
        self._ahead = self.read(size) + self._ahead
        return self._ahead[:size]

    def _take(self, size: int) -> bytes:
        return self._source.read(size)


class Unpacked(Plain):
    """A compressed stream, several members behind one another included."""

    def __init__(self, source: Plain, path: str, make: Callable[[], _Decoder], piece: int, ratio: int) -> None:
        super().__init__(source, path)
        self._make, self._decoder, self._piece, self._ratio = make, make(), piece, ratio
        self._fed, self._made = 0, 0
        self._buffer = b""

    def _take(self, size: int) -> bytes:
        while not self._buffer:
            if self._decoder.eof:
                rest = self._decoder.unused_data or self._source.read(self._piece)
                if not rest.strip(b"\0"):
                    return b""
                self._decoder = self._make()
            else:
                rest = self._source.read(self._piece)
                if not rest:
                    if self._fed:
                        raise EOFError("the compressed data ends in the middle")
                    return b""
            self._fed += len(rest)
            self._buffer = self._unpacked(rest)
            self._made += len(self._buffer)
            if self._made > BOMB_FREE and self._made > self._ratio * self._fed:
                self.trouble = Problem(
                    self.path,
                    "bomb",
                    Severity.DATA_LOSS,
                    f"more than {self._ratio} bytes come out of one; reading stopped",
                    source=self.path,
                )
                return b""
        part, self._buffer = self._buffer[:size], self._buffer[size:]
        return part

    def _unpacked(self, data: bytes) -> bytes:
        """What comes out of some bytes. Each library has errors of its own for damage."""
        try:
            return self._decoder.decompress(data)
        except Exception as error:
            raise ValueError(str(error)) from error


def _zstd() -> _Decoder:
    import zstandard

    decoder: _Decoder = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
    return decoder


def _gzip() -> _Decoder:
    return zlib.decompressobj(wbits=31)


def _xz() -> _Decoder:
    return lzma.LZMADecompressor(memlimit=_WINDOW)


PACKERS: tuple[tuple[bytes, Callable[[], _Decoder], int], ...] = (
    (b"\x1f\x8b", _gzip, _SMALL_PIECE * 4),
    (b"\x28\xb5\x2f\xfd", _zstd, _TINY_PIECE),
    (b"\xfd7zXZ\0", _xz, _SMALL_PIECE),
    (b"BZh", bz2.BZ2Decompressor, _SMALL_PIECE),
)
