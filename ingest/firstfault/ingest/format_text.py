"""Owns what happens to the text of a line before any format is tried: colour, carriage returns, progress bars."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from firstfault.ingest.format_regex import for_line

ANSI = r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Z]|[=>78])"
# an update of a progress bar that a later part of the same line replaced
_UPDATE = r"[^\r\n]*(?:[0-9]%\||it/s|s/it|[0-9]/[0-9?]+ \[|[0-9]%)[^\r\n]*\r+"


def clean(lines: pl.Series) -> pl.Series:
    """Lines without colour and without the parts that a carriage return has overwritten."""
    out = lines.alias("line")
    if not out.str.contains_any(["\x1b", "\r"]).any():
        return out
    if out.str.contains("\x1b", literal=True).any():
        out = _where(out, "\x1b", lambda texts: texts.str.replace_all(ANSI, ""))
    if out.str.contains("\r", literal=True).any():
        out = _where(out, "\r", _last_part)
    return out


def clean_line(line: str) -> str:
    if "\x1b" in line:
        line = str(for_line(ANSI).sub("", line))
    if "\r" in line:
        line = str(for_line(r"\r+$").sub("", line))
        line = str(for_line(_UPDATE).sub("", line))
        line = line.lstrip("\r")
    return line


def _where(lines: pl.Series, mark: str, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    rows = lines.str.contains(mark, literal=True).arg_true()
    changed = change(lines.gather(rows))
    place = pl.Series(range(len(lines)), dtype=pl.Int64).scatter(
        rows, pl.Series(range(len(lines), len(lines) + len(rows)))
    )
    return pl.concat([lines, changed], rechunk=True).gather(place)


def _last_part(lines: pl.Series) -> pl.Series:
    return lines.str.strip_chars_end("\r").str.replace_all(_UPDATE, "").str.strip_chars_start("\r")
