"""Small files of every kind, and what a reader takes out of them."""

from __future__ import annotations

from datetime import UTC, datetime
from textwrap import dedent

import pytest

from firstfault.ingest.dumps import DumpContext, DumpRows, find_reader, read_dump


def read(path: str, text: str, expected: str, **claims: int) -> DumpRows:
    data = dedent(text).encode()
    reader = find_reader(path, data[:65536])
    assert reader is not None
    assert reader.name == expected
    rows = read_dump(reader, DumpContext(path, **claims), data)
    assert rows.problems == ()
    return rows


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


def test_error_file() -> None:
    text = (
        '{"message": {"message": "ValueError: bad sample", "extraInfo": {"py_callstack": "Traceback:\\n'
        '  File \\"/venv/site-packages/torch/x.py\\", line 3, in wrapper\\n  File \\"train.py\\", line 12, in main\\n'
        'ValueError: bad sample\\n", "timestamp": "1747044672"}}}'
    )
    rows = read("attempt_1/2/error.json", text, "elastic-error-file", local_rank=2, attempt=1)
    (one,) = rows.signals
    assert (one.event, one.text, one.local_rank, one.attempt) == ("exception", "ValueError: bad sample", 2, 1)
    assert (one.stamp_ns, one.stamp_kind, one.stamp_res_ns, one.utc_offset_s) == (
        1747044672 * 10**9,
        "offset",
        10**9,
        0,
    )
    assert (one.captures["exception"], one.captures["src_file"], one.captures["src_line"]) == (
        "ValueError",
        "train.py",
        "12",
    )


def test_old_error_file() -> None:
    (one,) = read("0/error.json", '{"message": "boom", "timestamp": 1747044672}', "elastic-error-file").signals
    assert (one.text, one.stamp_ns) == ("boom", 1747044672 * 10**9)


SPY = """\
    Process 22882: python train.py
    Python v3.11.7 (/usr/bin/python3.11)

    Thread 22882 (idle): "MainThread"
        wait (torch/distributed/distributed_c10d.py:2829)
        all_reduce (torch/distributed/distributed_c10d.py:2829)
        step (train.py:44)
    Thread 22884 (active): "pin"
        recv (socket.py:1)
    """
FAULT = """\
    Timeout (0:05:00)!
    Thread 0x00007f01 (most recent call first):
      File "/usr/lib/python3.11/threading.py", line 320 in wait
    Thread 0x00007f02 (most recent call first):
      File "/opt/data.py", line 88 in load
      File "/opt/train.py", line 99 in main
    """
GDB = """\
    Thread 2 (Thread 0x7f01 (LWP 12)):
    #0  0x00007f0 in poll () from /lib/libc.so.6
    Thread 1 (Thread 0x7f00 (LWP 11)):
    #0  0x00007f1 in ncclAllReduce () from /lib/libnccl.so.2
    #1  0x00007f2 in main ()
    """


@pytest.mark.parametrize(
    ("text", "line", "state", "function"),
    [(SPY, 4, "collective", "step"), (FAULT, 4, "user", "load"), (GDB, 3, "collective", None)],
)
def test_stacks_say_what_the_main_thread_does(text: str, line: int, state: str, function: str | None) -> None:
    (one,) = read("stacks-rank3.txt", text, "stacks", rank=3).signals
    assert (one.event, one.line, one.rank, one.captures["state"]) == ("phase", line, 3, state)
    if function is not None:
        assert one.captures["function"] == function


def test_py_spy_json() -> None:
    text = """\
        [
         {"pid": 7, "thread_name": "MainThread", "os_thread_id": 7, "active": false, "owns_gil": true,
          "frames": [{"name": "load", "filename": "/opt/data.py", "short_filename": "data.py", "line": 8}]}
        ]
        """
    (one,) = read("spy.json", text, "stacks").signals
    assert (one.pid, one.captures["function"], one.captures["status"]) == (7, "load", "idle+gil")


def test_ras_names_the_outliers_with_their_process() -> None:
    text = """\
        NCCL version 2.26.2 compiled with CUDA 12.4

        Job summary
        ===========
          Nodes  Processes         GPUs  Processes     GPUs
        (total)   per node  per process    (total)  (total)
              4          8            1         32       32

        Communicators... (0.00s)
        =============
        Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
            #  in group  per comm  per node  per comm  in group
            0         1         4         8        32        32   RUNNING  MISMATCH

        Errors
        ======
        Warnings
        ========
        #0-0 (7a1c000000000001) MISMATCH
          Communicator ranks have different AllReduce operation counts
          30 ranks have launched up to operation 640
          2 ranks have launched up to operation 641
          Rank 12 has launched up to operation 641 -- GPU 4 (NVML 5) managed by process 323032 on node 10.137.190.124
        """
    rows = read("ras.txt", text, "nccl-ras")
    by_fact = {one.fact: one for one in rows.signals}
    rank = by_fact["ras-rank"]
    assert rank.captures == {
        "comm_id": "7a1c000000000001", "op": "AllReduce", "comm_size": "32", "reason": "MISMATCH", "comm_rank": "12",
        "seq": "641", "gpu": "4", "nvml_dev": "5", "pid": "323032", "ip": "10.137.190.124",
    }  # fmt: skip
    assert [(one.captures["count"], one.captures["seq"]) for one in rows.signals if one.fact == "ras-count"] == [
        ("30", "640"), ("2", "641"),
    ]  # fmt: skip
    assert rows.identities[0].world_size == 32


def test_a_gpu_that_falls_behind_the_others_is_slow() -> None:
    rows = [
        "timestamp, index, temperature.gpu, clocks.sm [MHz], power.draw [W], clocks_event_reasons.hw_thermal_slowdown"
    ]
    for minute in range(10):
        for gpu in range(4):
            hot = gpu == 2 and minute >= 5
            rows.append(
                f"2025/12/22 06:{40 + minute}:00.000, {gpu}, {91 if hot else 65}, {975 if hot else 1980} MHz, 500 W, "
                f"{'Active' if hot and minute >= 6 else 'Not Active'}"
            )
    (one,) = read("nvidia-smi.csv", "\n".join(rows), "nvidia-smi-csv").signals
    assert (one.event, one.gpu, one.first_line, one.line) == ("slow", 2, 24, 28)
    assert (one.stamp_ns, one.captures["reason"]) == (at("2025-12-22T06:45:00"), "hw_thermal_slowdown")


@pytest.mark.parametrize(("clock", "slow"), [(615, [1]), (1395, [])])
def test_rows_of_one_round_may_bear_stamps_of_their_own(clock: int, slow: list[int]) -> None:
    """The tool stamps every GPU when it comes to it, so the milliseconds of a round differ."""
    head = "timestamp, index, temperature.gpu, clocks.current.sm [MHz], power.draw [W]\n"
    rows = "".join(
        f"2025/12/22 06:4{minute}:00.{3 + 7 * gpu:03d}, {gpu}, 66, {clock if gpu == 1 and minute > 3 else 1395} "
        "MHz, 380 W\n"
        for minute in range(9)
        for gpu in range(4)
    )
    assert [one.gpu for one in read("smi.csv", head + rows, "nvidia-smi-csv").signals] == slow


def test_equal_or_idle_gpus_are_not_slow() -> None:
    head = "timestamp, index, utilization.gpu [%], clocks.current.sm [MHz]\n"
    idle = "".join(
        f"t{n}, {gpu}, {0 if gpu == 1 else 99}, {300 if gpu == 1 else 1980}\n" for n in range(5) for gpu in range(4)
    )
    assert read("smi.csv", head + idle, "nvidia-smi-csv").signals == ()


def test_nvidia_smi_list_and_detail() -> None:
    listed = "".join(f"GPU {n}: NVIDIA H100 (UUID: GPU-fa1f5786-74c9-119a-d708-f1d617f5e83{n})\n" for n in range(3))
    assert [one.gpu for one in read("gpus.txt", listed, "nvidia-smi").identities] == [0, 1, 2]
    text = """\
        ==============NVSMI LOG==============

        Timestamp                                 : Mon May 12 10:11:12 2025
        Attached GPUs                             : 1
        GPU 00000000:4E:00.0
            Clocks Event Reasons
                HW Thermal Slowdown               : Active
            Temperature
                GPU Current Temp                  : ERR!
        """
    rows = read("smi-q.txt", text, "nvidia-smi")
    assert [(one.line, one.cls) for one in rows.signals] == [(7, "gpu-thermal-or-power"), (9, None)]
    assert rows.identities[0].bus_id == "0000:4e:00.0"
    assert rows.signals[0].stamp_ns == at("2025-05-12T10:11:12")


def test_dcgm_health_names_the_gpu() -> None:
    text = (
        "2025-12-22 05:00:02.118 INFO  [1:2] Parsed mode string: Standalone [main]\n"
        "2025-12-22 06:41:12.402 ERROR [1:3] [[Health]] Detected a WARNING in health system Thermal: 'Detected "
        "clocks event due to thermal violation in GPU 2. Verify that the cooling works.'\n"
    )
    (one,) = read("n1/nv-hostengine.log", text, "nv-hostengine").signals
    assert (one.line, one.event, one.cls, one.gpu) == (2, "node-fault", "gpu-thermal-or-power", 2)


def test_sacct_in_both_shapes() -> None:
    fixed = """\
        JobID           State ExitCode                 End        NodeList
        ------------ ---------- -------- ------------------- ---------------
        4242          NODE_FAIL      1:0 2025-05-12T10:11:12         node-08
        4242.0        CANCELLED      0:9 2025-05-12T10:11:13   node-[07-08]
        """
    rows = read("sacct.txt", fixed, "slurm-report")
    assert [(one.line, one.event, one.host, one.cls) for one in rows.signals] == [
        (3, "node-lost", "node-08", "host-down"), (4, "sched-action", None, "cancelled-by-user"),
    ]  # fmt: skip
    assert rows.signals[0].stamp_ns == at("2025-05-12T10:11:12")
    assert [(one.host, one.node_rank) for one in rows.identities] == [("node-08", 0), ("node-07", 0), ("node-08", 1)]
    piped = "JobID|JobName|State|ExitCode|End|NodeList\n4242|train|TIMEOUT|0:0|2025-05-12T10:11:12|node-[07-08]\n"
    assert [(one.event, one.cls) for one in read("sacct.txt", piped, "slurm-report").signals] == [
        ("sched-action", "time-limit")
    ]


def test_scontrol_show_node() -> None:
    text = """\
        NodeName=node-08 Arch=x86_64 CoresPerSocket=56
           State=DOWN* ThreadsPerCore=1 TmpDisk=0
           BootTime=2025-05-01T00:00:00 SlurmdStartTime=2025-05-01T00:01:00
           Reason=Not responding [slurm@2025-05-12T10:11:12]
        """
    rows = read("scontrol.txt", text, "slurm-report")
    assert {(one.event, one.host) for one in rows.signals} == {("clock", "node-08"), ("node-lost", "node-08")}
    lost = next(one for one in rows.signals if one.event == "node-lost")
    assert (lost.line, lost.captures["reason"], lost.stamp_ns) == (2, "Not responding", at("2025-05-12T10:11:12"))


def test_ages_of_events_count_back_from_the_date_above() -> None:
    text = """\
        $ date -u; kubectl get events
        Sun May 11 09:46:24 UTC 2025
        LAST SEEN   TYPE      REASON      OBJECT           MESSAGE
        58m         Normal    Scheduled   pod/w-1          Successfully assigned nlp/w-1 to node-33
        4m43s       Warning   Evicted     pod/w-1          The node was low on resource: memory.
        """
    rows = read("events.txt", text, "kubectl-table")
    (one,) = rows.signals
    assert (one.line, one.event, one.cls, one.host) == (5, "sched-action", "pod-evicted", "w-1")
    assert (one.stamp_ns, one.stamp_kind, one.stamp_res_ns) == (at("2025-05-11T09:41:41"), "offset", 10**9)
    assert [(one.pod, one.alias) for one in rows.identities] == [("w-1", "node-33")]


def test_custom_columns_that_tell_how_each_pod_ended() -> None:
    text = """
        POD            IP           NODE   EXIT  REASON     FINISHED
        dlrm-worker-1  10.60.2.112  wk-20     1  Error      2025-05-14T07:22:04Z
        dlrm-worker-2  10.60.2.113  wk-21   137  Error      2025-05-14T07:21:41Z
        dlrm-worker-3  10.60.2.114  wk-21   137  OOMKilled  2025-05-14T07:22:06Z
        """
    rows = read("status.txt", text, "kubectl-table")
    assert [(one.event, one.host, one.captures["exitcode"]) for one in rows.signals] == [
        ("exit", "dlrm-worker-1", "1"),
        ("exit", "dlrm-worker-2", "137"),
        ("oom-kill", "dlrm-worker-3", "137"),
    ]
    assert [(one.pod, one.alias, one.address) for one in rows.identities][1] == (
        "dlrm-worker-2",
        "wk-21",
        "10.60.2.113",
    )


def test_pods_and_nodes() -> None:
    text = """\
        NAME   READY   STATUS      RESTARTS   AGE   IP          NODE      NOMINATED NODE   READINESS GATES
        m-0    0/1     Error       0          58m   10.1.4.18   node-21   <none>           <none>
        w-0    0/1     OOMKilled   2          58m   <none>      node-33   <none>           <none>
        """
    rows = read("pods.txt", text, "kubectl-table")
    assert [(one.pod, one.alias, one.address) for one in rows.identities] == [
        ("m-0", "node-21", "10.1.4.18"), ("w-0", "node-33", None),
    ]  # fmt: skip
    assert [(one.event, one.host) for one in rows.signals] == [("exit", "m-0"), ("oom-kill", "w-0")]
    text = """\
        NAME      STATUS     ROLES    AGE   VERSION   INTERNAL-IP
        node-37   NotReady   <none>   61d   v1.34.2   10.21.4.37
        """
    rows = read("nodes.txt", text, "kubectl-table")
    assert [(one.host, one.address) for one in rows.identities] == [("node-37", "10.21.4.37")]
    assert [(one.event, one.host) for one in rows.signals] == [("node-lost", "node-37")]


def test_described_pod() -> None:
    text = """\
        Name:             w-1
        Namespace:        nlp
        Node:             node-33/10.0.0.33
        Status:           Failed
        IP:               10.1.4.19
        Containers:
          trainer:
            Image:          img
            State:          Terminated
              Reason:       OOMKilled
              Exit Code:    137
              Finished:     Sun, 11 May 2025 17:41:41 +0800
        """
    rows = read("describe.txt", text, "kubectl-describe")
    (one,) = rows.signals
    assert (one.line, one.event, one.host, one.captures["exitcode"]) == (11, "oom-kill", "w-1", "137")
    assert (one.stamp_ns, one.utc_offset_s) == (at("2025-05-11T17:41:41"), 8 * 3600)
    assert (rows.identities[0].pod, rows.identities[0].alias) == ("w-1", "node-33")


def test_described_pod_cut_to_its_state() -> None:
    text = """\
        Name:         w-1
        Namespace:    nlp
        Containers:
          trainer:
            State:          Waiting
              Reason:       CrashLoopBackOff
            Last State:     Terminated
              Reason:       OOMKilled
              Exit Code:    137
            Ready:          False
        """
    (one,) = read("describe.txt", text, "kubectl-describe").signals
    assert (one.line, one.event, one.host, one.stamp_ns) == (9, "oom-kill", "w-1", None)


def test_pod_and_event_objects() -> None:
    text = """\
        {"apiVersion": "v1", "kind": "List", "items": [
        {"kind": "Pod", "metadata": {"name": "w-1"}, "spec": {"nodeName": "node-33"}, "status": {"podIP": "10.1.1.1",
        "containerStatuses": [{"name": "trainer", "state": {"terminated":
        {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2025-05-11T09:41:41Z"}}}]}},
        {"kind": "Event", "involvedObject": {"kind": "Node", "name": "node-33"},
        "lastTimestamp": "2025-05-11T09:40:00Z", "reason": "NodeNotReady", "message": "m"}]}
        """
    rows = read("pods.json", text, "kubectl-json")
    assert [(one.line, one.event, one.host, one.stamp_ns) for one in rows.signals] == [
        (4, "oom-kill", "w-1", at("2025-05-11T09:41:41")), (6, "node-lost", "node-33", at("2025-05-11T09:40:00")),
    ]  # fmt: skip


def test_instances_that_are_impaired() -> None:
    text = """\
        {"InstanceStatuses": [
         {"InstanceId": "i-0b7c51d2e8a90f364",
          "SystemStatus": {"Status": "impaired",
                           "Details": [{"Name": "reachability", "ImpairedSince": "2025-05-16T23:41:00+00:00"}]}},
         {"InstanceId": "i-09c83e65fa17d2b40", "SystemStatus": {"Status": "ok"}}]}
        """
    (one,) = read("status.json", text, "aws-instances").signals
    assert (one.line, one.event, one.host, one.stamp_ns) == (
        3,
        "node-lost",
        "i-0b7c51d2e8a90f364",
        at("2025-05-16T23:41:00"),
    )
    table = """\
        i-09c83e65fa17d2b40	ip-10-67-3-29.us-west-2.compute.internal	p5.48xlarge
        i-0b7c51d2e8a90f364	ip-10-67-3-41.us-west-2.compute.internal	p5.48xlarge
        """
    rows = read("instances.txt", table, "aws-instances")
    assert [(one.host, one.alias) for one in rows.identities] == [
        ("ip-10-67-3-29", "i-09c83e65fa17d2b40"), ("ip-10-67-3-41", "i-0b7c51d2e8a90f364"),
    ]  # fmt: skip


def test_rocminfo_counts_gpus_after_cpus() -> None:
    text = """\
          Marketing Name:          AMD EPYC 9554
          Node:                    0
          BDFID:                   0
          Marketing Name:          AMD Instinct MI300X
          Node:                    1
          BDFID:                   6912
          Marketing Name:          AMD Instinct MI300X
          Node:                    2
          BDFID:                   56576
        """
    rows = read("rocminfo.txt", text, "rocm")
    assert [(one.captures["hsa_node"], one.captures["gpu"], one.captures["bus_id"]) for one in rows.signals] == [
        ("1", "0", "0000:1b:00.0"), ("2", "1", "0000:dd:00.0"),
    ]  # fmt: skip


def test_a_port_that_is_down_beside_others_that_are_up() -> None:
    text = "mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ib1 (Down)\n"
    (one,) = read("ibdev2netdev.txt", text, "rdma-ports").signals
    assert (one.line, one.event, one.captures["hca"], one.weak) == (2, "link-fault", "mlx5_1", True)


def test_counters_of_a_port_that_stand_out_among_its_neighbours() -> None:
    def port(hca: str, errors: int, downs: int) -> str:
        head = f"# perfquery -x -C {hca}\n# Port extended counters: Lid 211 port 1 (CapMask: 0x5A00)\n"
        return f"{head}PortXmitData:....................88120377155021\nSymbolErrorCounter:..............{errors}\n" + (
            f"LinkDownedCounter:...............{downs}\n"
        )

    text = port("mlx5_0", 0, 1) + port("mlx5_1", 0, 1) + port("mlx5_2", 48211, 17) + port("mlx5_3", 0, 1)
    found = read("perfquery-n1.txt", text, "rdma-ports").signals
    assert [(one.line, one.captures["hca"], one.captures["text"], one.weak) for one in found] == [
        (15, "mlx5_2", "LinkDownedCounter", True), (14, "mlx5_2", "SymbolErrorCounter", True),
    ]  # fmt: skip


def test_a_node_that_is_not_ready_any_more_in_its_description() -> None:
    when = "Tue, 29 Jul 2025 06:39:58 +0000   Tue, 29 Jul 2025 06:42:57 +0000"
    text = (
        "Name:               pool-b2e9\nTaints:             node.kubernetes.io/unreachable:NoExecute\nConditions:\n"
        "  Type             Status    LastHeartbeatTime   LastTransitionTime   Reason   Message\n"
        f"  MemoryPressure   Unknown   {when}   NodeStatusUnknown   Kubelet stopped posting node status.\n"
        f"  Ready            Unknown   {when}   NodeStatusUnknown   Kubelet stopped posting node status.\n"
    )
    (one,) = read("describe.txt", text, "kubectl-describe").signals
    assert (one.line, one.event, one.stamp_ns) == (6, "node-lost", at("2025-07-29T06:42:57"))
    assert "pool-b2e9" in one.captures.values()


def test_a_table_of_gpus_below_the_answer_of_date() -> None:
    text = "$ date; nvidia-smi --query-gpu=index,utilization.gpu --format=csv\nWed Sep 10 08:15:02 UTC 2025\n"
    rows = "".join(f"{gpu}, 100 %, 1965 MHz\n" for gpu in range(8))
    read("smi.txt", f"{text}index, utilization.gpu [%], clocks.current.sm [MHz]\n{rows}", "nvidia-smi-csv")


def test_clocks_of_several_hosts_in_one_file() -> None:
    text = (
        "n1: System time     : 0.000031 seconds slow of NTP time\n"
        "n2: System time     : 37.104882331 seconds fast of NTP time\n"
    )
    found = read("chronyc.txt", text, "clock-facts").signals
    assert [(one.host, one.captures["offset_s"]) for one in found] == [("n1", "-0.000031000"), ("n2", "37.104882331")]


def test_clock_facts() -> None:
    chrony = "$ chronyc tracking\nStratum         : 3\nSystem time     : 0.5 seconds slow of NTP time\n"
    (one,) = read("chrony.txt", chrony, "clock-facts").signals
    assert (one.event, one.line, float(one.captures["offset_s"])) == ("clock", 3, -0.5)
    info = "$ hostname; date -u; cat /proc/uptime\nnode-07\nTue Feb 11 03:31:07 UTC 2025\n1000.00 2000.00\n"
    rows = read("host-info.txt", info, "clock-facts")
    assert [one.host for one in rows.identities] == ["node-07"]
    assert float(rows.signals[0].captures["boot_epoch"]) == at("2025-02-11T03:31:07") / 1e9 - 1000


def test_full_file_systems_and_counted_kills() -> None:
    text = """\
        Filesystem      Size  Used Avail Use% Mounted on
        tmpfs            64M   64M     0 100% /dev/shm
        /dev/sda1       1.8T  900G  900G  50% /
        """
    (one,) = read("df.txt", text, "machine-state").signals
    assert (one.line, one.cls, one.captures["path"]) == (2, "shm-exhausted", "/dev/shm")
    (one,) = read("memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n", "machine-state").signals
    assert (one.line, one.event, one.weak) == (5, "oom-kill", True)


def test_a_row_that_is_wider_than_its_columns_keeps_its_cells() -> None:
    rows = read(
        "kubectl-pods.txt",
        "NAME                READY   STATUS    RESTARTS   AGE     IP               NODE\n"
        "hvd-worker-1        1/1     Running   0          3h37m   100.96.190.23    ip-100-96-31-88\n"
        "hvd-launcher-x7k2p   0/1   Error   0   3h37m   100.96.12.41   ip-100-96-12-7\n",
        "kubectl-table",
    )
    assert [(one.host, one.alias, one.address) for one in rows.identities] == [
        ("hvd-worker-1", "ip-100-96-31-88", "100.96.190.23"),
        ("hvd-launcher-x7k2p", "ip-100-96-12-7", "100.96.12.41"),
    ]
