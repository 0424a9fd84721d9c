"""Rows of an answer as text: a table that fits the terminal, CSV, JSON, Markdown; or as a Parquet file."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TextIO

from firstfault.report.layout import Piece, cells, cut, plain, wrapped
from firstfault.report.safe_json import safe_json
from firstfault.report.words import clean

if TYPE_CHECKING:
    from pathlib import Path

    from firstfault.timeline.gate import Gate

    Rows = Iterator[tuple[Any, ...]]

MOST_ROWS = 1000
"""Rows of a table that is looked at; the other forms give all."""
_WIDEST = 80
"""Cells of one column where no terminal sets a bound."""
_NARROWEST = 12
"""Cells that a column keeps however narrow the terminal is."""
_FORMULA = ("=", "+", "-", "@")
_LONGEST = 1000
"""Cells of a value that stands below others."""


def as_text(value: Any) -> str:
    """A value as one reads it; times in UTC with a Z, lists without quotes around their texts."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        digits = "microseconds" if value.microsecond % 1000 else "milliseconds"
        if value.tzinfo is not None:
            return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(' ', digits)}Z"
        return value.isoformat(" ", digits)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{as_text(key)}: {as_text(one)}' for key, one in value.items())}}}"
    return str(value)


def table(names: Sequence[str], rows: Rows, out: TextIO, room: int | None) -> bool:
    """Columns beside each other, or below each other where `room` cells are too few. True where rows are left out."""
    shown = list(islice(rows, MOST_ROWS))
    more = next(rows, None) is not None
    texts = [[clean(as_text(value)) for value in row] for row in shown]
    heads = [clean(name) for name in names]
    widths = [min(_WIDEST, max(map(cells, column))) for column in zip(heads, *texts, strict=True)]
    fitted = widths if room is None else _fit(widths, room)
    if fitted is None:
        _records(heads, texts, out, room or _WIDEST)
        return more
    numeric = [all(row[at] is None or isinstance(row[at], int | float) for row in shown) for at in range(len(heads))]
    for line in chain([heads, ["-" * width for width in fitted]], texts):
        parts = []
        for text, width, right in zip(line, fitted, numeric, strict=True):
            text = cut(text, width)
            pad = " " * (width - cells(text))
            parts.append(pad + text if right else text + pad)
        out.write("  ".join(parts).rstrip() + "\n")
    return more


def _fit(widths: Sequence[int], room: int) -> list[int] | None:
    """Widths that fit into `room` cells: the widest columns give way first. None where that leaves too little."""
    fitted = list(widths)
    spare = room - 2 * (len(fitted) - 1)
    if sum(min(width, _NARROWEST) for width in fitted) > spare:
        return None
    while sum(fitted) > spare:
        widest = max(fitted)
        wide = [at for at, width in enumerate(fitted) if width == widest]
        second = max((width for width in fitted if width < widest), default=0)
        take = max(1, min(widest - second, -(-(sum(fitted) - spare) // len(wide))))
        for at in wide:
            fitted[at] = max(_NARROWEST, min(fitted[at], widest - take))
            if sum(fitted) <= spare:
                break
    return fitted


def _records(heads: Sequence[str], texts: Sequence[Sequence[str]], out: TextIO, room: int) -> None:
    wide = min(max(map(cells, heads), default=0), max(_NARROWEST, room // 3))
    for number, row in enumerate(texts, start=1):
        title = f"-- row {number} "
        out.write(title + "-" * max(0, min(room, _WIDEST) - len(title)) + "\n")
        for head, text in zip(heads, row, strict=True):
            name = cut(head, wide)
            label = Piece(f"{name}{' ' * (wide - cells(name))}  ")
            value = Piece(cut(text, _LONGEST))
            out.writelines(f"{plain(line)}\n" for line in wrapped([value], room, " " * (wide + 2), label))


def csv_text(names: Sequence[str], rows: Rows, out: TextIO) -> None:
    """Comma-separated values with a head line; NULL is an empty field. JSON and Parquet hold texts as they are."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_inert, names))
    writer.writerows([_inert(value) for value in row] for row in rows)


def _inert(value: Any) -> str:
    """A value that no spreadsheet takes for a formula and no terminal for an order."""
    text = as_text(value)
    if isinstance(value, int | float):
        return text
    text = clean(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def markdown_text(names: Sequence[str], rows: Rows, out: TextIO) -> None:
    """A Markdown table with each value in a code span."""
    from firstfault.report.markdown import cell

    def line(texts: Iterable[str]) -> str:
        return f"| {' | '.join(texts)} |\n"

    out.write(line(cell(name) for name in names))
    out.write(line("---" for _ in names))
    for row in rows:
        out.write(line(cell(text) if (text := as_text(value)) else "" for value in row))


def json_text(names: Sequence[str], rows: Rows, out: TextIO) -> None:
    """One JSON array of objects, a row a line."""
    out.write("[")
    for number, row in enumerate(rows):
        one = dict(zip(names, map(_plain, row), strict=True))
        out.write(("," if number else "") + "\n" + safe_json(one))
    out.write("\n]\n")


def _plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return as_text(value)


def parquet_file(gate: Gate, query: str, path: Path) -> int:
    """Write the answer to a query to a Parquet file, batch by batch; returns the number of rows."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    schema, batches = gate.batches(query)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch], schema))
            count += batch.num_rows
    return count


WRITERS: dict[str, Callable[[Sequence[str], Rows, TextIO], None]] = {
    "csv": csv_text,
    "json": json_text,
    "markdown": markdown_text,
}
FORMATS = ("table", *WRITERS, "parquet")
