"""A real Ray cluster on this machine: a head and other nodes, each with a variable and a disk of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_logs" / "mute-rank6" / "logs"
HOSTS = ("v100-r2n5", "v100-r2n6")
RAY = [sys.executable, "-c", "import sys; from ray.scripts.scripts import main; sys.exit(main())"]
QUICK = {"period_ms": "300", "timeout_ms": "1500", "failure_threshold": "3", "initial_delay_ms": "300"}
"""How soon the head notices that a node is dead; by default it takes half a minute."""


class RayNodes:
    """The nodes that were started, whose processes are found by a variable that each of them has."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._mark = folder, secrets.token_hex(8)
        self.address = f"127.0.0.1:{_free_port()}"
        self._names: list[str] = []
        paths = os.pathsep.join(str(ROOT / portion) for portion in ("ingest", "correlate", "report"))
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            **{f"RAY_health_check_{name}": value for name, value in QUICK.items()},
            "HOME": str(folder), "XDG_CACHE_HOME": cache, "PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }  # fmt: skip

    def disk(self, name: str) -> Path:
        """Where the node of this name has its logs: what `$NODE_DISK` is there."""
        return self._folder / "disks" / name

    def start(self, name: str) -> None:
        """Start a node, the first one as the head."""
        role = ["--address", self.address]
        if not self._names:
            port = self.address.rpartition(":")[2]
            role = ["--head", "--port", port, "--include-dashboard=false", "--temp-dir", str(self._folder / "ray")]
        options = ["--num-cpus=1", "--object-store-memory=100000000", "--min-worker-port=0", "--max-worker-port=0"]
        more = {"FIRSTFAULT_TEST_NODE": f"{self._mark}-{name}", "NODE_DISK": str(self.disk(name))}
        self._names.append(name)
        done = subprocess.run(
            [*RAY, "start", *role, "--node-ip-address=127.0.0.1", "--node-name", name, *options],
            env={**self.env, **more}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout

    def processes(self, name: str, title: str = "") -> list[int]:
        """The processes of a node whose command line begins with a text."""
        mark = f"FIRSTFAULT_TEST_NODE={self._mark}-{name}\0".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                environment, command = ((folder / name).read_bytes() + b"\0" for name in ("environ", "cmdline"))
                if mark in environment and command.startswith(title.encode()):
                    found.append(int(folder.name))
        return found

    def kill(self, name: str) -> None:
        """End all processes of a node at once, as a machine does that loses its power."""
        for process in self.processes(name):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)

    def kill_all(self) -> None:
        for name in self._names:
            self.kill(name)

    def wait_for(self, name: str, title: str) -> int:
        """A process of a node, as soon as there is one."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if found := self.processes(name, title):
                return found[0]
            time.sleep(0.02)
        raise AssertionError(f"no process {title} on {name}")

    def begin(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """A command of firstfault that is running."""
        command = [sys.executable, "-m", "firstfault", *map(str, arguments)]
        return subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *arguments: str | Path) -> str:
        """What a command of firstfault prints, which has to succeed."""
        return ended(self.begin(*arguments))


def ended(process: subprocess.Popen[str]) -> str:
    """What a process prints, which has to succeed."""
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    return out


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayNodes]:
    """A head n-0 and a node n-1, each with the logs of one host of the same job on its disk."""
    if importlib.util.find_spec("ray") is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Ray, and Linux to find the processes of its nodes")
    made = RayNodes(tmp_path_factory.mktemp("r"))
    try:
        for name, host in zip(("n-0", "n-1"), HOSTS, strict=True):
            shutil.copytree(SAMPLE / host, made.disk(name) / host)
            made.start(name)
        yield made
    finally:
        made.kill_all()
