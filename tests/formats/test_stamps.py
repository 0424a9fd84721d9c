"""Stamps as printed, in nanoseconds of their own wall clock."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstfault.ingest import stamps
from firstfault.ingest.stamps import NO_OFFSET, SHAPES, StampKind, fill_day, fill_year, iso, parse


def shown(text: str, shape: str) -> tuple[str | None, str]:
    found = parse(pl.Series([text]), shape)
    offset = None if found.offset[0] == NO_OFFSET else int(found.offset[0])
    return StampKind(int(found.kind[0])).word, iso(int(found.ns[0]), int(found.res[0]), offset)


@pytest.mark.parametrize(
    ("shape", "text", "kind", "time"),
    [
        ("ymd", "2025-05-12T10:11:12.3456+02:00", "offset", "2025-05-12T10:11:12.3456+02:00"),
        ("ymd", "2025-05-12 10:11:12,345", "full", "2025-05-12T10:11:12.345"),
        ("ymd", "2025-05-12T10:11:12Z", "offset", "2025-05-12T10:11:12+00:00"),
        ("ymd", "2025-05-12T10:11:12+0200", "offset", "2025-05-12T10:11:12+02:00"),
        ("ymd", "2025-05-12T10:11:12-03:30", "offset", "2025-05-12T10:11:12-03:30"),
        ("ymd", "2025-05-12 10:11:12 UTC", "offset", "2025-05-12T10:11:12+00:00"),
        ("ymd", "2025-05-12_10:11:12.345678901", "full", "2025-05-12T10:11:12.345678901"),
        ("ymd", "2024-02-29 23:59:60", "full", "2024-03-01T00:00:00"),
        ("ymdhm", "2025-05-12 10:11", "full", "2025-05-12T10:11:00"),
        ("ctime", "Fri May  2 10:11:12 2025", "full", "2025-05-02T10:11:12"),
        ("ctime", "Fri May  2 10:11:12 UTC 2025", "offset", "2025-05-02T10:11:12+00:00"),
        ("ctime", "Fri May  2 10:11:12 CEST 2025", "full", "2025-05-02T10:11:12"),
        ("syslog", "May  2 10:11:12.5", "no-year", "1972-05-02T10:11:12.5"),
        ("mdhm", "Nov 20 13:05", "no-year", "1972-11-20T13:05:00"),
        ("mond", "May2 10:11", "no-year", "1972-05-02T10:11:00"),
        ("glog", "0512 10:11:12.345678", "no-year", "1972-05-12T10:11:12.345678"),
        ("glogy", "20250512 10:11:12.345678", "full", "2025-05-12T10:11:12.345678"),
        ("c10", "512 10:11:12.715298746", "no-year", "1972-05-12T10:11:12"),
        ("c10", "1206 18:44:12.755262105", "no-year", "1972-12-06T18:44:12"),
        ("c10", "101 00:00:03.004219706", "no-year", "1972-01-01T00:00:03"),
        ("c10", "229 00:00:03.004219706", "no-year", "1972-02-29T00:00:03"),
        ("mdhms", "05-12 10:11:12", "no-year", "1972-05-12T10:11:12"),
        ("yymd", "25/05/12 10:11:12", "full", "2025-05-12T10:11:12"),
        ("us", "05/12/2025 10:11:12.345678", "full", "2025-05-12T10:11:12.345678"),
        ("us", "25/12/2025 01:11:12 PM", "full", "2025-12-25T13:11:12"),
        ("us", "05/12/2025 12:11:12 AM", "full", "2025-05-12T00:11:12"),
        ("ymon", "2025-May-12 10:11:12.034", "full", "2025-05-12T10:11:12.034"),
        ("neuron", "2023-Jun-14 19:05:29.0312", "full", "2023-06-14T19:05:29.312"),
        ("neuron", "2023-Jun-14 19:05:29.031234", "full", "2023-06-14T19:05:29.031234"),
        ("mdy", "May 12 2025 10:11:12", "full", "2025-05-12T10:11:12"),
        ("dmony", "12/May/2025:10:11:12 +0200", "offset", "2025-05-12T10:11:12+02:00"),
        ("hms", "10:11:12.5", "time-only", "1970-01-01T10:11:12.5"),
        ("epoch", "1747044672.123456", "offset", "2025-05-12T10:11:12.123456+00:00"),
        ("epoch", "1747044672345", "offset", "2025-05-12T10:11:12.345+00:00"),
        ("epoch", "1747044672345678", "offset", "2025-05-12T10:11:12.345678+00:00"),
        ("epoch", "1747044072123456789", "offset", "2025-05-12T10:01:12.123456789+00:00"),
        ("mono", "  1234.567890", "monotonic", "1970-01-01T00:20:34.567890"),
        ("monous", "1234567890", "monotonic", "1970-01-01T00:20:34.567890"),
        ("rel", "0.000123", "relative", "1970-01-01T00:00:00.000123"),
        ("auto", "1747044672.345", "offset", "2025-05-12T10:11:12.345+00:00"),
        ("auto", "2025-05-12 10:11:12,345", "full", "2025-05-12T10:11:12.345"),
    ],
)
def test_shapes(shape: str, text: str, kind: str, time: str) -> None:
    assert shown(text, shape) == (kind, time)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("ymd", "2025-13-12T10:11:12Z"),
        ("ymd", "2025-02-30 10:11:12"),
        ("ymd", "2025-05-12 25:11:12"),
        ("ymd", "0000-00-00 00:00:00"),
        ("c10", "1341 10:11:12.715298746"),
        ("syslog", "Foo 12 10:11:12"),
        ("hms", "10:61:12"),
        ("auto", "yesterday"),
        ("epoch", "9" * 30),
    ],
)
def test_what_is_no_time(shape: str, text: str) -> None:
    assert shown(text, shape)[0] is None


def test_the_fraction_of_a_c10_stamp_is_kept_apart() -> None:
    found = parse(pl.Series(["512 10:11:12.715298746"]), "c10")
    assert (int(found.res[0]), int(found.frac[0])) == (stamps.SECOND, 715298746)


@pytest.mark.parametrize("shape", SHAPES)
@given(texts=st.lists(st.text(max_size=50), min_size=1, max_size=5))
def test_no_text_breaks_a_shape(shape: str, texts: list[str]) -> None:
    assert len(parse(pl.Series(texts, dtype=pl.String), shape).kind) == len(texts)


def test_many_are_read_like_one() -> None:
    texts = [f"2025-05-{day:02d} 10:{minute:02d}:12,{day:03d}" for day in range(1, 29) for minute in range(60)] + [
        "é" * 30
    ]
    many = parse(pl.Series(texts), "ymd")
    for place in (0, 77, len(texts) - 1):
        one = parse(pl.Series([texts[place]]), "ymd")
        assert (many.ns[place], many.res[place], many.kind[place]) == (one.ns[0], one.res[0], one.kind[0])


def test_a_year_is_filled_in() -> None:
    ns = np.array(
        [
            int(parse(pl.Series([text]), "syslog").ns[0])
            for text in ("Jan  1 00:00:00", "Feb 29 12:00:00", "Mar  1 00:00:00", "Dec 31 23:59:59")
        ]
    )
    assert [iso(int(one), stamps.SECOND, None) for one in fill_year(ns, 2024)] == [
        "2024-01-01T00:00:00", "2024-02-29T12:00:00", "2024-03-01T00:00:00", "2024-12-31T23:59:59",
    ]  # fmt: skip
    assert [iso(int(one), stamps.SECOND, None) for one in fill_year(ns, 2025)] == [
        "2025-01-01T00:00:00", "2025-03-01T12:00:00", "2025-03-01T00:00:00", "2025-12-31T23:59:59",
    ]  # fmt: skip


def test_a_day_is_filled_in() -> None:
    noon = parse(pl.Series(["12:00:00"]), "hms").ns
    assert iso(int(fill_day(noon, 20 * stamps.DAY)[0]), stamps.SECOND, None) == "1970-01-21T12:00:00"
