"""Tracebacks without a rank of their own whose owner stands beside them."""

from __future__ import annotations

from typing import Any

RANKS = "SELECT line, rank, pid, captures['exception'] FROM signal_rows WHERE event <> 'identity' ORDER BY line"
FRAME = '  File "/opt/train/train.py", line 129, in run\n    step()\n'


def test_a_process_of_torch_multiprocessing_is_named_before_its_traceback(read: Any) -> None:
    made = read(
        {
            "train.log": "Traceback (most recent call last):\n" + FRAME + "torch.multiprocessing.spawn."
            "ProcessRaisedException: \n\n-- Process 2 terminated with the following error:\n"
            "Traceback (most recent call last):\n" + FRAME + "KeyError: 'lr'\n"
        }
    )
    assert made.rows(RANKS)[-1] == (10, 2, None, "KeyError")
    assert made.rows("SELECT line, rank FROM line_rows WHERE line IN (1, 7, 8, 10)") == [
        (1, None), (7, 2), (8, 2), (10, 2),
    ]  # fmt: skip


def test_ray_names_process_and_node_at_the_head_of_what_it_carries_over(read: Any) -> None:
    lines = [
        "(Trainer pid=40) - (ip=10.0.0.7, pid=41) world_rank=0, local_rank=0, node_rank=0",
        "(Trainer pid=40) - (ip=10.0.0.8, pid=43) world_rank=1, local_rank=0, node_rank=1",
        "Traceback (most recent call last):",
        '  File "/opt/ray/worker.py", line 871, in get_objects',
        "    raise value.as_instanceof_cause()",
        "ray.exceptions.RayTaskError(KeyError): ray::_Inner.train() (pid=40, ip=10.0.0.7, actor_id=1, repr=Trainer)",
        '  File "/opt/ray/utils.py", line 43, in check_for_failure',
        "    ray.get(object_ref)",
        "ray.exceptions.RayTaskError(KeyError): ray::_W__execute.get_next() (pid=43, ip=10.0.0.8, actor_id=2, repr=x)",
        '  File "/opt/train/train.py", line 12, in loop',
        "    batch['labels']",
        "KeyError: 'labels'",
    ]
    made = read({"driver.log": "\n".join(lines) + "\n"})
    assert made.rows("SELECT line, rank, host FROM signal_rows WHERE captures['exception'] = 'KeyError'") == [
        (12, 1, "10.0.0.8")
    ]


def test_torch_npu_signs_an_exception_with_process_and_rank(read: Any) -> None:
    made = read(
        {
            "node.log": "Traceback (most recent call last):\n" + FRAME + "RuntimeError: NPU function error: x\n"
            "[ERROR] 2025-03-22-13:44:10 (PID:76390, Device:3, RankID:11) ERR00100 PTA call acl api failed\n"
        }
    )
    assert made.rows(RANKS)[0] == (4, 11, None, "RuntimeError")


def test_a_traceback_that_goes_on_without_the_header_of_its_head_keeps_its_rank(read: Any) -> None:
    made = read(
        {
            "serve.log": "[2025-04-09 17:19:56 TP5] Scheduler hit an exception: Traceback (most recent call last):\n"
            + FRAME + "ValueError: bad\n\n"
            "[2025-04-09 17:19:57 TP2] Scheduler hit an exception: Traceback (most recent call last):\n"
            + FRAME + "ValueError: worse\n"
        }
    )  # fmt: skip
    assert [row[:2] for row in made.rows(RANKS) if row[3]] == [(4, 5), (9, 2)]


def test_an_entry_that_is_too_general_leaves_the_exception_its_own_signal(read: Any) -> None:
    made = read({"rank3.log": "Traceback (most recent call last):\n" + FRAME + "SystemExit: 1\n"})
    rows = made.rows("SELECT entry, weak FROM signal_rows WHERE line = 4 ORDER BY entry")
    assert ("python-traceback", False) in rows


def test_what_the_message_of_an_exception_goes_on_to_say_belongs_to_it(read: Any) -> None:
    made = read(
        {
            "driver.log": "Traceback (most recent call last):\n" + FRAME
            + "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
            "Memory on the node (IP: 10.4.1.21, ID: 93c0) where the task (actor ID: 34, name=Worker.__init__, "
            "pid=1708, memory used=134.18GB) was running was 478.61GB / 503.45GB (0.950660), which exceeds "
            "the memory usage threshold of 0.95.\n"
        }
    )  # fmt: skip
    assert made.rows("SELECT captures['ip'], captures['victim_pid'] FROM signal_rows WHERE line = 4") == [
        ("10.4.1.21", "1708")
    ]


def test_a_traceback_that_all_ranks_print_names_the_rank_that_raised_it(read: Any) -> None:
    """torch.distributed.checkpoint gathers the failures of all ranks and raises them everywhere."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/opt/train/train.py", line 251, in main',
        "    save(state)",
        "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([2])",
        "Traceback (most recent call last): (RANK 2)",
        '  File "/opt/train/io.py", line 467, in write',
        "    os.fsync(stream.fileno())",
        "KeyError: 'shard'",
    ]
    made = read({f"rank{r}.log": "".join(f"[rank{r}]: {line}\n" for line in lines) for r in range(3)})
    assert made.rows(
        "SELECT DISTINCT line, rank, captures['cause_line'] FROM signal_rows WHERE line = 8 AND event = 'exception'"
    ) == [(8, 2, None)]
    assert made.rows(
        "SELECT rank, captures['cause_line'] FROM signal_rows WHERE line = 4 AND event = 'exception' ORDER BY rank"
    ) == [(0, "8"), (1, "8"), (2, "8")]
