"""Hosts made of namespaces: each has its own network, name, mounts and process numbers, and the
paths of a training machine.

All hosts of a job hang on one bridge. Everything is removed when the `Cluster` is closed. Needs root.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BRIDGE = "ffbr0"
SKEW = pathlib.Path(__file__).with_name("skew.c")

SETUP = """
set -e
hostname {name}
mount --make-rprivate /
mount --bind {hosts_file} /etc/hosts
mount -t tmpfs none /opt && mkdir -p /opt/train /opt/env
mount --bind {env} /opt/env
cp {workload}/*.py /opt/train/
{missing}
mount -t tmpfs none /srv && mkdir -p /srv/data /srv/ckpt
mount --bind {data} /srv/data
mount --bind {checkpoints} /srv/ckpt
mount -t tmpfs none /var/log && mkdir -p /var/log/train
mount --bind {logs} /var/log/train
mount -t tmpfs -o size={shm} none /dev/shm
{extra}
cd /opt/train
export HOME=/root PATH=/opt/env/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t tmpfs none /tmp
{pids}
"$@" &
wait $!
exit $?
"""


@dataclass(frozen=True, slots=True)
class HostSpec:
    """One host: its name and what is odd about it."""

    name: str
    shm: str = "512M"
    clock: int = 0  # seconds that its clock is ahead
    zone: str = "UTC"
    missing: tuple[str, ...] = ()  # files of the program that this host lacks
    data: str = "data"  # folder of the job's run directory that is /srv/data here
    own_pids: bool = True
    setup: str = ""  # more shell commands
    cgroup_memory: int = 0  # MB for all processes of the host, 0: no limit
    cgroup_pids: int = 0
    env: Mapping[str, str] = field(default_factory=dict)


def run(*command: str, check: bool = True) -> None:
    """A helper command."""
    subprocess.run(command, check=check, capture_output=not check)


class Host:
    """A running host."""

    def __init__(self, spec: HostSpec, number: int, subnet: str, job_dir: pathlib.Path) -> None:
        self.spec = spec
        self.number = number
        self.first_pid = 20311 + 7919 * number + 13 * sum(job_dir.name.encode()) % 5000
        self.address = f"{subnet}.{10 + number}"
        self.netns = f"ff-{spec.name}"
        self.logs = job_dir / "logs" / spec.name
        self.logs.mkdir(parents=True)
        self.job_dir = job_dir
        self.process: subprocess.Popen[bytes] | None = None
        self.others: list[subprocess.Popen[bytes]] = []
        self.cgroups: list[pathlib.Path] = []
        link = f"ffv{number}"
        run("ip", "netns", "add", self.netns)
        run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", self.netns)
        run("ip", "link", "set", link, "master", BRIDGE, "up")
        run("ip", "-n", self.netns, "addr", "add", f"{self.address}/24", "dev", "eth0")
        run("ip", "-n", self.netns, "link", "set", "eth0", "up")
        run("ip", "-n", self.netns, "link", "set", "lo", "up")
        for controller, knob, value in (
            ("memory", "memory.limit_in_bytes", spec.cgroup_memory * 2**20),
            ("pids", "pids.max", spec.cgroup_pids),
        ):
            if value:
                group = pathlib.Path("/sys/fs/cgroup", controller, "train.slice", spec.name)
                group.mkdir(parents=True, exist_ok=True)
                (group / knob).write_text(str(value))
                self.cgroups.append(group)

    def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        env_dir: pathlib.Path,
        workload: pathlib.Path,
        out: pathlib.Path,
        port: int,
    ) -> None:
        """Run a command on this host; what it prints is appended to `out`."""
        spec = self.spec
        own = f"echo {self.first_pid} > /proc/sys/kernel/ns_last_pid" if spec.own_pids else ""
        script = SETUP.format(
            name=spec.name,
            hosts_file=self.job_dir / "hosts",
            env=env_dir,
            workload=workload,
            data=self.job_dir / spec.data,
            checkpoints=self.job_dir / "ckpt",
            logs=self.logs,
            shm=spec.shm,
            extra=spec.setup,
            pids=own,
            missing="\n".join(f"rm /opt/train/{shlex.quote(name)}" for name in spec.missing),
        )
        settings = {"TZ": spec.zone, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **env, **spec.env}
        if spec.clock:
            library = self.job_dir / spec.data / "skew.so"  # seen as /srv/data by the host
            run("cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SKEW), "-ldl")
            settings |= {"LD_PRELOAD": "/srv/data/skew.so", "CLOCK_SKEW": str(spec.clock)}
        spaces = ["unshare", "--uts", "--mount", "--ipc", "--kill-child"]
        if spec.own_pids:
            spaces += ["--pid", "--fork", "--mount-proc"]
        groups = [str(group / "cgroup.procs") for group in self.cgroups]

        def join() -> None:
            for path in groups:
                pathlib.Path(path).write_text(str(os.getpid()))

        # the wrong clock must not reach mount and hostname: env(1) sets it at the last moment
        wrapped = ["env", *(f"{key}={value}" for key, value in settings.items()), *command]
        plain = {"PATH": os.environ["PATH"], "PORT": str(port)}
        with open(out, "ab") as stream:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.netns, *spaces, "sh", "-c", script, "host", *wrapped],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=plain,
                preexec_fn=join,
                start_new_session=True,
            )
        if self.process is None:
            self.process = process
        else:
            self.others.append(process)

    def pids(self) -> list[int]:
        """All processes of the host, as numbered outside."""
        done = subprocess.run(["ip", "netns", "pids", self.netns], capture_output=True, text=True, check=False)
        return [int(pid) for pid in done.stdout.split()]

    def shell(self) -> int:
        """The shell that all other processes descend from."""
        return min(pid for pid in self.pids() if _read(pid, "cmdline").startswith(b"sh\0"))

    def launcher(self) -> int:
        """The process of the launcher: the first Python that runs torchrun or its module."""
        words = {pid: _read(pid, "cmdline").split(b"\0") for pid in self.pids()}
        return min(pid for pid, line in words.items() if line[0].endswith(b"python") and b"torchrun" in line[1])

    def children(self, rank: int) -> list[int]:
        """The data-loader workers of a rank."""
        mark = f"RANK={rank}".encode()
        mine = sorted(pid for pid in self.pids() if mark in _read(pid, "environ").split(b"\0"))
        return [pid for pid in mine if f"PPid:\t{mine[0]}\n".encode() in _read(pid, "status")]

    def cut(self) -> None:
        """Take the host off the network."""
        run("ip", "link", "set", f"ffv{self.number}", "down", check=False)

    def kill(self) -> None:
        """End every process of the host at once."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Remove the host."""
        self.kill()
        for process in filter(None, [self.process, *self.others]):
            process.wait()
        run("ip", "netns", "del", self.netns, check=False)
        run("ip", "link", "del", f"ffv{self.number}", check=False)
        for group in self.cgroups:
            with contextlib.suppress(OSError):
                group.rmdir()
                group.parent.rmdir()


class Cluster:
    """The hosts of one job."""

    def __init__(self, specs: Sequence[HostSpec], subnet: str, job_dir: pathlib.Path) -> None:
        run("ip", "link", "del", BRIDGE, check=False)
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "link", "set", BRIDGE, "up")
        table = [
            "127.0.0.1 localhost",
            *(f"{subnet}.{10 + n} {spec.name} {spec.name.split('.')[0]}" for n, spec in enumerate(specs)),
        ]
        (job_dir / "hosts").write_text("\n".join(table) + "\n")
        self.hosts = [Host(spec, number, subnet, job_dir) for number, spec in enumerate(specs)]

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *ignored: object) -> None:
        for host in self.hosts:
            host.close()
        run("ip", "link", "del", BRIDGE, check=False)


def _read(pid: int, name: str) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def clean(folder: pathlib.Path) -> None:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
