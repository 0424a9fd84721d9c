"""`firstfault mcp` as a client meets it: a process that the SDK's own client speaks to over its standard streams."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra firstfault[mcp]")

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_logs"
PORTIONS = [str(ROOT / portion) for portion in ("ingest", "correlate", "report")]

ALONE = """
import os, socket, sys, time
def refused(*_, **__):
    raise OSError("the network was asked for")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refused
mark = os.environ.get("STALLED_WORKER")
if mark and "firstfault.cli.mcp_worker" in sys.orig_argv:
    with open(mark + ".tmp", "w") as file:
        file.write(str(os.getpid()))
    os.rename(mark + ".tmp", mark)
    time.sleep(600)
"""
"""Of every Python process of a test: no network; where the variable is set, diagnoses that do not end by themselves."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of a tool: its text, its data, whether it is an error."""

    text: str
    whole: dict[str, Any]
    error: bool

    @property
    def data(self) -> dict[str, Any]:
        """What is of the tool."""
        return dict(self.whole["data"])

    @property
    def quoted(self) -> str:
        """What stands between the marks."""
        found = re.fullmatch(
            r"(?s).*?^<<<log data ([0-9a-f]{12}): [^\n]*>>>\n(.*)\n<<<end of log data \1>>>(?:\nnote: .*)?",
            self.text,
            re.M,
        )
        assert found is not None, self.text
        return found[2]

    @property
    def own(self) -> str:
        """What stands outside of the marks."""
        return self.text.replace(self.quoted, "")


class Session:
    """An open connection to a server."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.progress: list[tuple[float, str | None]] = []

    async def call(self, tool: str, **arguments: Any) -> Reply:
        """Call a tool."""

        async def heard(at: float, _: float | None, message: str | None) -> None:
            self.progress.append((at, message))

        found = await self.client.call_tool(tool, arguments, progress_callback=heard)
        [content] = found.content
        return Reply(content.text, found.structured_content or {}, bool(found.is_error))


Talk = Callable[[Session], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Runner:
    """Starts servers below a folder of the test."""

    folder: Path

    def environment(self, **extra: str) -> dict[str, str]:
        """That of the server: no network, a cache of its own."""
        (self.folder / "site").mkdir(exist_ok=True)
        (self.folder / "site" / "sitecustomize.py").write_text(ALONE, encoding="utf-8")
        paths = os.pathsep.join([str(self.folder / "site"), *PORTIONS])
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": paths,
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "TMPDIR": str(self.folder),
            **extra,
        }

    def talk(self, talk: Talk, *options: str | Path, mode: str = "auto", **extra: str) -> Any:
        """What a conversation with a new server gives; the server has ended afterwards."""
        from mcp import Client, StdioServerParameters

        async def main() -> Any:
            server = StdioServerParameters(
                command=sys.executable,
                args=["-m", "firstfault", "mcp", *map(str, options)],
                env=self.environment(**extra),
                cwd=self.folder,
            )
            async with Client(server, mode=mode, read_timeout_seconds=120) as client:
                return await talk(Session(client))

        return asyncio.run(main())


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    return Runner(tmp_path_factory.mktemp("mcp"))
