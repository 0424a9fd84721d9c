"""What goes wrong, and where: reads SAMPLE_FAULTS and disturbs the program at that rank and step.

    SAMPLE_FAULTS="kill rank=2 step=9; sleep rank=6 seconds=0.4"

Keys: rank (several: rank=4+5), step, attempt, seconds, and others of the kind.
The program itself stays innocent, so what it prints is what any program would print that meets such a fault.
Faults of a host (no network, full disk, missing file) are made by run.py.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time

import checkpoint
import ops
import torch


class Faults:
    """The faults of this rank in this attempt."""

    def __init__(self) -> None:
        rank = int(os.environ["RANK"])
        attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
        self.here: list[tuple[str, dict[str, str]]] = []
        for text in filter(None, map(str.strip, os.environ.get("SAMPLE_FAULTS", "").split(";"))):
            kind, *pairs = text.split()
            given = dict(pair.split("=", 1) for pair in pairs)
            ranks = {int(part) for part in given.get("rank", str(rank)).split("+")}
            if rank in ranks and attempt in {int(part) for part in given.get("attempt", str(attempt)).split("+")}:
                self.here.append((kind, given))

    def at(self, kind: str, step: int | None = None) -> dict[str, str] | None:
        """The settings of a fault of this kind that is due now."""
        for name, given in self.here:
            if name == kind and (step is None or "step" not in given or int(given["step"]) == step):
                return given
        return None

    def start(self) -> None:
        """Before anything is set up."""
        if given := self.at("nofile"):
            resource.setrlimit(resource.RLIMIT_NOFILE, (int(given["limit"]), int(given["limit"])))
        if given := self.at("slow-write"):
            checkpoint.SECONDS_PER_WRITE[0] = float(given["seconds"])
        if given := self.at("late"):
            time.sleep(float(given["seconds"]))

    def step(self, step: int) -> None:
        """Before a step."""
        if self.at("kill", step):
            os.kill(os.getpid(), signal.SIGKILL)
        if given := self.at("sleep", step):
            time.sleep(float(given["seconds"]))
        if given := self.at("hang", step):
            threading.Event().wait(float(given.get("seconds", "100000")))
        if self.at("exit", step):
            sys.stdout.flush()
            os._exit(0)
        if self.at("segfault", step):
            ops.ADDRESS[0] = 8
        if given := self.at("address-space", step):
            with open("/proc/self/statm") as statm:
                used = int(statm.read().split()[0]) * resource.getpagesize()
            limit = used + int(given["spare"]) * 2**20
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def features(self, step: int, features: torch.Tensor) -> torch.Tensor:
        """The batch as the model gets it."""
        if given := self.at("width", step):
            return features[:, : int(given["columns"])]
        if self.at("not-finite", step):
            return features * float("inf")
        return features

    def grow(self, step: int) -> int:
        """Megabytes that the program's cache grows by in this step."""
        given = next((given for kind, given in self.here if kind == "grow"), None)
        return int(given["mb"]) if given and step >= int(given.get("step", "0")) else 0
