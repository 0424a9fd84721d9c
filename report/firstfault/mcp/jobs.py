"""The jobs that an assistant has had diagnosed: each with its answer and its timeline, the last few of them.

A diagnosis runs in a process of its own, which can be stopped and ends with this one, however this one ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import CancelScope

from firstfault.correlate.diagnosis import Diagnosis
from firstfault.ingest import IngestOptions
from firstfault.ingest.saved import from_plain
from firstfault.mcp.roots import Refused, Roots

MOST_JOBS = 6
_LINE = 1 << 29

Place = Callable[[Sequence[str], IngestOptions], AbstractContextManager[Path]]
"""Gives a place for the timeline of paths, for as long as it is entered."""
Tell = Callable[[str, int, int], Awaitable[None]]
"""Told of progress: a phase, what is done, and all that is to be done (0: not known)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What whoever runs the server has fixed."""

    roots: Roots
    place: Place
    worker: str  # module that makes a diagnosis, for `python -m`
    redact: bool = False
    catalogs: tuple[Path, ...] = ()
    most_bytes: int = 50 << 30
    seconds: float = 30.0


@dataclass(slots=True)
class Job:
    """A diagnosed job. `lock` is held while its timeline is read or written."""

    id: str
    paths: tuple[str, ...]
    database: Path
    closing: ExitStack
    answer: Diagnosis | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def diagnosis(self) -> Diagnosis:
        """Its answer; a job that is handed out has one."""
        assert self.answer is not None
        return self.answer


class Jobs:
    """All jobs of a server."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._jobs: dict[str, Job] = {}
        self._turn = asyncio.Semaphore(1)

    def get(self, id_: str) -> Job:
        """A job by its id. Raises `Refused`."""
        job = self._jobs.get(id_)
        if job is None:
            known = ", ".join(self._jobs) or "none yet"
            raise Refused(f"no job {id_!r} here (known: {known}); `diagnose` its logs, and take the id of the answer")
        self._jobs[id_] = self._jobs.pop(id_)
        return job

    async def diagnose(
        self,
        paths: Sequence[str],
        tell: Tell,
        *,
        healthy: str | None = None,
        tz: str | None = None,
        year: int | None = None,
    ) -> Job:
        """Diagnose logs, or take what is known of them where nothing has changed. Raises `Refused`."""
        roots = self._settings.roots
        real = tuple(str(roots.resolve(path)) for path in paths)
        if not real:
            raise Refused("give at least one path of logs")
        good = None if healthy is None else str(roots.resolve(healthy))
        wish = {"paths": real, "healthy": good, "tz": tz, "year": year}
        id_ = "job-" + hashlib.sha256(json.dumps(wish).encode("utf-8", "surrogateescape")).hexdigest()[:8]
        async with self._turn:
            job = self._jobs.get(id_) or self._entered(id_, real, tz, year)
            try:
                async with job.lock:
                    job.answer = await self._made(wish, job.database, tell)
            except BaseException:
                if job.answer is None:
                    job.closing.close()
                raise
            self._jobs.pop(id_, None)
            self._jobs[id_] = job
            await self._forget_oldest()
        return job

    def _entered(self, id_: str, real: tuple[str, ...], tz: str | None, year: int | None) -> Job:
        closing = ExitStack()
        kept = not self._settings.redact  # a redacted timeline is not that of its logs
        options = IngestOptions(tz=tz, year=year, catalogs=self._settings.catalogs, reuse=kept)
        return Job(id_, real, closing.enter_context(self._settings.place(real, options)), closing)

    async def _forget_oldest(self) -> None:
        while len(self._jobs) > MOST_JOBS:
            oldest = self._jobs.pop(next(iter(self._jobs)))
            async with oldest.lock:
                oldest.closing.close()

    async def _made(self, wish: dict[str, Any], database: Path, tell: Tell) -> Diagnosis:
        settings = self._settings
        order = {
            **wish,
            "database": str(database),
            "redact": settings.redact,
            "catalogs": [str(one) for one in settings.catalogs],
            "most_bytes": settings.most_bytes,
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", settings.worker,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True, limit=_LINE,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            async for line in process.stdout:
                told = json.loads(line)
                if "phase" in told:
                    await tell(told["phase"], told["done"], told["total"])
                elif "error" in told:
                    raise Refused(told["error"], quotes=True)
                elif "diagnosis" in told:
                    answer: Diagnosis = from_plain(Diagnosis, told["diagnosis"])
                    return answer
            raise Refused(f"the diagnosis ended with status {await process.wait()}; the server's log says more")
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with CancelScope(shield=True):
                await process.wait()

    async def close(self) -> None:
        """Give back the places of all timelines."""
        for job in self._jobs.values():
            job.closing.close()
        self._jobs.clear()
