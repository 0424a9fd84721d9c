"""What a file has to show before an ambiguous prefix is believed, and what its numbers then count."""

from __future__ import annotations

import polars as pl
import pytest

from firstfault.ingest.formats import Formats

SRUN = [
    f"{task:>2}: {text}"
    for task in range(12)
    for text in ("loading", "step 1 loss 2.3", "Traceback (most recent call last):")
]


def first(formats: Formats, lines: list[str], number: int = 0) -> dict[str, object]:
    return formats.peel_many(pl.Series(lines), formats.sniff(lines)).row(number, named=True)


def test_labels_of_srun(formats: Formats) -> None:
    lines = ["+ srun --label python train.py", *SRUN, "srun: error: node-08: task 11: Killed"]
    source = formats.sniff(lines)
    assert "srun-label" in source.trusted
    assert source.task_means is None
    table = formats.peel_many(pl.Series(lines), source)
    assert table["task"].to_list() == [None, *(task for task in range(12) for _ in range(3)), None]
    assert table["message"][2] == "step 1 loss 2.3"


@pytest.mark.parametrize(
    ("inner", "meaning"),
    [("[rank{n}]: boom", "rank"), ("[rank{n}1]: boom", "node"), ("[default0]:hello", "node"), ("plain", None)],
)
def test_what_a_label_counts(formats: Formats, inner: str, meaning: str | None) -> None:
    lines = [f"{n}: " + inner.replace("{n}", str(n)) for n in range(1, 9)]
    assert formats.sniff(lines).task_means == meaning


@pytest.mark.parametrize(
    "lines",
    [
        ["2025: a year in review", "1999: another", "7: a number", "hello"],
        ["12:34:56 step 3 done"] * 20,
        [f"{n}: item of a list" for n in range(8, 14)],
        ["hello"] * 20 + ["1: x"] * 5,
    ],
)
def test_numbers_are_no_labels(formats: Formats, lines: list[str]) -> None:
    assert "srun-label" not in formats.sniff(lines).trusted


def test_a_prefix_with_rank_and_local_rank_is_no_name_of_a_host(formats: Formats) -> None:
    lines = [f"[trainer-{rank}-{rank % 2}] [rank{rank}]: step {step}" for step in range(6) for rank in range(4)]
    peeled = first(formats, lines, 3)
    assert (peeled["rank"], peeled["local_rank"], peeled["host"], peeled["message"]) == (3, 1, None, "step 0")
    lines = [f"[node-{node}-{device}] step {step}" for step in range(6) for node in (1, 2) for device in (0, 1)]
    assert "torch-tee-custom" not in formats.sniff(lines).trusted


def test_hosts_of_pdsh(formats: Formats) -> None:
    lines = [f"node-{host:02d}: step {step}" for step in range(6) for host in (7, 8)]
    assert first(formats, lines)["host"] == "node-07"
    assert first(formats, lines)["message"] == "step 0"


@pytest.mark.parametrize(
    "line", ["RuntimeError: boom", "Warning: the cache is cold", "rank0: loss 3", "gpu3: 80 C", "loss: 2.3", "Epoch: 3"]
)
def test_words_are_no_hosts(formats: Formats, line: str) -> None:
    assert first(formats, [line] * 20)["host"] is None


def test_ranks_of_hydra(formats: Formats) -> None:
    lines = [f"[{rank}] step {step}" for step in range(4) for rank in range(4)]
    assert first(formats, lines, 5)["rank"] == 1
    assert first(formats, ["[0.1, 0.2]", "[1]:", "[3] x", "plain", "plain", "plain", "plain"], 2)["rank"] is None


def test_role_called_rank(formats: Formats) -> None:
    lines = [
        "[rank0]:[titan] 2025-05-12 10:11:12,345 - root - INFO - step:  1",
        "[rank1]:[rank9]: ValueError: bad",
        "[rank1]: x",
    ]
    table = formats.peel_many(pl.Series(lines), formats.sniff(lines))
    assert table.select("local_rank", "rank").rows() == [(0, None), (1, 9), (1, None)]


def test_prefix_of_pytorch_itself(formats: Formats) -> None:
    lines = [
        "[rank3]: Traceback (most recent call last):",
        "[rank3]:[E512 10:11:12.715298746 ProcessGroupNCCL.cpp:607] x",
    ]
    table = formats.peel_many(pl.Series(lines), formats.sniff(lines))
    assert table.select("local_rank", "rank").rows() == [(None, 3), (None, 3)]


def test_a_number_too_large_for_a_local_rank(formats: Formats) -> None:
    lines = [f"[rank{rank}]:loss 2.3" for rank in (0, 63, 118)]
    table = formats.peel_many(pl.Series(lines), formats.sniff(lines))
    assert table.select("local_rank", "rank", "message").rows() == [(None, rank, "loss 2.3") for rank in (0, 63, 118)]


def test_a_role_that_ends_in_a_digit(formats: Formats) -> None:
    lines = [f"[node1{rank}]:step 3" for rank in range(4)]
    assert formats.sniff(lines).tee_role == "node1"
    assert formats.peel_many(pl.Series(lines), formats.sniff(lines))["local_rank"].to_list() == [0, 1, 2, 3]
    assert formats.sniff([f"[default{rank}]:x" for rank in range(12)]).tee_role is None


def test_services_of_compose(formats: Formats) -> None:
    assert (
        first(formats, ["trainer-1  | loading", "trainer-2  | loading", "db-1       | ready"])["container"]
        == "trainer-1"
    )
    assert (
        first(formats, ["| 0  NVIDIA A100 | 00000000:07:00.0 Off |", "gpu-1 | x |", "plain", "plain"], 1)["container"]
        is None
    )


def test_a_plain_word_for_the_rank(formats: Formats) -> None:
    lines = [f"[2024-11-13 19:21:{step:02d}] rank {rank} step {step}" for step in range(5) for rank in range(4)]
    assert first(formats, lines, 6) | {"rank": 2, "message": "step 1"} == first(formats, lines, 6)
    rare = ["[2024-11-13 19:21:00] rank 3 did not answer", *["[2024-11-13 19:21:00] waiting"] * 9]
    assert first(formats, rare)["rank"] is None


def test_a_sample_may_hold_anything(formats: Formats) -> None:
    assert formats.sniff([]).trusted == frozenset()
    assert formats.sniff(["", "\x00", "\x1b[31m", "é" * 1000, "[rank99999999999999999999]:x"]).trusted == frozenset()
