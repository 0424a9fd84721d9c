"""Owns lines that are one JSON object: which keys hold the time, the place and the message.

A path of keys is written with points: `kubernetes.pod.name`. A point inside a key is `\\.`, an element of a list `[0]`;
`path~pattern` takes the first group of the pattern out of the value.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import polars as pl

from firstfault.ingest.format_model import LineFormat
from firstfault.ingest.format_regex import for_polars
from firstfault.ingest.format_text import clean

PLAIN = "json-logger"
"""The format of programs that log JSON themselves; those of collectors have objects about the place."""
_NESTED = (
    r'"(?:node_name|node|Node|NodeName|instance_id|NodeClaim|involvedObject)": ?["\{].*": ?\{'
    r'|": ?\{.*"(?:NodeName|nodeName|node_name)": ?"'
)
"""A controller's event stands in an object beside the message, with the node that it is about."""
_STEP = re.compile(r"(?:\\.|[^.\[\\])+|\[\d+\]")


@cache
def json_path(keys: str) -> tuple[str, str, str | None]:
    """A path of keys as JSONPath, the last key as it stands in the text, the pattern to apply."""
    keys, _, pattern = keys.partition("~")
    steps = [step.replace("\\.", ".") for step in _STEP.findall(keys)]
    names = [step for step in steps if not step.startswith("[")]
    path = "$" + "".join(step if step.startswith("[") else f"['{step}']" for step in steps)
    return path, f'"{names[-1]}"', pattern or None


def wanted(one: LineFormat, texts: pl.Series) -> pl.Series:
    """Where all keys that the format needs are in the text."""
    out = pl.Series([True]).new_from_index(0, len(texts))
    for name in one.need:
        out = out & texts.str.contains(f'"{name}"', literal=True)
    return out


def extract(one: LineFormat, texts: pl.Series) -> pl.DataFrame:
    """The fields of the format; `rest` is the message, null where the line is not such an object."""
    good = wanted(one, texts)
    if not good.any():
        return pl.DataFrame({"rest": pl.Series([None], dtype=pl.String).new_from_index(0, len(texts))})
    if not good.all():
        texts = pl.select(pl.when(good).then(texts)).to_series()
    columns = {name: _first(texts, paths) for name, paths in one.keys.items() if name != "message"}
    if "message" in one.keys:
        rest = _message(_first(texts, one.keys["message"]))
        rest = _with_event(rest, texts) if one.id == PLAIN else rest
    else:
        known = next(iter(columns.values()))
        rest = pl.select(pl.when(known.is_not_null()).then(texts)).to_series()
    return pl.DataFrame([values.alias(name) for name, values in {**columns, "rest": rest}.items()])


def _with_event(rest: pl.Series, texts: pl.Series) -> pl.Series:
    """The messages, with the whole object behind those beside which an object tells of an event of a node."""
    inner = texts.str.contains(r'": ?\{').fill_null(value=False)
    if inner.any():
        inner &= texts.str.contains(_NESTED).fill_null(value=False)
    if not inner.any():
        return rest
    return pl.select(pl.when(inner).then(pl.concat_str(rest, texts, separator=" ")).otherwise(rest)).to_series()


def _first(texts: pl.Series, paths: tuple[str, ...]) -> pl.Series:
    out = pl.Series([None], dtype=pl.String).new_from_index(0, len(texts))
    for keys in paths:
        path, key, pattern = json_path(keys)
        there = texts.str.contains(key, literal=True).fill_null(value=False) & out.is_null()
        if not there.any():
            continue
        values = texts if there.all() else pl.select(pl.when(there).then(texts)).to_series()
        found = values.str.json_path_match(path)
        if pattern is not None:
            found = found.str.extract(for_polars(pattern), 1)
        out = out.zip_with(out.is_not_null(), found)
    return out


def _message(values: pl.Series) -> pl.Series:
    if values.str.starts_with("[").any():
        values = _bytes(values)
    return clean(values.str.strip_suffix("\n"))


def _bytes(values: pl.Series) -> pl.Series:
    """Messages that journald gives as arrays of byte values, as text."""
    rows = (values.str.contains(r"^\[[0-9]{1,3}(?:,[0-9]{1,3})*\]$").fill_null(value=False)).arg_true()
    if not len(rows):
        return values
    lists = values.gather(rows).str.strip_chars("[]").str.split(",").list.eval(pl.element().cast(pl.Int64))
    flat = np.where(lists.explode().to_numpy() == 10, 32, lists.explode().to_numpy()).clip(0, 255).astype(np.uint8)
    ends = np.cumsum(lists.list.len().to_numpy())
    text = np.insert(flat, ends[:-1], 10).tobytes().decode("utf-8", "replace")
    place = np.arange(len(values))
    place[rows.to_numpy()] = np.arange(len(values), len(values) + len(rows))
    return pl.concat([values, pl.Series(text.split("\n"), dtype=pl.String)], rechunk=True).gather(place)
