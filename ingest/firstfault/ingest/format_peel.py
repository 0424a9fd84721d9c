"""Owns peeling many lines at once: wrappers and headers off, their fields in columns, without a loop over lines.

The first bytes of each line say which formats may stand there; the exact patterns run on those lines alone, the most
specific first. Lines that lost a wrapper go into the next round.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from firstfault.ingest import format_json, stamps
from firstfault.ingest.format_front import SMALL, Gate, masks_of, text_of
from firstfault.ingest.format_model import PLACE_FIELDS, FormatKind, LineFormat, SourceFormat
from firstfault.ingest.format_regex import GROUP, REST, for_polars, groups_of, has_rest
from firstfault.ingest.format_shapes import FEW, MAX_ROUNDS, Shapes, front_pattern, is_kept
from firstfault.ingest.format_state import INT_COLUMNS, NONE, TEXT_FIELDS, State, assemble, frame_of
from firstfault.ingest.format_text import clean
from firstfault.ingest.format_words import base_name
from firstfault.ingest.stamps import StampKind

Rows = NDArray[np.intp]

RARE = 4  # of so many lines that may have a format at most one has it
MANY = 48  # bytes that may begin a line; with more of them the first places tell little
OPEN = (FormatKind.WRAPPER, FormatKind.JSON)
FRONT = (FormatKind.WRAPPER, FormatKind.HEADER, FormatKind.TAG, FormatKind.JSON)


def names_place(one: LineFormat) -> bool:
    """Whether a detail fills a column of the timeline."""
    return any(base_name(group) in PLACE_FIELDS or group.startswith("t_") for group in groups_of(one.regex))


def fix_tee_role(role: str, local_rank: int, learnt: str) -> int:
    """Local rank behind a role name that itself ends in digits (`node1` and `3` print as `node13`)."""
    whole = f"{role}{local_rank}"
    tail = whole[len(learnt) :] if whole.startswith(learnt) else ""
    return int(tail) if tail.isdigit() else local_rank


class Peeler:
    """Formats made ready for columns."""

    def __init__(self, formats: Sequence[LineFormat]) -> None:
        self.formats = formats
        # formats believed because of the file come before those that are always on
        front = [place for place, one in enumerate(formats) if one.kind in FRONT]
        self.front = sorted(front, key=lambda place: (not formats[place].trust, place))
        self.gate = Gate([front_pattern(formats[place]) for place in self.front])
        weak = [place for place in self.front if masks_of(front_pattern(formats[place]))[0].bit_count() > MANY]
        self.held = {place: text for place in weak if (text := text_of(front_pattern(formats[place])))}
        open_ones = [place for place in self.front if formats[place].kind in OPEN]
        self.bits = {place: number for number, place in enumerate(open_ones)}
        self._shapes = Shapes(formats, self.front, self.held)
        self._rare: set[int] = set()
        self._patterns: dict[int, str] = {}
        self.words = (len(open_ones) + 63) // 64 or 1
        details = [place for place, one in enumerate(formats) if one.kind is FormatKind.DETAIL and names_place(one)]
        self.details = {place: text_of(formats[place].regex) for place in details}
        # many times faster than `contains_any` where most lines hold none
        self.any_detail = "|".join(sorted(re.escape(text) for text in set(self.details.values())))

    def peel(self, text: pl.Series, sources: Sequence[SourceFormat], source_of: Rows | None) -> pl.DataFrame:
        lines = clean(text)
        state = State(lines, self.words)
        trusted = {
            place: np.array([self.formats[place].id in source.trusted for source in sources])
            for place in self.front
            if self.formats[place].trust
        }
        active: Rows = np.arange(state.count)
        current = lines
        if state.count >= FEW:
            active = self._shapes.peel(state, lines, [source.trusted for source in sources], source_of)
            current = lines.gather(active)
        for _ in range(MAX_ROUNDS):
            if not len(active):
                break
            rows_next: list[Rows] = []
            texts_next: list[pl.Series] = []
            for place, rows, rest in self._round(state, current, active, trusted, source_of):
                one = self.formats[place]
                state.messages.append((rows, rest))
                state.last[rows] = place
                if place in self.bits:
                    bit = self.bits[place]
                    state.used[rows, bit // 64] |= np.uint64(1 << (bit % 64))
                elif not one.open:
                    state.closed[rows] = True
                if not one.final:
                    rows_next.append(rows)
                    texts_next.append(rest)
            active = np.concatenate(rows_next) if rows_next else np.empty(0, np.intp)
            current = pl.concat(texts_next, rechunk=True) if texts_next else lines.clear()
        message = assemble(state.messages, state.count)
        self._tee_roles(state, lines, sources, source_of)
        self._details(state, message)
        return frame_of(state, message, [one.id for one in self.formats])

    def _round(
        self,
        state: State,
        current: pl.Series,
        active: Rows,
        trusted: dict[int, NDArray[np.bool_]],
        source_of: Rows | None,
    ) -> list[tuple[int, Rows, pl.Series]]:
        """Gives each line to the first format that its start fits."""
        out: list[tuple[int, Rows, pl.Series]] = []
        admitted = self.gate.admitted(current)
        present = [int(word) for word in np.bitwise_or.reduce(admitted, axis=1)]
        left = np.ones(len(active), dtype=np.bool_)
        open_ = ~state.closed[active]
        for number, place in enumerate(self.front):
            word, bit = divmod(number, 64)
            if not present[word] >> bit & 1:
                continue
            one = self.formats[place]
            believed = trusted.get(place)
            if believed is not None and not believed.any():
                continue
            there = (admitted[word] & np.uint64(1 << bit) != 0) & left
            rows = np.flatnonzero(there if one.kind is FormatKind.TAG else there & open_)
            if not len(rows):
                continue
            if believed is not None and source_of is not None:
                rows = rows[believed[source_of[active[rows]]]]
            if one.open:
                rows = rows[state.last[active[rows]] != place]
            own = self.bits.get(place)
            if own is not None and len(rows):
                spent = state.used[active[rows], own // 64] >> np.uint64(own % 64) & np.uint64(1)
                rows = rows[spent == 0]
            if not len(rows):
                continue
            texts = current.gather(rows)
            if (held := self.held.get(place)) is not None:
                holding = texts.str.contains(held, literal=True)
                if not holding.any():
                    continue
                if not holding.all():
                    texts, rows = texts.filter(holding), rows[holding.to_numpy()]
            got = self._extract(state, place, active[rows], texts)
            if got is None:
                continue
            fits, rest = got
            rows = rows[fits]
            left[rows] = False
            out.append((place, active[rows], rest))
            if not left.any():
                break
        return out

    def _extract(
        self, state: State, place: int, rows: Rows, texts: pl.Series
    ) -> tuple[NDArray[np.bool_], pl.Series] | None:
        one = self.formats[place]
        mask = np.ones(len(rows), dtype=np.bool_)
        if place in self._rare:  # to say no is several times cheaper than to take out the groups
            fits = texts.str.contains(self._pattern(place))
            if not fits.any():
                return None
            mask = fits.to_numpy()
            texts, rows = texts.filter(fits), rows[mask]
        rest: pl.Series | None
        if one.kind is FormatKind.JSON:
            table = format_json.extract(one, texts)
            rest = found = table["rest"]
        else:
            table = texts.str.extract_groups(self._pattern(place)).struct.unnest()
            rest = next((table[name] for name in REST if name in table.columns), None)
            found = table["head_"] if rest is None else rest
            if (len(found) - found.null_count()) * RARE < len(found):
                self._rare.add(place)
        if found.null_count() == len(found):
            return None
        if found.null_count():
            good = found.is_not_null()
            mask = mask.copy()
            mask[mask] = good.to_numpy()
            table, texts, rows = table.filter(good), texts.filter(good), rows[good.to_numpy()]
            rest = None if rest is None else rest.filter(good)
        if rest is None:
            rest = table.select(pl.lit(texts).str.strip_prefix(pl.col("head_"))).to_series()
        self._take(state, table, rows)
        state.format[rows] = (
            place if one.kind is not FormatKind.TAG else np.where(state.format[rows] < 0, place, state.format[rows])
        )
        if one.kind is not FormatKind.HEADER:
            parents = state.chain[rows]
            for parent in np.unique(parents):
                code = state.chains.setdefault((int(parent), place), len(state.chains) + 1)
                state.chain[rows[parents == parent]] = code
        return mask, rest

    def _pattern(self, place: int) -> str:
        """The pattern of a header or wrapper with the groups that are taken; without a rest it has the head as one."""
        pattern = self._patterns.get(place)
        if pattern is None:
            regex = self.formats[place].regex
            bare = for_polars(GROUP.sub(lambda found: found[0] if is_kept(found[1]) else "(?:", regex))
            pattern = self._patterns[place] = f"^(?:{bare})$" if has_rest(regex) else f"^(?P<head_>{bare})"
        return pattern

    @staticmethod
    def _take(state: State, table: pl.DataFrame, rows: Rows) -> None:
        for column in table.columns:
            name = base_name(column)
            if column in REST or not is_kept(column):
                continue
            values = table[column]
            at = rows
            if values.null_count() == len(values):
                continue
            if values.null_count():
                there = values.is_not_null()
                values, at = values.filter(there), rows[there.to_numpy()]
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
    def _tee_roles(state: State, lines: pl.Series, sources: Sequence[SourceFormat], source_of: Rows | None) -> None:
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

    def _details(self, state: State, message: pl.Series) -> None:
        """Places and times that the message is about, where no header said who writes and when."""
        if not self.details:
            return
        hits = message.str.contains(self.any_detail).arg_true().to_numpy().astype(np.intp)
        if not len(hits):
            return
        some = message.gather(hits)
        few = some.to_list() if len(some) < SMALL else None
        for place, text in self.details.items():
            one = self.formats[place]
            pattern = for_polars(one.regex)
            if few is None:
                rows = hits[some.str.contains(text, literal=True).to_numpy()]
            else:
                rows = hits[[text in line for line in few]]
            if not len(rows):
                continue
            rows = rows[message.gather(rows).str.contains(pattern).to_numpy()]
            if not len(rows):
                continue
            table = message.gather(rows).str.extract_groups(pattern).struct.unnest()
            for column in table.columns:
                name = base_name(column)
                if name.startswith("t_"):
                    there = table[column].is_not_null().to_numpy() & (state.kind[rows] == StampKind.NONE)
                    if there.any():
                        state.take_stamps(rows[there], stamps.parse(table[column].filter(pl.Series(there)), name[2:]))
                    continue
                if name in PLACE_FIELDS:
                    there = table[column].is_not_null()
                    if there.any():
                        values = table[column].filter(there)
                        state.fill_place(name, rows[there.to_numpy()], values, own=one.own)
