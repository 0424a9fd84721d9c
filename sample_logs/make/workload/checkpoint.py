"""Rank 0 writes the state of the training every few steps; all ranks read the newest file when they start."""

from __future__ import annotations

import logging
import os
import pathlib
import time

import torch
from torch import nn

SECONDS_PER_WRITE = [0.0]

log = logging.getLogger("train")


def save(folder: str, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Write the state after `step`."""
    path = pathlib.Path(folder, f"step_{step:06d}.pt")
    log.info("saving checkpoint %s", path)
    began = time.monotonic()
    with open(path, "wb") as out:
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)
        out.flush()
        os.fsync(out.fileno())
        time.sleep(SECONDS_PER_WRITE[0])
    log.info("saved checkpoint %s in %.1f s", path, time.monotonic() - began)


def load(folder: str, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Read the newest state, if there is one, and return the next step."""
    found = sorted(pathlib.Path(folder).glob("step_*.pt"))
    if not found:
        return 0
    log.info("resuming from checkpoint %s", found[-1])
    state = torch.load(found[-1], map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"]) + 1
