"""Adds the commands beside a running job, the local page, and those for assistants and CI to the command line."""

from __future__ import annotations

import typer

from firstfault.cli.ci_command import ci
from firstfault.cli.collecting import collect
from firstfault.cli.mcp_command import mcp
from firstfault.cli.running import run
from firstfault.cli.serving import serve
from firstfault.cli.watching import watch


def add_live_commands(app: typer.Typer) -> None:
    """Add them in the order in which they are listed."""
    app.command(context_settings={"allow_interspersed_args": False})(run)
    app.command()(collect)
    app.command()(watch)
    app.command()(serve)
    app.command()(mcp)
    app.command()(ci)
