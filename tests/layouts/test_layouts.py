"""The same incidents in other layouts: the answer stays right where the layout tells as much, and accuses nobody where
it tells less. `bench/relayout.py` does the same with all cases and layouts.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
CASES = (
    "metrics-keyerror-in-callback-tail-rank",
    "xid-109-context-switch-timeout",
    "fd-limit-after-many-loader-epochs",
)
RIGHT = (
    "as it was", "[1,3]<stdout>: (mpirun)", "docker json-file", "CloudWatch, one file", "CSV export",
    "host/run_id/attempt_0/3/stdout.log", "rotated into .1", "one folder, names joined", "host 0117",
    "host with domain, ranks", "stamps in epoch ms",
)  # fmt: skip
NOBODY = ("[pod/w-3/pytorch]  (kubectl)", "trainer-4  |  (compose)", "no label", "Loki, newest line first")


@cache
def relayout() -> ModuleType:
    before = list(sys.path)
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        import relayout
    finally:
        sys.path[:] = before
    return relayout


@pytest.mark.parametrize(("case", "layout"), [(CASES[n % 3], layout) for n, layout in enumerate((*RIGHT, *NOBODY))])
def test_the_answer_does_not_depend_on_the_layout(case: str, layout: str) -> None:
    tool = relayout()
    job = tool.read_job(ROOT / "tests" / "cases" / case)
    row = tool.answer_to(job, next(one for one in tool.LAYOUTS if one.name == layout))
    assert row is not None
    assert row["outcome"] == "right" if layout in RIGHT else row["outcome"] != "ACCUSED", row


@pytest.mark.parametrize("case", CASES)
def test_the_truth_moves_with_the_lines(case: str, tmp_path: Path) -> None:
    tool = relayout()
    job = tool.read_job(ROOT / "tests" / "cases" / case)
    for number, layout in enumerate(tool.LAYOUTS):
        files = layout.make(job)
        if files is None or layout.group in ("bytes", "hosts") or layout.name == "gz":
            continue
        folder = tmp_path / str(number)
        moved = tool.write(files, job.others, folder)
        assert job.roots <= set(moved), layout.name
        for path, line in job.roots:
            before = (job.folder / "logs" / path).read_text().split("\n")[line - 1]
            place, _, row = moved[path, line].rpartition(":")
            words = [word for word in before.split() if word.isalnum()]
            assert all(word in (folder / place).read_text().split("\n")[int(row) - 1] for word in words), layout.name
