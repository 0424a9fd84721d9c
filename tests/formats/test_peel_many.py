"""Peeling a column gives what peeling line by line gives."""

from __future__ import annotations

import time

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstfault.ingest.formats import PLAIN, SCHEMA, Formats, Peeled, SourceFormat

PIECES = (
    "[default0]:", "[trainer3]:", "[rank3]: ", "[rank3]:", "[E512 10:11:12.715298746 ProcessGroupNCCL.cpp:607] ",
    "[pod/llm-worker-3/pytorch] ", "2025-05-12T10:11:12.345678901Z stderr F ", "2025-05-12T10:11:12.345678901Z ",
    "(TrainWorker pid=4711, ip=10.0.0.7) ", "\x1b[36m(TrainWorker pid=4711)\x1b[0m ", "[1,3]<stdout>:",
    "[2025-05-12 10:11:12,345] ", "[INFO] ", "INFO ", "2025-05-12 10:11:12,345 ", "May 12 10:11:12 node-07 kernel: ",
    "[ 1234.567890] ", "[RANK 3] ", "[rank: 3] ", "node-07:4711:4893 [3] NCCL INFO ", " 3: ", "[3] ", "node-07: ",
    "trainer-1  | ", "45%|####  | 9/20 [00:10<00:12,  1.15s/it]\r",
    "E1130 14:21:59.085000 8573 torch/distributed/elastic/multiprocessing/api.py:826] ",
    "failed (exitcode: 1) local_rank: 0 (pid: 28110) of binary: x", "  rank      : 10 (local_rank: 2)", "text",
    "é🏖️ ", "[", "]", ":", " ", "\t", "12:34:56 ", '{"log":"x\\n","stream":"stderr","time":"2025-05-12T10:11:12Z"}',
    '{"message": "hello", "rank": 3}', "WARNING:trainer.loop:", "- INFO - ", "[Rank 3] ", "rank 3: ", "<3>",
    "0000-99-99 99:99:99 ", "\r",
)  # fmt: skip
LINES = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=6).map(
    lambda parts: "".join(parts).replace("\n", "")
)


def row_of(one: Peeled) -> dict[str, object]:
    return {
        **{name: getattr(one, name) for name in SCHEMA if name != "wrappers" and not name.startswith("about_")},
        **{name: one.about.get(name.removeprefix("about_")) for name in SCHEMA if name.startswith("about_")},
        "wrappers": ",".join(one.wrappers) or None,
    }


def trusting(formats: Formats) -> SourceFormat:
    return PLAIN.trusting(*(one.id for one in formats.formats if one.trust))


def same(formats: Formats, lines: list[str], source: SourceFormat = PLAIN) -> None:
    columns = formats.peel_many(pl.Series(lines, dtype=pl.String), source).to_dicts()
    rows = [row_of(formats.peel(line, source)) for line in lines]
    assert columns == [{name: row[name] for name in SCHEMA} for row in rows]


def test_examples_of_all_formats(formats: Formats) -> None:
    lines = formats.example_lines().to_list()
    same(formats, lines)
    same(formats, lines, trusting(formats))


def test_no_lines(formats: Formats) -> None:
    assert formats.peel_many(pl.Series([], dtype=pl.String)).is_empty()


def test_each_line_follows_its_own_source(formats: Formats) -> None:
    import numpy as np

    tee = PLAIN.trusting("torch-tee-rank")
    got = formats.peel_many(pl.Series(["[rank3]: x", "[rank3]: x"]), [PLAIN, tee], np.array([0, 1]))
    assert got.select("rank", "local_rank", "message").rows() == [(3, None, "x"), (None, 3, " x")]


@settings(max_examples=200, deadline=None)
@given(lines=st.lists(LINES, min_size=1, max_size=20), trust=st.booleans())
def test_any_lines(formats: Formats, lines: list[str], trust: bool) -> None:
    same(formats, lines, trusting(formats) if trust else PLAIN)


@pytest.mark.parametrize("end", ["\r", "\r\r"])
def test_windows_line_ends(formats: Formats, end: str) -> None:
    assert formats.peel(f"[rank2]: ValueError: bad{end}").message == "ValueError: bad"


def test_collectors_in_front_of_launchers_in_front_of_programs(formats: Formats) -> None:
    line = "2019-07-18T21:28:50.000Z: [1,3]<stdout>:[2019-07-18 21:28:49] iter 611220 loss 0.4274"
    peeled = formats.peel(line)
    assert (peeled.message, peeled.rank, peeled.stream) == ("iter 611220 loss 0.4274", 3, "stdout")
    assert (peeled.ts, peeled.ts_collect) == ("2019-07-18T21:28:49", "2019-07-18T21:28:50.000+00:00")
    same(formats, [line])


@pytest.mark.parametrize(
    "line",
    [
        "x" * 3_000_000,
        "[" * 100_000,
        "[rank3]: " * 20_000,
        "2025-05-12 10:11:12 " * 50_000,
        '{"log":' * 50_000,
        '{"message":"' + '[{"' * 50_000 + '"}',
        "(" * 50_000 + " pid=1) x",
        "1" * 100_000 + ": x",
        "\x1b[" + "3;" * 50_000 + "m",
        "9%|" + "#" * 100_000 + "| 1/2 [",
        "\r" * 100_000,
        "a\r" * 50_000,
    ],
)
def test_long_hostile_lines_take_no_time(formats: Formats, line: str) -> None:
    begun = time.process_time()
    formats.peel_many(pl.Series([line, "[rank3]: x"]))
    formats.peel(line)
    assert time.process_time() - begun < 5


def test_large_columns_are_like_small_ones(formats: Formats) -> None:
    lines = formats.example_lines()
    few = formats.peel_many(lines)
    assert formats.peel_many(pl.concat([lines] * 3))[: len(lines)].equals(few)
