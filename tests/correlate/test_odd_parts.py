"""Small incidents as text: parts of a job that wait for each other, run other software, or were one restart ahead."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_general_lacks import gloo_lost, verdict
from .test_texts import RANKS, answer, steps


def stalled(*missing: str) -> dict[str, list[str]]:
    """Horovod on three ranks: stalled operations, and who is missing in each."""
    lines = [
        f"[1,{rank}]<stdout>:2026-05-04 10:00:{2 * n:02d},100 INFO trainer: rank {rank} step {n} loss 2.1"
        for n in range(1, 7)
        for rank in range(3)
    ]
    for _ in range(2):
        lines.append(
            "[1,0]<stderr>:WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by "
            "subset of ranks and are waiting for remainder of ranks for more than 60 seconds."
        )
        lines.append("[1,0]<stderr>:Stalled ops:")
        lines += [f"[1,0]<stderr>:HorovodAllreduce_{n} [missing ranks: {who}]" for n, who in enumerate(missing)]
    return {"mpirun.out": lines}


@pytest.mark.parametrize(("missing", "ranks"), [(("2", "0, 1"), [2]), (("0, 1",), [0, 1])])
def test_of_two_parts_that_wait_for_each_other_the_smaller_is_the_odd_one(
    tmp_path: Path, missing: tuple[str, ...], ranks: list[int]
) -> None:
    found = answer(tmp_path, stalled(*missing))
    if len(missing) == 1:  # two of three: nobody else is left to be the many
        assert found["initiating"]["ranks"] in ([], ranks)
    else:
        assert found["initiating"]["ranks"] == ranks


def bootstrap(version: str, other: str) -> list[str]:
    return [
        f"NCCL version {version}+cuda12.4",
        "Traceback (most recent call last):",
        '  File "/opt/app/train.py", line 51, in <module>',
        "    dist.barrier()",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1331, internal error - please report "
        f"this issue to the NCCL developers, NCCL version {other}",
    ]


@pytest.mark.parametrize(("two", "cls"), [("2.18.1", "nccl-version-mismatch"), ("2.20.5", None)])
def test_two_halves_with_different_versions_do_not_fit_together(tmp_path: Path, two: str, cls: str | None) -> None:
    found = answer(tmp_path, {"ws-03.log": bootstrap(two, two), "ws-11.log": bootstrap("2.20.5", "2.20.5")})
    assert (found["failure"]["class"] == "nccl-version-mismatch") is (cls is not None)
    assert found["initiating"]["ranks"] == []


UNKNOWN = (
    "[W504 10:00:0{n}.000000000 socket.cpp:764] [c10d] The IPv6 network addresses of (kd-head, 29400) cannot be "
    "retrieved (gai error: -3 - Temporary failure in name resolution)."
)


@pytest.mark.parametrize(
    ("times", "expected"), [(6, ("identified", "master-unreachable")), (1, ("undetermined", None))]
)
def test_what_every_host_fails_to_reach_again_and_again_is_not_there(
    tmp_path: Path, times: int, expected: tuple[object, object]
) -> None:
    logs = {f"kd-0{host}.log": [UNKNOWN.format(n=n) for n in range(times)] for host in (1, 2)}
    found = answer(tmp_path, logs)
    assert verdict(found) == expected
    assert found["initiating"]["hosts"] == []


def finished(first: int) -> dict[str, list[str]]:
    """Two hosts; the second failed once more than the first, which therefore counts one attempt less."""
    logs: dict[str, list[str]] = {}
    for rank in RANKS:
        host, folder = f"ra-{1 + rank // 2}", f"none_{'ab'[rank // 2]}"
        attempts = [0, 1] if rank < 2 else [0, 1, 2]
        for attempt in attempts:
            head = f"ra-{1 + rank // 2}-logs/{folder}/attempt_{attempt}/{rank % 2}/stderr.log"
            last = attempt == attempts[-1]
            lines = [f"[2026-05-04 10:0{attempt}:00,000][INFO][rank{rank}] rank {rank} of 4 on {host}"]
            for n in range(1, 7 if last else 4):
                lines.append(f"[2026-05-04 10:0{attempt}:{2 * n:02d},000][INFO][rank{rank}] step {n}/6 loss 0.1")
            if not last:
                lines += gloo_lost(rank)
            elif rank == first:
                lines.append(f"[2026-05-04 10:0{attempt}:30,000][INFO][rank{rank}] Training completed. All is saved")
            logs[head] = lines
    return logs


@pytest.mark.parametrize(("first", "expected"), [(0, True), (9, False)])
def test_the_last_generation_counts_by_each_rank_s_own_last_attempt(tmp_path: Path, first: int, expected: bool) -> None:
    assert (answer(tmp_path, finished(first))["verdict"] == "no-failure") is expected


def not_finite(losses: tuple[str, ...]) -> dict[str, list[str]]:
    """All ranks stop at the reduced gradient, and print the loss of their own."""
    return {
        f"rank{rank}.log": [
            *steps(rank),
            f"[rank{rank}]: Traceback (most recent call last):",
            f'[rank{rank}]:   File "/opt/app/train.py", line 142, in main',
            f"[rank{rank}]: FloatingPointError: non-finite gradient norm at step 7 (loss={losses[rank]}), stopping",
        ]
        for rank in RANKS
    }


@pytest.mark.parametrize(
    ("losses", "ranks"),
    [(("0.31", "0.29", "0.30", "nan"), [3]), (("nan",) * 4, []), (("0.31", "nan", "nan", "0.3"), [])],
)
def test_whose_own_loss_is_no_number_began_what_all_ranks_stop_at(
    tmp_path: Path, losses: tuple[str, ...], ranks: list[int]
) -> None:
    found = answer(tmp_path, not_finite(losses))
    assert (found["failure"]["class"], found["initiating"]["ranks"]) == ("loss-nan-or-diverged", ranks)


@pytest.mark.parametrize(
    ("command", "cls"),
    [
        ("torchrun --nnodes=2 --nproc-per-node=2 train.py", "agent-failure"),
        ("python prepare_shards.py --jobs 8", None),
    ],
)
def test_a_launcher_that_its_shell_saw_killed_is_no_rank(tmp_path: Path, command: str, cls: str | None) -> None:
    shell = [
        "$ bash launch.sh 1",
        f"launch.sh: line 7:  2798 Killed                  {command}",
    ]
    logs = {f"ws{1 + rank // 2}/rank{rank}.log": steps(rank) for rank in RANKS}
    found = answer(tmp_path, {**logs, "ws2/shell.txt": shell})
    assert found["failure"]["class"] == cls if cls else found["failure"]["class"] != "agent-failure"
    if cls:
        assert (found["initiating"]["ranks"], found["initiating"]["hosts"]) == ([], ["ws2"])
