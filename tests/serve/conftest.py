"""A running `firstfault serve` with a token of its own, and a small client."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra firstfault[serve]")
pytest.importorskip("uvicorn", reason="needs the extra firstfault[serve]")

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_logs" / "absent-shard-one-host" / "logs"
TOKEN = "a-token-for-tests"


@dataclass(frozen=True, slots=True)
class Server:
    """Where it listens, and its process."""

    port: int
    process: subprocess.Popen[str]

    @property
    def address(self) -> str:
        """The address that a person opens."""
        return f"http://127.0.0.1:{self.port}/?token={TOKEN}"

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of one request with the token, unless other headers are given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = {"Authorization": f"Bearer {TOKEN}", "X-Firstfault": "1"} if headers is None else headers
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, value: object = None) -> tuple[int, Any]:
        """Status and decoded body."""
        body = None if value is None else json.dumps(value).encode()
        status, _, answer = self.ask(method, path, body)
        return status, json.loads(answer) if answer else None

    def finished(self, job: str) -> dict[str, Any]:
        """The status of a job once its diagnosis is over."""
        while True:
            status, found = self.json("GET", f"/api/jobs/{job}")
            assert status == 200
            if found["state"] in ("done", "failed"):
                return dict(found)
            time.sleep(0.1)


def started(*arguments: str | Path, **extra: str) -> subprocess.Popen[str]:
    """Start `firstfault serve` on a free port."""
    paths = os.pathsep.join(str(ROOT / portion) for portion in ("ingest", "correlate", "report"))
    return subprocess.Popen(
        [sys.executable, "-m", "firstfault", "serve", "--port", "0", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, "FIRSTFAULT_SERVE_TOKEN": TOKEN, **extra},
    )


def reached(process: subprocess.Popen[str]) -> Server:
    """The server once it answers."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("http://127.0.0.1:"), process.communicate()
    server = Server(int(line.split(":")[2].split("/")[0]), process)
    while True:
        try:
            server.ask("GET", "/api/jobs")
        except ConnectionError:
            time.sleep(0.05)
        else:
            return server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("serve")
    process = started("--max-mib", "8", "--folder", folder)
    yield reached(process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert list(folder.iterdir()) == []
