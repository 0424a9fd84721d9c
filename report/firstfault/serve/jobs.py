"""The jobs of a page: what was uploaded, how far its diagnosis is, where its results lie. All of it is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync

RESULTS = {
    "report.html": "text/html; charset=utf-8",
    "report.md": "text/markdown; charset=utf-8",
    "diagnosis.json": "application/json",
    "timeline.duckdb": "application/octet-stream",
}
MOST_JOBS = 50
MOST_FILES = 200_000
RESERVE = 256 << 20
"""Bytes of the disk that uploads leave free."""
_BUFFER = 1 << 20
_DEEPEST = 64


class JobError(Exception):
    """What a client did wrong or what cannot be done, with the HTTP status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Job:
    """One job. `state` goes from 'open' over 'waiting' and 'reading' to 'done' or 'failed'."""

    id: str
    name: str
    folder: Path
    paths: tuple[str, ...] = ()
    state: str = "open"
    phase: str = ""
    done: int = 0
    total: int = 0
    bytes: int = 0
    files: int = 0
    message: str = ""
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def logs(self) -> Path:
        """Where uploads go."""
        return self.folder / "logs"

    @property
    def results(self) -> Path:
        """Where the reports and the timeline are."""
        return self.folder / "results"

    def status(self) -> dict[str, Any]:
        """What the page shows of it."""
        names = ("id", "name", "state", "phase", "done", "total", "bytes", "files", "message")
        return {name: getattr(self, name) for name in names}


class Jobs:
    """All jobs below one private folder. One diagnosis runs at a time."""

    def __init__(self, root: Path, most_bytes: int, catalogs: Sequence[Path] = ()) -> None:
        self._root, self._most, self._catalogs = root, most_bytes, tuple(catalogs)
        self._jobs: dict[str, Job] = {}
        self._turn = asyncio.Semaphore(1)
        self._all = 0

    def listed(self) -> list[Job]:
        """All, the newest first."""
        return list(reversed(self._jobs.values()))

    def get(self, id_: str) -> Job:
        """The job of an id."""
        try:
            return self._jobs[id_]
        except KeyError:
            raise JobError(404, "no such job") from None

    def make(self, name: str, paths: Sequence[str] = ()) -> Job:
        """A new job: empty, or of paths of this machine."""
        if len(self._jobs) >= MOST_JOBS:
            raise JobError(409, f"{MOST_JOBS} jobs are here already; remove one")
        id_ = secrets.token_hex(6)
        job = Job(id_, name[:200] or "job", self._root / id_, tuple(paths))
        try:
            job.logs.mkdir(parents=True, mode=0o700)
            job.results.mkdir(mode=0o700)
        except OSError as error:
            raise JobError(507, f"{self._root}: {error.strerror or error}") from error
        self._jobs[id_] = job
        return job

    async def take(self, job: Job, name: str, stream: AsyncIterator[bytes]) -> int:
        """Write an uploaded file as it comes in; nothing is left of one that does not come to its end."""
        if job.state != "open":
            raise JobError(409, "the diagnosis of this job has begun; make a new one")
        if job.files >= MOST_FILES:
            raise JobError(413, f"more than {MOST_FILES} files")
        target = job.logs.joinpath(*safe_parts(name))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            file = target.open("xb")
        except (FileExistsError, NotADirectoryError):
            raise JobError(409, f"{name}: is there already") from None
        except OSError as error:
            raise JobError(507, f"{name}: {error.strerror or error}") from error
        size, whole = 0, False
        try:
            with file:
                pending = bytearray()
                async for part in stream:
                    pending += part
                    if len(pending) >= _BUFFER:
                        size += await self._write(file.fileno(), pending)
                size += await self._write(file.fileno(), pending)
            whole = True
        except OSError as error:
            raise JobError(507, f"{name}: {error.strerror or error}") from error
        finally:
            if not whole:
                self._all -= size
                target.unlink(missing_ok=True)
        job.bytes += size
        job.files += 1
        return size

    async def _write(self, file: int, pending: bytearray) -> int:
        size = len(pending)
        if self._all + size > self._most:
            raise JobError(413, f"more than {self._most >> 20} MiB in all; `firstfault serve --max-mib` allows more")
        free = shutil.disk_usage(self._root).free
        if free - size < RESERVE:
            raise JobError(507, f"the disk of {self._root} is nearly full: {free >> 20} MiB are free")
        data = bytes(pending)
        pending.clear()
        self._all += size
        view = memoryview(data)
        while view:
            view = view[await run_sync(os.write, file, view) :]
        return size

    def begin(self, job: Job) -> None:
        """Start the diagnosis of a job, or let it wait for its turn."""
        if job.state != "open":
            raise JobError(409, "the diagnosis of this job has begun already")
        if not job.files and not job.paths:
            raise JobError(400, "nothing was uploaded")
        job.state = "waiting"
        job.task = asyncio.create_task(self._diagnose(job))

    async def remove(self, job: Job) -> None:
        """Stop it and delete what was uploaded and made."""
        if job.task is not None:
            job.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await job.task
        del self._jobs[job.id]
        self._all -= job.bytes
        await run_sync(shutil.rmtree, job.folder, True)

    async def close(self) -> None:
        """Stop everything."""
        for job in list(self._jobs.values()):
            await self.remove(job)

    async def _diagnose(self, job: Job) -> None:
        async with self._turn:
            job.state, job.phase = "reading", "start"
            order = {
                "paths": list(job.paths) or [str(_given(job.logs))],
                "results": str(job.results),
                "catalogs": [str(one) for one in self._catalogs],
            }
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "firstfault.serve.worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            try:
                complaints = asyncio.create_task(_tail(process.stderr))
                assert process.stdin is not None
                process.stdin.write(json.dumps(order).encode())
                process.stdin.close()
                await self._progress(job, process)
                status, said = await process.wait(), await complaints
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            if job.state != "done" and not job.message:
                job.message = said or f"the diagnosis ended with status {status}"
            if job.state != "done":
                job.state = "failed"

    async def _progress(self, job: Job, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            told = json.loads(line)
            if "phase" in told:
                job.phase, job.done, job.total = told["phase"], told["done"], told["total"]
            elif "error" in told:
                job.message = told["error"]
            elif told.get("finished"):
                job.state = "done"


def _given(logs: Path) -> Path:
    """What was dropped: one folder, as a command would be given it, or all that lies there."""
    inside = list(logs.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else logs


async def _tail(stream: asyncio.StreamReader | None) -> str:
    """The last line of a stream, which is read to its end."""
    last = b""
    while stream is not None and (part := await stream.read(65536)):
        last = (last + part)[-2000:]
    lines = last.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def safe_parts(name: str) -> list[str]:
    """The parts of a relative path that stays where it belongs. Raises `JobError`."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or len(parts) > _DEEPEST or name.startswith("/"):
        raise JobError(400, f"{name[:100]!r}: no usable name of a file")
    for part in parts:
        if part == ".." or "\0" in part or len(os.fsencode(part)) > 255 or not part.isprintable():
            raise JobError(400, f"{name[:100]!r}: no usable name of a file")
    return parts
