"""Keeps what readers give back inside the columns it goes to: whole characters, numbers that fit."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from firstfault.ingest.dumps.rows import DumpIdentity, DumpProblem, DumpProgress, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import clean

Row = TypeVar("Row", DumpSignal, DumpIdentity, DumpProgress, DumpProblem)

CAPTURE_LIMIT = 65536
NAME_LIMIT = 4096
RANK_LIMIT = 1 << 20
"""More ranks than any job has; a larger number is none."""
SMALL = frozenset({"rank", "local_rank", "node_rank", "attempt", "gpu", "comm_rank", "comm_size", "world_size"})


def bounded(rows: DumpRows) -> DumpRows:
    """The same rows; what does not fit is left out of its row."""
    return DumpRows(
        tuple(_row(one) for one in rows.signals),
        tuple(_row(one) for one in rows.identities),
        tuple(_row(one) for one in rows.progress),
        tuple(_row(one) for one in rows.problems),
    )


def _row(row: Row) -> Row:
    changed: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if isinstance(value, str):
            short = clean(value)[:NAME_LIMIT]
            if short != value:
                changed[field.name] = short
        elif isinstance(value, bool) or value is None:
            continue
        elif isinstance(value, int):
            limit = RANK_LIMIT if field.name in SMALL else 2**62
            if not (-limit if field.name == "stamp_ns" else 0) <= value < limit:
                changed[field.name] = 1 if field.name == "line" else 0 if field.name == "step" else None
        elif field.name == "captures":
            changed["captures"] = {clean(str(key)): clean(str(text))[:CAPTURE_LIMIT] for key, text in value.items()}
    return replace(row, **changed) if changed else row
