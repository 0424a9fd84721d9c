"""Which rank this process is, in the words of torchrun, whichever launcher started it."""

from __future__ import annotations

import os

NAMES = {
    "RANK": ("OMPI_COMM_WORLD_RANK", "SLURM_PROCID"),
    "LOCAL_RANK": ("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"),
    "WORLD_SIZE": ("OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"),
}


def adopt() -> None:
    """Fill in the variables that torchrun would have set."""
    for name, others in NAMES.items():
        for other in others:
            if name not in os.environ and other in os.environ:
                os.environ[name] = os.environ[other]
