"""Which host a source, a rank and a process belong to: names in paths, headers, launchers' tables."""

from __future__ import annotations

from typing import Any

import pytest

from firstfault.ingest.identify import Identity


def hosts_of(got: Identity) -> dict[int, str]:
    return {one.rank: one.host for _, one in got.identities if one.rank is not None and one.host is not None}


@pytest.mark.parametrize(
    ("paths", "hosts"),
    [
        (["job-61833.pn-014.log", "job-61833.pn-015.log"], ["pn-014", "pn-015"]),
        (["61833_pn-014.log", "61833_pn-015.log"], ["pn-014", "pn-015"]),
        (["a1/train.log", "b2/train.log"], ["a1", "b2"]),
    ],
)
def test_a_number_in_a_file_name_is_no_host(kit: Any, paths: list[str], hosts: list[str]) -> None:
    frame = kit.lines(*({"source_id": n, "line": 1, "rank": n} for n in range(len(paths))))
    got = kit.run(paths, [], frame)
    assert [got.sources[n].host for n in range(len(paths))] == hosts


def test_of_two_parts_of_a_file_name_the_one_that_lines_know_is_the_host(kit: Any) -> None:
    said = [kit.Said(2, 1, event="exit", fact=None, captures={"host": "bio-g1", "tasks": "0-1"})]
    got = kit.run(["fold_0.bio-g1.log", "fold_1.bio-g1.log", "slurm-7.out"], said)
    assert [got.sources[n].host for n in range(2)] == ["bio-g1", "bio-g1"]
    assert not [one for _, one in got.identities if one.alias]


@pytest.mark.parametrize("path", ["lab-g1-sar-n-DEV.txt", "free_lab-g1.txt", "logs/node0_lab-g1_dmesg.txt"])
def test_a_known_host_is_found_inside_the_name_of_a_file(kit: Any, path: str) -> None:
    got = kit.run([path, "lab-g1.log"], [kit.Said(1, 1, captures={"rank": "0", "world_size": "2", "host": "lab-g1"})])
    assert got.sources[0].host == "lab-g1"
    assert not [one for _, one in got.identities if one.alias]


def test_a_header_that_names_task_and_host_places_the_rank(kit: Any) -> None:
    frame = kit.lines(
        {"source_id": 0, "line": 1, "task": 0, "host": "n1"},
        {"source_id": 0, "line": 2, "task": 3, "host": "n2"},
        {"source_id": 0, "line": 3, "task": 3, "rank": 3},
    )
    got = kit.run(["slurm-77.out"], [], frame)
    assert hosts_of(got) == {0: "n1", 3: "n2"}
    assert got.fill(frame)["host"].to_list() == ["n1", "n2", "n2"]
    assert got.fill(frame)["rank"].to_list() == [0, 3, 3]


def test_a_job_number_in_a_name_is_no_host_where_the_scheduler_places_the_task(kit: Any) -> None:
    paths = [f"ddp-51233-{n}.err" for n in range(4)] + ["slurm-51233.out"]
    said = [kit.Said(n, 1, captures={"rank": str(n), "world_size": "4"}) for n in range(4)]
    said += [kit.Said(4, 1, event="exit", fact=None, captures={"host": "g7", "tasks": "0-1"})]
    said += [kit.Said(4, 2, event="exit", fact=None, captures={"host": "g8", "tasks": "2-3"})]
    got = kit.run(paths, said)
    assert [got.sources[n].host for n in range(4)] == ["g7", "g7", "g8", "g8"]


def test_an_address_and_a_name_of_one_process_are_one_machine(kit: Any) -> None:
    frame = kit.lines(
        {"source_id": 0, "line": 1, "host": "10.0.0.8", "pid": 43},
        {"source_id": 0, "line": 2, "host": "gpu-b02", "pid": 43},
        {"source_id": 0, "line": 3, "pid": 41},
    )
    table = [
        {"ip": "10.0.0.7", "pid": "41", "rank": "0", "local_rank": "0", "node_rank": "0"},
        {"ip": "10.0.0.8", "pid": "43", "rank": "1", "local_rank": "0", "node_rank": "1"},
    ]
    said = [kit.Said(0, n + 4, fact="identity-ray-train", captures=row, pid=40) for n, row in enumerate(table)]
    got = kit.run(["driver.log"], said, frame)
    filled = got.fill(frame)
    assert filled["host"].to_list() == ["gpu-b02", "gpu-b02", "10.0.0.7"]
    assert filled["rank"].to_list() == [1, 1, 0]
    assert ("gpu-b02", "10.0.0.8") in {(one.host, one.address) for _, one in got.identities}


def test_a_second_table_of_workers_is_a_second_attempt(kit: Any) -> None:
    rows = [("10.0.0.7", "41", "0"), ("10.0.0.8", "43", "1"), ("10.0.0.8", "57", "0"), ("10.0.0.7", "58", "1")]
    said = [
        kit.Said(0, 10 * n, fact="identity-ray-train", captures={"ip": ip, "pid": pid, "rank": rank, "local_rank": "0"})
        for n, (ip, pid, rank) in enumerate(rows, start=1)
    ]
    got = kit.run(["driver.log"], said)
    placed = {(one.attempt, one.rank): one.host for _, one in got.identities if one.how == "launcher-table"}
    assert placed == {(0, 0): "10.0.0.7", (0, 1): "10.0.0.8", (1, 0): "10.0.0.8", (1, 1): "10.0.0.7"}
