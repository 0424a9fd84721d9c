"""The working tree for processes of their own, and the bench that kills."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

Process = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Run a command in a process of its own; `before` is what a shell does first, such as `ulimit -n 64`."""

    def run(*arguments: str | Path, before: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join(str(ROOT / portion) for portion in ("ingest", "correlate", "report"))
        command = [sys.executable, "-m", "firstfault", *map(str, arguments)]
        if before:
            command = ["sh", "-c", f'{before}; exec "$@"', "sh", *command]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", ""), **extra},
            stdin=subprocess.DEVNULL,
            cwd=tmp_path,
        )

    return run
