"""Owns lines that are one JSON object: which keys hold the time, the place and the message."""

from __future__ import annotations

import polars as pl

from .format_model import LineFormat


def extract(one: LineFormat, texts: pl.Series) -> pl.DataFrame:
    raise NotImplementedError
