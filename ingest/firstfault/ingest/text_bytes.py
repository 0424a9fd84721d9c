"""Bytes of the texts of a column as matrices, and pieces of its texts, taken from where the column keeps them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

_INLINE = 12
"""Bytes of a text that a view of Arrow holds itself; longer ones lie in a buffer that it points into."""

_SMALL = 128
"""Texts below which a loop is faster."""


def first_bytes(texts: pl.Series, width: int, fill: int) -> tuple[Bytes, Ints]:
    """The first `width` bytes of each text, `fill` behind its end, and its length in bytes. The column has no nulls."""
    if len(texts) >= _SMALL:
        found = Texts(texts, width, fill)
        return found.window, found.lengths
    short = [text.encode() for text in texts.to_list()]
    lengths = np.array([len(text) for text in short], dtype=np.int64)
    padded = b"".join(text[:width].ljust(width, bytes((fill,))) for text in short)
    return np.frombuffer(padded, dtype=np.uint8).reshape(len(short), width), lengths


class Texts:
    """The texts of a column without nulls: `window` has the first `width` bytes of each, `fill` behind its end."""

    INLINE = _INLINE

    def __init__(self, texts: pl.Series, width: int, fill: int) -> None:
        count = len(texts)
        array = texts.to_arrow(compat_level=pl.CompatLevel.newest())
        _, view_buffer, *self._buffers = array.buffers()
        self._views = np.frombuffer(view_buffer, dtype=np.uint32).reshape(-1, 4)[array.offset : array.offset + count]
        self.lengths: Ints = self._views[:, 0].astype(np.int64)
        self.window = np.full((count, width), fill, dtype=np.uint8)
        inside = min(width, _INLINE)
        self.window[:, :inside] = self._views.view(np.uint8)[:, 4 : 4 + inside]
        far = np.flatnonzero(self.lengths > _INLINE)
        for number in np.unique(self._views[far, 2]).tolist():
            rows = far[self._views[far, 2] == number] if len(self._buffers) > 1 else far
            data = np.frombuffer(self._buffers[number], dtype=np.uint8)
            _copy(data, self._views[rows, 3].astype(np.int64), rows, self.window)
        ended = np.flatnonzero(self.lengths < width)
        own = self.window[ended]
        own[np.arange(width) >= self.lengths[ended, None]] = fill
        self.window[ended] = own

    def read(self, rows: Rows, starts: Ints, width: int) -> Bytes:
        """So many bytes of the windows of some texts, each from its own place on."""
        data = self.window.reshape(-1)
        out = np.zeros((len(rows), width), dtype=np.uint8)
        _copy(data, rows * self.window.shape[1] + starts, np.arange(len(rows)), out)
        return out

    def cut(self, rows: Rows, starts: Ints, lengths: Ints) -> pl.Series:
        """Pieces of some texts. Where they begin and, of short ones, where they end has to be inside the window."""
        views = np.zeros((len(rows), 4), dtype=np.uint32)
        views[:, 0] = lengths
        views.view(np.uint8)[:, 4:] = self.read(rows, starts, _INLINE)
        short = np.flatnonzero(lengths <= _INLINE)
        own = views.view(np.uint8)[short, 4:]
        own[np.arange(_INLINE) >= lengths[short, None]] = 0
        views.view(np.uint8)[short, 4:] = own
        far = np.flatnonzero(lengths > _INLINE)
        views[far, 2] = self._views[rows[far], 2]
        views[far, 3] = self._views[rows[far], 3] + starts[far]
        buffers = [None, pa.py_buffer(views), *self._buffers]
        column = pl.from_arrow(pa.Array.from_buffers(pa.string_view(), len(rows), buffers))
        assert isinstance(column, pl.Series)
        return column


def _copy(data: Bytes, starts: Ints, rows: Rows, out: Bytes) -> None:
    """Copy a row of bytes from each place of a buffer; what would reach beyond its end is shorter."""
    width = out.shape[1]
    last = len(data) - width
    whole = starts <= last
    if not whole.all():
        for start, row in zip(starts[~whole].tolist(), rows[~whole].tolist(), strict=True):
            rest = data[start : start + width]
            out[row, : len(rest)] = rest
        starts, rows = starts[whole], rows[whole]
    if len(rows):
        # as one item of many bytes, which is copied at once
        every = np.ndarray((last + 1,), dtype=f"V{width}", buffer=data, strides=(1,))
        out[rows] = every[starts].view(np.uint8).reshape(-1, width)
