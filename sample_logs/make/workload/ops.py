"""Native code of the sample program: a normalisation whose statistics go through a C buffer."""

from __future__ import annotations

import ctypes

import torch

ADDRESS: list[int | None] = [None]  # None: the buffer of the call itself


def fused_norm(hidden: torch.Tensor) -> torch.Tensor:
    """Layer norm over the last dimension."""
    flat = hidden.detach()
    stats = (ctypes.c_float * 2)(float(flat.mean()), float(flat.std()))
    scratch = (ctypes.c_float * 2)()
    ctypes.memmove(scratch if ADDRESS[0] is None else ADDRESS[0], stats, ctypes.sizeof(stats))
    return torch.nn.functional.layer_norm(hidden, hidden.shape[-1:])
