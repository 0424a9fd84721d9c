"""The commands."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from firstfault.cli.app import run

    run()
