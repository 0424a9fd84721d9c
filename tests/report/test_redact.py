"""Redaction: the same stand-in for the same name in every output, and nothing of the site left in any of them."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from firstfault.correlate.diagnosis import Diagnosis, Evidence
from firstfault.report.document import to_json
from firstfault.report.redact import Redactor
from firstfault.report.redact_timeline import copy_timeline, known_hosts

Make = Callable[..., Diagnosis]
ROOT = Path(__file__).parents[2]


def test_names_are_replaced_by_their_form() -> None:
    one = Redactor(["gpu-a01", "gpu-a012", "gpu-b02.cluster.example.org"])
    assert one.text("gpu-a01 lost gpu-a012, not xgpu-a01") == "host-1 lost host-2, not xgpu-a01"
    assert one.text("rank0_gpu-a01.log on gpu-b02.cluster.example.org:29500") == "rank0_host-1.log on host-3:29500"
    assert one.text("from 10.1.2.3 and 10.1.2.3 to fd00:10::12ab") == "from ip-1 and ip-1 to ip-2"
    assert one.text("mail alice.b@example.org") == "mail mail-1"
    assert one.text("/home/alice/exp/train.py by alice") == "/path-1/train.py by user-1"
    assert (
        one.text("https://git.example.org/x and https://pytorch.org/docs")
        == "https://url-1 and https://pytorch.org/docs"
    )


@pytest.mark.parametrize(
    "text",
    [
        "10:11:12 step 3 at 0000:4e:00.0",
        "127.0.0.1 and 0.0.0.0",
        "/proc/meminfo and /usr/lib/libcuda.so.1",
        "NCCL version 2.20.5+cuda12.4",
        "loss 0.123 lr 1e-4",
    ],
)
def test_what_names_nobody_stays(text: str) -> None:
    assert Redactor(["gpu-a01"]).text(text) == text


def test_installed_packages_stay_readable() -> None:
    said = Redactor().text('File "/opt/envs/alice/lib/python3.11/site-packages/torch/nn/functional.py", line 3')
    assert said == 'File "/path-1/site-packages/torch/nn/functional.py", line 3'


def test_logs_keep_what_numbers_them() -> None:
    one = Redactor(["gpu-a01"])
    assert one.path("alice-run/gpu-a01/attempt_0/3/stderr.log") == "dir-1/host-1/attempt_0/3/stderr.log"
    assert one.text("nothing after alice-run/gpu-a01/attempt_0/3/stderr.log:12") == (
        "nothing after dir-1/host-1/attempt_0/3/stderr.log:12"
    )


def test_a_whole_answer_is_redacted_consistently(identified: Make) -> None:
    line = Evidence("n2/rank3.log", 120, "n2: /home/alice/train.py from 10.0.0.2", "its own error")
    one = Redactor(["n1", "n2"]).answer(identified(evidence=(line,)))
    text = to_json(one)
    assert not any(name in text for name in ('"n1', '"n2', " n2", "alice", "10.0.0.2"))
    document = json.loads(text)
    assert document["initiating"]["hosts"] == ["host-2"]
    assert document["evidence"][0]["path"] == "host-2/rank3.log"
    assert document["failure"] == {"class": "cuda-oom", "entry": "cuda-oom", "title": "Out of memory on the device"}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from firstfault.correlate.engine import diagnose
    from firstfault.ingest import IngestOptions, ingest

    path = tmp_path_factory.mktemp("timeline") / "t.duckdb"
    ingest([ROOT / "sample_logs" / "mute-rank6" / "logs"], path, IngestOptions(workers=1))
    diagnose(path)
    return path


def test_a_timeline_is_redacted_in_every_column(database: Path, tmp_path: Path) -> None:
    hosts = known_hosts(database)
    assert {"v100-r2n5", "v100-r2n6"} <= set(hosts)
    one = Redactor(hosts)
    copy_timeline(database, tmp_path / "r.duckdb", one.text, one.path)
    with duckdb.connect(str(tmp_path / "r.duckdb"), read_only=True) as con, duckdb.connect(str(database)) as old:
        for (table,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            rows = con.execute(f"SELECT * FROM {table}").fetchall()
            if table == "meta":  # what would pass the copy off as the timeline of its logs is left out
                assert not {row[0] for row in rows} & {"roots", "made_of", "counts"}
                continue
            assert len(rows) == old.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0], table
            found = str(rows)
            assert "r2n5" not in found, table
            assert "10.64." not in found, table
        assert con.execute("SELECT count(*) FROM lines WHERE host = 'host-1'").fetchone() != (0,)
        assert con.execute("SELECT DISTINCT class FROM hypotheses ORDER BY 1").fetchall() != []


def test_a_bundle_holds_report_timeline_and_cited_logs(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from firstfault.cli.app import app

    logs = tmp_path / "job" / "kestrel7"
    logs.mkdir(parents=True)
    key = "-----BEGIN PRIVATE KEY-----\nMIIEabcdef\n-----END PRIVATE KEY-----"
    (logs / "rank0.log").write_text(
        "rank 0 of 1 on kestrel7, pid 7, local rank 0\nstep 1 loss 2.0\npassword=hunter2222\n"
        f"{key}\n"
        "Traceback (most recent call last):\n"
        '  File "/home/alice/train.py", line 3, in <module>\n'
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    )
    target = tmp_path / "b.tar.gz"
    result = CliRunner().invoke(
        app, ["bundle", str(tmp_path / "job"), "--output", str(target), "--redact", "--quiet", "--workers", "1"]
    )
    assert result.exit_code == 0, result.output
    with tarfile.open(target) as archive:
        files = {one.name: archive.extractfile(one) for one in archive.getmembers()}
        content = {name: file.read() for name, file in files.items() if file is not None}
    assert {"report.html", "report.md", "report.txt", "diagnosis.json", "timeline.duckdb", "MANIFEST.txt"} <= set(
        content
    )
    log = content["logs/host-1/rank0.log"].decode()
    assert len(log.splitlines()) == 9
    for name, data in content.items():
        for secret in (b"hunter2222", b"MIIEabcdef", b"alice", b"kestrel7"):
            assert secret not in data, (name, secret)
