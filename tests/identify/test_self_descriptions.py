"""What a process says of itself in pairs, and how tables of devices come to ranks."""

from __future__ import annotations

from typing import Any

import pytest

from firstfault.ingest.identity_hosts import prompted
from firstfault.ingest.identity_pairs import pairs_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "rank=0 local_rank=0 pid=21040 NEURON_RT_VISIBLE_CORES=0 world_size=64 host=ip-10-0-81-14",
            {"rank": 0, "local_rank": 0, "pid": 21040, "world_size": 64, "host": "ip-10-0-81-14"},
        ),
        (
            "rank 0/12 local_rank 0 host v100-a pid 9100",
            {"rank": 0, "world_size": 12, "local_rank": 0, "host": "v100-a", "pid": 9100},
        ),
        ("rank 8 local_rank 0 npu:0 pid 76387 host atlas-06", {"rank": 8, "pid": 76387, "host": "atlas-06"}),
        ("world_rank=3, local_rank=1, world_size=8, master_addr=10.0.0.1", {"rank": 3, "local_rank": 1}),
        ("rank 3 host unreachable", {"rank": 3, "host": None}),
    ],
)
def test_pairs_of_name_and_value_in_any_order(text: str, expected: dict[str, object]) -> None:
    found = pairs_of(text)
    assert {name: found.get(name) for name in expected} == expected


def test_a_process_that_names_itself_places_its_rank(kit: Any) -> None:
    said = [
        kit.Said(0, 1, "rank=0 local_rank=0 pid=41 world_size=2 host=n1", fact="identity-pairs"),
        kit.Said(0, 2, "rank=1 local_rank=0 pid=41 world_size=2 host=n2", fact="identity-pairs"),
    ]
    frame = kit.lines(
        {"source_id": 0, "line": 3, "pid": 41, "host": "n2"}, {"source_id": 0, "line": 4, "pid": 41, "host": "n1"}
    )
    got = kit.run(["job.log"], said, frame)
    assert got.fill(frame)["rank"].to_list() == [1, 0]
    assert got.world_size == 2


def test_a_table_of_devices_gives_each_rank_its_address(kit: Any) -> None:
    said = [kit.Said(0, n + 1, captures={"local_rank": str(n), "world_size": "2"}) for n in range(2)]
    said += [
        kit.Said(1, n + 1, fact="identity-device-index", captures={"gpu": str(n), "bus_id": f"0000:{bus}:00.0"})
        for n, bus in enumerate(("01", "81"))
    ]
    got = kit.run(["train.log", "smi.txt"], said)
    assert [(one.rank, one.gpu, one.bus_id) for _, one in got.identities if one.how == "device"] == [
        (0, 0, "0000:01:00.0"),
        (1, 1, "0000:81:00.0"),
    ]


@pytest.mark.parametrize(
    ("head", "host"),
    [
        (b"$ nvidia-smi -L\nGPU 0\n$ hostname\nseg-station\n", "seg-station"),
        (b"[root@node-07 ~]# dmesg -T\n", "node-07"),
        (b"ada@node-08:~/run$ sinfo\n", "node-08"),
        (b"$ for i in 0 1; do ssh atlas-06 npu-smi info -i $i; done\n", "atlas-06"),
        (b"$ ssh n1 date\n$ ssh n2 date\n", None),
        (b"loss $ 3\n", None),
        (b"git@github.com:org/repo.git # pinned\n", None),
        (b"ada@example.com: progress 50% done\n", None),
    ],
)
def test_a_transcript_shows_the_host_of_its_shell(head: bytes, host: str | None) -> None:
    assert prompted(head) == host


def test_a_line_that_names_its_rank_again_and_again_is_no_new_attempt(kit: Any) -> None:
    minute = 60 * 10**9
    said = [
        kit.Said(0, n, "alive rank=0 world_size=1 host=n1", fact="identity-pairs", stamp_ns=n * minute)
        for n in range(1, 9)
    ]
    frame = kit.lines({"source_id": 0, "line": 8})
    assert kit.run(["rank0.log"], said, frame).fill(frame)["attempt"].to_list() == [0]


def test_the_process_rank_of_an_example_script_is_that_of_its_device(kit: Any) -> None:
    said = [kit.Said(0, n, fact="identity-hf-process", captures={"local_rank": str(n), "gpu": str(n)}) for n in (0, 1)]
    said += [
        kit.Said(1, n, fact="identity-hf-process", captures={"local_rank": str(n + 2), "gpu": str(n)}) for n in (0, 1)
    ]
    said += [kit.Said(0, 9, captures={"world_size": "4"})]
    got = kit.run(["n1/train.log", "n2/train.log"], said)
    assert {(one.rank, one.host) for _, one in got.identities if one.rank is not None} == {
        (0, "n1"), (1, "n1"), (2, "n2"), (3, "n2"),
    }  # fmt: skip


def test_a_size_beside_other_values_counts_where_nothing_else_states_one(kit: Any) -> None:
    def sizes(*said: Any) -> set[int]:
        return {row.world_size for _, row in kit.run(["run.out"], said).identities if row.world_size is not None}

    named = kit.Said(0, 1, captures={"world_size": "2"}, fact="identity-world-named")
    tags = [kit.Said(0, n + 2, captures={"rank": str(n)}) for n in range(2)]
    assert sizes(named, *tags) == {2}
    assert sizes(named, kit.Said(0, 9, captures={"rank": "3"})) == set()
    assert sizes(named, named, kit.Said(0, 9, captures={"rank": "1", "world_size": "4"})) == {4}
