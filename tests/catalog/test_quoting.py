"""What a line only quotes is no evidence: commands, source code, rules, prompts and samples."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from firstfault.catalog import Catalog
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.quoting import is_quoting, quoting

QUOTED = [line for line in (Path(__file__).parent / "healthy" / "quoted.log").read_text().splitlines() if line]
SAID = [
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
    '{"object":"error","message":"CUDA out of memory. Tried to allocate 2.00 GiB","code":500}',
    "OSError: [Errno 24] Too many open files: '/data/00417.tar'",
    "# of tasks that reached the barrier: 8/16.",
    "#  SIGSEGV (0xb) at pc=0x00007f2a, pid=4711, tid=4712",
    'Warning  Failed  2m  kubelet  Error: failed to create containerd task: exec: "python": not found',
    "+ srun --ntasks 8 python train.py",
    "Error executing job with overrides: ['model.path=/models/a']",
    "torchrun: error: unrecognized arguments: --prompt 3",
    "if the loss is NaN the run stops here: loss is nan",
    "WARNING: response code 429",
]


@pytest.mark.parametrize("line", QUOTED)
def test_a_quotation_is_known_by_its_shape(line: str) -> None:
    assert is_quoting(line)


@pytest.mark.parametrize("line", SAID)
def test_what_a_program_reports_is_no_quotation(line: str) -> None:
    assert not is_quoting(line)


def test_many_lines_are_judged_as_one_is() -> None:
    lines = (QUOTED + SAID) * 20
    assert quoting(pl.Series(lines)).tolist() == [is_quoting(line) for line in lines]


def test_no_example_of_the_catalog_looks_like_a_quotation(catalog: Catalog) -> None:
    lines = [one.line for entry in catalog.entries.values() for one in entry.match]
    assert [line for line in lines if is_quoting(line)] == []


def test_the_quoted_lines_would_be_taken_for_failures(matcher: Matcher) -> None:
    entries = [[n for n, _ in matcher.matches(line) if matcher.patterns[n].kind == "entry"] for line in QUOTED]
    held = list(filter(None, entries))
    assert len(held) > len(QUOTED) // 2
