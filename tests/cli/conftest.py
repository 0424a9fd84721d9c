"""The command line inside this process and as a process of its own, and a timeline of a sample job."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_logs" / "absent-shard-one-host" / "logs"
HEALTHY = ROOT / "sample_logs" / "healthy-pair" / "logs"

Cli = Callable[..., Result]
Process = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli() -> Cli:
    """Run a command in this process; a traceback is a failure of the test."""
    from firstfault.cli.app import app

    def run(*arguments: str | Path, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(app, [str(one) for one in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def environment(**extra: str) -> dict[str, str]:
    """This environment, with the working tree in front."""
    paths = os.pathsep.join(str(ROOT / portion) for portion in ("ingest", "correlate", "report"))
    return {**os.environ, "PYTHONPATH": paths, **extra}


@pytest.fixture
def process() -> Process:
    """Run a command as a process of its own."""

    def run(*arguments: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "firstfault", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=environment(**extra),
            stdin=subprocess.DEVNULL,
        )

    return run


@pytest.fixture(scope="session")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The timeline of a sample job, to be read only."""
    from firstfault.ingest import ingest

    database = tmp_path_factory.mktemp("timeline") / "t.duckdb"
    ingest([SAMPLE], database)
    return database
