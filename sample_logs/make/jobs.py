"""The jobs: hosts, launcher, what goes wrong, and what is true of it.

The truth is what was injected. Lines of evidence are found by `Find` patterns in the logs that the run left.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hosts import HostSpec

if TYPE_CHECKING:
    from run import Running


@dataclass(frozen=True, slots=True)
class Find:
    """Lines of evidence: a Python regex, in the files that a glob selects."""

    pattern: str
    files: str = "**/*"


@dataclass(frozen=True, slots=True)
class Truth:
    """The table [truth] of case.toml, less what follows from the run."""

    failure_class: str
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    evidence: tuple[Find, ...] = ()
    also: tuple[str, ...] = ()
    also_ranks: tuple[tuple[int, ...], ...] = ()
    collateral: tuple[int, ...] | None = None  # None: all other ranks
    determined: bool = True
    trap: str = ""
    missing_fact: str = ""


@dataclass(frozen=True, slots=True)
class When:
    """Something done from outside: once a pattern stands in a host's logs, wait, then act."""

    host: int
    pattern: str
    act: Callable[[Running], None]
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Job:
    """One sample."""

    name: str
    summary: str
    hosts: tuple[HostSpec, ...]
    truth: Truth
    train: str = ""
    faults: str = ""
    layout: str = (
        "tree"  # tree: a folder for each rank; tee: prefixed, one file a host; plain: all ranks into one file a host
    )
    torchrun: str = ""
    rendezvous: str = "c10d"  # or static
    nproc: int = 4
    env: dict[str, str] = field(default_factory=dict)
    prepare: tuple[Callable[[Running], None], ...] = ()
    whens: tuple[When, ...] = ()
    finish: tuple[Callable[[Running], None], ...] = ()
    deadline: float = 100.0
    launcher: str = "torchrun"
    stop_when: str = ""  # a pattern that ends the job from outside (snapshot of a running job)
    keep_hosts: tuple[int, ...] | None = None  # hosts whose logs are kept
    needs: str = ""  # another interpreter: a key of --python
    one_file: bool = False  # the files of all hosts together in one
    shards: int = 64
    samples: int = 64
    width: int = 128


def two(first: str, second: str, **second_has: object) -> tuple[HostSpec, ...]:
    """Two ordinary hosts; keywords change the second."""
    return HostSpec(first), dataclasses.replace(HostSpec(second), **second_has)  # type: ignore[arg-type]


def vanish(host: int) -> Callable[[Running], None]:
    """The host loses its network and every process at once."""

    def act(running: Running) -> None:
        running.cluster.hosts[host].cut()
        running.cluster.hosts[host].kill()

    return act


def signal_launcher(host: int, number: signal.Signals) -> Callable[[Running], None]:
    """A signal to a launcher."""
    return lambda running: running.signal(running.cluster.hosts[host].launcher(), number)


ALL = "--log-all-ranks"

JOBS: tuple[Job, ...] = (
    Job(
        "healthy-pair",
        "two hosts, eight ranks, everything goes well",
        two("cn-0417", "cn-0418"),
        Truth("none"),
        train=f"--steps 25 {ALL} --checkpoints /srv/ckpt",
    ),
    Job(
        "batch-width-rank5",
        "rank 5 gets a batch with too few columns",
        two("trn-17", "trn-18"),
        Truth(
            "python-exception",
            (5,),
            ("trn-18",),
            (Find(r"mat1 and mat2 shapes cannot be multiplied"),),
            trap="seven ranks print 'Connection closed by peer' in the same second, and the other host's launcher names one of its own ranks as root cause",
        ),
        train=f"--steps 40 {ALL}",
        faults="width rank=5 step=14 columns=96",
    ),
    Job(
        "kill9-rank2-tee",
        "rank 2 is killed by SIGKILL",
        two("lx-node-03", "lx-node-04"),
        Truth(
            "process-killed",
            (2,),
            ("lx-node-03",),
            (Find(r"exitcode\s*: -9\b"), Find(r"Signal 9 \(SIGKILL\)")),
            trap="rank 2 prints nothing; a peer that loses its connections aborts (SIGABRT), and the launcher names that peer as root cause",
        ),
        train=f"--steps 40 --log-style rank {ALL}",
        faults="kill rank=2 step=11",
        layout="tee",
        rendezvous="static",
    ),
    Job(
        "mute-rank6",
        "rank 6 stops without a word",
        two("v100-r2n5", "v100-r2n6"),
        Truth(
            "collective-rank-absent", (6,), ("v100-r2n6",), trap="seven ranks print time-outs, rank 6 prints nothing"
        ),
        train=f"--steps 40 --log-style pipe --timeout 15 {ALL}",
        faults="hang rank=6 step=9",
    ),
    Job(
        "handles-rank7-loader",
        "the data loader of rank 7 keeps its shards open and meets a low limit of open files",
        two("mlw-1", "mlw-2"),
        Truth(
            "open-files-exhausted",
            (7,),
            ("mlw-2",),
            (Find(r"\[Errno 24\] Too many open files|Too many open files\. Communication"),),
            trap="rank 7 ends with a bare EOFError, which is all that its error file says; the cause stands above it, and the other host's launcher names a rank of its own",
        ),
        train=f"--steps 80 --workers 2 --keep-open --pause 0.03 {ALL}",
        faults="nofile rank=7 limit=48",
        shards=1024,
        samples=16,
    ),
    Job(
        "small-shm-second-host",
        "/dev/shm of the second host is far too small for its data-loader workers",
        two("ws-dock-a", "ws-dock-b", shm="1M"),
        Truth(
            "shm-exhausted",
            (4, 5, 6, 7),
            ("ws-dock-b",),
            (Find(r"unable to allocate shared memory", "ws-dock-b.log")),
            trap="'No space left on device' reads like a full disk",
        ),
        train="--steps 40 --workers 2 --log-style iso --width 1024",
        layout="tee",
        samples=512,
        width=1024,
    ),
)
