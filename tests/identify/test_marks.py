"""Numbers in front of lines, in several files: ranks where they go on from file to file, else local ranks."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from firstfault.ingest.identify import Identity, SourceSeen, identify, summarise
from firstfault.ingest.identity_marks import marked


def run(kit: Any, files: dict[str, str], rows: list[dict[str, Any]], said: list[Any] | None = None) -> Identity:
    sources = [SourceSeen(n, path, head.encode()) for n, (path, head) in enumerate(files.items())]
    frame = kit.lines(*({"source_id": n, "line": 1} for n in range(len(files))), *rows)
    return identify(sources, said or [], summarise(frame))


def head(*marks: str) -> str:
    return "".join(f"{mark} step {n}\n" for n in range(4) for mark in marks)


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("[worker 3] step 7", ("worker", 3)),
        ("03/12 18:00:20 [ 3] it 20 loss 1.8", ("", 3)),
        ("Apr 27 20:02:01 r2 step 381", ("r", 2)),
        ("2024-06-01 10:00:00,123 INFO [rank 5] hello", ("rank", 5)),
        ("step 3 of 8", None),
        ("3 errors", None),
        ("[2024] done", ("", 2024)),
    ],
)
def test_a_mark_in_front_of_a_line(text: str, mark: tuple[str, int] | None) -> None:
    assert marked(text) == mark


def test_a_file_for_each_number_is_a_rank_each(kit: Any) -> None:
    files = {f"out/n{n // 2}.{n:02}.txt": head(f"03/12 18:00:2{n} [ {n}]") for n in range(4)}
    got = run(kit, files, [])
    assert [got.sources[n].rank for n in range(4)] == [0, 1, 2, 3]


def test_numbers_that_go_on_from_host_to_host_are_ranks(kit: Any) -> None:
    files = {
        "ip-10-2-0-4.log": head("[worker 0]", "[worker 1]") + "[worker 1] pid 77 up\n",
        "ip-10-2-0-9.log": head("[worker 2]", "[worker 3]") + "[worker 3] pid 77 up\n",
    }
    error = kit.Said(1, 30, "[worker 2] RuntimeError: bad", event="exception", fact=None)
    frame = kit.lines(*(
        {"source_id": n, "line": line, "host": None, "pid": pid}
        for n in (0, 1) for line, pid in ((1, None), (20, 77), (30, None))
    ))  # fmt: skip
    sources = [SourceSeen(n, path, text.encode()) for n, (path, text) in enumerate(files.items())]
    got = identify(sources, [error], summarise(frame)).fill(frame)
    assert got.filter(pl.col("pid") == 77)["rank"].to_list() == [1, 3]
    assert got.filter((pl.col("source_id") == 1) & (pl.col("line") == 30))["rank"].to_list() == [2]


def test_numbers_that_begin_anew_on_each_host_are_local(kit: Any) -> None:
    files = {f"{host}/train.log": head("[worker 0]", "[worker 1]") for host in ("gpu-a1", "gpu-a2")}
    rows = [{"source_id": n, "line": 2 + rank, "rank": rank} for n in (0, 1) for rank in (0, 1)]
    start = [kit.Said(n, 9, captures={"rank": str(2 * n), "local_rank": "0", "world_size": "4"}) for n in (0, 1)]
    frame = kit.lines(*rows)
    known = run(kit, files, rows, start).fill(frame)
    assert known["rank"].to_list() == [0, 1, 2, 3]
    unknown = run(kit, files, rows).fill(frame)
    assert unknown["local_rank"].to_list() == [0, 1, 0, 1]
    assert unknown["rank"].to_list() != [0, 1, 0, 1]


def test_two_streams_of_one_place_are_no_two_hosts(kit: Any) -> None:
    files = {f"run.{end}": head("[worker 0]", "[worker 1]") for end in ("out", "err")}
    rows = [{"source_id": n, "line": 2 + rank, "rank": rank} for n in (0, 1) for rank in (0, 1)]
    assert run(kit, files, rows).fill(kit.lines(*rows))["rank"].to_list() == [0, 1, 0, 1]
