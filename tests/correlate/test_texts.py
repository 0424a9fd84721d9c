"""Small jobs as text, through the whole public path: what only the lines themselves show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firstfault.correlate.engine import diagnose
from firstfault.ingest import ingest
from firstfault.report.document import document

RANKS = range(4)


def answer(folder: Path, files: dict[str, list[str]]) -> dict[str, Any]:
    """The document for some logs."""
    for name, lines in files.items():
        path = folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ingest([folder / "logs"], folder / "timeline.duckdb")
    return document(diagnose(folder / "timeline.duckdb"))


def steps(rank: int, count: int = 6, tail: str = "") -> list[str]:
    """Lines of progress, two seconds each, behind a logger's name."""
    return [
        f"2026-05-04 10:00:{2 * n:02d},1{rank}0 INFO trainer: rank {rank} step {n} loss 2.{n}{tail}"
        for n in range(1, count + 1)
    ]


def gloo_error(rank: int, called_from: int, what: str) -> list[str]:
    """A traceback of a gloo collective that was called from a line of the program."""
    text = [
        "Traceback (most recent call last):",
        '  File "/opt/app/train.py", line 90, in <module>',
        "    main()",
        f'  File "/opt/app/train.py", line {called_from}, in main',
        "    dist.all_reduce(x)",
        '  File "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 3252, in all_reduce',
        "    work.wait()",
        f"RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] {what}",
    ]
    return [f"[rank{rank}]: {line}" for line in text]


TIMED_OUT = "Timed out waiting 20000ms for recv operation to complete"


def called(*lines: int) -> dict[str, list[str]]:
    """One log for each rank, all of which wait to the limit in collectives of these lines of the program."""
    return {f"rank{rank}.log": steps(rank) + gloo_error(rank, lines[rank], TIMED_OUT) for rank in RANKS}


def test_the_rank_that_called_its_collective_from_another_line_is_the_odd_one(tmp_path: Path) -> None:
    found = answer(tmp_path, called(46, 46, 42, 46))
    assert (found["verdict"], found["failure"]["class"]) == ("identified", "collective-desync")
    assert found["initiating"]["ranks"] == [2]
    assert found["confidence"] <= 0.8


@pytest.mark.parametrize("lines", [(46, 46, 46, 46), (46, 42, 46, 42), (41, 42, 43, 44)])
def test_no_rank_is_the_odd_one_where_all_or_none_agree(tmp_path: Path, lines: tuple[int, ...]) -> None:
    assert answer(tmp_path, called(*lines))["verdict"] == "undetermined"


def watchdog(rank: int) -> list[str]:
    """All that a rank prints that waited ten minutes in the only group."""
    place = f"[rank{rank}]:[E504 10:10:14.{rank}00000000 ProcessGroupNCCL.cpp"
    work = "WorkNCCL(SeqNum=7, OpType=_ALLGATHER_BASE, NumelIn=9305063424, NumelOut=37220253696, Timeout(ms)=600000)"
    return [
        f"{place}:632] [Rank {rank}] Watchdog caught collective operation timeout: {work} ran for 600011 milliseconds "
        "before timing out.",
        f"{place}:2271] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work sequence id: "
        "7 PG status: last enqueued work: 7, last completed work: 6",
    ]


def interfaces(*used: float) -> list[str]:
    """What `sar -n DEV` prints of one interface."""
    head = "IFACE   rxpck/s   txpck/s    rxkB/s    txkB/s   rxcmp/s   txcmp/s  rxmcst/s   %ifutil"
    rows = [
        f"10:{minute:02d}:01  enp5s0  81398.10  81249.40 114978.84 114962.24      0.00      0.00      0.20    {one}"
        for minute, one in enumerate(used, 1)
    ]
    return ["Linux 5.15.0-89-generic (ws1) \t05/04/2026 \t_x86_64_\t(64 CPU)", "", f"10:00:01        {head}", *rows]


FULL = (0.0, 94.1, 94.1, 94.2, 94.1, 0.1)
IDLE = (0.0, 94.1, 94.1, 94.2, 0.1, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("used", "verdict"), [(FULL, "identified"), (IDLE, "undetermined")])
def test_a_link_that_was_full_to_the_end_shows_that_all_were_only_slow(
    tmp_path: Path, used: tuple[float, ...], verdict: str
) -> None:
    logs = {f"rank{rank}.log": steps(rank) + watchdog(rank) for rank in RANKS}
    found = answer(tmp_path, {**logs, "sar-ws1.txt": interfaces(*used)})
    assert found["verdict"] == verdict
    if verdict == "identified":
        assert (found["failure"]["class"], found["initiating"]["ranks"]) == ("collective-slow", [])


@pytest.mark.parametrize(("compute", "verdict"), [(0.4, "identified"), (0.11, "no-failure")])
def test_a_rank_that_takes_twice_the_time_is_told_also_where_the_run_completed(
    tmp_path: Path, compute: float, verdict: str
) -> None:
    logs = {}
    for rank in RANKS:
        own, wait = (compute, 0.01) if rank == 1 else (0.1, round(max(0.01, compute - 0.1), 3))
        lines = steps(rank, 20, f" compute={own}s wait={wait}s")
        logs[f"rank{rank}.log"] = [*lines, "2026-05-04 10:01:00,000 INFO trainer: training finished"]
    found = answer(tmp_path, logs)
    assert found["verdict"] == verdict
    if verdict == "identified":
        assert (found["failure"]["class"], found["initiating"]["ranks"]) == ("straggler", [1])


def test_logs_that_name_no_rank_and_all_end_well_are_a_run_that_completed(tmp_path: Path) -> None:
    lines = [
        "I0504 10:06:12.005021 139122 train.py:210] step: 3950, loss: 1.3992",
        "I0504 10:08:10.980813 139122 main.py:140] Training complete at step 4000",
    ]
    assert answer(tmp_path, {f"worker-{n}.log": lines for n in range(2)})["verdict"] == "no-failure"


def test_one_of_several_logs_that_does_not_end_well_leaves_it_open(tmp_path: Path) -> None:
    lines = [
        "I0504 10:06:12.005021 139122 train.py:210] step: 3950, loss: 1.3992",
        "I0504 10:08:10.980813 139122 main.py:140] Training complete at step 4000",
    ]
    assert answer(tmp_path, {"worker-0.log": lines, "worker-1.log": lines[:1]})["verdict"] == "undetermined"


@pytest.mark.parametrize(("leap", "verdict"), [("Not synchronised", "undetermined"), ("Normal", "identified")])
def test_a_clock_that_follows_no_server_orders_nothing(tmp_path: Path, leap: str, verdict: str) -> None:
    """Two ranks of two hosts raise within a minute by their own clocks, which nothing else links."""
    files: dict[str, list[str]] = {}
    for host, rank, second in (("oat", 0, 50), ("rye", 1, 10)):
        files[f"{host}.log"] = [
            f"[rank{rank}]: Traceback (most recent call last):",
            f'[rank{rank}]:   File "/opt/app/train.py", line 7, in <module>',
            f"[rank{rank}]: {'ValueError: wrong shape' if rank else 'IndexError: list index out of range'}",
            f"E0504 10:01:{second:02d}.000000 90 torch/distributed/elastic/multiprocessing/api.py:874] failed "
            f"(exitcode: 1) local_rank: 0 (pid: 9{rank}) of binary: /usr/bin/python3",
            "Root Cause (first observed failure):",
            "[0]:",
            f"  time      : 2026-05-04_10:01:{second:02d}",
            f"  host      : {host}",
            f"  rank      : {rank} (local_rank: 0)",
            f"  exitcode  : 1 (pid: 9{rank})",
            "  error_file: <N/A>",
        ]
        files[f"{host}-chronyc.txt"] = [
            "Reference ID    : 0A000004 (ntp.lab)",
            "Stratum         : 3",
            "System time     : 0.000012 seconds slow of NTP time",
            f"Leap status     : {leap if host == 'rye' else 'Normal'}",
        ]
    found = answer(tmp_path, files)
    assert found["verdict"] == verdict
    if verdict == "identified":
        assert found["initiating"]["ranks"] == [1]


def started(rank: int, host: str) -> str:
    """NCCL's line about a rank that starts on a host."""
    return (
        f"{host}:70{rank}:70{rank} [{rank % 2}] NCCL INFO ncclCommInitRank comm 0x55{rank} rank {rank} nranks 6 "
        f"cudaDev {rank % 2} nvmlDev {rank % 2} busId {rank % 2 + 1}000 commId 0x7f3a9912abcd0011 - Init START"
    )


def test_the_root_of_the_bootstrap_is_no_culprit_for_counting(tmp_path: Path) -> None:
    """Rank 2 checks in twice."""
    refused = "fir:700:712 [0] bootstrap.cc:351 NCCL WARN Bootstrap Root : rank 2 of 6 ranks has already checked in"
    closed = "misc/socket.cc:57 NCCL WARN socketProgress: Connection closed by remote peer fir<50000>"
    found = answer(
        tmp_path,
        {
            "fir.log": [started(0, "fir"), started(1, "fir"), refused],
            "elm.log": [started(2, "elm"), started(3, "elm"), f"elm:702:713 [0] {closed}"],
            "oak.log": [started(2, "oak"), started(3, "oak"), f"oak:702:713 [0] {closed}"],
        },
    )
    assert found["initiating"]["ranks"] == []
    assert "fir" not in found["initiating"]["hosts"]


def checkpoint_error(rank: int, failed: str, reason: str = "") -> list[str]:
    """What torch raises on every rank of a distributed checkpoint, with the reason of one rank where it prints it."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/opt/app/train.py", line 90, in <module>',
        "    main()",
        f"torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([{failed}])",
    ]
    if reason:
        lines += ["Traceback (most recent call last): (RANK 2)", '  File "/opt/app/save.py", line 9, in write', reason]
    return [f"[rank{rank}]: {line}" for line in lines]


QUOTA = "OSError: [Errno 122] Disk quota exceeded: '/ckpt/step_6/__2_0.distcp'"


@pytest.mark.parametrize(("failed", "ranks"), [("2", [2]), ("0, 1, 2, 3", [])])
def test_those_failed_in_a_checkpoint_whom_torch_lists(tmp_path: Path, failed: str, ranks: list[int]) -> None:
    logs = {
        f"rank{rank}.log": steps(rank) + checkpoint_error(rank, failed, QUOTA if rank == 2 else "") for rank in RANKS
    }
    found = answer(tmp_path, logs)
    assert found["verdict"] == "identified"
    assert found["failure"]["class"] in ("disk-full", "checkpoint-save-failed")
    assert found["initiating"]["ranks"] == ranks


def test_a_gap_among_the_ranks_is_a_rank_whose_log_is_missing(tmp_path: Path) -> None:
    """Ranks 0, 1 and 3 wait in the same collective; nothing says how many ranks there are."""
    found = answer(tmp_path, {f"rank{rank}.log": steps(rank) + watchdog(rank) for rank in (0, 1, 3)})
    assert found["verdict"] == "undetermined"
    assert found["job"]["ranks"] == 4
    assert next(one["ranks"] for one in found["hypotheses"]) == [2]


def test_an_error_that_goes_on_with_what_it_waited_for_is_an_echo(tmp_path: Path) -> None:
    """Ascend's run-time prints what it was doing, and behind it that the others did not send."""
    lines = [
        "RuntimeError: InnerRunOpApi:OpParamMaker.cpp:281 OPS function error: HcclAllreduce, error code is 6",
        "[ERROR] 2025-04-08-18:07:20 (PID:1200, Device:0, RankID:8) ERR01100 OPS call acl api failed.",
        "EI0006: [PID: 1200] 2025-04-08-18:07:20.223.701 Getting socket times out. Reason: Remote Rank did not send "
        "the data in time. Please check the reason for the rank being stuck",
    ]
    logs = {f"rank{rank}.log": steps(rank) + [f"[rank{rank}]: {line}" for line in lines] for rank in (0, 1)}
    assert answer(tmp_path, logs)["verdict"] == "undetermined"


def rerun(host: str, job: str, *words: str) -> dict[str, list[str]]:
    """The log of rank 1 in one of two runs of a job, with what Megatron's rerun machine says in it."""
    place = f"Rank 1, node {host}, device 1, iteration #900: "
    lines = [
        f"WARNING:megatron.core.rerun_state_machine:{word.replace('PLACE', place)}"
        for word in ("Result validation enabled", *words)
    ]
    return {f"{job}/rank1.log": [f"rank 1 on {host}", *lines]}


@pytest.mark.parametrize(
    ("second", "verdict", "ranks"),
    [
        ("is not reproducible on a different GPU, therefore was likely incorrect (2.0 != 11.8)", "identified", [1]),
        ("is reproducible on a different GPU, therefore it was likely correct (11.8 = 11.8)", None, []),
    ],
)
def test_the_device_of_the_first_run_is_wrong_where_a_second_one_differs(
    tmp_path: Path, second: str, verdict: str | None, ranks: list[int]
) -> None:
    found = answer(
        tmp_path,
        {
            **rerun(
                "hx-05",
                "job1",
                "Unexpected result 11.8 on rank 1 at iteration #900 invocation #9 (message='Spiky loss')",
                "PLACEFirst rerun: unexpected result is reproducible within the tolerance (11.8 = 11.8). Need to rerun "
                "on a different GPU to verify correctness",
            ),
            **rerun("hx-07", "job2", f"Second rerun: unexpected result {second}", "PLACEPossible persistent error!!"),
        },
    )
    corrupt = found["failure"]["class"] == "silent-data-corruption"
    assert corrupt == (verdict == "identified")
    if corrupt:
        assert (found["initiating"]["ranks"], found["initiating"]["hosts"]) == (ranks, ["hx-05"])


def test_the_device_of_the_second_run_is_not_accused_where_the_first_job_left_no_log(tmp_path: Path) -> None:
    second = "is not reproducible on a different GPU, therefore was likely incorrect (2.0 != 11.8)"
    found = answer(
        tmp_path,
        rerun("hx-07", "job2", f"Second rerun: unexpected result {second}", "PLACEPossible persistent error!!"),
    )
    assert "hx-07" not in found["initiating"]["hosts"]
