"""Owns peeling many lines at once: wrappers and headers off, their fields in columns, without a loop over lines.

One multi-pattern pass a round says which formats may stand at the start of which line; the exact pattern of the most
specific one then runs on those lines alone. Lines that lost a wrapper go into the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from . import format_json, stamps
from .format_model import PLACE_FIELDS, FormatKind, LineFormat, SourceFormat
from .format_regex import for_polars, groups_of, has_rest
from .format_scan import Scanner
from .format_text import clean
from .format_words import LEVELS, base_name, level_of
from .stamps import NO_OFFSET, StampKind

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

NONE = np.iinfo(np.int64).min
MAX_ROUNDS = 12
TEXT_FIELDS = ("host", "pod", "container", "stream", "ip")
INT_COLUMNS = ("rank", "local_rank", "task", "pid", "tid", "gpu")
SMALL = ("rank", "local_rank", "task", "gpu")
_OPEN = (FormatKind.WRAPPER, FormatKind.JSON)

SCHEMA: dict[str, Any] = {
    "stamp_ns": pl.Int64, "stamp_kind": pl.String, "stamp_res_ns": pl.Int64, "utc_offset_s": pl.Int32,
    "collect_ns": pl.Int64, "mono_ns": pl.Int64, "mono_frac_ns": pl.Int64, "level": pl.String, "host": pl.String,
    "rank": pl.Int32, "local_rank": pl.Int32, "task": pl.Int32, "pid": pl.Int64, "tid": pl.Int64, "gpu": pl.Int32,
    "pod": pl.String, "container": pl.String, "stream": pl.String, "ip": pl.String, "about": pl.Boolean,
    "format": pl.String, "wrappers": pl.String, "message": pl.String,
}  # fmt: skip
"""Columns of `peel_many`."""


def fix_tee_role(role: str, local_rank: int, learnt: str) -> int:
    """Local rank behind a role name that itself ends in digits (`node1` and `3` print as `node13`)."""
    whole = f"{role}{local_rank}"
    tail = whole[len(learnt) :] if whole.startswith(learnt) else ""
    return int(tail) if tail.isdigit() else local_rank


class _State:
    """What is known of each line so far."""

    def __init__(self, lines: pl.Series) -> None:
        count = len(lines)
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
        self.texts: dict[str, list[tuple[Rows, pl.Series]]] = {name: [] for name in TEXT_FIELDS}
        self.messages: list[tuple[Rows, pl.Series]] = [(np.arange(count), lines)]
        self.format = np.full(count, -1, dtype=np.int32)
        self.chain = np.zeros(count, dtype=np.int32)
        self.about = np.zeros(count, dtype=np.bool_)

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
        numbers = values.cast(pl.Int64, strict=False)
        good = (numbers.fill_null(-1) >= 0).to_numpy()
        if name in SMALL:
            good = good & (numbers.fill_null(0) < 2**31).to_numpy()
        self.ints[name][rows[good]] = numbers.fill_null(0).to_numpy()[good]

    def take_level(self, group: str, rows: Rows, values: pl.Series) -> None:
        words = {word: level_of(group, word) for word in values.unique().to_list()}
        codes = {word: LEVELS.index(level) for word, level in words.items() if level}
        if codes:
            got = values.replace_strict(codes, default=-1, return_dtype=pl.Int8).to_numpy()
            self.level[rows[got >= 0]] = got[got >= 0]


def _assemble(pieces: list[tuple[Rows, pl.Series]], count: int) -> pl.Series:
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


class Peeler:
    """Formats made ready for columns."""

    def __init__(self, formats: Sequence[LineFormat], key: str) -> None:
        self.formats = formats
        self.scanner = Scanner(formats, key)
        self.kinds = np.array([list(FormatKind).index(one.kind) for one in formats], dtype=np.int8)
        self.trust = np.array([one.trust for one in formats], dtype=np.bool_)
        self.tag = np.array([one.kind is FormatKind.TAG for one in formats], dtype=np.bool_)
        # formats believed because of the file come before those that are always on
        self.order = np.empty(len(formats), dtype=np.int64)
        self.order[np.lexsort((np.arange(len(formats)), ~self.trust))] = np.arange(len(formats))
        self.bit = np.full(len(formats), -1, dtype=np.int64)
        open_ones = [place for place, one in enumerate(formats) if one.kind in _OPEN]
        self.bit[open_ones] = np.arange(len(open_ones))
        self.words = (len(open_ones) + 63) // 64 or 1

    def peel(self, text: pl.Series, sources: Sequence[SourceFormat], source_of: Rows | None) -> pl.DataFrame:
        lines = clean(text)
        state = _State(lines)
        trusted = np.array([[not one.trust or one.id in source.trusted for one in self.formats] for source in sources])
        chains: dict[tuple[int, int], int] = {}
        used = np.zeros((state.count, self.words), dtype=np.uint64)
        closed = np.zeros(state.count, dtype=np.bool_)  # behind a header: only tags
        details: tuple[Rows, Rows] = (np.empty(0, np.intp), np.empty(0, np.intp))
        active: Rows = np.arange(state.count)
        current = lines
        for number in range(MAX_ROUNDS):
            if not len(active):
                break
            where, what = self.scanner.scan(current, with_details=number == 0)
            where, what = self._json(current, where, what)
            if number == 0:
                is_detail = self.kinds[what] == list(FormatKind).index(FormatKind.DETAIL)
                details = where[is_detail], what[is_detail]
                where, what = where[~is_detail], what[~is_detail]
            lines_of = active[where]
            allowed = trusted[source_of[lines_of] if source_of is not None else 0, what]
            allowed &= ~closed[lines_of] | self.tag[what]
            bits = self.bit[what]
            spent = used[lines_of, np.maximum(bits, 0) // 64] >> (np.maximum(bits, 0) % 64).astype(np.uint64)
            allowed &= (bits < 0) | (spent & np.uint64(1) == 0)
            where, what = where[allowed], what[allowed]
            pieces = self._round(state, current, active, where, what, chains)
            rows_next: list[Rows] = []
            texts_next: list[pl.Series] = []
            for place, rows, rest in pieces:
                one = self.formats[place]
                state.messages.append((rows, rest))
                if one.kind in _OPEN:
                    bit = int(self.bit[place])
                    used[rows, bit // 64] |= np.uint64(1 << (bit % 64))
                else:
                    closed[rows] = True
                if one.final:
                    continue
                rows_next.append(rows)
                texts_next.append(rest)
            active = np.concatenate(rows_next) if rows_next else np.empty(0, np.intp)
            current = pl.concat(texts_next, rechunk=True) if texts_next else lines.clear()
        message = _assemble(state.messages, state.count)
        self._tee_roles(state, lines, sources, source_of)
        self._details(state, message, details)
        return self._frame(state, message, chains)

    def _json(self, current: pl.Series, where: Rows, what: Rows) -> tuple[Rows, Rows]:
        """One pattern stands for all JSON formats; which of them a line can be is told by the keys in it."""
        if self.scanner.json is None:
            return where, what
        marked = what == self.scanner.json
        if not marked.any():
            return where, what
        rows = where[marked]
        texts = current.gather(rows)
        wheres, whats = [where[~marked]], [what[~marked]]
        for place, one in enumerate(self.formats):
            if one.kind is FormatKind.JSON:
                good = rows[format_json.wanted(one, texts).to_numpy()]
                wheres.append(good)
                whats.append(np.full(len(good), place, dtype=np.intp))
        return np.concatenate(wheres), np.concatenate(whats)

    def _round(
        self, state: _State, current: pl.Series, active: Rows, where: Rows, what: Rows, chains: dict[tuple[int, int], int]
    ) -> list[tuple[int, Rows, pl.Series]]:
        """Gives each line to the first of its candidates whose exact pattern holds."""
        out: list[tuple[int, Rows, pl.Series]] = []
        order = np.lexsort((self.order[what], where))
        where, what = where[order], what[order]
        while len(where):
            first = np.ones(len(where), dtype=np.bool_)
            first[1:] = where[1:] != where[:-1]
            heads, choice = where[first], what[first]
            lost = np.zeros(len(active), dtype=np.bool_)
            for place in np.unique(choice):
                rows = heads[choice == place]
                got = self._extract(state, int(place), active[rows], current.gather(rows), chains)
                if got is None:
                    lost[rows] = True
                    continue
                good, rest = got
                lost[rows[~good]] = True
                out.append((int(place), active[rows[good]], rest))
            keep = ~first & lost[where]
            where, what = where[keep], what[keep]
        return out

    def _extract(
        self, state: _State, place: int, rows: Rows, texts: pl.Series, chains: dict[tuple[int, int], int]
    ) -> tuple[NDArray[np.bool_], pl.Series] | None:
        one = self.formats[place]
        if one.kind is FormatKind.JSON:
            table = format_json.extract(one, texts)
            rest_name = "rest"
        elif has_rest(one.regex):
            table = texts.str.extract_groups(f"^{for_polars(one.regex)}$").struct.unnest()
            rest_name = next(name for name in ("rest", "message") if name in table.columns)
        else:
            table = texts.str.extract_groups(f"^(?P<head_>{for_polars(one.regex)})").struct.unnest()
            rest_name = "head_"
        good = table[rest_name].is_not_null()
        if not good.any():
            return None
        mask = good.to_numpy()
        if not mask.all():
            table, texts, rows = table.filter(good), texts.filter(good), rows[mask]
        if rest_name == "head_":
            rest = table.select(pl.lit(texts).str.strip_prefix(pl.col("head_"))).to_series()
        else:
            rest = table[rest_name]
        self._take(state, table, rows)
        state.format[rows] = place if one.kind is not FormatKind.TAG else np.where(state.format[rows] < 0, place, state.format[rows])
        if one.kind is not FormatKind.HEADER:
            parents = state.chain[rows]
            for parent in np.unique(parents):
                code = chains.setdefault((int(parent), place), len(chains) + 1)
                state.chain[rows[parents == parent]] = code
        return mask, rest

    @staticmethod
    def _take(state: _State, table: pl.DataFrame, rows: Rows) -> None:
        for column in table.columns:
            name = base_name(column)
            known = name in INT_COLUMNS or name in TEXT_FIELDS or name in ("level", "sev", "pri", "mono_frac_ns")
            if not known and not name.startswith("t_"):
                continue
            values = table[column]
            at = rows
            if values.null_count():
                there = values.is_not_null()
                values, at = values.filter(there), rows[there.to_numpy()]
            if not len(at):
                continue
            if name.startswith("t_"):
                found = stamps.parse(values, name[2:])
                state.take_stamps(at, found)
                if name == "t_c10":
                    state.frac[at] = found.frac
            elif name in INT_COLUMNS:
                state.take_int(name, at, values)
            elif name in TEXT_FIELDS:
                state.texts[name].append((at, values))
            else:
                state.take_level(name, at, values)

    @staticmethod
    def _tee_roles(state: _State, lines: pl.Series, sources: Sequence[SourceFormat], source_of: Rows | None) -> None:
        for number, source in enumerate(sources):
            role = source.tee_role
            if not role or not role[-1].isdigit():
                continue
            mine = state.ints["local_rank"] != NONE
            if source_of is not None:
                mine &= source_of == number
            rows = np.flatnonzero(mine)
            shown = lines.gather(rows).str.extract(r"^\[([A-Za-z_][0-9A-Za-z_.-]*)\]:", 1)
            tails = shown.str.strip_prefix(role).cast(pl.Int64, strict=False)
            good = (shown.str.starts_with(role) & tails.is_not_null()).fill_null(value=False).to_numpy()
            state.ints["local_rank"][rows[good]] = tails.fill_null(0).to_numpy()[good]

    def _details(self, state: _State, message: pl.Series, details: tuple[Rows, Rows]) -> None:
        """Places that the message is about, where no header said who writes."""
        where, what = details
        taken: dict[str, NDArray[np.bool_]] = {}
        for place in sorted(set(what.tolist()), key=lambda it: int(self.order[it])):
            one = self.formats[place]
            rows = np.unique(where[what == place])
            table = message.gather(rows).str.extract_groups(for_polars(one.regex)).struct.unnest()
            for column in table.columns:
                name = base_name(column)
                if name.startswith("t_"):
                    there = table[column].is_not_null().to_numpy() & (state.kind[rows] == StampKind.NONE)
                    if there.any():
                        state.take_stamps(rows[there], stamps.parse(table[column].filter(pl.Series(there)), name[2:]))
                    continue
                if name not in PLACE_FIELDS:
                    continue
                done = taken.setdefault(name, self._filled(state, name))
                there = table[column].is_not_null().to_numpy() & ~done[rows]
                if not there.any():
                    continue
                values = table[column].filter(pl.Series(there))
                if name == "host":
                    state.texts["host"].append((rows[there], values))
                else:
                    state.take_int(name, rows[there], values)
                done[rows[there]] = True
                state.about[rows[there]] = True

    @staticmethod
    def _filled(state: _State, name: str) -> NDArray[np.bool_]:
        if name != "host":
            return state.ints[name] != NONE
        out = np.zeros(state.count, dtype=np.bool_)
        for rows, _ in state.texts["host"]:
            out[rows] = True
        return out

    def _frame(self, state: _State, message: pl.Series, chains: dict[tuple[int, int], int]) -> pl.DataFrame:
        names = {0: ""}
        for (parent, place), code in chains.items():
            names[code] = f"{names[parent]},{self.formats[place].id}".lstrip(",")
        columns: dict[str, pl.Series] = {
            "stamp_ns": _null(state.stamp), "stamp_kind": _coded(state.kind, [kind.word for kind in StampKind]),
            "stamp_res_ns": _null(state.res), "utc_offset_s": _null(state.offset.astype(np.int64), NO_OFFSET),
            "collect_ns": _null(state.collect), "mono_ns": _null(state.mono), "mono_frac_ns": _null(state.frac),
            "level": _coded(state.level + 1, [None, *LEVELS]),
            **{name: _null(values) for name, values in state.ints.items()},
            **{name: _assemble(pieces, state.count) for name, pieces in state.texts.items()},
            "about": pl.Series(state.about),
            "format": _coded(state.format + 1, [None, *(one.id for one in self.formats)]),
            "wrappers": _coded(state.chain, [names[code] or None for code in sorted(names)]),
            "message": message,
        }  # fmt: skip
        return pl.DataFrame([columns[name].cast(kind).alias(name) for name, kind in SCHEMA.items()])


def _null(values: Ints, sentinel: int = NONE) -> pl.Series:
    series = pl.Series(values)
    return series.to_frame("v").select(pl.when(pl.col("v") != sentinel).then("v"))["v"]


def _coded(codes: NDArray[Any], words: Sequence[str | None]) -> pl.Series:
    table = pl.Series(list(words), dtype=pl.String)
    return table.gather(codes.astype(np.int64))


Peel = Callable[[pl.Series], pl.DataFrame]
