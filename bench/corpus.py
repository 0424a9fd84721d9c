"""Writes the logs of a made-up job for measuring: the layout of torchrun, eight ranks a node, mixed formats, any size.

    python bench/corpus.py FOLDER [--ranks 64] [--size 64M] [--seed 1]

One rank dies of an uncorrectable ECC error, every other rank's watchdog follows ten minutes later. Before that the
lines are ordinary: Python logging, NCCL, DeepSpeed, Megatron, glog and c10d lines, lines without a header, progress
bars of many carriage returns, tracebacks that were survived; and, rarely, dumps of 10 to 130 KB on one line, bytes
that are no UTF-8, runs of NUL bytes and lines that were torn apart. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

PER_NODE = 8
START = int(datetime(2026, 5, 12, 9, 0, tzinfo=UTC).timestamp())
LASTS = 3 * 3600
WAITS = 600
"""Seconds between the fault and the watchdogs."""

_OPS = ("ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "BROADCAST", "COALESCED")
_LOGGERS = ("train.loop", "data.loader", "model.blocks", "optim.sharded", "checkpoint.async_writer", "metrics")
_SAID = (
    "loaded shard {a} of {b} from the local cache in {s} s, {c} samples, {d} tokens, next prefetch at offset {e}",
    "gradient norm {s}, clipped to 1.0, parameter groups {a}, overflow checks passed in bucket {b} of {c}",
    "prefetch queue holds {a} batches, {b} workers busy, {c} waiting, average latency {s} s over {d} samples",
    "all parameters in bucket {a} reduced in {s} s with {b} chunks and {c} bytes each, stream priority {a}",
    "throughput {s} samples/s over the last {a} minutes, tokens {d}, sequences {c}, truncated {b}",
    "memory: allocated {s} GiB, reserved {a} GiB, active blocks {b}, inactive split blocks {c}, retries 0",
    "saved {a} tensors with {d} bytes to the staging buffer, {b} buffers free, writer {c} idle",
)
_NCCL = (
    "Channel {a:02d}/0 : {b}[{a}] -> {c}[{a}] [send] via NET/IB/{a}/GDRDMA comm 0x55d1a0b2{c:04x} nRanks {b:02d}",
    "Channel {a:02d}/1 : {b}[{a}] -> {c}[{a}] [receive] via NET/IB/{a}/GDRDMA",
    "Trees [{a}] {b}/{c}/-1->{a}->-1 [1] -1/-1/-1->{a}->{b} [2] {b}/-1/-1->{a}->-1 [3] -1/-1/-1->{a}->{b}",
    "AllReduce: opCount {d:x} sendbuff 0x7f2{c:06x}00 recvbuff 0x7f2{c:06x}00 count {e} datatype 7 op 0 root 0"
    " comm 0x55d1a0b2c3f0 [nranks={b}] stream 0x55d19f{c:06x}",
    "NET/IB: NCCL Dev {a} IbDev 0 Port 1 qpn {c} mtu 5 GID {b} (0/{d:x}) fifoRkey=0x{e:x} fifoLkey=0x{e:x}",
    "Connected NVLS tree",
    "Using network IB",
)
_PLAIN = (
    "  layer.{a}.attention.query_key_value.weight          torch.bfloat16  [{c}, {d}]  sharded over {b} ranks",
    "Detected CUDA files, patching ldflags",
    "{{'grad_norm': {s}, 'learning_rate': 2.1e-05, 'tokens_per_second': {d}, 'mfu': 0.{b}, 'skipped': 0}}",
    "    --hidden-size {c} --num-attention-heads {b} --seq-length {d} --micro-batch-size {a}",
    "WARNING: the tokenizer of shard {a} adds {b} special tokens; padded vocabulary {c} to {d}",
    "",
)
_GLOG = (
    "Ring {a} reached state {b} after {s} s; chunk table has {c} rows, {d} bytes mapped, generation {e}",
    "NUMA node {a} holds {d} pages for pinned buffers, {c} of them in huge pages of 2 MB",
)
_C10 = (
    "ProcessGroupNCCL.cpp:{c}] [PG ID {a} PG GUID {b} Rank {r}] ProcessGroupNCCL broadcast unique id, took {s} ms",
    "reducer.cpp:{c}] Reducer bucket {a} rebuilt with {b} variables, {d} bytes",
)
_TRACE = (
    "Traceback (most recent call last):",
    '  File "/workspace/train/loader.py", line {a}, in fetch',
    "    return self.index[key]",
    '  File "/opt/venv/lib/python3.11/site-packages/datasets/table.py", line {c}, in __getitem__',
    "    return self._rows[self._order[key]]",
    "IndexError: row {d} of shard {a} was skipped, {b} rows are left",
)


class Rank:
    """One rank's two files while they are written."""

    def __init__(self, number: int, ranks: int, seed: int, doomed: int) -> None:
        self.number, self.ranks, self.doomed = number, ranks, doomed
        self.chance = random.Random(f"{seed}/{number}")
        node_chance = random.Random(f"{seed}/node/{number // PER_NODE}")
        self.skew = node_chance.uniform(-1.5, 1.5)
        self.host, self.local = f"node{number // PER_NODE:04d}", number % PER_NODE
        self.pid = 40_000 + number % 977 * 7
        self.step = 0
        self.out: list[bytes] = []
        self.err: list[bytes] = []
        self.size = 0
        self.now = float(START)

    def say(self, into: list[bytes], text: str) -> None:
        self.raw(into, text.encode() + b"\n")

    def raw(self, into: list[bytes], line: bytes) -> None:
        into.append(line)
        self.size += len(line)

    def values(self) -> dict[str, object]:
        some = self.chance.getrandbits(40)
        return {
            "a": some & 7, "b": 8 + (some >> 3 & 63), "c": 100 + (some >> 9 & 8191),
            "d": 10_000 + (some >> 20 & 262_143), "e": 1_000_000 + (some >> 14), "r": self.number,
            "s": f"{(some >> 5 & 4095) / 64:.4f}",
        }  # fmt: skip

    def wall(self) -> tuple[str, int]:
        """Date and time of this node's clock in whole seconds, and microseconds."""
        moment = self.now + self.skew
        whole = int(moment)
        return _second(whole), int((moment - whole) * 1e6)

    def glog_time(self) -> str:
        text, micro = self.wall()
        return f"{text[5:7]}{text[8:10]} {text[11:]}.{micro:06d}"


@lru_cache(maxsize=1 << 15)
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _logging(rank: Rank) -> None:
    text, micro = rank.wall()
    level = "WARNING" if rank.chance.random() < 0.02 else "INFO"
    said = rank.chance.choice(_SAID).format_map(rank.values())
    rank.say(rank.err, f"{text},{micro // 1000:03d} - {rank.chance.choice(_LOGGERS)} - {level} - {said}")


def _nccl(rank: Rank) -> None:
    said = rank.chance.choice(_NCCL).format_map(rank.values())
    tid = rank.pid + 199 + rank.chance.randrange(4)
    rank.say(rank.out, f"{rank.host}:{rank.pid}:{tid} [{rank.local}] NCCL INFO {said}")


def _plain(rank: Rank) -> None:
    rare = rank.chance.random()
    if rare < 0.0004:
        pairs = [f"NV_SETTING_{n}={rank.chance.getrandbits(64):016x}" for n in range(rank.chance.randrange(300, 3000))]
        rank.say(rank.out, "environment: " + " ".join(pairs))
    elif rare < 0.0008:
        rank.raw(rank.out, b"shard name \xff\xfe\x80 caf\xc3\xa9 \xc3\x28 read\n")
    elif rare < 0.001:
        rank.raw(rank.out, b"\0" * 64 + b"metrics flushed\n")
    else:
        rank.say(rank.out, rank.chance.choice(_PLAIN).format_map(rank.values()))


def _deepspeed(rank: Rank) -> None:
    text, micro = rank.wall()
    values = rank.values()
    said = (
        f"step={rank.step}, skipped=0, lr=[{values['s']}e-06], mom=[(0.9, 0.95)]"
        if rank.chance.random() < 0.3
        else rank.chance.choice(_SAID).format_map(values)
    )
    rank.say(rank.out, f"[{text},{micro // 1000:03d}] [INFO] [logging.py:{values['c']}:log_dist] {said}")


def _megatron(rank: Rank) -> None:
    text, micro = rank.wall()
    rank.step += 1
    v = rank.values()
    rank.say(
        rank.out,
        f" [{text}.{micro:06d}] iteration {rank.step:8d}/  500000 | consumed samples: {rank.step * 1024:12d} |"
        f" elapsed time per iteration (ms): {v['s']} | throughput per GPU (TFLOP/s/GPU): {v['b']}.1 |"
        f" learning rate: 2.{v['d']}E-05 | global batch size:  1024 | lm loss: 2.{v['d']}E+00 | loss scale: 1.0 |"
        f" grad norm: 0.{v['b']} | num zeros: 0 | params norm: {v['s']} | number of skipped iterations:   0 |"
        " number of nan iterations:   0 |",
    )


def _glog(rank: Rank) -> None:
    said = rank.chance.choice(_GLOG).format_map(rank.values())
    letter = "W" if rank.chance.random() < 0.08 else "I"
    rank.say(rank.err, f"{letter}{rank.glog_time()} {rank.pid} ring.cc:212] {said}")


def _c10(rank: Rank) -> None:
    said = rank.chance.choice(_C10).format_map(rank.values())
    rank.say(rank.err, f"[rank{rank.number}]:[I{rank.glog_time()}{rank.chance.randrange(1000):03d} {said}")


def _survived(rank: Rank) -> None:
    values = rank.values()
    for line in _TRACE:
        rank.say(rank.err, f"[rank{rank.number}]: {line.format_map(values)}")


def _bar(rank: Rank) -> None:
    total = 2000
    at = rank.chance.randrange(total - 100)
    label = rank.chance.choice(("", "Epoch 3: ", "Evaluating: "))
    pieces = []
    for done in range(at, at + rank.chance.randrange(20, 60)):
        share = done * 100 // total
        full = "█" * (share // 10)
        pieces.append(f"\r{label}{share:3d}%|{full:<10}| {done}/{total} [12:04<31:55,  1.33it/s, loss=2.41]")
    rank.say(rank.err, "".join(pieces))


def _torn(rank: Rank) -> None:
    text, micro = rank.wall()
    stamp = f"{text},{micro // 1000:03d}"
    rank.say(rank.err, f"{stamp} - train.loop - IN{stamp} - metrics - INFO - flushed")


_KINDS: tuple[tuple[Callable[[Rank], None], float], ...] = (
    (_logging, 29), (_nccl, 23), (_plain, 15), (_deepspeed, 9), (_megatron, 8), (_glog, 7), (_c10, 7),
    (_survived, 0.12), (_bar, 0.4), (_torn, 0.02),
)  # fmt: skip


def _begins(rank: Rank) -> None:
    """What NCCL says once a process: who it is."""
    head = f"{rank.host}:{rank.pid}:{rank.pid + 199} [{rank.local}] NCCL INFO "
    for line in (
        f"Bootstrap: Using eth0:10.0.{rank.number // PER_NODE // 250}.{rank.number // PER_NODE % 250 + 1}<0>",
        f"ncclCommInitRankConfig comm 0x55d1a0b2c3f0 rank {rank.number} nranks {rank.ranks} cudaDev {rank.local}"
        f" nvmlDev {rank.local} busId {rank.local + 1}b000 commId 0x7a1f3c5e9b8d2046 - Init START",
        f"comm 0x55d1a0b2c3f0 rank {rank.number} nRanks {rank.ranks} nNodes {-(-rank.ranks // PER_NODE)}"
        f" localRanks {PER_NODE} localRank {rank.local} MNNVL 0",
        "Connected all rings",
        f"ncclCommInitRankConfig comm 0x55d1a0b2c3f0 rank {rank.number} nranks {rank.ranks} cudaDev {rank.local}"
        f" nvmlDev {rank.local} busId {rank.local + 1}b000 commId 0x7a1f3c5e9b8d2046 - Init COMPLETE",
    ):
        rank.say(rank.out, head + line)


def _ends(rank: Rank) -> None:
    """The fault on the doomed rank, the watchdog's echo of it everywhere else."""
    rank.now = START + LASTS
    if rank.number == rank.doomed:
        for line in (
            "Traceback (most recent call last):",
            '  File "/workspace/train/main.py", line 412, in <module>',
            "    main()",
            '  File "/workspace/train/main.py", line 377, in main',
            "    loss.backward()",
            '  File "/opt/venv/lib/python3.11/site-packages/torch/_tensor.py", line 648, in backward',
            "    torch.autograd.backward(",
            "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered",
            "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might"
            " be incorrect.",
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
            "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        ):
            rank.say(rank.err, f"[rank{rank.number}]: {line}")
        return
    rank.now += WAITS + rank.chance.uniform(0, 2)
    head = f"[rank{rank.number}]:[E{rank.glog_time()}{rank.chance.randrange(1000):03d} ProcessGroupNCCL.cpp"
    work = (
        f"WorkNCCL(SeqNum={rank.step * 17}, OpType=ALLREDUCE, NumelIn=41943040, NumelOut=41943040, Timeout(ms)=600000)"
    )
    who = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank.number}]"
    timed_out = f"Watchdog caught collective operation timeout: {work} ran for 600029 milliseconds before timing out."
    for line in (
        f"{head}:632] [Rank {rank.number}] {timed_out}",
        f"{head}:2268] {who}  failure detected by watchdog at work sequence id: {rank.step * 17}"
        f" PG status: last enqueued work: {rank.step * 17 + 1}, last completed work: {rank.step * 17 - 1}",
        f"{head}:670] Stack trace of the failed collective not found, potentially because FlightRecorder is disabled."
        " You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.",
        f"{head}:2103] {who} First PG on this rank to signal dumping.",
        f"{head}:681] [Rank {rank.number}] Some NCCL operations have failed or timed out. Due to the asynchronous"
        " nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        f"{head}:695] [Rank {rank.number}] To avoid data inconsistency, we are taking the entire process down.",
        f"{head}:1895] {who} Process group watchdog thread terminated with exception: [Rank {rank.number}] {timed_out}",
        "Exception raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:635"
        " (most recent call first):",
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x7f1a2c5d95e8 in libc10.so)",
        "frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout() + 0x247 (0x7f19d0a8d0c7 in libtorch_cuda.so)",
        "frame #2: c10d::ProcessGroupNCCL::watchdogHandler() + 0x1a1 (0x7f19d0a916b1 in libtorch_cuda.so)",
        "frame #3: clone + 0x44 (0x7f1a2cc14bf4 in libc.so.6)",
    ):
        rank.say(rank.err, line)


def write(folder: Path, ranks: int, size: int, seed: int = 1) -> int:
    """Write the job; returns its bytes."""
    doomed = random.Random(seed).randrange(ranks)
    kinds, weights = [kind for kind, _ in _KINDS], [weight for _, weight in _KINDS]
    written = 0
    for number in range(ranks):
        rank = Rank(number, ranks, seed, doomed)
        room = size // ranks
        _begins(rank)
        while rank.size < room:
            for kind in rank.chance.choices(kinds, weights, k=256):
                rank.now = START + LASTS * min(rank.size / room, 1.0)
                kind(rank)
        _ends(rank)
        place = folder / rank.host / "run_x" / "attempt_0" / str(rank.local)
        place.mkdir(parents=True, exist_ok=True)
        for name, lines in (("stdout.log", rank.out), ("stderr.log", rank.err)):
            data = b"".join(lines)
            written += len(data)
            (place / name).write_bytes(data)
    return written


def parse_size(text: str) -> int:
    """Bytes of a number with K, M or G behind it."""
    factor = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:].upper())
    return int(float(text[:-1]) * factor) if factor else int(text)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--size", type=parse_size, default=parse_size("64M"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    written = write(options.folder, options.ranks, options.size, options.seed)
    sys.stdout.write(f"{options.folder}: {options.ranks} ranks, {written} bytes\n")


if __name__ == "__main__":
    main()
