"""`firstfault mcp`: starts the server for assistants. Standard output belongs to the protocol."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from firstfault.cli.messages import CommandError, Status, errors_in_words, say
from firstfault.cli.settings import CatalogDirs, existing

_INSTALL = "pip install 'firstfault[mcp]'"


def mcp(
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Only logs below this directory can be read; may be repeated. By default the current directory.",
        ),
    ] = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Replace hosts, users, addresses and paths before an assistant sees them. Secrets always."
        ),
    ] = False,
    most: Annotated[int, typer.Option("--max-gib", metavar="N", min=1, help="How much one diagnosis may read.")] = 50,
    seconds: Annotated[
        int, typer.Option("--max-seconds", metavar="N", min=1, help="How long one SQL query may take.")
    ] = 30,
    catalog_dirs: CatalogDirs = None,
) -> None:
    """A Model Context Protocol server over standard input and output, for assistants and editors. Read-only."""
    with errors_in_words():
        catalogs = existing(catalog_dirs)
        folders = [folder.expanduser() for folder in root or [Path.cwd()]]
        for folder in folders:
            if not folder.is_dir():
                raise CommandError(f"--root {folder}: no such directory", Status.USAGE)
            if root is None and folder == Path(folder.anchor):
                raise CommandError(
                    "started in /, which holds every file of this machine; say with --root DIR where the logs are",
                    Status.USAGE,
                )
        try:
            from firstfault.mcp.server import make_server
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("firstfault"):
                raise
            raise CommandError(
                f"the server needs the SDK of the protocol ({error.name} is not installed): {_INSTALL} "
                f"(this Python is {sys.executable})"
            ) from error
        from firstfault.cli.explain import explain_text
        from firstfault.cli.kept import timeline_of
        from firstfault.mcp.jobs import Settings
        from firstfault.mcp.roots import Roots

        settings = Settings(
            Roots(folders), timeline_of, "firstfault.cli.mcp_worker", redact, catalogs, most << 30, float(seconds)
        )
        if sys.stdin.isatty():
            say(
                "firstfault mcp: an assistant starts this and talks to it over standard input and output; "
                f"it reads below {settings.roots.words()}. Ctrl-C ends it; docs/mcp.md has what to configure"
            )
        os.environ.setdefault("OTEL_SDK_DISABLED", "true")  # the SDK could otherwise be told to export traces
        make_server(settings, explain_text).run()
