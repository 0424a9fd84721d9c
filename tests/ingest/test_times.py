"""Stamps: what they leave out is filled from their surroundings, and lines without one inherit."""

from __future__ import annotations

import datetime
import os
from typing import Any

import pytest

from firstfault.ingest import IngestOptions, OptionError, ingest

STAMPS = "SELECT line, stamp::VARCHAR FROM lines ORDER BY path, line"


def torch(stamp: str, text: str = "x") -> str:
    return f"W{stamp} 4711 torch/distributed/run.py:793] {text}\n"


def test_a_year_comes_from_fuller_stamps_of_the_source(read: Any) -> None:
    made = read({"a.log": "2023-11-30 13:46:53,992 - root - INFO - start\n" + torch("1130 13:46:54.500000")})
    assert made.rows(STAMPS) == [(1, "2023-11-30 13:46:53.992"), (2, "2023-11-30 13:46:54.5")]


def test_a_year_comes_from_other_sources_of_the_job(read: Any) -> None:
    made = read({"a.log": torch("1130 13:46:54.500000"), "b.log": "2023-11-30 13:46:53,992 - root - INFO - start\n"})
    assert made.rows(STAMPS)[0] == (1, "2023-11-30 13:46:54.5")


def test_a_job_over_new_year_stays_in_one_piece(read: Any) -> None:
    text = torch("1231 23:59:59.000000") + torch("0101 00:00:01.000000")
    made = read({"a.log": text, "b.log": "2024-01-01 00:00:05,000 - root - INFO - start\n"})
    assert made.rows(STAMPS)[:2] == [(1, "2023-12-31 23:59:59"), (2, "2024-01-01 00:00:01")]


def test_a_year_that_the_user_names_is_that_of_the_first_stamp(read: Any) -> None:
    text = torch("1231 23:59:59.000000") + torch("0101 00:00:01.000000")
    made = read({"a.log": text}, options=IngestOptions(year=2019))
    assert made.rows(STAMPS) == [(1, "2019-12-31 23:59:59"), (2, "2020-01-01 00:00:01")]


def test_without_any_year_the_file_was_changed_after_its_stamps(read: Any, write: Any) -> None:
    logs = write({"a.log": torch("1130 13:46:54.000000")})
    changed = datetime.datetime(2022, 2, 1, tzinfo=datetime.UTC).timestamp()
    os.utime(logs / "a.log", (changed, changed))
    assert read({}, logs).rows(STAMPS) == [(1, "2021-11-30 13:46:54")]


def test_a_line_without_stamp_inherits_from_the_line_before(read: Any) -> None:
    text = "head\n2025-05-12 10:11:12,000 - root - INFO - a\nplain\n2025-05-12 10:11:20,000 - root - INFO - b\ntail\n"
    made = read({"a.log": text})
    assert made.rows("SELECT line, stamp IS NULL, time::VARCHAR FROM lines ORDER BY line") == [
        (1, True, "2025-05-12 10:11:12+00"),
        (2, False, "2025-05-12 10:11:12+00"),
        (3, True, "2025-05-12 10:11:12+00"),
        (4, False, "2025-05-12 10:11:20+00"),
        (5, True, "2025-05-12 10:11:20+00"),
    ]


def test_an_inherited_stamp_is_as_wide_as_the_gap(read: Any) -> None:
    text = (
        "2025-05-12 10:11:12,000 - root - INFO - a\n"
        "Traceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n'
        "ValueError: x\n"
        "2025-05-12 10:11:20,000 - root - INFO - b\n"
    )
    made = read({"a.log": text})
    assert made.rows("SELECT stamp_own, stamp_res_ns, stamp_kind FROM signal_rows WHERE line = 4") == [
        (False, 8_000_000_000, "full")
    ]


def test_stamps_with_a_zone_are_moments(read: Any) -> None:
    made = read({"a.log": "2025-05-12T10:11:12.5+02:00 node-07 kernel: hello\nnext\n"})
    assert made.rows("SELECT stamp::VARCHAR, time::VARCHAR FROM lines WHERE line = 1") == [
        ("2025-05-12 10:11:12.5", "2025-05-12 08:11:12.5+00")
    ]


def test_the_zone_that_the_user_names_holds_for_naive_stamps(read: Any) -> None:
    made = read({"a.log": "2025-07-12 10:11:12,000 - root - INFO - a\n"}, options=IngestOptions(tz="Europe/Berlin"))
    assert made.rows("SELECT utc_offset_s FROM sources") == [(7200,)]
    assert made.rows("SELECT stamp::VARCHAR, time::VARCHAR FROM lines") == [
        ("2025-07-12 10:11:12", "2025-07-12 08:11:12+00")
    ]


def test_time_since_boot_has_no_place_on_the_calendar(read: Any) -> None:
    made = read({"node-07/dmesg.txt": "[ 1234.500000] NVRM: hello\n[ 1235.500000] NVRM: again\n"})
    assert made.rows("SELECT stamp, time FROM lines") == [(None, None)] * 2
    assert made.rows("SELECT stamp_ns, stamp_kind FROM line_rows WHERE line = 1") == [(1_234_500_000_000, "monotonic")]


@pytest.mark.parametrize("options", [IngestOptions(tz="Mars/Olympus"), IngestOptions(year=3), IngestOptions(workers=0)])
def test_settings_that_cannot_be_meant_are_refused(options: IngestOptions, write: Any, tmp_path: Any) -> None:
    with pytest.raises(OptionError):
        ingest([write({"a.log": "x\n"})], tmp_path / "t.duckdb", options)


def test_a_settings_file_beside_the_logs_speaks_for_all_who_read_them(read: Any) -> None:
    settings = 'tz = "Asia/Tokyo"\nyear = 2020\n[hosts]\n"left/*" = "node-l"\n[ranks]\n"left/a.log" = 3\n'
    made = read({".firstfault.toml": settings, "left/a.log": torch("0512 10:00:00.000000")})
    assert made.rows("SELECT host, rank, time::VARCHAR FROM lines") == [("node-l", 3, "2020-05-12 01:00:00+00")]


@pytest.mark.parametrize("settings", ["tz = 3\n", "what = 1\n", "= broken", "[ranks]\n'a' = 'x'\n"])
def test_a_settings_file_that_cannot_be_used_is_refused(settings: str, write: Any, tmp_path: Any) -> None:
    with pytest.raises(OptionError, match=r"firstfault\.toml"):
        ingest([write({".firstfault.toml": settings})], tmp_path / "t.duckdb")


def test_the_end_of_an_attempt_borrows_no_stamp_from_the_next(read: Any) -> None:
    block = (
        "[default] Rendezvous complete for workers. Result:\n  restart_count={0}\n  group_rank=0\n  global_ranks=[0]\n"
    )
    text = block.format(0) + "no stamp\n" + block.format(1) + "2025-05-12 10:11:12,000 - root - INFO - again\n"
    made = read({"agent.log": text})
    rows = made.rows("SELECT attempt, near_ns IS NULL FROM line_rows ORDER BY line")
    assert rows[0] == (0, True)
    assert rows[-1] == (1, False)
