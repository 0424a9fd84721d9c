"""Small incidents as text about what was lost: a node that went, a machine that was taken, a daemon that aborted, an
adapter at one end of all broken transfers; each beside one that looks like it and is something else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .test_texts import answer, steps


def accused(found: dict[str, Any]) -> tuple[object, object, object]:
    return found["failure"]["class"], found["initiating"]["ranks"], found["initiating"]["hosts"]


PODS = [
    "NAME      READY  STATUS   RESTARTS  AGE  IP         NODE    NOMINATED NODE",
    "hvd-0     1/1    Running  0         60m  10.4.0.5   pool-a  <none>",
    "hvd-1     1/1    Running  0         60m  10.4.1.5   pool-b  <none>",
]
HEADER = "LAST SEEN  TYPE     REASON                OBJECT        MESSAGE"
EVICTION = "17m   Warning  TaintManagerEviction  pod/hvd-1     Marking for deletion Pod ml/hvd-1"


GONE = "{age}m   Normal   NodeNotReady          node/pool-b   Node pool-b status is now: NodeNotReady"


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([GONE.format(age=22), EVICTION], "host-down"),
        ([EVICTION, GONE.format(age=16)], "preempted"),
        ([EVICTION], "preempted"),
    ],
)
def test_an_eviction_for_a_taint_follows_from_a_node_that_went_away(
    tmp_path: Path, events: list[str], expected: str
) -> None:
    """The node controller taints a node that is not ready; a node that is taken is tainted before it goes."""
    logs = {f"hvd-{host}.log": steps(2 * host) + steps(2 * host + 1) for host in range(2)}
    logs["nccl.log"] = [
        f"hvd-{rank // 2}:3{rank}:22{rank} [{rank % 2}] NCCL INFO comm 0x55cd rank {rank} nranks 4 cudaDev {rank % 2} "
        "busId 1b000 commId 0x0ae8 - Init COMPLETE"
        for rank in range(4)
    ]
    told = {"kubectl-get-pods-wide.txt": PODS, "kubectl-get-events.txt": [HEADER, *events]}
    found = answer(tmp_path, {**logs, **told})
    assert accused(found) == (expected, [2, 3], ["hvd-1"])


@pytest.mark.parametrize("method", ["compute.instances.preempted", "compute.instances.migrateOnHostMaintenance"])
def test_the_instance_that_an_audit_log_names_was_taken(tmp_path: Path, method: str) -> None:
    audit = (
        f'{{"protoPayload":{{"methodName":"{method}","resourceName":"projects/p/zones/z/instances/jx-w3"}},'
        '"timestamp":"2026-05-04T10:00:09.118Z","severity":"INFO"}'
    )
    text = [f"I0504 10:00:0{n}.281292 14064 trainer.py:501] Training: step 19{n}" for n in range(3)]
    found = answer(tmp_path, {"hosts/w0.log": text, "audit.json.txt": [audit]})
    taken = method.endswith("preempted")
    assert accused(found) == (("preempted", [], ["jx-w3"]) if taken else (None, [], []))


def fingerprints(calls: dict[int, str], other: dict[int, int]) -> list[str]:
    """Each rank raises, against one that differs from it."""
    said = "is running collective: CollectiveFingerPrint"
    return [
        f"[rank{rank}]: RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} {said}({call}), "
        f"but Rank {other[rank]} {said}({calls[other[rank]]}).Collectives differ in the following aspects: \t Op type"
        for rank, call in calls.items()
    ]


GATHER = "SequenceNumber=0OpType=GATHER"
REDUCE = "SequenceNumber=32, OpType=ALLREDUCE, TensorShape=[], TensorDtypes=Float"


@pytest.mark.parametrize(("calls", "odd"), [((REDUCE, REDUCE, GATHER), [2]), ((REDUCE, GATHER), [])])
def test_a_call_without_tensors_is_compared_too(tmp_path: Path, calls: tuple[str, ...], odd: list[int]) -> None:
    """Its fingerprint has no comma behind the number (ProcessGroupWrapper.cpp)."""
    told = dict(enumerate(calls))
    differs = {rank: next(one for one in told if told[one] != told[rank]) for rank in told}
    lines = [line for rank in told for line in steps(rank)] + fingerprints(told, differs)
    found = answer(tmp_path, {"train.log": lines})
    assert (found["failure"]["class"], found["initiating"]["ranks"]) == ("collective-desync", odd)


RAY_NODES = {
    "driver.log": [f"2026-05-04 10:00:0{n},301 INFO trainer.py:165 -- step {n} loss 2.{n}" for n in range(3)]
    + [
        "2026-05-04 10:02:21,774\tWARNING worker.py:2134 -- The node with node id: 9f1c22d8a7a04b1e37dce0f0b1d2a9 "
        "and address: 10.0.0.7 and node name: 10.0.0.7 has been marked dead because the detector has missed too many "
        "heartbeats from it."
    ],
}
ENDED = "2026-05-04 10:00:53,118\tERROR utils.py:101 -- Raylet is terminated. Termination is "
UNEXPECTED = ENDED + "unexpected. Possible reasons include: (1) SIGKILL by the user or system OOM killer"


@pytest.mark.parametrize(
    ("agent", "kernel", "expected"),
    [
        (UNEXPECTED, "Out of memory: nothing", ("agent-failure", [], ["10.0.0.7"])),
        (ENDED + "graceful.", "Out of memory: nothing", None),
        (
            UNEXPECTED,
            "Out of memory: Killed process 3991 (raylet) total-vm:9000kB, anon-rss:8000kB, file-rss:0kB, shmem-rss:0kB",
            None,
        ),
    ],
)
def test_a_raylet_that_aborted_is_not_a_machine_that_went(
    tmp_path: Path, agent: str, kernel: str, expected: tuple[object, ...] | None
) -> None:
    """Its agent says so on that node; where it was stopped, or the kernel killed it, it is no crash."""
    there = {
        "ray-10.0.0.7/dashboard_agent.log": [agent],
        "ray-10.0.0.7/dmesg.txt": [f"[Mon May  4 10:00:52 2026] {kernel}"],
    }
    found = accused(answer(tmp_path, {**RAY_NODES, **there}))
    assert found == expected if expected else found[0] != "agent-failure"


def completion(rank: int, peer: int) -> str:
    """NCCL's word on a transfer that the host behind another address no longer acknowledged."""
    return (
        f"n{rank}:90{rank}:1361 [0] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 10.1.0.{peer}<44204> "
        f"with status=12 opcode=129 len=65536 vendor err 129 (Recv) localGid ::ffff:29.87.4.{rank} "
        f"remoteGids::ffff:29.87.4.{peer}"
    )


@pytest.mark.parametrize(
    ("pairs", "end"),
    [
        (((0, 2), (1, 2), (3, 2), (2, 0), (2, 1)), ["n2"]),
        (((0, 2), (1, 3), (3, 1), (2, 0)), []),
    ],
)
def test_the_host_at_one_end_of_all_broken_transfers(
    tmp_path: Path, pairs: tuple[tuple[int, int], ...], end: list[str]
) -> None:
    """It tells of them, too; two pairs that broke have no end in common."""
    logs = {
        f"n{rank}.log": [
            f"n{rank}:90{rank}:1300 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.1.0.{rank}<0>",
            f"n{rank}:90{rank}:1300 [0] NCCL INFO comm 0x55cd rank {rank} nranks 4 cudaDev 0 busId 1b000 commId 0x0ae8 "
            "- Init COMPLETE",
            *steps(rank),
            *(completion(one, other) for one, other in pairs if one == rank),
        ]
        for rank in range(4)
    }
    assert answer(tmp_path, logs)["initiating"]["hosts"] == end
