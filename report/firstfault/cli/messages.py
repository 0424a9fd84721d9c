"""What goes to standard error, and the exit status of each way to end. Standard output holds results only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum


class Status(IntEnum):
    """Exit statuses of the commands."""

    OK = 0  # the command did its work, whatever the verdict
    FAILED = 1  # it could not: no readable log, damaged timeline, disk full
    USAGE = 2  # wrong usage
    NOT_HEALTHY = 3  # diagnose --fail-on-failure, and the verdict is not no-failure


class CommandError(Exception):
    """A command that could not do its work: what, where, why, what to do."""

    def __init__(self, message: str, status: Status = Status.FAILED) -> None:
        super().__init__(message)
        self.status = status


def say(message: str) -> None:
    """One line on standard error."""
    sys.stderr.write(message + "\n")


@contextmanager
def errors_in_words() -> Iterator[None]:
    """Turn the errors that a user can do something about into one message and an exit status."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader of our output has gone: end quietly, and keep the interpreter from saying it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(int(Status.OK)) from None
    except KeyboardInterrupt:
        say("firstfault: interrupted; nothing half-written is left")
        raise SystemExit(int(Status.FAILED)) from None
    except Exception as error:
        found = in_words(error)
        if found is None:
            raise
        message, status = found
        say(f"firstfault: {message}")
        raise SystemExit(int(status)) from None


_ROOM = "free some, or put the timeline on another disk: --output, --db, without either TMPDIR"


def _where(said: str) -> str:
    """The folder of the file that an error of DuckDB names."""
    path = said.partition('file "')[2].partition('"')[0]
    return f" ({os.path.dirname(os.path.dirname(path))})" if path else ""


def in_words(error: Exception) -> tuple[str, Status] | None:
    """Message and status of an error, None where it is a fault of the program itself."""
    if isinstance(error, CommandError):
        return str(error), error.status
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}", Status.FAILED
    if isinstance(error, MemoryError):
        return "out of memory; try --workers 1", Status.FAILED
    from firstfault.catalog.problem import CatalogError
    from firstfault.ingest import OptionError
    from firstfault.ingest.format_load import FormatError
    from firstfault.ingest.ray_cluster import ClusterError
    from firstfault.ingest.shards import PartError, SavedError

    if isinstance(error, PartError | SavedError | ClusterError):
        return str(error), Status.FAILED
    if isinstance(error, OptionError):
        return str(error), Status.USAGE
    if isinstance(error, CatalogError | FormatError):
        return str(error), Status.FAILED
    import duckdb

    from firstfault.timeline import TimelineError
    from firstfault.timeline.gate import QueryError

    if isinstance(error, TimelineError):
        return str(error), Status.FAILED
    if isinstance(error, QueryError):
        return f"SQL: {error}", Status.FAILED
    if isinstance(error, duckdb.Error) and "No space left on device" in str(error):
        return f"no space left where the timeline is written{_where(str(error))}; {_ROOM}", Status.FAILED
    if isinstance(error, duckdb.Error):
        return f"the timeline cannot be written or read: {error}", Status.FAILED
    return None


@contextmanager
def progress_bar(enabled: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar on standard error while logs are read, only where somebody looks at it."""
    if not enabled or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks = {}

        def update(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bar.add_task(phase, total=total or None)
            bar.update(tasks[phase], completed=done, total=total or None)

        yield update
