"""`firstfault serve`: starts the local page."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from firstfault.cli.messages import CommandError, Status, errors_in_words, say
from firstfault.cli.settings import CatalogDirs, existing


def serve(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Logs of one job to diagnose and show at once.")
    ] = None,
    port: Annotated[int, typer.Option("--port", metavar="PORT", help="Port on 127.0.0.1; 0 takes a free one.")] = 8642,
    most: Annotated[int, typer.Option("--max-mib", metavar="N", help="How much may be uploaded in all.")] = 50 * 1024,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", metavar="DIR", help="Where uploads and timelines lie meanwhile; by default in TMPDIR."
        ),
    ] = None,
    catalog_dirs: CatalogDirs = None,
) -> None:
    """A local page to drop logs on: the report, SQL, the catalog. On this machine only."""
    with errors_in_words():
        catalogs = existing(catalog_dirs)
        for path in paths or ():
            if not os.path.lexists(path):
                raise CommandError(f"{path}: no such file or directory", Status.USAGE)
        if most < 1:
            raise CommandError(f"--max-mib {most}: at least 1", Status.USAGE)
        try:
            import uvicorn

            from firstfault.serve.app import make_app
        except ModuleNotFoundError as error:
            raise CommandError(
                f"the page needs {error.name}, which is not installed: pip install 'firstfault[serve]'"
            ) from error
        listening = _listen(port)
        token = os.environ.get("FIRSTFAULT_SERVE_TOKEN") or secrets.token_urlsafe(24)
        with tempfile.TemporaryDirectory(prefix="firstfault-serve-", dir=folder) as root:
            app = make_app(token, Path(root), most << 20, [os.path.abspath(path) for path in paths or ()], catalogs)
            config = uvicorn.Config(
                app, log_level="warning", access_log=False, server_header=False, ws="none", http="h11", lifespan="on"
            )
            address = f"http://127.0.0.1:{listening.getsockname()[1]}/?token={token}"
            say("firstfault serve: on this machine only, nothing leaves it; Ctrl-C ends it and deletes what was given")
            sys.stdout.write(address + "\n")
            sys.stdout.flush()
            with contextlib.suppress(KeyboardInterrupt):
                uvicorn.Server(config).run(sockets=[listening])


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(
            f"--port {port}: 127.0.0.1:{port} cannot be used: {reason}; give another, or 0 for a free one"
        ) from error
