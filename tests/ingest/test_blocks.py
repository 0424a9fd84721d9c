"""Messages of several lines that are no tracebacks: kept as one record, and their writer's where only one line says."""

from __future__ import annotations

from typing import Any

import pytest

RECORDS = "SELECT line, record, rank FROM line_rows ORDER BY line"


def head(rank: int, text: str) -> str:
    return f"[rank{rank}]:[E512 10:11:12.715298746 ProcessGroupNCCL.cpp:552] [Rank {rank}] {text}"


ASYNC = "Collective WorkNCCL(SeqNum=4, OpType=ALLGATHER) raised the following async exception: NCCL error: x"
DETAILS = [
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    "Last error:",
    "socketProgress: Connection closed by remote peer 10.0.0.7<41000>",
    "Exception raised from checkForNCCLErrors at ProcessGroupNCCL.cpp:2363 (most recent call first):",
    "frame #0: c10::Error::Error() + 0x96 (0x7f in libc10.so)",
    "frame #1: clone + 0x44 (0x7f in libc.so.6)",
]


@pytest.mark.parametrize("front", ["", "2025-05-12T10:11:12.200030463Z stderr F ", "[pod/w-0/pytorch] ", "1: "])
def test_details_of_an_error_belong_to_the_rank_of_its_head(read: Any, front: str) -> None:
    lines = [head(3, ASYNC), *DETAILS, "", head(4, ASYNC), *DETAILS, "step 7 loss 2.1"]
    made = read({"node.log": "".join(f"{front}{line}\n" for line in lines)})
    expected = [(n, 1, 3) for n in range(1, 8)] + [(8, None, None)] + [(n, 9, 4) for n in range(9, 16)]
    assert made.rows(RECORDS) == [*expected, (16, None, None)]


def test_details_below_the_heads_of_two_ranks_are_nobodys(read: Any) -> None:
    made = read({"node.log": "\n".join([head(3, ASYNC), head(4, ASYNC), *DETAILS[:3]]) + "\n"})
    assert made.rows(RECORDS) == [(1, None, 3), (2, None, 4), (3, 3, None), (4, 3, None), (5, 3, None)]


def test_a_report_of_a_desync_is_one_record(read: Any) -> None:
    lines = [
        "[rank5]:[E512 10:11:12.815298746 ProcessGroupNCCL.cpp:2301] [PG ID 0 PG GUID 0(default_pg) Rank 5] ",
        "\t - [5] Timeout at collective: ALLREDUCE, #809",
        "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:",
        "\t     [3] finished collective #808, but didn't join collective #809 (count from 1)",
        "step 809",
    ]
    made = read({"node.log": "\n".join(lines) + "\n"})
    assert made.rows(RECORDS) == [(1, 1, 5), (2, 1, 5), (3, 1, 5), (4, 1, 5), (5, None, None)]


def test_the_way_out_of_a_warning_of_nccl_belongs_to_it(read: Any) -> None:
    """Two processes at once: each keeps its own lines."""
    lines = [
        "n1:40:41 [0] misc/socket.cc:58 NCCL WARN Connect to 10.0.0.7<41000> failed : No route to host",
        "n1:50:51 [1] misc/socket.cc:58 NCCL WARN Connect to 10.0.0.8<41000> failed : No route to host",
        "n1:40:41 [0] NCCL INFO misc/socket.cc:564 -> 2",
        "n1:50:51 [1] NCCL INFO misc/socket.cc:564 -> 2",
        "n1:40:41 [0] NCCL INFO bootstrap.cc:12 -> 2",
        "n1:40:41 [0] NCCL INFO Using network Socket",
    ]
    made = read({"node.log": "\n".join(lines) + "\n"})
    assert made.column("SELECT record FROM line_rows ORDER BY line") == [1, 2, 1, 2, 1, None]


@pytest.mark.parametrize(
    "lines",
    [
        [
            "srun: error: node-08: task 12: Killed",
            "srun: Terminating StepId=4242.0",
            "slurmstepd: error: *** STEP 4242.0 ON node-07 CANCELLED AT 2025-05-12T10:11:12 ***",
        ],
        [
            "-" * 74,
            "mpirun noticed that process rank 3 with PID 4711 on node node-07 exited on signal 9 (Killed).",
            "-" * 74,
        ],
        [
            "=" * 83,
            "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
            "=   PID 4711 RUNNING AT node-07",
            "=" * 83,
        ],
    ],
    ids=["slurm", "mpirun", "hydra"],
)
def test_what_a_launcher_says_at_the_end_is_one_record(read: Any, lines: list[str]) -> None:
    made = read({"job.log": "\n".join(["step 3", *lines, "step 4"]) + "\n"})
    records = made.column("SELECT record FROM line_rows ORDER BY line")
    assert records == [None, *[2] * len(lines), None]


def test_a_ruled_table_of_a_program_is_no_record(read: Any) -> None:
    made = read({"job.log": "\n".join(["-" * 74, "loss 2.1", "-" * 74]) + "\n"})
    assert made.column("SELECT record FROM line_rows") == [None] * 3


def test_the_output_of_a_rank_between_marks_is_that_ranks(read: Any) -> None:
    lines = [
        "----------Begin global rank 1 STDERR----------",
        "starting",
        "Traceback (most recent call last):",
        '  File "/w/train.py", line 14, in main',
        "    step()",
        "KeyError: 'lr'",
        "----------End global rank 1 STDERR----------",
        "ERROR:composer.cli.launcher:Rank 1 crashed with exit code 1.",
    ]
    made = read({"composer.log": "\n".join(lines) + "\n"})
    assert made.column("SELECT rank FROM line_rows WHERE line < 8 ORDER BY line") == [1] * 7
    assert made.rows("SELECT rank FROM signal_rows WHERE captures['exception'] = 'KeyError'") == [(1,)]


def test_a_table_whose_traceback_was_cut_off_is_still_read(read: Any) -> None:
    rule = "=" * 60
    lines = [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        rule,
        "train.py FAILED",
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2025-05-12_10:11:12",
        "  host      : node-07.cluster.local",
        "  rank      : 8 (local_rank: 0)",
        "  exitcode  : -9 (pid: 28110)",
        "  error_file: <N/A>",
        "  traceback : Signal 9 (SIGKILL) received by PID 28110",
        rule,
    ]
    made = read({"agent.log": "\n".join(lines) + "\n"})
    assert made.rows(
        "SELECT rank, local_rank, host FROM signal_rows WHERE event = 'agent-report' AND rank IS NOT NULL"
    ) == [(8, 0, "node-07")]


@pytest.mark.parametrize("chunk", [64, 200, 333])
def test_the_size_of_chunks_changes_no_record(read: Any, chunk: int) -> None:
    from dataclasses import replace

    from firstfault.ingest import IngestOptions

    text = "\n".join([head(3, ASYNC), *DETAILS, "", head(4, ASYNC), *DETAILS, "step 7 loss 2.1"]) + "\n"
    options = IngestOptions()
    small = replace(options, bounds=replace(options.bounds, chunk=chunk))
    assert read({"a.log": text}, options=small).rows(RECORDS) == read({"a.log": text}).rows(RECORDS)
