"""`firstfault run`: a command with its output kept, a diagnosis where it failed, its exit status as our own."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstfault.cli.messages import CommandError, Status, errors_in_words, say
from firstfault.cli.settings import CatalogDirs, existing

if TYPE_CHECKING:
    from firstfault.live.child import Ended
    from firstfault.live.kept import Kept


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND [ARGUMENT]...", help="The command, such as torchrun train.py.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Folder of this run: logs/HOST/stdout.log, stderr.log and launcher.log, and the reports. "
            "Several nodes may share it. By default firstfault-run-TIME-HOST-PID in the current directory.",
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="PATH", help="Other logs of the job that the diagnosis reads; may be repeated."),
    ] = None,
    stamp: Annotated[
        bool, typer.Option("--stamp", help="Put the time of arrival in front of each line that is kept.")
    ] = False,
    always: Annotated[bool, typer.Option("--always", help="Diagnose also where the command succeeded.")] = False,
    catalog_dirs: CatalogDirs = None,
) -> None:
    """Run a command, keep its output, diagnose where it fails, and end with its exit status."""
    with errors_in_words():
        catalogs = existing(catalog_dirs)
        folder = output or Path(f"firstfault-run-{datetime.now():%Y%m%d-%H%M%S}-{_host()}-{os.getpid()}")
        ended = _kept_run(command, folder, stamp)
        if ended.status or always:
            say(f"firstfault run: the command ended with {ended.words}; reading {folder / 'logs'}")
            _diagnose([str(folder / "logs"), *(also or ())], folder, catalogs)
        raise typer.Exit(ended.status)


def _host() -> str:
    return socket.gethostname().partition(".")[0] or "localhost"


def _place(folder: Path) -> Path:
    """A folder for this host's logs; tasks of one host that share the folder get one each."""
    task = os.environ.get("SLURM_PROCID", "")
    names = [_host(), *([f"task{task}"] if task.isdigit() else []), *(str(number) for number in range(1, 1000))]
    parent = folder / "logs" / names[0]
    parent.mkdir(parents=True, exist_ok=True)
    for name in ("", *names[1:]):
        place = parent / name
        with contextlib.suppress(FileExistsError):
            place.mkdir(exist_ok=True)
            (place / "launcher.log").open("x").close()
            return place
    raise CommandError(f"{parent}: holds a thousand runs already; give another --output")


@contextlib.contextmanager
def _files(folder: Path, stamp: bool) -> Iterator[tuple[Kept, Kept, Kept]]:
    from firstfault.live.kept import Kept

    place = _place(folder)
    with (
        Kept(place / "launcher.log") as told,
        Kept(place / "stdout.log", stamp) as out,
        Kept(place / "stderr.log", stamp) as err,
    ):
        yield told, out, err


def _kept_run(command: Sequence[str], folder: Path, stamp: bool) -> Ended:
    """Run the command with its output in the folder; a folder that cannot be written does not keep it from running."""
    from firstfault.correlate.secrets import masked
    from firstfault.live.child import NotStarted
    from firstfault.live.child import run as run_child

    with contextlib.ExitStack() as stack:
        try:
            told, out, err = stack.enter_context(_files(folder, stamp))
        except OSError as error:
            raise CommandError(
                f"{error.filename or folder}: {error.strerror or error}; the command was not started, "
                "since its output could not be kept; give another --output"
            ) from error
        extra = {"FIRSTFAULT_RUN_DIR": str(folder.resolve())}
        if "PYTHONUNBUFFERED" not in os.environ:
            extra["PYTHONUNBUFFERED"] = "1"  # what a killed rank printed last is lost in its buffer otherwise
        told.write(_line(f"started on {_host()}: {masked(shlex.join(command))}"))
        try:
            ended = run_child(command, out, err, extra)
        except NotStarted as error:
            _withdraw(told.path.parent, folder)
            say(f"firstfault run: {error}")
            raise typer.Exit(error.status) from None
        told.write(_line(f"command exited with status {ended.status}"))
        for kept in (out, err):
            if kept.lost:
                say(f"firstfault run: {kept.lost}")
        if ended.left:
            say("firstfault run: processes that the command left behind still hold its output open; they are not read")
    return ended


def _withdraw(place: Path, folder: Path) -> None:
    """Leave nothing behind of a run that did not begin."""
    for name in ("launcher.log", "stdout.log", "stderr.log"):
        (place / name).unlink(missing_ok=True)
    for parent in (place, *place.parents):
        with contextlib.suppress(OSError):
            parent.rmdir()
        if parent == folder:
            return


def _line(text: str) -> bytes:
    """A line as journald and rsyslog write it, which names the host."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return f"{now} {_host()} firstfault-run[{os.getpid()}]: {text}\n".encode("utf-8", "backslashreplace")


def _diagnose(paths: list[str], folder: Path, catalogs: tuple[Path, ...]) -> None:
    """Write the reports and print one to standard error; what goes wrong here never changes the exit status."""
    from firstfault.cli.run import judge, read_logs, render, write_all
    from firstfault.ingest import IngestOptions

    try:
        with errors_in_words():
            database = folder / "timeline.duckdb"
            read_logs(
                [path for path in paths if os.path.lexists(path)], database, IngestOptions(catalogs=catalogs), True
            )
            answer = judge(database, catalogs)
            write_all(answer, folder)
            sys.stderr.write(render(answer, "text"))
            say(f"firstfault run: the reports are in {folder}")
    except SystemExit as stop:
        if stop.code not in (Status.OK, Status.FAILED, Status.USAGE):
            raise
        say("firstfault run: no diagnosis; the output is kept")
