"""Nothing of a log is ever run, nothing leaves the machine, and secrets are masked in every form."""

from __future__ import annotations

import os
import pickle
import socket
from pathlib import Path

import pytest

from firstfault.cli.app import app
from firstfault.correlate.engine import diagnose
from firstfault.ingest import IngestOptions, ingest

from .conftest import Process

SECRETS = (
    "AKIAIOSFODNN7EXAMPLE",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEF12",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "correct-horse-battery-1",
)


class Call:
    """What a pickle of it calls when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.mark}",)


def test_a_pickle_in_the_logs_calls_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "called"
    entry = {"collective_seq_id": 1, "profiling_name": "nccl:all_reduce", "state": "started", "time_created_ns": 1}
    dump = {"pg_config": {}, "pg_status": {}, "entries": [entry], "version": Call(mark), "rank": 0}
    for protocol in range(6):
        folder = tmp_path / "logs" / f"node-{protocol}"
        folder.mkdir(parents=True)
        for name in ("nccl_trace_rank_0", "rank0.pkl", "state.pt", "error.json", "rank0.log"):
            (folder / name).write_bytes(pickle.dumps(dump, protocol))
    (tmp_path / "logs" / "rank1.log").write_text("step 1\n", encoding="utf-8")
    ingest([tmp_path / "logs"], tmp_path / "t.duckdb", IngestOptions(workers=1))
    diagnose(tmp_path / "t.duckdb")
    assert not mark.exists()
    pickle.loads(pickle.dumps(dump))
    assert mark.exists(), "it would have"


def test_no_socket_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    def refused(*_: object, **__: object) -> object:
        raise AssertionError("a socket")

    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    (tmp_path / "logs").mkdir()
    text = "[rank0]: RuntimeError: cannot reach https://example.invalid/x or s3://bucket/y on 10.0.0.7:29500\n"
    (tmp_path / "logs" / "rank0.log").write_text(text, encoding="utf-8")
    for arguments in (
        ["diagnose", tmp_path / "logs", "--output", tmp_path / "out"],
        ["sql", tmp_path / "out" / "timeline.duckdb", "SELECT 1"],
        ["explain", "CUDA out of memory. Tried to allocate 2.00 GiB"],
        ["report", tmp_path / "out" / "timeline.duckdb", "--format", "html"],
    ):
        done = CliRunner().invoke(app, [str(one) for one in arguments])
        assert done.exit_code == 0, (arguments, done.output, done.stderr)


@pytest.mark.skipif(not Path("/usr/bin/unshare").exists(), reason="needs unshare")
def test_a_machine_without_a_network_is_enough(process: Process, tmp_path: Path) -> None:
    import subprocess

    if subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no network namespaces here")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank0.log").write_text("[rank0]: RuntimeError: x\n", encoding="utf-8")
    done = process("diagnose", tmp_path / "logs", before='set -- unshare -rn "$@"')
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_secrets_are_masked_in_every_form(process: Process, tmp_path: Path, form: str) -> None:
    (tmp_path / "logs").mkdir()
    lines = [f"2025-05-12 10:00:0{at},000 - train - INFO - step {at} loss 2.0" for at in range(3)]
    for one in SECRETS:
        bare = one if one != SECRETS[-1] else "none"  # a word that only its name tells to be a password
        lines.append(f"[rank0]: RuntimeError: login failed: {bare} password={one} https://user:{one}@example.invalid/")
    (tmp_path / "logs" / "rank0.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = process("diagnose", tmp_path / "logs", "--format", form, "--context", "20").stdout
    assert "login failed" in said
    assert [one for one in SECRETS if one in said] == []
