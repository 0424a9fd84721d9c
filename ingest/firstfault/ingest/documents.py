"""Log lines in one JSON document that is printed over many lines, as lines of JSON.

`aws logs filter-log-events`, `gcloud logging read --format json` and `az monitor log-analytics query` print a list of
objects, each field on a line of its own. The whole object goes to the line of its message, where the formats of JSON
lines read it, and its other lines become empty: lines keep their numbers and places.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl

from firstfault.ingest.frame import Lines, series

HEAD = 8192
LIST = re.compile(rb'^\xef?\xbb?\xbf?\s{0,8}(?:\{\s{1,16}"\w{1,40}": ?)?\[\r?\n(?P<indent>[ \t]{1,16})\{\r?\n')
MESSAGE = r'^[ \t]*"(?:@?message|msg|MESSAGE|textPayload|LogEntry|LogMessage|log|line)": ?"'
IN_HEAD = re.compile(rb'\n[ \t]{1,32}"(?:@?message|msg|MESSAGE|textPayload|LogEntry|LogMessage|log|line)": ?"')


def indent_of(head: bytes) -> str | None:
    """What stands before the braces of each object of a list with messages, None where a source begins no such list."""
    found = LIST.match(head[:HEAD])
    return found["indent"].decode() if found and IN_HEAD.search(head[:HEAD]) else None


class Document:
    """A list of objects while its lines are read, from its beginning or from a place within it."""

    def __init__(self, indent: str, begins: bool) -> None:
        self._indent = indent
        self._inside = not begins
        self._before, self._told = "" if begins else "{", False
        """Of the object that goes on: what was read of it, and whether its message was."""

    def lines(self, lines: Lines) -> Lines:
        """The same lines, each object in the line of its message."""
        raw = series(lines.text, lines.ends)
        opens = raw == f"{self._indent}{{"
        closes = raw.str.strip_suffix(",") == f"{self._indent}}}"
        frame = pl.DataFrame({"raw": raw, "opens": opens, "closes": closes}).with_row_index("row")
        frame = frame.with_columns(
            record=pl.col("opens").cast(pl.Int64).cum_sum(),
            depth=pl.col("opens").cast(pl.Int64).cum_sum()
            - pl.col("closes").cast(pl.Int64).cum_sum().shift(1, fill_value=0)
            + int(self._inside),
        ).with_columns(inside=pl.col("depth") > 0, message=raw.str.contains(MESSAGE))
        objects = (
            frame.filter("inside")
            .group_by("record", maintain_order=True)
            .agg(
                text=pl.col("raw").str.strip_chars().str.join(),
                place=pl.col("row").filter(pl.col("message")).first(),
                ended=pl.col("closes").any(),
            )
        )
        whole = self._whole(objects)
        text = frame.select(pl.when("inside").then(pl.lit("")).otherwise("raw")).to_series()
        text = text.clone().scatter(whole["place"], whole["text"])
        data = ("\n".join(text.to_list()) + "\n").encode("utf-8", "replace")
        return replace(
            lines, text=data, ends=np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10).astype(np.int64)
        )

    def _whole(self, objects: pl.DataFrame) -> pl.DataFrame:
        """The objects whose message is told here: of one that went on its beginning comes first, one that goes on is
        closed.
        """
        going = objects["record"] == 0
        text = pl.when(going).then(pl.lit(self._before) + pl.col("text")).otherwise("text")
        objects = objects.with_columns(text=text)
        if self._told:
            objects = objects.with_columns(place=pl.when(pl.col("record") > 0).then("place"))
        if len(objects):
            last = objects.row(-1, named=True)
            self._inside = not last["ended"]
            self._before = last["text"] if self._inside else ""
            self._told = self._inside and (last["place"] is not None or (self._told and last["record"] == 0))
        bare = pl.col("text").str.strip_suffix(",")
        closed = pl.when("ended").then(bare).otherwise(bare + "}")
        return objects.with_columns(text=closed).filter(pl.col("place").is_not_null()).select("place", "text")
