"""`firstfault collect`: what the script takes along, what it says it could not, and that a diagnosis reads it."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "report" / "firstfault" / "live" / "collect.sh"
SHELLS = [one for one in ("sh", "dash", "bash", "busybox") if shutil.which(one)]


def collect(
    tmp_path: Path, *arguments: str | Path, shell: str = "sh", **extra: str
) -> subprocess.CompletedProcess[str]:
    """Run the script in tmp_path with the tools of tmp_path/bin in front."""
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", **extra}
    environment.pop("SLURM_JOB_ID", None)
    shells = ["busybox", "sh"] if shell == "busybox" else [shell]
    return subprocess.run(
        [*shells, str(SCRIPT), *map(str, arguments)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def tool(tmp_path: Path, name: str, script: str) -> None:
    """A command that stands in for one that this machine may not have."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    file = tmp_path / "bin" / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.fixture(autouse=True)
def quick(tmp_path: Path) -> None:
    """A host of a known name whose system tools answer at once."""
    tool(tmp_path, "hostname", "echo gpu-a07.cluster.example")
    for name in ("journalctl", "timedatectl", "kubectl", "scontrol", "nvidia-smi", "dmesg"):
        tool(tmp_path, name, "echo cannot >&2; exit 1")


@pytest.mark.parametrize("shell", SHELLS)
def test_logs_and_the_state_of_the_host_are_taken_along(tmp_path: Path, shell: str) -> None:
    logs = tmp_path / "job" / "attempt_0" / "3"
    logs.mkdir(parents=True)
    (logs / "stderr.log").write_bytes(b"first\n\xff\xfe second\nno newline at the end")
    done = collect(tmp_path, "-o", "out", "job", shell=shell)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'out'}\n")
    host = tmp_path / "out" / "gpu-a07"
    assert (host / "logs/job/attempt_0/3/stderr.log").read_bytes() == b"first\n\xff\xfe second\nno newline at the end"
    for name in ("limits.txt", "memory.txt", "df.txt", "shm.txt", "ps.txt", "hostname.txt"):
        assert (host / name).stat().st_size > 0
    said = (host / "manifest.txt").read_text()
    assert "failed    nvidia-smi with status 1" in said
    assert "not here" in said
    assert list((tmp_path / "out").glob(".*")) == []


def test_nothing_else_is_written(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "rank0.log").write_text("step 1\n")
    before = sorted(tmp_path.rglob("*"))
    collect(tmp_path, "-o", "out", "job")
    assert [one for one in sorted(tmp_path.rglob("*")) if "out" not in one.parts] == before


def test_a_diagnosis_reads_it_and_names_the_host(tmp_path: Path) -> None:
    from firstfault.correlate.engine import diagnose
    from firstfault.ingest import ingest

    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "rank1.log").write_text(
        "[rank1]: step 8 loss 1.2\n[rank1]: Traceback (most recent call last):\n"
        "[rank1]:   File \"train.py\", line 9, in <module>\n[rank1]: KeyError: 'mask'\n"
    )
    assert collect(tmp_path, "-o", "out.tar.gz", "job").returncode == 0
    ingest([tmp_path / "out.tar.gz"], tmp_path / "t.duckdb")
    found = diagnose(tmp_path / "t.duckdb")
    assert (found.failure.cls, found.initiating.ranks, found.initiating.hosts) == (
        "python-exception",
        (1,),
        ("gpu-a07",),
    )
    assert found.evidence[0].path == "gpu-a07/logs/job/rank1.log"
    assert found.evidence[0].line == 4


def test_secrets_are_masked_and_lines_keep_their_numbers(tmp_path: Path) -> None:
    lines = [
        "step 1 tokens=4096 num_tokens: 51234567",
        "HF_TOKEN=hf_abcdefghijklmnop0123 WANDB_API_KEY=0123456789abcdef",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ",
        "-----END OPENSSH PRIVATE KEY-----",
        "pip install --index-url https://bob:hunter2@mirror.example/simple",
        "Authorization: Bearer abcdef0123456789",
        'password: "correct"',
        "https://b/x?a=1&X-Amz-Signature=0123456789abcdef0123&b=2 AIza AIza" + "x" * 35,
        "[rank3]: KeyError: 'attention_mask'",
    ]
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n")
    with gzip.open(tmp_path / "old.log.gz", "wt") as file:
        file.write(lines[1] + "\n")
    collect(tmp_path, "-o", "out", "job.log", "old.log.gz")
    logs = tmp_path / "out" / "gpu-a07" / "logs"
    taken = (logs / "job.log").read_text().splitlines()
    assert len(taken) == len(lines)
    assert taken[2:5] == ["[masked]"] * 3
    assert [taken[n] for n in (0, 9)] == [lines[n] for n in (0, 9)]
    assert taken[1] == "HF_TOKEN=[masked] WANDB_API_KEY=[masked]"
    assert taken[5] == "pip install --index-url https://bob:[masked]@mirror.example/simple"
    assert taken[6] == "Authorization: Bearer [masked]"
    assert taken[7] == 'password: "[masked]"'
    assert taken[8] == "https://b/x?a=1&X-Amz-Signature=[masked]&b=2 AIza [masked]"
    assert gzip.decompress((logs / "old.log.gz").read_bytes()).decode() == taken[1] + "\n"
    collect(tmp_path, "-u", "-o", "plain", "job.log")
    assert (tmp_path / "plain/gpu-a07/logs/job.log").read_text().splitlines() == lines


def test_a_tool_that_hangs_is_left_and_named(tmp_path: Path) -> None:
    tool(tmp_path, "nvidia-smi", "echo Mon; exec sleep 300")
    done = collect(tmp_path, "-o", "out", "-t", "1")
    assert done.returncode == 0
    assert "hung      nvidia-smi did not end within 1 s" in (tmp_path / "out/gpu-a07/manifest.txt").read_text()


def test_slurm_and_kubernetes_are_asked_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "slurm.out").write_text("srun: error: gpu-a07: task 3: Killed\n")
    tool(
        tmp_path, "scontrol",
        'case "$2" in job) printf "JobId=7 JobName=t\\n   JobState=FAILED\\n   StdErr=%s\\n   StdOut=%s\\n"'
        f' {tmp_path}/slurm.out {tmp_path}/slurm.out ;; *) echo NodeName=gpu-a07 State=IDLE ;; esac',
    )  # fmt: skip
    tool(tmp_path, "sacct", 'echo "JobID|State|ExitCode"; echo "7|FAILED|1:0"')
    tool(tmp_path, "sinfo", "echo NODELIST; echo gpu-a07")
    pods = tmp_path / "pods.json"
    pods.write_text(
        '{"items": [\n {"name": "HF_TOKEN",\n  "value": "not-to-be-seen"},\n {"name": "RANK",\n  "value": "3"}\n]}\n'
    )
    tool(
        tmp_path, "kubectl",
        'case "$*" in *jsonpath*) echo "trainer sidecar train-worker-3" ;; *previous*) exit 1 ;;'
        f' "get pods"*) cat {pods} ;; logs*trainer*) echo "2026-05-04T10:00:00.1Z step 1" ;; *) echo "{{}}" ;; esac',
    )  # fmt: skip
    done = collect(tmp_path, "-o", "out", "-j", "7", "-n", "ml", "-l", "job-name=train")
    out = tmp_path / "out"
    assert done.returncode == 0
    assert (out / "slurm/sacct.txt").read_text().splitlines()[-1] == "7|FAILED|1:0"
    assert (out / "gpu-a07/logs/slurm.out").read_text() == "srun: error: gpu-a07: task 3: Killed\n"
    assert (out / "kubectl/train-worker-3_trainer.log").read_text() == "2026-05-04T10:00:00.1Z step 1\n"
    taken = (out / "kubectl/pods.json").read_text()
    assert "not-to-be-seen" not in taken
    assert '"value": "3"' in taken


def test_checkpoints_stay_and_dumps_come_along(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "model.pt").write_bytes(b"PK\0\0" * 100)
    (tmp_path / "job" / "nccl_trace_rank_0").write_bytes(b"\x80\x02}\0")
    collect(tmp_path, "-o", "out", "job")
    assert [one.name for one in (tmp_path / "out/gpu-a07/logs/job").iterdir()] == ["nccl_trace_rank_0"]
    assert "left out  job/model.pt: no text" in (tmp_path / "out/gpu-a07/manifest.txt").read_text()


def test_two_hosts_share_a_directory(tmp_path: Path) -> None:
    for host in ("gpu-a07", "gpu-a08"):
        tool(tmp_path, "hostname", f"echo {host}")
        (tmp_path / "rank.log").write_text(f"on {host}\n")
        collect(tmp_path, "-o", "out", "rank.log")
    assert (tmp_path / "out/gpu-a07/logs/rank.log").read_text() == "on gpu-a07\n"
    assert (tmp_path / "out/gpu-a08/logs/rank.log").read_text() == "on gpu-a08\n"


def test_only_the_end_of_a_large_log(tmp_path: Path) -> None:
    (tmp_path / "big.log").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 20000 + "last\n")
    collect(tmp_path, "-o", "out", "-m", "1", "big.log")
    taken = (tmp_path / "out/gpu-a07/logs/big.log").read_text()
    assert len(taken) <= 1 << 20
    assert taken.endswith("y\nlast\n")
    assert "cut       big.log" in (tmp_path / "out/gpu-a07/manifest.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("no/such",), 2, "no/such: no such file or directory"),
        (("-o", "out.zip"), 2, "an archive ends in .tar or .tar.gz"),
        (("-s", "soon"), 2, "-s soon: a whole number is needed"),
        (("-o", "/proc/out"), 1, "cannot be made; give -o a place that can be written"),
        (("-o", "full.tar"), 1, "full.tar: is there already"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, arguments: tuple[str, ...], status: int, said: str) -> None:
    (tmp_path / "full.tar").touch()
    done = collect(tmp_path, *arguments)
    assert done.returncode == status
    assert said in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_log_without_the_right_to_read_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "job.log").touch(0o000)
    collect(tmp_path, "-o", "out", "job.log")
    assert "no right  to read job.log" in (tmp_path / "out/gpu-a07/manifest.txt").read_text()


def test_an_archive_holds_what_the_directory_would(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("step 1\n")
    done = collect(tmp_path, "-o", "out.tar", "job.log")
    assert done.stdout == "out.tar\n"
    with tarfile.open(tmp_path / "out.tar") as archive:
        assert "./gpu-a07/logs/job.log" in archive.getnames()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["bin", "job.log", "out.tar"]


def test_the_command_runs_and_prints_the_script(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from firstfault.cli.app import app

    printed = CliRunner().invoke(app, ["collect", "--script"])
    assert printed.stdout == SCRIPT.read_text()
    refused = CliRunner().invoke(app, ["collect", str(tmp_path / "none")])
    assert refused.exit_code == 2
