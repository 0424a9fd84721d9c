"""Small incidents as text: networks that were slow or dropped packets, units killed as one, stores outside the job,
checkpoints that do not fit, calls that differ in words; each beside one that looks like it and is something else.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_texts import RANKS, answer, steps, watchdog


def waiting(extra: dict[int, list[str]] | None = None, hosts: int = 1) -> dict[str, list[str]]:
    """All four ranks wait ten minutes in the same all-gather, on one host or two."""
    return {
        f"ws{1 + rank * hosts // 4}/rank{rank}.log": [
            f"ws{1 + rank * hosts // 4}:70{rank}:90{rank} [{rank}] NCCL INFO comm 0x55cd rank {rank} nranks 4 "
            "cudaDev 0 busId 1b000 commId 0x0ae8 - Init COMPLETE",
            *steps(rank),
            *(extra or {}).get(rank, []),
            *watchdog(rank),
        ]
        for rank in RANKS
    }


def verdict(found: dict[str, object]) -> tuple[object, object]:
    failure = found["failure"]
    assert isinstance(failure, dict)
    return found["verdict"], failure["class"]


SLOW = ("identified", "collective-slow")
OPEN = ("undetermined", None)


@pytest.mark.parametrize(("last", "expected"), [("61.9", SLOW), ("20.1", OPEN)])
def test_amounts_that_grew_while_all_waited_show_that_the_network_was_slow(
    tmp_path: Path, last: str, expected: tuple[object, object]
) -> None:
    """Received amounts grow to the end; or they stand still."""
    lines = [
        "2026-05-04 10:03:00,000 INFO trainer: all_gather received 20.1 GiB of 66.0 GiB",
        f"2026-05-04 10:09:40,000 INFO trainer: all_gather received {last} GiB of 66.0 GiB",
    ]
    assert verdict(answer(tmp_path, waiting({0: lines}))) == expected


@pytest.mark.parametrize(("took", "expected"), [("495.2", SLOW), ("3.1", OPEN)])
def test_transfers_that_had_taken_nearly_as_long_as_the_limit_show_it_too(
    tmp_path: Path, took: str, expected: tuple[object, object]
) -> None:
    lines = [f"2026-05-04 10:00:1{n},000 INFO trainer: gather of optimizer shard {n} done in {took} s" for n in (2, 3)]
    assert verdict(answer(tmp_path, waiting(dict.fromkeys(RANKS, lines)))) == expected


@pytest.mark.parametrize(("speed", "expected"), [(100, SLOW), (400000, OPEN)])
def test_more_bytes_than_the_link_carries_within_the_limit(
    tmp_path: Path, speed: int, expected: tuple[object, object]
) -> None:
    """37 billion elements over a port that fell back to 100 Mb/s take far more than ten minutes."""
    status = {"ws1/ethtool.txt": ["Settings for eno1:", f"\tSpeed: {speed}Mb/s", "\tDuplex: Full"]}
    assert verdict(answer(tmp_path, {**waiting(hosts=2), **status})) == expected


def reset(rank: int) -> list[str]:
    """NCCL gives up on a socket."""
    place = f"[rank{rank}]:[E504 10:05:4{rank}.000000000 ProcessGroupNCCL.cpp"
    return [
        f"ws{1 + rank // 2}:70{rank}:90{rank} [{rank % 2}] misc/socket.cc:64 NCCL WARN socketProgressOpt: Call to send "
        f"to 10.0.0.{2 - rank // 2}<5634{rank}> failed : Connection timed out",
        f"{place}:552] [Rank {rank}] Collective WorkNCCL(SeqNum=60, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, "
        "Timeout(ms)=600000) raised the following async exception: NCCL error: remote process exited or there was a "
        "network error, NCCL version 2.21.5",
    ]


def lost(cause: list[str] | None = None) -> dict[str, list[str]]:
    """Two hosts whose sockets to each other time out."""
    found = {}
    for rank in RANKS:
        own = cause if cause and rank == 3 else []
        found[f"ws{1 + rank // 2}/rank{rank}.log"] = [*steps(rank, 9), *own, *reset(rank)]
    return found


DROPS = [
    f"May  4 10:0{minute}:30 ws2 kernel: nf_conntrack: nf_conntrack: table full, dropping packet"
    for minute in (0, 2, 5)
]


def test_a_kernel_that_drops_packets_before_connections_break_is_the_cause(tmp_path: Path) -> None:
    found = answer(tmp_path, {**lost(), "ws2/kern.log": DROPS})
    assert verdict(found) == ("identified", "nccl-socket-failure")
    assert (found["initiating"]["ranks"], found["initiating"]["hosts"]) == ([], ["ws2"])


def test_dropped_packets_beside_an_error_of_a_rank_are_not_the_cause(tmp_path: Path) -> None:
    raised = [
        "[rank3]: Traceback (most recent call last):",
        '[rank3]:   File "/opt/app/train.py", line 9, in <module>',
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity "
        "of 79.15 GiB of which 1.20 GiB is free.",
    ]
    found = answer(tmp_path, {**lost(raised), "ws2/kern.log": DROPS})
    assert verdict(found) == ("identified", "cuda-oom")


KILLED = [
    "May  4 10:00:13 ws2 systemd-oomd[1021]: Killed /user.slice/user-1002.slice/session-7.scope due to memory used "
    "(66391023616) / total (67391078400) and swap used (2040109056) / total (2147479552) being more than 90.00%",
    "May  4 10:00:13 ws2 systemd[1]: session-7.scope: systemd-oomd killed 41 process(es) in this unit.",
]


def gloo_lost(rank: int) -> list[str]:
    return [
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "/opt/app/train.py", line 90, in <module>',
        f"[rank{rank}]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
        "peer [10.0.0.2]:30921",
    ]


def test_a_unit_killed_as_one_takes_the_silent_ranks_of_its_host(tmp_path: Path) -> None:
    logs = {f"ws{1 + rank // 2}/rank{rank}.log": steps(rank) + (gloo_lost(rank) if rank < 2 else []) for rank in RANKS}
    found = answer(tmp_path, {**logs, "ws2/journal.txt": KILLED})
    assert verdict(found) == ("identified", "host-oom-kill")
    assert (found["initiating"]["ranks"], found["initiating"]["hosts"]) == ([2, 3], ["ws2"])


def test_a_unit_killed_on_a_host_whose_ranks_go_on_to_speak_is_another_one(tmp_path: Path) -> None:
    logs = {f"ws{1 + rank // 2}/rank{rank}.log": steps(rank) + gloo_lost(rank) for rank in RANKS}
    found = answer(tmp_path, {**logs, "ws2/journal.txt": KILLED})
    assert found["failure"]["class"] != "host-oom-kill"


def saving(frame: str, error: str) -> dict[str, list[str]]:
    """One rank raises an error inside a function."""
    raised = [
        "[rank0]: Traceback (most recent call last):",
        '[rank0]:   File "/opt/app/train.py", line 122, in <module>',
        "[rank0]:     trainer.run()",
        f'[rank0]:   File "/opt/app/io.py", line 51, in {frame}',
        "[rank0]:     handle(buffer)",
        f"[rank0]: {error}",
    ]
    return {f"rank{rank}.log": steps(rank) + (raised if rank == 0 else gloo_lost(rank)) for rank in RANKS}


@pytest.mark.parametrize(
    ("frame", "error", "cls"),
    [
        ("save_checkpoint", "OSError: [Errno 122] Disk quota exceeded", "checkpoint-save-failed"),
        ("write_metrics", "OSError: [Errno 122] Disk quota exceeded", "disk-full"),
        (
            "load_state_dict",
            "RuntimeError: The size of tensor a (18959) must match the size of tensor b (19471) at non-singleton "
            "dimension 0",
            "checkpoint-mismatch",
        ),
        (
            "forward",
            "RuntimeError: The size of tensor a (18959) must match the size of tensor b (19471) at non-singleton "
            "dimension 0",
            "python-exception",
        ),
    ],
)
def test_the_frames_of_a_traceback_say_whether_it_was_a_checkpoint(
    tmp_path: Path, frame: str, error: str, cls: str
) -> None:
    found = answer(tmp_path, saving(frame, error))
    assert (found["verdict"], found["failure"]["class"], found["initiating"]["ranks"]) == ("identified", cls, [0])


def reduced(sizes: tuple[int, ...], before: int = 1) -> dict[str, list[str]]:
    """Each rank says how many values it reduces, and gloo on rank 1 receives more than it expects."""
    logs = {}
    for rank in RANKS:
        logs[f"rank{rank}.log"] = [
            *steps(rank),
            f"2026-05-04 10:00:13,000 INFO trainer: step 6: reducing {before} metric value(s)",
            f"2026-05-04 10:00:14,000 INFO trainer: step 7: reducing {sizes[rank]} metric value(s)",
        ]
    logs["rank1.log"] += [
        "terminate called after throwing an instance of 'gloo::EnforceNotMet'",
        "  what():  [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:456] op.preamble.length <= "
        "op.nbytes. 8 vs 4. Received data size doesn't match expected size. Is there a distributed collective mismatch "
        "in your code?",
    ]
    for rank in (0, 2, 3):
        logs[f"rank{rank}.log"] += gloo_lost(rank)
    return logs


def test_the_rank_that_says_another_size_than_all_others_is_the_odd_one(tmp_path: Path) -> None:
    found = answer(tmp_path, reduced((1, 1, 16, 1)))
    assert verdict(found) == ("identified", "collective-desync")
    assert found["initiating"]["ranks"] == [2]


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (1, 16, 16, 1), (3, 1, 16, 1)])
def test_no_rank_is_odd_where_all_say_the_same_or_several_differ(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    assert answer(tmp_path, reduced(sizes))["initiating"]["ranks"] == []


def etcd(worker: int) -> list[str]:
    return [
        f"2026-05-04 10:00:0{worker},100 api: [INFO] [default] Starting worker group",
        "Traceback (most recent call last):",
        '  File "/opt/conda/lib/python3.8/site-packages/torch/distributed/elastic/agent/server/api.py", line 876, in '
        "_invoke_run",
        "    num_nodes_waiting = rdzv_handler.num_nodes_waiting()",
        'etcd.EtcdConnectionFailed: Connection to etcd failed due to MaxRetryError("HTTPConnectionPool(host='
        "'etcd-service', port=2379)\")",
    ]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("2m  Normal  Killing  pod/etcd-0  Stopping container etcd", ("identified", "store-lost")),
        ("2m  Normal  Killing  pod/grafana-0  Stopping container grafana", OPEN),
    ],
)
def test_a_store_outside_the_job_whose_pod_was_ended(
    tmp_path: Path, event: str, expected: tuple[object, object]
) -> None:
    logs = {f"bert-worker-{n}.log": etcd(n) for n in range(3)}
    assert verdict(answer(tmp_path, {**logs, "kubectl-events.txt": [event]})) == expected


def jax(tail: list[str]) -> dict[str, list[str]]:
    return {
        f"host{n}.log": [
            f"I0504 10:0{minute}:00.000000 44{n} train.py:214] step {minute}00 loss 1.9" for minute in range(1, 4)
        ]
        + tail
        for n in range(2)
    }


LEFT = "I0504 10:04:15.771204 4410 coordination_service_agent.cc:634] Coordination agent has successfully shut down."


def test_tasks_of_jax_that_left_in_order_have_completed(tmp_path: Path) -> None:
    assert answer(tmp_path, jax([LEFT]))["verdict"] == "no-failure"


def test_tasks_of_jax_that_left_behind_an_exception_have_not(tmp_path: Path) -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "/opt/app/train.py", line 90, in <module>',
        "    main()",
        "ValueError: shapes (8, 4) and (8, 5) do not fit",
    ]
    assert answer(tmp_path, jax([*raised, LEFT]))["verdict"] != "no-failure"


BENCH = "   8589934592    2147483648     float     sum  -1 42949.98  200.00  375.00  0 42950.28  200.00  375.00  0"


@pytest.mark.parametrize(("words", "expected"), [("0 OK", "no-failure"), ("3 FAILED", "undetermined")])
def test_nccl_tests_say_whether_they_went_well(tmp_path: Path, words: str, expected: str) -> None:
    log = [
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20",
        "#  Rank  0 Group  0 Pid   8100 on         n1 device  0 [0x1b] NVIDIA H100",
        BENCH,
        f"# Out of bounds values : {words}",
        "# Avg bus bandwidth    : 151.204",
    ]
    assert answer(tmp_path, {"all_reduce_perf.log": log})["verdict"] == expected


CHANGED = "May  4 {at} ws2 systemd[1]: Reloading nftables.service - nftables..."


@pytest.mark.parametrize(("at", "cause"), [("10:00:19", True), ("10:40:00", False)])
def test_a_packet_filter_that_was_loaded_anew_before_connections_broke(tmp_path: Path, at: str, cause: bool) -> None:
    found = answer(tmp_path, {**lost(), "ws2/syslog": [CHANGED.format(at=at)]})
    assert (found["failure"]["class"] == "network-interface-misconfigured") is cause


SWITCH = "May  4 10:00:13 ws1 kernel: nvidia-nvswitch1: SXid (PCI:0000:84:00.0): 20034, Fatal, Link 41 LTSSM Fault Up"
LINK = (
    "May  4 10:00:13 ws1 kernel: NVRM: Xid (PCI:0000:{bus}:00): 74, NVLink: fatal error detected on link 11(0x1, 0x0)"
)


@pytest.mark.parametrize(("buses", "ranks"), [(("1b", "2b"), [0, 1]), (("1b",), [0])])
def test_a_switch_that_takes_links_of_several_devices_is_one_fault_of_its_host(
    tmp_path: Path, buses: tuple[str, ...], ranks: list[int]
) -> None:
    def log(rank: int) -> list[str]:
        raised = [
            f"[rank{rank}]: Traceback (most recent call last):",
            f'[rank{rank}]:   File "/opt/app/train.py", line 9, in <module>',
            f"[rank{rank}]: torch.AcceleratorError: CUDA error: unspecified launch failure",
        ]
        start = f"ws1:70{rank}:90{rank} [{rank}] NCCL INFO comm 0x55cd rank {rank} nranks 2 cudaDev {rank} "
        return [start + f"busId {rank + 1}b000 commId 0x0ae8 - Init COMPLETE", *steps(rank), *raised]

    kernel = [SWITCH, *(LINK.format(bus=bus) for bus in buses)]
    found = answer(tmp_path, {**{f"ws1/rank{rank}.log": log(rank) for rank in (0, 1)}, "ws1/kern.log": kernel})
    assert (found["failure"]["class"], found["initiating"]["ranks"]) == ("gpu-nvlink-error", ranks)


def srun(order: list[str], waited: bool) -> dict[str, list[str]]:
    """Rank 3 falls silent, the others wait for it or lose it; what srun says of it."""
    logs = {
        f"ws1/rank{rank}.log": steps(rank) + ([] if rank == 3 else watchdog(rank) if waited else gloo_lost(rank))
        for rank in RANKS
    }
    return {**logs, "slurm-77.out": order}


ABORTED = "srun: error: ws1: tasks 0-2: Aborted (core dumped)"
ENDED = [
    "srun: Terminating StepId=77.0",
    "slurmstepd: error: *** STEP 77.0 ON ws1 CANCELLED AT 2026-05-04T10:11:03 ***",
]
WAS_KILLED = "srun: error: ws1: task 3: Killed"


@pytest.mark.parametrize(
    ("order", "cls"),
    [([ABORTED, *ENDED, WAS_KILLED], "collective-rank-absent"), ([WAS_KILLED, *ENDED, ABORTED], "process-killed")],
)
def test_a_task_that_is_killed_behind_srun_s_own_end_of_the_step_was_killed_by_it(
    tmp_path: Path, order: list[str], cls: str
) -> None:
    found = answer(tmp_path, srun(order, waited=order[0] == ABORTED))
    assert (found["verdict"], found["failure"]["class"], found["initiating"]["ranks"]) == ("identified", cls, [3])


@pytest.mark.parametrize(("last", "expected"), [(6, "no-failure"), (5, "undetermined")])
def test_the_first_rank_s_last_word_counts_where_all_had_come_as_far(tmp_path: Path, last: int, expected: str) -> None:
    log = [line for rank in RANKS for line in (f"[rank{rank}]: {one}" for one in steps(rank, 6 if rank < 3 else last))]
    done = "[rank0]: 2026-05-04 10:00:20,100 INFO trainer: training finished, final checkpoint saved to /ckpt/final"
    assert answer(tmp_path, {"all.log": [*log, done]})["verdict"] == expected


def batches(more: int) -> dict[str, list[str]]:
    """Ranks come to the end of their data, but for those that have a batch more and wait in its all-reduce."""
    logs = {}
    for rank in RANKS:
        own = steps(rank)
        if rank >= 4 - more:
            work = "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=2555, NumelOut=2555, Timeout(ms)=600000)"
        else:
            own = [*own, f"2026-05-04 10:00:13,500 INFO trainer: rank {rank} epoch 0 finished"]
            work = "WorkNCCL(SeqNum=7, OpType=BROADCAST, NumelIn=1, NumelOut=1, Timeout(ms)=600000)"
        place = f"[rank{rank}]:[E504 10:10:14.{rank}00000000 ProcessGroupNCCL.cpp"
        own.append(
            f"{place}:632] [Rank {rank}] Watchdog caught collective operation timeout: {work} ran for 600011 "
            "milliseconds before timing out."
        )
        logs[f"rank{rank}.log"] = own
    return logs


@pytest.mark.parametrize(("more", "ranks"), [(1, [3]), (3, [0])])
def test_who_has_a_batch_more_or_less_than_most_is_the_odd_one(tmp_path: Path, more: int, ranks: list[int]) -> None:
    found = answer(tmp_path, batches(more))
    assert (found["failure"]["class"], found["initiating"]["ranks"]) == ("uneven-inputs", ranks)


AUDIT = (
    '{{"kind": "Event", "verb": "{verb}", "user": {{"username": "{user}"}}, "objectRef": {{"resource": "pytorchjobs", '
    '"namespace": "ml", "name": "job"}}, "stageTimestamp": "2026-05-04T10:00:13.7Z"}}'
)


@pytest.mark.parametrize(
    ("verb", "user", "expected"),
    [
        ("delete", "op1", ("identified", "cancelled-by-user")),
        ("get", "op1", OPEN),
        ("delete", "system:serviceaccount:kube-system:ttl-after-finished", OPEN),
    ],
)
def test_the_audit_log_says_who_deleted_the_job(
    tmp_path: Path, verb: str, user: str, expected: tuple[object, object]
) -> None:
    ended = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 1 got signal: 15"
    logs: dict[str, list[str]] = {f"rank{rank}.log": steps(rank) for rank in RANKS}
    logs["agent.log"] = ["Traceback (most recent call last):", '  File "/opt/torchrun", line 9, in main', ended]
    assert verdict(answer(tmp_path, {**logs, "audit.jsonl": [AUDIT.format(verb=verb, user=user)]})) == expected


@pytest.mark.parametrize(("classes", "odd"), [((365, 365, 366, 365), [2]), ((365, 365, 366, 366), [])])
def test_who_printed_the_size_that_does_not_fit(tmp_path: Path, classes: tuple[int, ...], odd: list[int]) -> None:
    """Horovod names the two shapes and no rank; of two against two nothing says which is wrong."""
    raised = (
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: Mismatched allreduce tensor shapes: One rank "
        "sent a tensor of shape [2048, 365], but another rank sent a tensor of shape [2048, 366]."
    )
    logs = {
        f"rank.{rank}/stderr": [f"INFO:root:[{rank}] {classes[rank]} classes, 28{rank}85 shards", *steps(rank), raised]
        for rank in RANKS
    }
    assert answer(tmp_path, logs)["initiating"]["ranks"] == odd


@pytest.mark.parametrize(("numbers", "rank"), [((1, 2, 3), [0]), ((0, 1), []), ((1,), [])])
def test_an_error_without_a_rank_is_that_of_the_rank_whose_identifier_nobody_got(
    tmp_path: Path, numbers: tuple[int, ...], rank: list[int]
) -> None:
    """Of a smaller group the number is no rank of the job; and rank 0 does not wait for itself."""
    starts = [f"05/04/2026 10:00:0{n} - INFO - app.parser - Process rank: {n}, device: cuda:{n}" for n in RANKS]
    raised = [
        "Traceback (most recent call last):",
        '  File "/opt/app/aligner.py", line 58, in convert',
        "    for one in enumerate(messages):",
        "KeyError: 'from'",
    ]
    waiting = [
        line
        for number in numbers
        for line in (
            "Traceback (most recent call last):",
            '  File "/opt/app/loader.py", line 158, in load',
            "    dist.barrier()",
            f"RuntimeError: [{number}] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d "
            "key-value store by key '0', but store->get('0') got error: Connection reset by peer. This may indicate a "
            "possible application crash on rank 0 or a network set up issue.",
        )
    ]
    assert answer(tmp_path, {"train.log": starts + raised + waiting})["initiating"]["ranks"] == rank
