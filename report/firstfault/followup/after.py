"""Did the fix hold: is the signature gone from a new run, and did it get past the point where the old one failed?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import duckdb

from firstfault.followup.saved import Saved


class Held(StrEnum):
    """The answer."""

    FIXED = "fixed"  # the signature is gone and the new run got past the point
    STILL_SEEN = "still-seen"  # the new run got past the point, but lines with the signature are there
    TOO_EARLY = "too-early"  # the signature is gone, but the new run has not been there yet, or nothing tells
    OTHER = "other-failure"  # the signature is gone; the new run failed otherwise before that point
    BACK = "back"  # the new run failed in the same way


@dataclass(frozen=True, slots=True)
class Seen:
    """A line of the new run with the signature."""

    path: str
    line: int
    rank: int | None
    text: str


@dataclass(frozen=True, slots=True)
class After:
    """What a new run says about an old failure. Steps and seconds are None where the logs do not tell."""

    held: Held
    signature: str
    times_seen: int
    first_seen: Seen | None
    old_step: int | None
    new_step: int | None
    old_seconds: float | None
    new_seconds: float | None
    why: str


def after(connection: duckdb.DuckDBPyConnection, old: Saved, new: Saved) -> After:
    """Compare the diagnosis of an old run with the timeline and diagnosis of a new one."""
    if old.cls is None:
        raise ValueError(f"{old.name}: it names no failure, so there is no signature to look for")
    count, first = _seen(connection, old)
    back = new.cls == old.cls and (new.entry == old.entry or old.entry is None or new.entry is None)
    old_seconds, new_seconds = _lasted(old.started, old.at or old.ended), _lasted(new.started, new.ended)
    past = new.verdict == "no-failure" or _past(old.step, new.step, old_seconds, new_seconds)
    held, why = _judge(new, back, past, count)
    return After(held, _signature(old), count, first, old.step, new.step, old_seconds, new_seconds, why)


def _judge(new: Saved, back: bool, past: bool | None, seen: int) -> tuple[Held, str]:
    if back:
        where = f" on {', '.join(new.hosts)}" if new.hosts else ""
        return Held.BACK, f"the new run failed in the same way{where}"
    if new.verdict == "no-failure":
        return Held.FIXED, "the new run completed"
    if past and seen:
        return Held.STILL_SEEN, "the new run got past that point, but its logs show the signature again"
    if past:
        how = "and failed later, in another way" if new.cls else "and nothing says how it ended"
        return Held.FIXED, f"the new run got past that point {how}"
    if new.cls is not None:
        return Held.OTHER, f"the new run failed before that point: {new.title or new.cls}"
    if past is None:
        return Held.TOO_EARLY, "neither steps nor times tell how far the runs came"
    return Held.TOO_EARLY, "the new run has not come as far as the old one yet"


def _signature(old: Saved) -> str:
    return f"class {old.cls}" + (f", entry {old.entry}" if old.entry else "")


def _seen(con: duckdb.DuckDBPyConnection, old: Saved) -> tuple[int, Seen | None]:
    """Lines of the new run with the entry of the old root (its class, where it has none), harmless ones left out."""
    column, value = ("entry", old.entry) if old.entry else ("class", old.cls)
    rows = con.execute(
        f"SELECT path, line, rank, text FROM faults WHERE {column} = ? ORDER BY time, path, line", [value]
    )
    first = rows.fetchone()
    if first is None:
        return 0, None
    count = con.execute(f"SELECT count(*) FROM faults WHERE {column} = ?", [value]).fetchone()
    return int(count[0]) if count else 1, Seen(first[0], first[1], first[2], str(first[3] or "")[:500])


def _past(
    old_step: int | None, new_step: int | None, old_seconds: float | None, new_seconds: float | None
) -> bool | None:
    """Whether the new run came further: by its steps, else by how long it ran. None where nothing tells."""
    if old_step is not None and new_step is not None:
        return new_step > old_step
    if old_step is not None or old_seconds is None or new_seconds is None:
        return None
    return new_seconds > old_seconds


def _lasted(begin: str | None, end: str | None) -> float | None:
    if begin is None or end is None:
        return None
    one, other = datetime.fromisoformat(begin), datetime.fromisoformat(end)
    if (one.tzinfo is None) != (other.tzinfo is None):
        return None
    return (other - one).total_seconds()
