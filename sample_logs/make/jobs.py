"""The jobs: hosts, launcher, what goes wrong, and what is true of it.

Here are the words that a job is described with; jobs_ranks.py, jobs_hosts.py and jobs_launchers.py hold the jobs.

The truth is what was injected. Lines of evidence are found by `Find` patterns in the logs that the run left.
"""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
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
    compress: bool = False  # the logs as .gz
    shared_disk: str = ""  # size of a file system of its own for the checkpoints
    absent: tuple[int, ...] = ()  # hosts on which no launcher is started
    needs: str = ""  # another interpreter: a key of --python
    shards: int = 64
    samples: int = 64
    width: int = 128


def two(first: str, second: str, **second_has: object) -> tuple[HostSpec, ...]:
    """Two ordinary hosts; keywords change the second."""
    return HostSpec(first), dataclasses.replace(HostSpec(second), **second_has)  # type: ignore[arg-type]


def inside(host: int, command: str) -> Callable[[Running], None]:
    """A shell command with the eyes of a host."""

    def act(running: Running) -> None:
        pid = running.cluster.hosts[host].shell()
        subprocess.run(["nsenter", "-t", str(pid), "-m", "-n", "-u", "-p", "sh", "-c", command], check=True)

    return act


def remove(folder: str, shard: int) -> Callable[[Running], None]:
    """A shard that is in the index and not on the disk."""
    return lambda running: (running.dir / folder / f"shard-{shard:05d}.npy").unlink()


def shorten(folder: str, shard: int, size: int) -> Callable[[Running], None]:
    """A shard that was cut off."""

    def act(running: Running) -> None:
        path = running.dir / folder / f"shard-{shard:05d}.npy"
        path.write_bytes(path.read_bytes()[:size])

    return act


def kill_loader_worker(host: int, rank: int) -> Callable[[Running], None]:
    """SIGKILL to the youngest child of a rank."""

    def act(running: Running) -> None:
        os.kill(running.cluster.hosts[host].children(rank)[-1], signal.SIGKILL)

    return act


def kernel_log(host: int, name: str, *options: str) -> Callable[[Running], None]:
    """What the kernel wrote while the job ran, as the log of one of its hosts."""

    def act(running: Running) -> None:
        done = subprocess.run(["dmesg", *options], capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines(keepends=True)[running.kernel_lines :]
        path = running.cluster.hosts[host].logs / name
        path.write_text("".join(line for line in lines if not re.search(r"ffv|ffbr|veth|eth0|bridge", line)))

    return act


def vanish(host: int) -> Callable[[Running], None]:
    """The host loses its network and every process at once."""

    def act(running: Running) -> None:
        running.cluster.hosts[host].cut()
        running.cluster.hosts[host].kill()

    return act


def cut(host: int) -> Callable[[Running], None]:
    """The host loses its network."""
    return lambda running: running.cluster.hosts[host].cut()


def signal_launcher(host: int, number: signal.Signals) -> Callable[[Running], None]:
    """A signal to a launcher."""
    return lambda running: running.signal(running.cluster.hosts[host].launcher(), number)


ALL = "--log-all-ranks"
