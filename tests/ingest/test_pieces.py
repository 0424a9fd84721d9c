"""Lines are in memory a piece at a time: where pieces are cut changes nothing, and what was said last stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstfault.ingest import Bounds, IngestOptions, ingest, line_table, part
from firstfault.timeline import open_timeline

TABLES = ("sources", "line_rows", "signal_rows", "identities", "progress", "problems")


def rows(db: Path) -> dict[str, list[Any]]:
    with open_timeline(db) as connection:
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall() for table in TABLES}


def log(rank: int) -> str:
    """Steps with a stamp, steps without one, tracebacks, and an end without stamps."""
    said = [f"2025-05-12 10:00:00,000 - root - INFO - starting rank {rank} of 2 pid {100 + rank} host n-{rank}"]
    for step in range(120):
        said.append(f"2025-05-12 10:{step // 60:02d}:{step % 60:02d},000 - root - INFO - step {step} loss 1.5")
        said.append(f"step {step} of 120, data 0.1 s")
        if step % 25 == 9:
            said += ["Traceback (most recent call last):", '  File "/x/a.py", line 3, in f', "ValueError: bad sample"]
    return "\n".join([*said, *["RuntimeError: CUDA error: an illegal memory access was encountered"] * 30]) + "\n"


@pytest.mark.parametrize(("piece", "memory"), [(7, 0), (7, 1 << 30), (1 << 15, 0)])
def test_pieces_do_not_change_the_rows(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, memory: int
) -> None:
    logs = write({"n-0/rank0.log": log(0), "n-1/rank1.log": log(1)})
    ingest([logs], tmp_path / "whole.duckdb", IngestOptions(workers=1, reuse=False))
    monkeypatch.setattr(part, "PIECE", piece)
    monkeypatch.setattr(line_table, "PIECE", piece)
    monkeypatch.setattr(line_table, "_MANY", piece)
    ingest([logs], tmp_path / "cut.duckdb", IngestOptions(workers=1, reuse=False, bounds=Bounds(memory=memory)))
    assert rows(tmp_path / "cut.duckdb") == rows(tmp_path / "whole.duckdb")


def test_the_last_line_of_each_rank_keeps_its_text_where_texts_stay_in_the_logs(read: Callable[..., Any]) -> None:
    made = read(
        {"rank0.log": "step 1 of 9\nstep 2 of 9\n", "rank1.log": "step 1 of 9\n"},
        options=IngestOptions(keep_text=False),
    )
    told = made.rows("SELECT rank, line, message FROM line_rows ORDER BY rank, line")
    assert told == [(0, 1, None), (0, 2, "step 2 of 9"), (1, 1, "step 1 of 9")]
