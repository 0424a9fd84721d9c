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


def test_pods_whose_names_end_by_chance_are_brothers(kit: Any) -> None:
    paths = ["asr-0-gx8tf_trainer_0.log", "asr-1-8vbcn_trainer_0.log", "asr-2-zr7pk_trainer_0.log"]
    said = [kit.Said(n, 1, captures={"ranks": f"{2 * n}-{2 * n + 1}"}) for n in (0, 2)]
    got = kit.run(paths, said)
    assert [got.sources[n].host for n in range(3)] == ["asr-0-gx8tf", "asr-1-8vbcn", "asr-2-zr7pk"]


def test_a_folder_that_names_an_address_stands_for_that_machine(kit: Any) -> None:
    got = kit.run(["head-10.100.0.10/gcs_server.out", "redis-10.100.0.5/redis.log"], [])
    assert [got.sources[n].host for n in range(2)] == ["10.100.0.10", "10.100.0.5"]


def test_slurm_folds_tasks_and_hosts_in_the_same_order(kit: Any) -> None:
    said = [
        kit.Said(0, 1, captures={"ranks": "0-1", "host": "h1"}),
        kit.Said(0, 2, captures={"ranks": "2-3", "host": "h2"}),
        kit.Said(0, 3, event="exit", fact=None, captures={"host": "h[2-3]", "tasks": "1-2"}),
    ]
    got = kit.run(["slurm-7.out"], said)
    tasks = {(one.host, one.node_rank) for _, one in got.identities if one.node_rank is not None}
    assert not [one for _, one in got.identities if one.host and "[" in one.host]
    assert hosts_of(got)[3] == "h2"
    assert tasks <= {("h2", 1), ("h3", 2)}


def test_the_restart_count_of_a_requeued_job_cuts_its_log(kit: Any) -> None:
    said = [
        kit.Said(0, 1, event="start", fact="start-restart-count", captures={"count": "0"}),
        kit.Said(0, 50, event="start", fact="start-restart-count", captures={"count": "1"}),
    ]
    frame = kit.lines(*({"source_id": 0, "line": n, "rank": 0} for n in (2, 60)))
    assert kit.run(["slurm-7.out"], said, frame).fill(frame)["attempt"].to_list() == [0, 1]


def test_a_job_that_follows_on_another_is_its_next_attempt(kit: Any) -> None:
    def at(*stamps: int) -> list[int | None]:
        said = [kit.Said(n // 2, 1 + n % 2, fact="x", stamp_ns=stamp) for n, stamp in enumerate(stamps)]
        got = kit.run(["slurm-55120.out", "slurm-55131.out"], said)
        return [got.sources[n].attempt for n in range(2)]

    assert at(100, 200, 300, 400) == [0, 1]
    assert at(300, 400, 100, 200) == [1, 0]
    assert at(100, 300, 200, 400) == [0, 0]


def test_the_machine_under_a_container_is_the_one_whose_kernel_speaks(kit: Any) -> None:
    said = [kit.Said(0, n, captures={"rank": str(n), "world_size": "2", "host": "9c1e0b7fa2d4"}) for n in range(2)]
    frame = kit.lines({"source_id": 0, "line": 1}, {"source_id": 1, "line": 1, "host": "lab-ws3"})
    got = kit.run(["compose.log", "journalctl-k.txt"], said, frame)
    assert ("9c1e0b7fa2d4", "lab-ws3") in {(one.host, one.alias) for _, one in got.identities}
    named = [kit.Said(0, 1, captures={"rank": "0", "world_size": "2", "host": "node-a"})]
    assert not [one for _, one in kit.run(["run.log", "dmesg.txt"], named, frame).identities if one.alias]


def test_a_folder_of_all_files_that_bears_a_host_says_nothing_about_each(kit: Any) -> None:
    said = [kit.Said(0, 1, captures={"rank": "0", "world_size": "32", "host": "node42"})]
    got = kit.run(["crash-on-node42/rank0.log", "crash-on-node42/rank1.log"], said)
    assert [got.sources[n].host for n in range(2)] == ["node42", None]


def test_a_node_whose_launcher_lists_all_hosts_stays_the_host_of_its_file(kit: Any) -> None:
    mapping = "global_rank_mapping=defaultdict(<class 'list'>, {'n1': [0], 'n2': [1]})"
    frame = kit.lines({"source_id": 0, "line": 1}, {"source_id": 0, "line": 2, "host": "n1", "pid": 5})
    got = kit.run(["ds_first.log"], [kit.Said(0, 1, mapping, fact="identity-deepspeed-world")], frame)
    assert got.sources[0].host == "n1"


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (["log_0.txt", "log_1.txt"], [0, 1]),
        (["worker_0.log", "worker_1.log"], [0, 1]),
        (["out.00", "out.01"], [0, 1]),
        (["train.log.1", "train.log.2"], [None, None]),
        (["shard_0.log", "shard_1.log", "shard_2.log"], [None, None, None]),
    ],
)
def test_files_numbered_like_all_ranks_are_their_logs(kit: Any, names: list[str], ranks: list[int | None]) -> None:
    paths = [*names, "launch.txt"]
    said = [kit.Said(len(names), 1, captures={"world_size": "2"})]
    got = kit.run([f"run/{name}" for name in paths], said)
    assert [got.sources[n].rank for n in range(len(names))] == ranks


def test_a_device_in_the_name_of_a_file_is_a_local_number(kit: Any) -> None:
    paths = [f"{node}/gpu{n}.log" for node in ("n1", "n2") for n in range(2)]
    said = [kit.Said(0, 1, captures={"rank": "0", "world_size": "4"}), kit.Said(2, 1, captures={"rank": "2"})]
    got = kit.run(paths, said)
    assert [got.sources[n].local_rank for n in range(4)] == [0, 1, 0, 1]
    assert [got.sources[n].rank for n in range(4)] == [0, 1, 2, 3]
