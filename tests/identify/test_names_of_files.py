"""Which host or rank a file is of by its name: nodes and devices, workers numbered like ranks, pods, words."""

from __future__ import annotations

from typing import Any

import pytest

from firstfault.ingest.identify import Identity, SourceSeen, identify, summarise
from firstfault.ingest.identity_paths import claims_of


def speaking(kit: Any, paths: list[str], ranks: list[list[int]], said: list[Any] | None = None) -> Identity:
    rows = [
        {"source_id": n, "line": line, "rank": rank}
        for n, found in enumerate(ranks)
        for line, rank in enumerate(found or [None], 1)
    ]
    return kit.run(paths, said or [], kit.lines(*rows))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("train_n2_g3.log", {"node_rank": 2, "local_rank": 3}),
        ("node1-gpu0.txt", {"node_rank": 1, "local_rank": 0}),
        ("worker-3-of-16", {"index": 3}),
        ("p12.log", {"task": 12}),
        ("nvidia-smi-box7.txt", {"kind": "gpu-state"}),
        ("rank3.journal.txt", {"rank": 3, "kind": None}),
        ("plan_b2_g3.log", {"node_rank": None, "local_rank": None}),
    ],
)
def test_numbers_in_a_name(path: str, expected: dict[str, object]) -> None:
    claims = claims_of(path)
    assert {name: getattr(claims, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("ra-2-logs/rank.log", "ra-2"),
        ("algo-2-1741082400.log", "algo-2"),
        ("train-slice-job-0-2.log", "train-slice-job-0-2"),
    ],
)
def test_what_of_a_name_may_be_a_host(path: str, host: str) -> None:
    assert host in claims_of(path).hosts


def test_a_node_and_a_device_in_the_names_of_files_make_the_rank(kit: Any) -> None:
    paths = [f"train_n{n // 2}_g{n % 2}.log" for n in range(4)]
    got = speaking(kit, paths, [[0], [1], [2], []])
    assert got.sources[3].rank == 3
    assert [got.sources[n].host for n in range(4)] == [None] * 4


def test_files_numbered_like_the_ranks_that_some_of_them_name(kit: Any) -> None:
    paths = [f"worker-{n}-of-3.log" for n in range(3)]
    assert speaking(kit, paths, [[0], [1], []]).sources[2].rank == 2
    assert speaking(kit, paths, [[1], [0], []]).sources[2].rank is None
    assert speaking(kit, paths, [[], [], []]).sources[2].rank is None


def test_a_worker_with_the_number_of_its_rank_is_no_host(kit: Any) -> None:
    got = speaking(kit, [f"worker-{n}.txt" for n in range(2)], [[0], [1]])
    assert [got.sources[n].host for n in range(2)] == [None, None]


def test_words_that_differ_are_hosts_where_each_file_holds_the_ranks_of_a_node(kit: Any) -> None:
    got = speaking(kit, ["kepler.log", "newton.log"], [[0, 1], [2, 3]])
    assert [got.sources[n].host for n in range(2)] == ["kepler", "newton"]
    assert [one.host for one in speaking(kit, ["a.log", "eval.log"], [[0, 1], [2, 3]]).sources.values()] == [None, None]


def test_two_words_of_which_the_first_is_shared_are_hosts(kit: Any) -> None:
    got = speaking(kit, ["ws-blue-nohup.out", "ws-green-nohup.out", "ws-green-syslog.txt"], [[], [], []])
    assert [got.sources[n].host for n in range(3)] == ["ws-blue", "ws-green", "ws-green"]


def test_a_file_whose_name_holds_a_host_is_about_it(kit: Any) -> None:
    paths = ["ip-10-0-3-11/pod.log", "ip-10-0-3-87/pod.log", "node-termination-handler-ip-10-0-3-87.log"]
    assert speaking(kit, paths, [[], [], []]).sources[2].host == "ip-10-0-3-87"


def test_an_address_above_all_files_is_where_they_were_brought_together(kit: Any) -> None:
    paths = ["10.0.3.7/rank0.log", "10.0.3.7/rank1.log", "10.0.3.7/dmesg-cn07.txt"]
    rows = kit.lines(*({"source_id": n, "line": 1, "host": "cn07" if n == 2 else None} for n in range(3)))
    assert [one.host for one in kit.run(paths, [], rows).sources.values()] == ["cn07"] * 3
    alone = kit.run(paths[:2], [])
    assert {one.host for one in alone.sources.values()} == {"10.0.3.7"}


def test_a_host_joined_with_a_word_by_an_underscore_is_the_host(kit: Any) -> None:
    paths = [f"oci-a{node}_logs-rank{rank}.txt" for node, rank in ((1, 0), (1, 1), (2, 2), (2, 3))]
    paths += ["oci-a1_composer-launcher.log", "oci-a2_composer-launcher.log"]
    found = speaking(kit, paths, [[0], [1], [2], [3], [], []])
    assert [one.host for one in found.sources.values()] == ["oci-a1", "oci-a1", "oci-a2", "oci-a2", "oci-a1", "oci-a2"]


@pytest.mark.parametrize("spoken", [True, False])
def test_a_number_is_a_host_where_lines_and_folders_have_it(kit: Any, spoken: bool) -> None:
    paths = ["0117/rank0.log", "0120/rank1.log", "0117/messages", "0120/messages"]
    said = [None, None, *(("0117", "0120") if spoken else (None, None))]
    rows = kit.lines(*({"source_id": n, "line": 1, "host": host} for n, host in enumerate(said)))
    found = [one.host for one in kit.run(paths, [], rows).sources.values()]
    assert found == (["0117", "0120"] * 2 if spoken else [None] * 4)


def test_processes_of_jax_are_numbered_like_their_files(kit: Any) -> None:
    def ranks(head: bytes) -> list[int | None]:
        sources = [SourceSeen(n, f"slice-job-0-{n}.log", head) for n in range(2)]
        frame = kit.lines(*({"source_id": n, "line": 1} for n in range(2)))
        got = identify(sources, [], summarise(frame))
        return [got.sources[n].rank for n in range(2)]

    assert ranks(b"I coordination_service_agent.cc:369] Connecting to coordination service\n") == [0, 1]
    assert ranks(b"step 1\n") == [None, None]


def test_the_one_machine_that_its_launcher_calls_localhost(kit: Any) -> None:
    table = kit.Said(
        0, 9, event="agent-report", fact=None, captures={"host": "localhost", "rank": "1", "local_rank": "1"}
    )
    frame = kit.lines({"source_id": 0, "line": 1, "rank": 0}, {"source_id": 0, "line": 2, "rank": 1})
    assert kit.run(["run.log"], [table], frame).sources[0].host == "localhost"
    named = kit.Said(0, 1, captures={"host": "a7", "rank": "0", "world_size": "2"})
    assert kit.run(["run.log"], [named, table], frame).sources[0].host == "a7"


def test_the_server_of_a_request_is_no_host_of_the_writer(kit: Any) -> None:
    broken = kit.Said(0, 5, event="phase", fact=None, captures={"host": "objects.internal", "port": "443"})
    assert speaking(kit, ["rank.log"], [[]], [broken]).sources[0].host is None


def test_an_error_on_a_host_with_one_rank_is_that_ranks(kit: Any) -> None:
    said = [
        kit.Said(0, n + 1, captures={"rank": str(n), "world_size": "2", "host": f"pod-{n}"}, host=f"pod-{n}")
        for n in range(2)
    ]
    error = kit.Said(0, 9, "ValueError: bad", event="exception", fact=None, host="pod-1")
    rows = kit.lines(*({"source_id": 0, "line": line, "host": f"pod-{n}"} for n, line in ((0, 1), (1, 2), (1, 9))))
    got = kit.run(["all.log"], [*said, error], rows)
    assert got.fill(rows)["rank"].to_list()[2] == 1


def test_who_names_the_coordinator_of_jax_places_process_zero_alone(kit: Any) -> None:
    said = [kit.Said(1, 1, fact="identity-jax-coordinator", captures={"host": "tern0"})]
    got = speaking(kit, ["p0.log", "p1.log"], [[], []], said)
    assert [(got.sources[n].rank, got.sources[n].host) for n in range(2)] == [(0, "tern0"), (1, None)]
