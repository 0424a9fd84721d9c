"""Marks in front of lines that no program's documentation names: believed where a whole file shows them."""

from __future__ import annotations

import polars as pl
import pytest

from firstfault.ingest.formats import Formats

RANKS = (3, 0, 6, 1, 5, 2, 7, 4)


def file_of(mark: str, *, steps: int = 4, tail: str = "") -> list[str]:
    """Lines of eight ranks on two hosts, in no order."""
    return [
        mark.format(r=rank, l=rank % 4, h=f"cn{7 + rank // 4:02d}", t=f"2024-05-06 10:11:{step:02d}")
        + f"step {step} loss 2.{rank}{tail.format(r=rank)}"
        for step in range(steps)
        for rank in RANKS
    ]


def peeled(formats: Formats, lines: list[str]) -> pl.DataFrame:
    return formats.peel_many(pl.Series(lines), formats.sniff(lines))


@pytest.mark.parametrize(
    "mark",
    [
        "[worker {r}] ", "proc {r}: ", "Worker {r}: ", "(rank {r}) ", "[r{r}] ", "R{r}: ", "<rank {r}> ", "rank {r} - ",
        "[{r}/8] ", "({r}) ", "{r}| ", "process {r} - ", "INFO:rank{r}:", "{t} r{r} ", "{t} [{r}] ", "[{t} rank{r}] ",
        "[rank {r}][trainer] ", "[Rank {r}] {t} ",
    ],
)  # fmt: skip
def test_a_number_in_front_is_the_rank(formats: Formats, mark: str) -> None:
    table = peeled(formats, file_of(mark))
    assert table["rank"].to_list() == list(RANKS) * 4
    assert table["message"][0] == "step 0 loss 2.3"
    if "{t}" in mark:
        assert table["stamp_ns"].null_count() == 0


@pytest.mark.parametrize(
    "mark",
    [
        "[{h}:rank{r}] ", "[{h}:{r}] ", "{h}:{r} | ", "{h} {r}: ", "[{h} rank {r}] ", "{h} | rank {r} | ", "[{h}/{r}] ",
        "rank {r} ({h}): ", "[rank {r} @ {h}] ", "[rank={r} local={l} host={h}] ", "[{t} INFO rank={r} host={h}] ",
        "{t} [INFO] [{h}] [rank {r}] ", "{h}.rank{r}: ", "{h}[4711] rank={r} ",
    ],
)  # fmt: skip
def test_a_host_and_a_number_in_front(formats: Formats, mark: str) -> None:
    table = peeled(formats, file_of(mark))
    assert table["rank"].to_list() == list(RANKS) * 4
    assert table["host"].to_list() == [f"cn{7 + rank // 4:02d}" for rank in RANKS] * 4
    assert table["message"][0] == "step 0 loss 2.3"


@pytest.mark.parametrize("tail", [" rank={r}", " (rank {r})", " [rank {r}]", ", rank: {r}"])
def test_a_rank_at_the_end(formats: Formats, tail: str) -> None:
    table = peeled(formats, [*file_of("", tail=tail), "timed out waiting for rank 3"])
    assert table["rank"].to_list() == [*RANKS * 4, None]


def test_numbers_that_begin_anew_on_each_host_are_local(formats: Formats) -> None:
    table = peeled(formats, file_of("[{h}:{l}] "))
    assert table["rank"].null_count() == len(table)
    assert table["local_rank"].to_list() == [rank % 4 for rank in RANKS] * 4


def test_a_device_is_a_local_number(formats: Formats) -> None:
    assert peeled(formats, file_of("[GPU {r}] "))["local_rank"].to_list() == list(RANKS) * 4


@pytest.mark.parametrize(
    "lines",
    [
        [f"[{n}/400] loss 2.{n}" for n in range(1, 60)],
        [f"step {n}: loss 2.{n}" for n in range(60)],
        [f"worker {n}: done" for n in range(0, 4000, 97)],
        ["[Rank 1] Watchdog caught collective operation timeout: x", "hello"] * 20,
        [f"2026-11-30 16:35:43.5{n % 10}0 | INFO | train:say:193 - step {n}" for n in range(60)],
        ["train.py:88 [rank 3] x", "utils.py:88 y"] * 20,
        [f"[trainer{n % 4}]:step {n}" for n in range(40)],
    ],
)
def test_counters_and_places_in_programs_are_no_marks(formats: Formats, lines: list[str]) -> None:
    assert not [name for name in formats.sniff(lines).trusted if name.startswith("mark-")]


def test_marks_inside_what_a_collector_wrote(formats: Formats) -> None:
    lines = [f"2024-05-06T10:11:12.345Z stdout F [worker {rank}] step 1" for rank in RANKS * 4]
    table = peeled(formats, lines)
    assert table["rank"].to_list() == list(RANKS) * 4
    assert table["message"][0] == "step 1"
