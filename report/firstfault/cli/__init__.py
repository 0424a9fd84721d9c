"""The commands."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command line. Processes keep the cores busy: threads that libraries start beside them only cost time."""
    for name in ("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(name, "1")
    from firstfault.cli.app import run

    run()
