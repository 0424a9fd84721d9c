"""The first bytes of each text of a column as one matrix, taken from where the column keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_INLINE = 12
"""Bytes of a text that a view of Arrow holds itself; longer ones lie in a buffer that it points into."""

_SMALL = 128
"""Texts below which a loop is faster."""


def first_bytes(texts: pl.Series, width: int, fill: int) -> tuple[Bytes, NDArray[np.int64]]:
    """The first `width` bytes of each text, `fill` behind its end, and its length in bytes. The column has no nulls."""
    count = len(texts)
    if count < _SMALL:
        short = [text.encode() for text in texts.to_list()]
        lengths = np.array([len(text) for text in short], dtype=np.int64)
        padded = b"".join(text[:width].ljust(width, bytes((fill,))) for text in short)
        return np.frombuffer(padded, dtype=np.uint8).reshape(count, width), lengths
    array = texts.to_arrow(compat_level=pl.CompatLevel.newest())
    _, view_buffer, *buffers = array.buffers()
    views = np.frombuffer(view_buffer, dtype=np.uint32).reshape(-1, 4)[array.offset : array.offset + count]
    lengths = views[:, 0].astype(np.int64)
    out = np.full((count, width), fill, dtype=np.uint8)
    inside = min(width, _INLINE)
    out[:, :inside] = views.view(np.uint8)[:, 4 : 4 + inside]
    far = np.flatnonzero(lengths > _INLINE)
    for number in np.unique(views[far, 2]).tolist():
        rows = far[views[far, 2] == number] if len(buffers) > 1 else far
        _copy(buffers[number], views[rows, 3].astype(np.int64), rows, out)
    out[np.arange(width) >= lengths[:, None]] = fill
    return out, lengths


def _copy(buffer: Any, starts: NDArray[np.int64], rows: NDArray[np.intp], out: Bytes) -> None:
    """Copy a row of bytes from each place of a buffer; what would reach beyond its end is shorter."""
    data, width = np.frombuffer(buffer, dtype=np.uint8), out.shape[1]
    whole = starts + width <= len(data)
    if len(data) >= width:
        every = np.lib.stride_tricks.sliding_window_view(data, width)
        out[rows[whole]] = every[starts[whole]]
    for start, row in zip(starts[~whole].tolist(), rows[~whole].tolist(), strict=True):
        rest = data[start : start + width]
        out[row, : len(rest)] = rest
