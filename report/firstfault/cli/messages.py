"""What goes to standard error, and the exit status of each way to end. Standard output holds results only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import NoReturn


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
    import duckdb

    from firstfault.catalog.problem import CatalogError
    from firstfault.ingest import OptionError
    from firstfault.timeline import TimelineError

    try:
        yield
    except CommandError as error:
        _leave(str(error), error.status)
    except OptionError as error:
        _leave(str(error), Status.USAGE)
    except (CatalogError, TimelineError) as error:
        _leave(str(error), Status.FAILED)
    except duckdb.Error as error:
        _leave(f"the timeline cannot be written or read: {error}", Status.FAILED)
    except BrokenPipeError:
        # the reader of our output has gone: end quietly, and keep the interpreter from saying it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(Status.OK) from None
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _leave(f"{place}{error.strerror or error}", Status.FAILED)
    except KeyboardInterrupt:
        _leave("interrupted; nothing half-written is left", Status.FAILED)


def _leave(message: str, status: Status) -> NoReturn:
    say(f"firstfault: {message}")
    raise SystemExit(int(status)) from None


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
