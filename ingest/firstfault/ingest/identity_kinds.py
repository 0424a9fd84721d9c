"""What kind of writer a source has, and which clock stamped it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from firstfault.ingest.identity_paths import PathClaims

KERNEL_LINE = re.compile(
    rb"^(?:<\d+>)?(?:\[ *\d+\.\d{6}\] "
    rb"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] |\S+: kern: +\w+: \[|.{0,80}? kernel: )"
)
DMESG_T = re.compile(rb"^\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] ")
MONOTONIC = re.compile(rb"^(?:<\d+>)?(?:\w+ *:\w+ *: )?\[ *\d+\.\d{6}\] ")
SYSLOG = re.compile(
    rb"^(?:<\d+>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|\d{4}-\d\d-\d\dT\S+) \S+ [^\s:\[]+(?:\[\d+\])?: "
)
SLURM_LINE = re.compile(rb"^(?:slurmstepd|srun|slurmd|slurmctld|sbatch|salloc)[\w-]*: ")
SLURM_DAEMON = re.compile(rb"^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:[+-]\d\d:?\d\d)?\] ")
KLOG = re.compile(rb"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [\w.]+:\d+\] ")
RAY_CORE = re.compile(rb"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [DIWECF] \d+ \d+\] \((?:raylet|gcs_server)\)")
AGENT = re.compile(rb"torch[./]distributed[./](?:run|elastic|launcher)|torchrun|mpirun|PRTE|\[launch(?:er)?\.py")


@dataclass(frozen=True, slots=True)
class Writers:
    """What is known about who wrote a source."""

    rank: int | None
    host: str | None
    ranks: int
    hosts: int


def shares(head: bytes) -> Mapping[str, float]:
    """Share of the non-empty lines of a head that have each shape."""
    lines = [line[:400] for line in head.split(b"\n")[:200] if line.strip()]
    shapes = {
        "kernel": KERNEL_LINE, "dmesg-T": DMESG_T, "monotonic": MONOTONIC, "syslog": SYSLOG, "slurm": SLURM_LINE,
        "slurm-daemon": SLURM_DAEMON, "klog": KLOG, "ray": RAY_CORE,
    }  # fmt: skip
    total = max(len(lines), 1)
    found = {name: sum(1 for line in lines if shape.match(line)) / total for name, shape in shapes.items()}
    found["agent"] = sum(1 for line in lines if AGENT.search(line)) / total
    return found


def kind_of(claims: PathClaims, reader_kind: str | None, head: bytes, who: Writers) -> tuple[str, str]:
    """Kind and the reason for it."""
    if reader_kind:
        return reader_kind, "content known to a reader"
    share = shares(head)
    if share["ray"] > 0.5:
        return "raylet", "lines of Ray's core"
    if claims.tree is not None and claims.local_rank is not None and who.rank is not None:
        return "rank", "a launcher's file of one rank"
    if share["kernel"] > 0.5:
        return "kernel", "lines of the kernel"
    if share["klog"] > 0.5 and claims.kind == "kubelet":
        return "kubelet", "name and lines of a kubelet"
    if share["syslog"] > 0.5 and (claims.rank is None or claims.rank != who.rank):
        return ("kubelet" if claims.kind == "kubelet" else "kernel"), "lines of the system log"
    if share["slurm"] > 0.7 or (share["slurm-daemon"] > 0.7 and claims.kind == "scheduler"):
        return "scheduler", "lines of the scheduler"
    if claims.kind in ("kubelet", "scheduler", "raylet", "events", "kernel") and who.rank is None and who.ranks == 0:
        return claims.kind, "name of the file"
    if who.rank is not None:
        return "rank", "one rank speaks"
    if who.ranks > 0:
        return ("job", "ranks of several hosts speak") if who.hosts > 1 else ("node", "ranks of one host speak")
    if claims.kind == "launcher" or share["agent"] > 0.3:
        return "launcher", "name of the file" if claims.kind == "launcher" else "lines of a launcher"
    if claims.jobid is not None and claims.task is None:
        return "job", "output of a batch job"
    if claims.pod is not None:
        return "node", "output of a pod"
    return "text", "nothing says who wrote it"


def clock_of(kind: str, head: bytes, host: str | None, path: str) -> str | None:
    """The clock domain: one wall clock for each host, the kernel's own count, the derived stamps of dmesg -T."""
    share = shares(head) if kind in ("kernel", "text") else {"dmesg-T": 0.0, "monotonic": 0.0}
    where = host if host is not None else f"file:{path}"
    if kind in ("events", "scheduler"):
        return f"wall:{host}" if host is not None else f"wall:{kind}"
    if share["monotonic"] > 0.5:
        return f"boot:{where}"
    if share["dmesg-T"] > 0.5:
        return f"dmesg-T:{where}"
    return f"wall:{where}"
