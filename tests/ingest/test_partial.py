"""Lines that a container runtime cut into parts: one message at the first part, each part still a line."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from firstfault.ingest import IngestOptions

ROWS = "SELECT line, record, rank, message FROM line_rows ORDER BY line"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB"


def cri(stream: str, tag: str, text: str) -> str:
    return f"2025-05-12T10:11:12.345678901Z {stream} {tag} {text}\n"


def docker(stream: str, text: str) -> str:
    return json.dumps({"log": text, "stream": stream, "time": "2025-05-12T10:11:12.3Z"}) + "\n"


def test_parts_of_a_runtime_are_joined_by_stream(read: Any) -> None:
    text = (
        cri("stderr", "P", "[rank3]: abc") + cri("stdout", "P", "{'a': 1, ") + cri("stderr", "P", "def")
        + cri("stdout", "F", "'b': 2}") + cri("stderr", "F", "[1] ghi") + cri("stderr", "F", "alone")
    )  # fmt: skip
    assert read({"pod.log": text}).rows(ROWS) == [
        (1, 1, 3, "abcdef[1] ghi"), (2, 2, None, "{'a': 1, 'b': 2}"), (3, 1, 3, "def"), (4, 2, None, "'b': 2}"),
        (5, 1, 3, "[1] ghi"), (6, None, None, "alone"),
    ]  # fmt: skip


@pytest.mark.parametrize("chunk", [8 << 20, 64, 97])
@pytest.mark.parametrize("make", ["cri", "docker", "fluent"])
def test_an_error_across_a_cut_is_found_at_its_first_part(read: Any, make: str, chunk: int) -> None:
    cut = OOM.index("memory") + 3
    if make == "cri":
        text = cri("stderr", "P", "[rank3]: " + OOM[:cut]) + cri("stdout", "F", "step") + cri("stderr", "F", OOM[cut:])
    elif make == "docker":
        text = (
            docker("stderr", "[rank3]: " + OOM[:cut]) + docker("stdout", "step\n") + docker("stderr", OOM[cut:] + "\n")
        )
    else:
        made = [("stderr", "P", "[rank3]: " + OOM[:cut]), ("stdout", "F", "step"), ("stderr", "F", OOM[cut:])]
        text = "".join(
            json.dumps(
                {
                    "time": "2025-05-12T10:11:12.3Z",
                    "stream": s,
                    "logtag": t,
                    "log": x,
                    "kubernetes": {"pod_name": "w-0"},
                }
            )
            + "\n"
            for s, t, x in made
        )
    bounds = replace(IngestOptions().bounds, chunk=chunk)
    made_ = read({"pod.log": text}, options=IngestOptions(bounds=bounds))
    assert made_.rows("SELECT line, class, rank FROM signal_rows WHERE entry IS NOT NULL") == [(1, "cuda-oom", 3)]
    assert made_.rows(ROWS)[0] == (1, 1, 3, OOM)
    assert [row[:3] for row in made_.rows(ROWS)[1:]] == [(2, None, None), (3, 1, 3)]


def test_a_line_whose_last_part_is_missing_is_as_whole_as_it_gets(read: Any) -> None:
    made = read({"pod.log": cri("stderr", "P", "abc") + cri("stderr", "P", "def")})
    assert made.rows("SELECT line, message FROM line_rows") == [(1, "abcdef"), (2, "def")]
