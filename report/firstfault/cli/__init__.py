"""The commands."""

from __future__ import annotations


import os


def main() -> None:
    """Run the command line. Cores are kept busy by processes: libraries that start threads of their own only add to it."""
    for name in ("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(name, "1")
    from firstfault.cli.app import run

    run()
