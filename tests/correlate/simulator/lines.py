"""Texts of simulated lines, in the words of PyTorch, NCCL, gloo, torchelastic, the kernel and Slurm."""

from __future__ import annotations

from .cluster import Cluster, Host

FRAMES = (
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 "
    "(0x7f333d12566c in /opt/venv/lib/python3.11/site-packages/torch/lib/libc10.so)",
    "frame #1: c10d::ProcessGroupNCCL::watchdogHandler() + 0x233 "
    "(0x7f725491653e in /opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so)",
    "frame #2: clone + 0x44 (0x7f5d5626ca04 in /lib/x86_64-linux-gnu/libc.so.6)",
    "",
)
SITE = "/opt/venv/lib/python3.11/site-packages"


def prefixed(rank: int, lines: list[str]) -> list[str]:
    """Torch puts the rank in front of each line of a traceback that ends a process."""
    return [f"[rank{rank}]: {line}" for line in lines]


def traceback(frames: list[tuple[str, int, str, str]], last: str) -> list[str]:
    """A Python traceback: file, line, function, code of each frame."""
    lines = ["Traceback (most recent call last):"]
    for path, number, function, code in frames:
        lines += [f'  File "{path}", line {number}, in {function}', f"    {code}"]
    return [*lines, last]


MAIN = ("/workspace/train.py", 212, "<module>", "main()")
LOOP = ("/workspace/train.py", 171, "main", "loss = train_step(model, batch)")

RAISED = {
    "python-exception": traceback(
        [MAIN, LOOP, ("/workspace/model.py", 88, "forward", "h = self.proj(h)")],
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4096x1024 and 2048x1024)",
    ),
    "cuda-oom": traceback(
        [MAIN, LOOP, ("/workspace/model.py", 61, "forward", "scores = q @ k.transpose(-1, -2)")],
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 "
        "GiB of which 1.31 GiB is free. Including non-PyTorch memory, this process has 77.83 GiB memory in use.",
    ),
    "data-missing": traceback(
        [MAIN, ("/workspace/data.py", 40, "__getitem__", "return np.load(self.paths[index])")],
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/shards/part-00173.npy'",
    ),
    "cuda-illegal-memory-access": traceback(
        [MAIN, LOOP, ("/workspace/ops.py", 33, "fused", "torch.cuda.synchronize()")],
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ),
    "loss-nan-or-diverged": traceback(
        [MAIN, ("/workspace/train.py", 180, "main", "check(loss)")],
        "FloatingPointError: loss is nan at step {step}",
    ),
}
"""What a failed rank raises, by class."""

SURVIVED = traceback(
    [("/workspace/track.py", 19, "log", "self.client.send(row)")],
    "ConnectionError: HTTPSConnectionPool(host='tracking.internal', port=443): Max retries exceeded",
)
SECONDARY = (
    traceback(
        [MAIN, ("/workspace/data.py", 71, "close", "self.queue.put(None)")],
        "BrokenPipeError: [Errno 32] Broken pipe",
    ),
    traceback(
        [MAIN, ("/workspace/train.py", 201, "main", "state = meter.result()")],
        "AttributeError: 'NoneType' object has no attribute 'result'",
    ),
)


def group_words(cluster: Cluster, rank: int, pair: bool) -> str:
    """`[PG ID 0 PG GUID 0(default_pg) Rank 3]`: the rank is that inside the group."""
    if pair:
        return f"[PG ID 1 PG GUID {1 + rank // 2}(tensor_parallel) Rank {rank % 2}]"
    return f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"


def timeout_lines(
    cluster: Cluster, rank: int, at: float, pair: bool, seq: int, op: str, numel: int, waited_ms: int, limit_ms: int
) -> list[str]:
    """The watchdog of a rank gives up on a collective, tells its counters, and takes the process down."""
    host, inside = cluster.host(rank), rank % 2 if pair else rank
    head = f"[rank{rank}]:[{host.c10(at, 'E')} ProcessGroupNCCL.cpp"
    group = group_words(cluster, rank, pair)
    work = (
        f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, "
        f"NumelOut={numel}, Timeout(ms)={limit_ms}) ran for {waited_ms} milliseconds before timing out."
    )
    return [
        f"{head}:632] [Rank {inside}] {work}",
        f"{head}:2268] {group}  failure detected by watchdog at work sequence id: {seq} PG status: "
        f"last enqueued work: {seq}, last completed work: {seq - 1}",
    ]


def abort_lines(cluster: Cluster, rank: int, at: float, pair: bool, why: str) -> list[str]:
    """The watchdog's exception ends the process."""
    host = cluster.host(rank)
    head = f"[rank{rank}]:[{host.c10(at, 'E')} ProcessGroupNCCL.cpp"
    group = group_words(cluster, rank, pair)
    return [
        f"{head}:684] [Rank {rank % 2 if pair else rank}] To avoid data inconsistency, we are taking the entire "
        "process down.",
        f"{head}:1901] {group} Process group watchdog thread terminated with exception: {why}",
        *FRAMES,
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        f"  what():  {group} Process group watchdog thread terminated with exception: {why}",
        *FRAMES,
    ]


def dump_lines(cluster: Cluster, rank: int, at: float, source: int, enqueued: int, completed: int) -> list[str]:
    """The monitor of a rank sees another rank's dump signal."""
    head = f"[rank{rank}]:[{cluster.host(rank).c10(at, 'E')} ProcessGroupNCCL.cpp"
    group = group_words(cluster, rank, False)
    return [
        f"{head}:1682] {group} Observed flight recorder dump signal from another rank via TCPStore.",
        f"{head}:1743] {group} Received a dump signal due to a collective timeout from  rank {source} and we will try "
        f"our best to dump the debug info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}."
        "This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks.",
    ]


def nccl_lost(cluster: Cluster, rank: int, at: float, peer: int) -> tuple[list[str], str]:
    """NCCL loses a socket to another host; the lines, and the reason that the watchdog repeats."""
    host, other = cluster.host(rank), cluster.host(peer)
    port = 30000 + peer * 7
    pid = cluster.pids[rank]
    head = f"{host.name}:{pid}:{pid + 140} [{cluster.local(rank)}]"
    lines = [
        "",
        f"{head} misc/socket.cc:484 NCCL WARN socketProgress: Connection closed by remote peer {other.name}<{port}>",
        f"{head} NCCL INFO misc/socket.cc:785 -> 6",
    ]
    why = (
        "NCCL error: remote process exited or there was a network error, NCCL version 2.21.5 ncclRemoteError: A call "
        "failed possibly due to a network error or a remote process exiting prematurely. Last error: socketProgress: "
        f"Connection closed by remote peer {other.name}<{port}>"
    )
    return lines, why


def gloo_lost(cluster: Cluster, rank: int, peer: int) -> list[str]:
    """gloo loses a peer: an exception in the backward pass."""
    address = cluster.host(peer).address
    return prefixed(
        rank,
        traceback(
            [MAIN, LOOP, (f"{SITE}/torch/_tensor.py", 581, "backward", "torch.autograd.backward(")],
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer "
            f"[{address}]:{20000 + peer * 11}. This is typically caused by a remote worker crashing. "
            "Check the logs of the remote worker before reporting an error.",
        ),
    )


def gloo_timeout(rank: int, limit_ms: int) -> list[str]:
    """gloo waits to its limit."""
    return prefixed(
        rank,
        traceback(
            [MAIN, LOOP, (f"{SITE}/torch/_tensor.py", 581, "backward", "torch.autograd.backward(")],
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
            f"{limit_ms}ms for recv operation to complete",
        ),
    )


def store_lost(cluster: Cluster, rank: int, at: float) -> list[str]:
    """The key-value store of the first host is gone."""
    host = cluster.host(rank)
    return [
        f"[rank{rank}]:[{host.c10(at, 'W')} TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=59, "
        f"addr=[{host.name}]:51710, remote=[{cluster.hosts[0].name}]:29500): Broken pipe",
        f"[rank{rank}]:[{host.c10(at, 'W')} ProcessGroupNCCL.cpp:1659] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
        'Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), '
        "with error: Broken pipe",
    ]


# launchers


def agent_line(host: Host, at: float, level: str, where: str, text: str) -> str:
    """One line of torchelastic."""
    return f"{host.glog(at, level)} {host.agent_pid} torch/distributed/elastic/{where}] {text}"


def agent_start(host: Host, at: float) -> list[str]:
    """The note on OMP_NUM_THREADS."""
    head = f"{host.glog(at, 'W')} {host.agent_pid} torch/distributed/run.py:793]"
    return [
        f"{head} ",
        f"{head} *****************************************",
        f"{head} Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your "
        "system being overloaded, please further tune the variable for optimal performance in your application as "
        "needed. ",
        f"{head} *****************************************",
    ]


def agent_table(cluster: Cluster, host: Host, failures: list[tuple[int, int, float]]) -> list[str]:
    """The exception that ends a launcher, with its table; the first failure is its 'root cause'."""
    names = {-6: "SIGABRT", -9: "SIGKILL", -11: "SIGSEGV", -15: "SIGTERM"}

    def item(number: int, rank: int, code: int, at: float) -> list[str]:
        pid = cluster.pids[rank]
        word = f" ({names[code]})" if code in names else ""
        what = (
            f"Signal {-code} ({names[code]}) received by PID {pid}"
            if code in names
            else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
        )
        return [
            f"[{number}]:",
            f"  time      : {host.table(at)}",
            f"  host      : {host.name}",
            f"  rank      : {rank} (local_rank: {cluster.local(rank)})",
            f"  exitcode  : {code} (pid: {pid}){word}",
            "  error_file: <N/A>",
            f"  traceback : {what}",
        ]

    rule = "=" * 60
    first = failures[0]
    others = [line for number, one in enumerate(failures[1:], start=1) for line in item(number, *one)]
    return [
        *traceback(
            [
                ("/opt/venv/bin/torchrun", 8, "<module>", "sys.exit(main())"),
                (f"{SITE}/torch/distributed/run.py", 919, "main", "run(args)"),
                (f"{SITE}/torch/distributed/launcher/api.py", 269, "launch_agent", "raise ChildFailedError("),
            ],
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        ),
        rule,
        "train.py FAILED",
        "-" * 60,
        "Failures:",
        *(others or ["  <NO_OTHER_FAILURES>"]),
        "-" * 60,
        "Root Cause (first observed failure):",
        *item(0, *first),
        rule,
    ]


# machines


def oom_lines(host: Host, at: float, style: str, pid: int, name: str) -> list[str]:
    """The kernel kills a process for its memory."""
    stamp = host.dmesg(at, style)
    return [
        f"{stamp} {name} invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, "
        "oom_score_adj=0",
        f"{stamp} oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,"
        f"task_memcg=/user.slice,task={name},pid={pid},uid=1002",
        f"{stamp} Out of memory: Killed process {pid} ({name}) total-vm:301044132kB, anon-rss:251332240kB, "
        "file-rss:1024kB, shmem-rss:8192kB, UID:1002 pgtables:512340kB oom_score_adj:0",
    ]


def xid_lines(host: Host, at: float, style: str, bus: str, code: int, words: str, pid: int | None) -> list[str]:
    """The NVIDIA driver reports a fault of a device."""
    who = f"pid={pid}, name=python, " if pid is not None else "pid='<unknown>', name=<unknown>, "
    return [f"{host.dmesg(at, style)} NVRM: Xid (PCI:0000:{bus}:00): {code}, {who}{words}"]


def segfault_lines(host: Host, at: float, style: str, pid: int) -> list[str]:
    """The kernel notes a segmentation fault."""
    return [
        f"{host.dmesg(at, style)} python[{pid}]: segfault at 10 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in "
        "libops.so[7f7c7ac00000+d3d3000]"
    ]


def link_flap(host: Host, at: float, style: str) -> list[str]:
    """A port goes down and comes up."""
    return [
        f"{host.dmesg(at, style)} mlx5_core 0000:41:00.0 ens1np0: Link down",
        f"{host.dmesg(at + 2.0, style)} mlx5_core 0000:41:00.0 ens1np0: Link up",
    ]
