"""What command lines and lists of launchers say about hosts and ranks."""

from __future__ import annotations

from typing import Any

import pytest

from firstfault.ingest.identity_commands import of_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torchrun --nproc_per_node 8 --nnodes 2 --node_rank 1 t.py", {"world_size": 16, "node_rank": 1}),
        ("torchrun --nproc-per-node=8 --nnodes=1:4 t.py", {"local_world": 8, "nodes": None, "world_size": None}),
        ("accelerate launch --num_processes 16 --num_machines 2 --machine_rank 1 t.py", {"world_size": 16, "nodes": 2}),
        ("mpirun -np 16 --hostfile h --map-by ppr:4:node python t.py", {"world_size": 16, "local_world": 4}),
        ("mpirun -np 2 torchrun --nproc_per_node 8 t.py", {"local_world": 8, "world_size": None}),
        ("SLURM_NNODES=4 SLURM_NTASKS_PER_NODE=8", {"nodes": 4, "local_world": 8}),
    ],
)
def test_numbers_of_a_command(text: str, expected: dict[str, int | None]) -> None:
    found = next(iter(of_text(text)))
    assert {name: found.get(name) for name in expected} == expected


def test_slots_of_hosts_carry_ranks_block_by_block() -> None:
    command = "mpirun -np 3 -H n1:1,n2:2 -bind-to none python t.py"
    assert [(one["host"], one["rank"], one["local_rank"]) for one in of_text(command) if "rank" in one] == [
        ("n1", 0, 0),
        ("n2", 1, 0),
        ("n2", 2, 1),
    ]
    assert not [one for one in of_text(command.replace("-bind-to none", "--map-by node")) if "rank" in one]


def test_a_hostfile_numbers_its_hosts(kit: Any) -> None:
    said = [
        kit.Said(0, n + 1, fact="identity-hostfile", captures={"host": host, "count": "2"})
        for n, host in enumerate(("b7", "a3"))
    ]
    said += [kit.Said(1, 1, captures={"rank": "0", "local_rank": "0", "world_size": "4", "host": "b7"})]
    got = kit.run(["hostfile", "train.log"], said)
    placed = {one.rank: one.host for _, one in got.identities if one.rank is not None and one.host}
    assert placed == {0: "b7", 1: "b7", 2: "a3", 3: "a3"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Starting torchrun: nnodes=4 nproc_per_node=1 node_rank=0", {"world_size": 4, "node_rank": 0}),
        ("node_rank: 1, nnodes: 2, nproc_per_node: 8", {"world_size": 16, "node_rank": 1}),
    ],
)
def test_numbers_that_a_script_prints_beside_each_other(text: str, expected: dict[str, int]) -> None:
    found = next(iter(of_text(text)))
    assert {name: found.get(name) for name in expected} == expected
    assert not list(of_text("nnodes=4 ready"))
