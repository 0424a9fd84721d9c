"""Owns the reading of printed times: columns of stamp texts in, integer nanoseconds of that wall clock out.

A stamp says less than a moment. What it leaves out (zone, year, day) stays out: `kind` names it, and a stamp without a
year counts from `BASE_YEAR`, one without a date from midnight, until `fill_year` or `fill_day` completes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from firstfault.ingest.text_bytes import first_bytes

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
BASE_YEAR = 1972
"""Year of stamps that carry none: a leap year, so that Feb 29 has a place."""

NO_OFFSET = -(1 << 31)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WIDTH = 40
_BLANK = 32


class StampKind(IntEnum):
    """How much of a moment a stamp carries; the words are those of `line_rows.stamp_kind`."""

    NONE = 0
    OFFSET = 1
    FULL = 2
    NO_YEAR = 3
    TIME_ONLY = 4
    MONOTONIC = 5
    RELATIVE = 6

    @property
    def word(self) -> str | None:
        return None if self is StampKind.NONE else self.name.lower().replace("_", "-")


KINDS = tuple(word for kind in StampKind if (word := kind.word) is not None)


@dataclass(frozen=True, slots=True)
class Stamps:
    """A column of stamps. Where `kind` is NONE the text was no valid time and the other values mean nothing."""

    ns: Ints
    res: Ints
    offset: NDArray[np.int32]
    kind: NDArray[np.int8]
    frac: Ints  # the printed fraction in nanoseconds, also where it is no part of `ns`


class _Text:
    """Texts of one column as a matrix of bytes, with the length of each."""

    def __init__(self, rows: Bytes, length: Ints) -> None:
        self.rows = rows
        self.length = length.clip(max=_WIDTH)
        self.index = np.arange(len(rows))

    @classmethod
    def of(cls, texts: pl.Series) -> _Text:
        rows, length = first_bytes(texts, _WIDTH, _BLANK)
        if (rows > 127).any():
            rows, length = first_bytes(texts.str.replace_all(r"[^\x00-\x7f]", "?"), _WIDTH, _BLANK)
        return cls(rows, length)

    def at(self, column: int | Ints) -> Bytes:
        if isinstance(column, int):
            return self.rows[:, column]
        out: Bytes = self.rows[self.index, np.clip(column, 0, _WIDTH - 1)]
        return out

    def number(self, column: int | Ints, digits: int) -> Ints:
        """Digits from `column` on; a space counts as 0, so that padded days read well."""
        total = np.zeros(len(self.rows), dtype=np.int64)
        for step in range(digits):
            byte = self.at(column + step).astype(np.int64) - 48
            total = total * 10 + np.where(byte == -16, 0, byte)
        return total

    def month(self, column: int) -> Ints:
        code = np.zeros(len(self.rows), dtype=np.int64)
        for step in range(3):
            code = code * 256 + (self.rows[:, column + step] | 32)
        out = np.zeros(len(self.rows), dtype=np.int64)
        for number, name in enumerate(MONTHS, start=1):
            out[code == int.from_bytes(name.encode(), "big")] = number
        return out

    def fraction(self, column: int | Ints) -> tuple[Ints, Ints, Ints]:
        """Nanoseconds, resolution, and the column after the last digit of an optional `.ddd` or `,ddd`."""
        mark = self.at(column)
        going = (mark == 46) | (mark == 44)
        value = np.zeros(len(self.rows), dtype=np.int64)
        count = np.zeros(len(self.rows), dtype=np.int64)
        for step in range(1, 10):
            digit = self.at(column + step).astype(np.int64) - 48
            going = going & (digit >= 0) & (digit <= 9)
            if not going.any():
                break
            value = np.where(going, value * 10 + digit, value)
            count += going
        scale = 10 ** (9 - count)
        end = np.where(count > 0, column + 1 + count, column)
        return value * scale, np.where(count > 0, scale, SECOND), end

    def zone(self, after: Ints) -> NDArray[np.int32]:
        """Seconds east of UTC from `Z`, `UTC`, `+hh`, `+hhmm` or `+hh:mm` behind column `after`."""
        here = after + (self.at(after) == 32)
        mark = self.at(here)
        signed = ((mark == 43) | (mark == 45)) & (here < self.length)
        colon = self.at(here + 3) == 58
        hours = self.number(here + 1, 2)
        minutes = self.number(np.where(colon, here + 4, here + 3), 2)
        has_minutes = self.length >= np.where(colon, here + 6, here + 5)
        east = (hours * 60 + np.where(has_minutes, minutes, 0)) * 60 * np.where(mark == 45, -1, 1)
        good = signed & (hours >= 0) & (hours <= 14) & (~has_minutes | ((minutes >= 0) & (minutes < 60)))
        named = (mark == 85) & (self.at(here + 1) == 84) & (self.at(here + 2) == 67)
        greenwich = (mark == 71) & (self.at(here + 1) == 77) & (self.at(here + 2) == 84)
        zulu = ((mark == 90) | named | greenwich) & (here < self.length)
        return np.where(zulu, 0, np.where(good, east, NO_OFFSET)).astype(np.int32)


def _days(year: Ints, month: Ints, day: Ints) -> Ints:
    """Days since 1970-01-01 of a civil date."""
    shifted = year - (month <= 2)
    era = np.floor_divide(shifted, 400)
    of_era = shifted - era * 400
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    days: Ints = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days


_MONTH_DAYS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)


def _clock(text: _Text, column: int) -> tuple[Ints, Flags]:
    """Seconds of the day of `hh:mm:ss` at `column`."""
    hour, minute, second = (text.number(column + step, 2) for step in (0, 3, 6))
    good = (hour >= 0) & (hour < 24) & (minute >= 0) & (minute < 60) & (second >= 0) & (second <= 60)
    return (hour * 60 + minute) * 60 + second, good


def _moment(
    year: Ints | int,
    month: Ints,
    day: Ints,
    clock: tuple[Ints, Flags],
    fraction: tuple[Ints, Ints, Ints],
    kind: StampKind,
    offset: NDArray[np.int32] | None = None,
) -> Stamps:
    years = np.broadcast_to(np.asarray(year, dtype=np.int64), month.shape)
    seconds, good = clock
    good = good & (month >= 1) & (month <= 12) & (day >= 1) & (years >= 1970) & (years < 2200)
    safe = np.where(good, month, 1)
    good = good & (day <= _MONTH_DAYS[safe])
    days = _days(np.where(good, years, 1970), safe, np.where(good, day, 1))
    ns = (days * 86_400 + seconds) * SECOND + fraction[0]
    offsets = np.full(month.shape, NO_OFFSET, dtype=np.int32) if offset is None else offset
    kinds = np.where(offsets != NO_OFFSET, StampKind.OFFSET, kind)
    return Stamps(ns, fraction[1], offsets, np.where(good, kinds, 0).astype(np.int8), fraction[0])


def _ymd(text: _Text) -> Stamps:
    fraction = text.fraction(19)
    offset = text.zone(fraction[2])
    return _moment(
        text.number(0, 4), text.number(5, 2), text.number(8, 2), _clock(text, 11), fraction, StampKind.FULL, offset
    )


def _ymdhm(text: _Text) -> Stamps:
    hour, minute = text.number(11, 2), text.number(14, 2)
    clock = (hour * 60 + minute) * 60, (hour >= 0) & (hour < 24) & (minute >= 0) & (minute < 60)
    nothing = np.zeros(len(hour), dtype=np.int64)
    fraction = nothing, np.full(len(hour), 60 * SECOND, dtype=np.int64), nothing
    return _moment(text.number(0, 4), text.number(5, 2), text.number(8, 2), clock, fraction, StampKind.FULL)


def _ctime(text: _Text) -> Stamps:
    fraction = text.fraction(19)
    year = text.number(text.length - 4, 4)
    middle = text.at(fraction[2] + 1)
    zone = np.where((middle < 48) | (middle > 57), text.zone(fraction[2]), NO_OFFSET).astype(np.int32)
    return _moment(year, text.month(4), text.number(8, 2), _clock(text, 11), fraction, StampKind.FULL, zone)


def _syslog(text: _Text) -> Stamps:
    return _moment(BASE_YEAR, text.month(0), text.number(4, 2), _clock(text, 7), text.fraction(15), StampKind.NO_YEAR)


def _mdhm(text: _Text) -> Stamps:
    hour, minute = text.number(7, 2), text.number(10, 2)
    clock = (hour * 60 + minute) * 60, (hour >= 0) & (hour < 24) & (minute >= 0) & (minute < 60)
    nothing = np.zeros(len(hour), dtype=np.int64)
    fraction = nothing, np.full(len(hour), 60 * SECOND, dtype=np.int64), nothing
    return _moment(BASE_YEAR, text.month(0), text.number(4, 2), clock, fraction, StampKind.NO_YEAR)


def _glog(text: _Text) -> Stamps:
    return _moment(
        BASE_YEAR, text.number(0, 2), text.number(2, 2), _clock(text, 5), text.fraction(13), StampKind.NO_YEAR
    )


def _glogy(text: _Text) -> Stamps:
    fraction = text.fraction(17)
    return _moment(text.number(0, 4), text.number(4, 2), text.number(6, 2), _clock(text, 9), fraction, StampKind.FULL)


def _c10(text: _Text) -> Stamps:
    # month * 100 + day without padding: three or four digits, the last two are the day
    short = (text.at(3) == 32).astype(np.int64)
    month = np.where(short == 1, text.number(0, 1), text.number(0, 2))
    at = 5 - short
    hour, minute, second = (text.number(at + step, 2) for step in (0, 3, 6))
    good = (hour < 24) & (minute < 60) & (second <= 60)
    fraction = text.fraction(at + 8)
    # the nine digits are CLOCK_MONOTONIC's, no part of the printed second
    whole = np.zeros_like(month), np.full(len(month), SECOND, dtype=np.int64), fraction[2]
    clock = (hour * 60 + minute) * 60 + second, good
    stamps = _moment(BASE_YEAR, month, text.number(2 - short, 2), clock, whole, StampKind.NO_YEAR)
    return Stamps(stamps.ns, stamps.res, stamps.offset, stamps.kind, fraction[0])


def _mdhms(text: _Text) -> Stamps:
    return _moment(
        BASE_YEAR, text.number(0, 2), text.number(3, 2), _clock(text, 6), text.fraction(14), StampKind.NO_YEAR
    )


def _short_year(text: _Text) -> Stamps:
    year = text.number(0, 2) + 2000
    return _moment(year, text.number(3, 2), text.number(6, 2), _clock(text, 9), text.fraction(17), StampKind.FULL)


def _us(text: _Text) -> Stamps:
    first, second = text.number(0, 2), text.number(3, 2)
    swapped = (first > 12) & (second <= 12)
    month, day = np.where(swapped, second, first), np.where(swapped, first, second)
    seconds, good = _clock(text, 11)
    fraction = text.fraction(19)
    mark = text.at(fraction[2] + 1)
    twelve = (text.at(fraction[2] + 2) == 77) & ((mark == 65) | (mark == 80))  # AM, PM
    hour = seconds // 3600
    half = np.where(mark == 80, 12, 0) - np.where(hour == 12, 12, 0)
    seconds = np.where(twelve, seconds + half * 3600, seconds)
    return _moment(text.number(6, 4), month, day, (seconds, good), fraction, StampKind.FULL)


def _ymon(text: _Text) -> Stamps:
    return _moment(
        text.number(0, 4), text.month(5), text.number(9, 2), _clock(text, 12), text.fraction(20), StampKind.FULL
    )


def _neuron(text: _Text) -> Stamps:
    stamps = _ymon(text)
    # four digits are milliseconds padded with a zero in front, six are microseconds
    four = stamps.res == 100_000
    ms = stamps.frac // 100_000 * 1_000_000
    ns = np.where(four, stamps.ns - stamps.frac + ms, stamps.ns)
    return Stamps(
        ns, np.where(four, 1_000_000, stamps.res), stamps.offset, stamps.kind, np.where(four, ms, stamps.frac)
    )


def _mdy(text: _Text) -> Stamps:
    return _moment(
        text.number(7, 4), text.month(0), text.number(4, 2), _clock(text, 12), text.fraction(20), StampKind.FULL
    )


def _dmony(text: _Text) -> Stamps:
    fraction = text.fraction(20)
    return _moment(
        text.number(7, 4),
        text.month(3),
        text.number(0, 2),
        _clock(text, 12),
        fraction,
        StampKind.FULL,
        text.zone(fraction[2]),
    )


def _hms(text: _Text) -> Stamps:
    seconds, good = _clock(text, 0)
    fraction = text.fraction(8)
    kind = np.where(good, StampKind.TIME_ONLY, 0).astype(np.int8)
    offset = np.full(len(seconds), NO_OFFSET, dtype=np.int32)
    return Stamps(seconds * SECOND + fraction[0], fraction[1], offset, kind, fraction[0])


def _decimal(texts: pl.Series) -> tuple[Ints, Ints, Ints, Flags]:
    """Whole part, nanoseconds of the fraction, resolution, validity of plain decimal numbers."""
    parts = texts.str.split_exact(".", 1).struct.unnest()
    whole = parts["field_0"].cast(pl.Int64, strict=False)
    tail = parts["field_1"].str.extract(r"^([0-9]{1,9})", 1).fill_null("")
    count = tail.str.len_bytes().to_numpy().astype(np.int64)
    value = tail.cast(pl.Int64, strict=False).fill_null(0).to_numpy().astype(np.int64)
    scale = 10 ** (9 - count)
    good = whole.is_not_null().to_numpy()
    return whole.fill_null(0).to_numpy().astype(np.int64), value * scale, scale, good


def _epoch(texts: pl.Series) -> Stamps:
    whole, fraction, res, good = _decimal(texts)
    unit = np.select(
        [whole < 100_000_000_000, whole < 100_000_000_000_000, whole < 100_000_000_000_000_000],
        [SECOND, 1_000_000, 1_000],
        1,
    ).astype(np.int64)
    ns = whole * unit + np.where(unit == SECOND, fraction, 0)
    res = np.where(unit == SECOND, res, unit)
    kind = np.where(good & (ns >= 0), StampKind.OFFSET, 0).astype(np.int8)
    return Stamps(ns, res, np.zeros(len(whole), dtype=np.int32), kind, fraction)


def _mono(texts: pl.Series) -> Stamps:
    whole, fraction, res, good = _decimal(texts.str.strip_chars())
    good &= whole < 9_000_000_000
    offset = np.full(len(whole), NO_OFFSET, dtype=np.int32)
    kind = np.where(good, StampKind.MONOTONIC, 0).astype(np.int8)
    return Stamps(np.where(good, whole, 0) * SECOND + fraction, res, offset, kind, fraction)


def _mono_us(texts: pl.Series) -> Stamps:
    stamps = _mono(texts)
    return Stamps(stamps.ns // 1_000_000, stamps.res // 1_000_000, stamps.offset, stamps.kind, stamps.frac)


def _relative(texts: pl.Series) -> Stamps:
    stamps = _mono(texts)
    kind = np.where(stamps.kind != 0, StampKind.RELATIVE, 0).astype(np.int8)
    return Stamps(stamps.ns, stamps.res, stamps.offset, kind, stamps.frac)


def _minute(texts: pl.Series) -> Stamps:
    """`May12 10:11` and `May 2 10:11`, brought to the widths of `May 12 10:11`."""
    parts = texts.str.extract_groups(r"^(?<m>[A-Z][a-z]{2}) ?(?<d>[0-9]{1,2}) (?<t>[0-9]{2}:[0-9]{2})$").struct.unnest()
    wide = parts.select(pl.concat_str("m", pl.lit(" "), pl.col("d").str.zfill(2), pl.lit(" "), "t")).to_series()
    return _mdhm(_Text.of(wide.fill_null("")))


def _auto(texts: pl.Series) -> Stamps:
    """Times of JSON records: a number counts from the epoch, a text is a date and a time."""
    number = texts.str.contains(r"^[0-9]{1,19}(?:\.[0-9]+)?$").to_numpy()
    dated = texts.str.contains(r"^[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}[T _][0-9]{2}:[0-9]{2}:[0-9]{2}").to_numpy()
    count = len(texts)
    out = Stamps(
        np.zeros(count, np.int64), np.ones(count, np.int64), np.full(count, NO_OFFSET, np.int32),
        np.zeros(count, np.int8), np.zeros(count, np.int64),
    )  # fmt: skip
    for where, shape in ((number, _epoch), (dated, lambda some: _ymd(_Text.of(some)))):
        if where.any():
            found = shape(texts.filter(pl.Series(where)))
            for name in ("ns", "res", "offset", "kind", "frac"):
                getattr(out, name)[where] = getattr(found, name)
    return out


_FIXED: dict[str, Callable[[_Text], Stamps]] = {
    "ymd": _ymd,  # 2025-05-12T10:11:12.345+02:00, any separators, comma or point
    "ymdhm": _ymdhm,  # 2025-05-12 10:11
    "ctime": _ctime,  # Mon May 12 10:11:12 2025
    "syslog": _syslog,  # May 12 10:11:12.345
    "mdhm": _mdhm,  # May 12 10:11
    "glog": _glog,  # 0512 10:11:12.345678
    "glogy": _glogy,  # 20250512 10:11:12.345678
    "c10": _c10,  # 512 10:11:12.715298746
    "mdhms": _mdhms,  # 05-12 10:11:12
    "yymd": _short_year,  # 25/05/12 10:11:12
    "us": _us,  # 05/12/2025 10:11:12
    "ymon": _ymon,  # 2025-May-12 10:11:12.034
    "neuron": _neuron,  # 2025-May-12 10:11:12.0345
    "mdy": _mdy,  # May 12 2025 10:11:12
    "dmony": _dmony,  # 12/May/2025:10:11:12 +0000
    "hms": _hms,  # 10:11:12.345
}
_FREE: dict[str, Callable[[pl.Series], Stamps]] = {
    "epoch": _epoch,  # 1747044672.123456, or whole milli-, micro- or nanoseconds
    "mono": _mono,  # 1234.567890, seconds since boot
    "monous": _mono_us,  # 1234567890, microseconds since boot
    "rel": _relative,  # 0.000123, seconds since the line before
    "mond": _minute,  # May12 10:11
    "auto": _auto,  # what JSON records hold
}
SHAPES = (*_FIXED, *_FREE)


def parse(texts: pl.Series, shape: str) -> Stamps:
    """Stamps of a column without nulls whose texts have one shape (a key of `SHAPES`)."""
    if shape in _FREE:
        return _FREE[shape](texts)
    return _FIXED[shape](_Text.of(texts))


def parse_bytes(rows: Bytes, lengths: Ints, shape: str) -> Stamps | None:
    """Stamps of ASCII texts that are given as rows of bytes, whatever stands behind their ends.

    None where the stamps of the shape are not at fixed places.
    """
    if shape not in _FIXED:
        return None
    wide = np.full((len(rows), _WIDTH), _BLANK, dtype=np.uint8)
    width = min(rows.shape[1], _WIDTH)
    wide[:, :width] = rows[:, :width]
    wide[np.arange(_WIDTH) >= lengths[:, None]] = _BLANK
    return _FIXED[shape](_Text(wide, lengths))


def year_of(ns: int) -> int:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=ns // SECOND)).year


def fill_year(ns: Ints, year: int | Ints) -> Ints:
    """Stamps without a year, moved from `BASE_YEAR` into `year` (one, or one for each); a missing Feb 29 slides."""
    years = np.broadcast_to(np.asarray(year, dtype=np.int64), ns.shape)
    one = np.ones(ns.shape, dtype=np.int64)
    base = _days(one * BASE_YEAR, one, one) * DAY
    of_year = ns - base
    leap = (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
    late = of_year >= 59 * DAY  # from Feb 29 on
    shift = np.where(~leap & (of_year >= 60 * DAY) & late, DAY, 0)
    return _days(years, one, one) * DAY + of_year - shift


def fill_day(ns: Ints, midnight_ns: int | Ints) -> Ints:
    """Stamps of the day alone, moved to the day that begins at `midnight_ns`."""
    return ns + midnight_ns


def iso(ns: int, res: int, offset: int | None) -> str:
    """ISO 8601 with as many digits of the second as the stamp carried."""
    zone = UTC if offset is None else timezone(timedelta(seconds=offset))
    whole = datetime(1970, 1, 1, tzinfo=zone) + timedelta(seconds=ns // SECOND)
    digits = 0
    while digits < 9 and res < 10 ** (9 - digits):
        digits += 1
    text = whole.strftime("%Y-%m-%dT%H:%M:%S")
    if digits:
        text += f".{ns % SECOND:09d}"[: digits + 1]
    if offset is not None:
        sign = "-" if offset < 0 else "+"
        text += f"{sign}{abs(offset) // 3600:02d}:{abs(offset) % 3600 // 60:02d}"
    return text
