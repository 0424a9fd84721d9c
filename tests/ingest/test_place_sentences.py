"""Sentences, job maps and lists that say which host carries which rank."""

from __future__ import annotations

from typing import Any

import pytest

STEPS = [f"step {n} loss 2.{n}" for n in range(6)]
HOSTS = {rank: f"cn{7 + rank // 4:02d}" for rank in range(8)}


def map_of(read: Any, lines: list[str], **files: str) -> dict[int, str]:
    got = read({"train.log": "\n".join([*lines, *STEPS]) + "\n", **files})
    return dict(got.rows("SELECT DISTINCT rank, host FROM identities WHERE rank IS NOT NULL AND host IS NOT NULL"))


@pytest.mark.parametrize(
    "sentence",
    [
        "hello from {h} rank {r} local {l}",
        "[1,{r}]<stdout>:running on {h}",
        "Process {r} of 8 on {h}",
        "Hello world from processor {h}, rank {r} out of 8 processors",
        "Rank {r} ({h}) ready",
        "rank {r} -> {h}",
        "MPI rank {r} running on host {h} [local {l}]",
        "[0] MPI startup(): {r}       47{r}1     {h}      {{0,1,2,3}}",
    ],
)
def test_a_sentence_places_a_rank(read: Any, sentence: str) -> None:
    lines = [sentence.format(r=rank, h=HOSTS[rank], l=rank % 4) for rank in (3, 0, 6, 1, 5, 2, 7, 4)]
    assert map_of(read, lines) == HOSTS


def test_the_job_map_of_open_mpi(read: Any) -> None:
    lines = [" ========================   JOB MAP   ========================"]
    for node, ranks in (("cn07", (0, 2)), ("cn08", (1, 3))):
        lines.append(f" Data for node: {node}\tNum slots: 2\tMax slots: 0\tNum procs: 2")
        lines += [f" \tProcess OMPI jobid: [62012,1] App: 0 Process rank: {rank} Bound: N/A" for rank in ranks]
    assert map_of(read, lines) == {0: "cn07", 1: "cn08", 2: "cn07", 3: "cn08"}


def test_a_list_of_the_ranks_of_hosts(read: Any) -> None:
    found = map_of(read, ["ranks 0-1 mlx-a, ranks 2-3 mlx-b"])
    assert found == {0: "mlx-a", 1: "mlx-a", 2: "mlx-b", 3: "mlx-b"}


@pytest.mark.parametrize("line", ["rank 3 is on step5", "rank 3 on mlx5_0", "Rank 0 assigned to gpu3"])
def test_devices_and_steps_are_no_hosts(read: Any, line: str) -> None:
    assert map_of(read, [line]) == {}


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        (["mill-2.log"], ["mill-2"]),
        (["llama-7.log"], [None]),
        (["run-3.log"], [None]),
        (["file000.log", "file001.log"], [None, None]),
        (["kubectl-describe-worker-1.txt", "b.log"], [None, None]),
        (["train-cn07-20240506.log", "train-cn12-20240506.log"], ["cn07", "cn12"]),
        (["gpt-cn07.log", "gpt-cn12.log", "head.log"], ["cn07", "cn12", "cn07"]),
    ],
)
def test_what_names_of_files_tell(read: Any, names: list[str], hosts: list[str | None]) -> None:
    files = {name: "\n".join(STEPS) + "\n" for name in names}
    if "head.log" in files:
        files["head.log"] += "2024-05-06 10:11:12 rank 0 of 8 on cn07\n" * 2
    got = read(files)
    assert dict(got.rows("SELECT path, host FROM sources")) == dict(zip(names, hosts, strict=True))
