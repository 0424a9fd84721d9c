"""Runs a command in the foreground: its two streams are passed on and kept, signals reach it, its end is told.

The command stays in our process group, so that a terminal treats it as if nothing stood in front: what the terminal
sends (Ctrl-C) it has already. Signals that a process sends to us alone are handed on to it. slurmstepd and systemd
send theirs to every process of a step or unit, the command among them, and torchrun that gets SIGTERM twice gives up
waiting for its workers; so theirs are not sent again.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from firstfault.live.kept import Kept

HANDED_ON = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2})
_TO_ALL = (b"slurmstepd", b"systemd")
_PATIENCE = 2.0
"""Seconds of silence after the end of the command, while children that it left behind hold its output open."""
_SI_USER_MAX = 0
"""Signals of processes have a code of 0 or below, those of the kernel a greater one (sigaction(2))."""


class NotStarted(Exception):
    """The command could not be started; `status` is the one that a shell gives: 127 not found, 126 not allowed."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. Exactly one of `code` and `signal` is set; `left` says that its output was still open."""

    code: int | None
    signal: int | None
    left: bool = False

    @property
    def status(self) -> int:
        """The exit status as shells give it: 128 and the number of the signal."""
        return self.code if self.code is not None else 128 + (self.signal or 0)

    @property
    def words(self) -> str:
        """Such as 'exit status 1' or 'signal 9 (SIGKILL)'."""
        if self.code is not None:
            return f"exit status {self.code}"
        try:
            name = f" ({signal.Signals(self.signal or 0).name})"
        except ValueError:
            name = ""
        return f"signal {self.signal}{name}"


def run(command: Sequence[str], out: Kept, err: Kept, extra: dict[str, str]) -> Ended:
    """Run a command to its end; `extra` is added to its environment. Call it from the main thread."""
    waited = {*HANDED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        pid, streams = _start(command, {**os.environ, **extra}, before)
        pumps = [_Pump(source, sink, kept) for source, sink, kept in zip(streams, _own(), (out, err), strict=True)]
        for pump in pumps:
            pump.start()
        status = _wait(pid, waited)
        left = not _drained(pumps)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if os.WIFSIGNALED(status):
        return Ended(None, os.WTERMSIG(status), left)
    return Ended(os.WEXITSTATUS(status), None, left)


def _own() -> tuple[int, int]:
    sys.stdout.flush()
    sys.stderr.flush()
    return 1, 2


def _start(command: Sequence[str], environment: dict[str, str], mask: Iterable[int]) -> tuple[int, list[int]]:
    """The process and the ends that its standard output and error are read from."""
    pipes = [os.pipe(), os.pipe()]
    actions = [(os.POSIX_SPAWN_DUP2, pipes[number][1], number + 1) for number in (0, 1)]
    try:
        pid = os.posix_spawnp(
            command[0],
            list(command),
            environment,
            file_actions=actions,
            setsigmask=mask,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores these two, a command must not
        )
    except (OSError, ValueError) as error:
        for reading, _ in pipes:
            os.close(reading)
        reason = getattr(error, "strerror", None) or str(error)
        status = 127 if isinstance(error, FileNotFoundError) else 126
        raise NotStarted(f"{command[0]}: cannot be started: {reason}", status) from error
    finally:
        for _, writing in pipes:
            os.close(writing)
    return pid, [reading for reading, _ in pipes]


def _wait(pid: int, waited: Iterable[int]) -> int:
    """The wait status of the command, while signals are handed on."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        got = signal.sigtimedwait(waited, 0.5)
        if got is None or got.si_signo == signal.SIGCHLD:
            continue
        if got.si_code <= _SI_USER_MAX and not _sent_to_all(got.si_pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, got.si_signo)


def _sent_to_all(sender: int) -> bool:
    try:
        with open(f"/proc/{sender}/comm", "rb") as file:
            return file.read(64).startswith(_TO_ALL)
    except OSError:
        return False


class _Pump(threading.Thread):
    """Passes one stream on, first to the file, then to our own; goes on where one of the two fails."""

    def __init__(self, source: int, sink: int, kept: Kept) -> None:
        super().__init__(daemon=True)
        self.source = source
        self.waits_since: float | None = None
        self._sink, self._kept, self._reader_gone = sink, kept, False

    def run(self) -> None:
        try:
            while True:
                self.waits_since = time.monotonic()
                data = os.read(self.source, 1 << 16)
                self.waits_since = None
                if not data:
                    return
                self._kept.write(data)
                self._pass_on(data)
        except OSError:
            return  # closed after the end of the command

    def _pass_on(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self._reader_gone:
            try:
                view = view[os.write(self._sink, view) :]
            except BlockingIOError:
                select.select([], [self._sink], [], 1.0)
            except OSError:  # whoever read our output has gone, or its disk is full: the file is still written
                self._reader_gone = True


def _drained(pumps: Sequence[_Pump]) -> bool:
    """Wait until both streams are read to their ends; False where a process that was left behind holds them open."""
    ended = time.monotonic()
    for pump in pumps:
        while pump.is_alive():
            pump.join(0.1)
            since = pump.waits_since
            if pump.is_alive() and since is not None and time.monotonic() - max(since, ended) > _PATIENCE:
                return False
        os.close(pump.source)
    return True
