"""Owns what is known of the lines of a column while they are peeled, and the table it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from firstfault.ingest import stamps
from firstfault.ingest.format_model import PLACE_FIELDS
from firstfault.ingest.format_words import LEVEL_OF, LEVELS, PRIORITY
from firstfault.ingest.stamps import KINDS, NO_OFFSET, StampKind

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

NONE = np.iinfo(np.int64).min
TEXT_FIELDS = ("host", "pod", "container", "stream", "ip")
INT_COLUMNS = ("rank", "local_rank", "task", "pid", "tid", "gpu", "step")
SMALL = ("rank", "local_rank", "task", "gpu")

_WORDS = sorted({form for word in LEVEL_OF for form in (word, word.lower(), word.capitalize())})
_PRIORITIES = [str(number) for number in range(192)]
LEVEL_CODES: dict[str, tuple[pl.Enum, NDArray[np.int8]]] = {
    "word": (pl.Enum(_WORDS), np.array([LEVELS.index(LEVEL_OF[word.upper()]) for word in _WORDS], dtype=np.int8)),
    "pri": (pl.Enum(_PRIORITIES), np.array([LEVELS.index(PRIORITY[n & 7]) for n in range(192)], dtype=np.int8)),
}
"""Texts that give a level, and the number of that level for each."""


def level_code(group: str, text: str) -> int | None:
    """The number of the level that the text of a group gives."""
    kind, codes = LEVEL_CODES["pri" if group == "pri" else "word"]
    words = kind.categories.to_list()
    return int(codes[words.index(text)]) if text in words else None


SCHEMA: dict[str, Any] = {
    "stamp_ns": pl.Int64, "stamp_kind": pl.Enum(KINDS), "stamp_res_ns": pl.Int64, "utc_offset_s": pl.Int32,
    "collect_ns": pl.Int64, "mono_ns": pl.Int64, "mono_frac_ns": pl.Int64, "level": pl.Enum(LEVELS), "host": pl.String,
    "rank": pl.Int32, "local_rank": pl.Int32, "task": pl.Int32, "pid": pl.Int64, "tid": pl.Int64, "gpu": pl.Int32,
    "pod": pl.String, "container": pl.String, "stream": pl.String, "ip": pl.String, "step": pl.Int64,
    "about_host": pl.String, "about_rank": pl.Int32, "about_local_rank": pl.Int32, "about_pid": pl.Int64,
    "about_gpu": pl.Int32, "format": pl.String, "wrappers": pl.String, "message": pl.String,
}  # fmt: skip
"""Columns of `peel_many`; that of `format` is an enumeration of the formats.

`about_*` are places that the message speaks of, where those are not the writer's own.
"""


class State:
    """What is known of each line so far."""

    def __init__(self, lines: pl.Series, words: int) -> None:
        count = len(lines)
        self.used = np.zeros((count, words), dtype=np.uint64)
        self.last = np.full(count, -1, dtype=np.int32)  # format that was taken off last
        self.closed = np.zeros(count, dtype=np.bool_)  # behind a header: only tags
        self.chains: dict[tuple[int, int], int] = {}
        self.count = count
        self.stamp = np.full(count, NONE, dtype=np.int64)
        self.kind = np.zeros(count, dtype=np.int8)
        self.res = np.full(count, NONE, dtype=np.int64)
        self.offset = np.full(count, NO_OFFSET, dtype=np.int32)
        self.collect = np.full(count, NONE, dtype=np.int64)
        self.mono = np.full(count, NONE, dtype=np.int64)
        self.frac = np.full(count, NONE, dtype=np.int64)
        self.level = np.full(count, -1, dtype=np.int8)
        self.ints = {name: np.full(count, NONE, dtype=np.int64) for name in INT_COLUMNS}
        self.texts: dict[str, list[tuple[Rows, pl.Series]]] = {name: [] for name in (*TEXT_FIELDS, "about_host")}
        self.messages: list[tuple[Rows, pl.Series]] = [(np.arange(count), lines)]
        self.format = np.full(count, -1, dtype=np.int32)
        self.chain = np.zeros(count, dtype=np.int32)
        self.about = {name: np.full(count, NONE, dtype=np.int64) for name in PLACE_FIELDS if name != "host"}

    def take_stamps(self, rows: Rows, found: stamps.Stamps) -> None:
        good = found.kind != StampKind.NONE
        mono = good & (found.kind == StampKind.MONOTONIC)
        self.mono[rows[mono]] = found.ns[mono]
        # time since boot never replaces a time of day
        good &= ~(mono & (self.kind[rows] != StampKind.NONE) & (self.kind[rows] != StampKind.MONOTONIC))
        at, ns = rows[good], found.ns[good]
        outer = (self.kind[at] == StampKind.OFFSET) & (self.collect[at] == NONE)
        self.collect[at[outer]] = self.stamp[at[outer]] - self.offset[at[outer]].astype(np.int64) * stamps.SECOND
        self.stamp[at], self.kind[at], self.res[at] = ns, found.kind[good], found.res[good]
        self.offset[at] = found.offset[good]

    def take_int(self, name: str, rows: Rows, values: pl.Series) -> None:
        rows, found = _numbers(name, rows, values)
        self.ints[name][rows] = found

    def put_int(self, name: str, rows: Rows, values: Ints) -> None:
        """Numbers that are not negative, as far as a column of the timeline can hold them."""
        if name in SMALL:
            good = values < 2**31
            rows, values = rows[good], values[good]
        self.ints[name][rows] = values

    def fill_place(self, name: str, rows: Rows, values: pl.Series, *, own: bool) -> None:
        """A place that the message names, where nothing said it before."""
        if name == "host":
            field = "host" if own else "about_host"
            done = np.zeros(self.count, dtype=np.bool_)
            for before, _ in self.texts[field]:
                done[before] = True
            new = ~done[rows]
            self.texts[field].append((rows[new], values.filter(pl.Series(new))))
            return
        rows, found = _numbers(name, rows, values)
        into = self.ints[name] if own else self.about[name]
        new = into[rows] == NONE
        into[rows[new]] = found[new]

    def take_level(self, group: str, rows: Rows, values: pl.Series) -> None:
        kind, codes = LEVEL_CODES["pri" if group == "pri" else "word"]
        words = values.cast(kind, strict=False)
        if words.null_count():
            there = words.is_not_null()
            words, rows = words.filter(there), rows[there.to_numpy()]
        self.level[rows] = codes[words.to_physical().to_numpy()]


def _numbers(name: str, rows: Rows, values: pl.Series) -> tuple[Rows, Ints]:
    """The values that are numbers which a column of the timeline can hold, and their rows."""
    numbers = values.cast(pl.Int64, strict=False)
    if numbers.null_count():
        there = numbers.is_not_null()
        numbers, rows = numbers.filter(there), rows[there.to_numpy()]
    found = numbers.to_numpy()
    good = (found >= 0) & (found < 2**31) if name in SMALL else found >= 0
    return rows[good], found[good]


def assemble(pieces: list[tuple[Rows, pl.Series]], count: int) -> pl.Series:
    """One column from pieces; a later piece wins."""
    if not pieces:
        return pl.Series([None], dtype=pl.String).new_from_index(0, count)
    if len(pieces) == 1 and len(pieces[0][0]) == count:
        return pieces[0][1]
    place = np.full(count, -1, dtype=np.int64)
    start = 0
    for rows, values in pieces:
        place[rows] = np.arange(start, start + len(values))
        start += len(values)
    joined = pl.concat([values for _, values in pieces], rechunk=True)
    if (place >= 0).all():
        return joined.gather(place)
    index = pl.Series(place).cast(pl.Int64)
    index = index.to_frame("i").select(pl.when(pl.col("i") >= 0).then("i"))["i"]
    return pl.DataFrame({"v": joined}).select(pl.col("v").gather(index))["v"]


def _without(name: str, nothing: int, values: NDArray[Any]) -> pl.Expr:
    """A column in which a number stands for nothing, as one with nulls."""
    there = values != nothing
    if there.all():
        return pl.col(name)
    return pl.when(pl.col(name) != nothing).then(pl.col(name)) if there.any() else pl.lit(None)


def frame_of(state: State, message: pl.Series, ids: Sequence[str]) -> pl.DataFrame:
    """The columns of `SCHEMA`."""
    names = {0: ""}
    for (parent, place), code in state.chains.items():
        names[code] = f"{names[parent]},{ids[place]}".lstrip(",")
    numbers = {
        "stamp_ns": state.stamp, "stamp_res_ns": state.res, "collect_ns": state.collect, "mono_ns": state.mono,
        "mono_frac_ns": state.frac, **state.ints, **{f"about_{name}": values for name, values in state.about.items()},
    }  # fmt: skip
    kinds = SCHEMA | {"format": pl.Enum(ids)}
    words: dict[str, tuple[NDArray[Any], list[str | None]]] = {
        "stamp_kind": (state.kind, [kind.word for kind in StampKind]),
        "level": (state.level + 1, [None, *LEVELS]),
        "format": (state.format + 1, [None, *ids]),
        "wrappers": (state.chain, [names[code] or None for code in sorted(names)]),
    }
    plain = {name: assemble(pieces, state.count) for name, pieces in state.texts.items()}
    frame = pl.DataFrame({
        **{name: pl.Series(values) for name, values in numbers.items()},
        **{name: pl.Series(codes.astype(np.int64)) for name, (codes, _) in words.items()},
        "utc_offset_s": pl.Series(state.offset), "message": message, **plain,
    })  # fmt: skip
    made: dict[str, pl.Expr] = {name: _without(name, NONE, values) for name, values in numbers.items()}
    made["utc_offset_s"] = _without("utc_offset_s", NO_OFFSET, state.offset)
    for name, (_, table) in words.items():
        made[name] = pl.lit(pl.Series(table, dtype=kinds[name])).gather(pl.col(name))
    return frame.select(made.get(name, pl.col(name)).cast(kind).alias(name) for name, kind in kinds.items())
