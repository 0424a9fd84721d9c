"""diagnose, ingest, report, demo: what they print and write, and how they end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .conftest import HEALTHY, SAMPLE, Cli


def test_the_report_names_rank_and_line(cli: Cli) -> None:
    done = cli("diagnose", SAMPLE)
    assert done.exit_code == 0
    assert "where     rank 6 on host scr-2\n" in done.stdout
    assert "evidence  scr-2.log.gz:60 " in done.stdout
    assert done.stderr == ""


def test_json_is_exactly_one_document(cli: Cli) -> None:
    done = cli("diagnose", SAMPLE, "--format", "json")
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["initiating"]["ranks"]) == ("firstfault.diagnosis/1", [6])


def test_output_also_gets_the_reports_and_the_timeline(cli: Cli, tmp_path: Path) -> None:
    done = cli("diagnose", SAMPLE, "--format", "markdown", "--output", tmp_path / "deep" / "out")
    written = {path.name: path for path in (tmp_path / "deep" / "out").iterdir()}
    assert {"report.md", "report.html", "diagnosis.json", "timeline.duckdb"} <= set(written)
    assert written["report.md"].read_text(encoding="utf-8") == done.stdout
    again = cli("report", written["timeline.duckdb"], "--format", "json")
    assert json.loads(again.stdout) == json.loads(written["diagnosis.json"].read_text(encoding="utf-8"))


def test_a_timeline_that_cannot_be_written_is_reported_on(cli: Cli, timeline: Path, tmp_path: Path) -> None:
    copy = tmp_path / "t.duckdb"
    shutil.copy(timeline, copy)
    copy.chmod(0o444)
    done = cli("report", copy)
    assert done.exit_code == 0
    assert "rank 6 on host scr-2" in done.stdout


@pytest.mark.parametrize(("logs", "status"), [(SAMPLE, 3), (HEALTHY, 0)])
def test_fail_on_failure_is_for_scripts(cli: Cli, logs: Path, status: int) -> None:
    assert cli("diagnose", logs, "--fail-on-failure").exit_code == status


def test_standard_input_is_a_log(cli: Cli) -> None:
    line = (
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity\n"
    )
    done = cli("diagnose", "-", "--format", "json", stdin=line)
    assert done.exit_code == 0
    assert [one["path"] for one in json.loads(done.stdout)["evidence"]][:1] == ["-"]


def test_ingest_says_what_it_took_files_for(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank0.log").write_text("step 1 loss 2.0\n")
    (tmp_path / "logs" / "core").write_bytes(b"\x7fELF" + bytes(range(256)) * 20)
    done = cli("ingest", tmp_path / "logs", "--db", tmp_path / "t.duckdb", "--verbose")
    assert done.exit_code == 0
    assert "rank0.log: " in done.stdout
    assert ": binary: core" in done.stdout
    assert str(tmp_path / "t.duckdb") + ": " in done.stderr


def test_the_demo_is_a_job_of_the_package(cli: Cli) -> None:
    done = cli("demo", "--job", "mute-rank6", "--format", "json")
    assert json.loads(done.stdout)["initiating"]["ranks"] == [6]
    assert done.stderr.startswith("$ firstfault diagnose ")


def test_a_wrong_demo_lists_the_right_ones(cli: Cli) -> None:
    done = cli("demo", "--job", "nope")
    assert (done.exit_code, done.stderr) == (2, "firstfault: --job nope: choose one of batch-width-rank5, mute-rank6\n")


def test_version_is_one_line(cli: Cli) -> None:
    assert len(cli("version").stdout.splitlines()) == 1
    assert cli("--version").stdout == cli("version").stdout


def test_a_second_look_gives_the_same_answer_without_reading(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLE, logs)
    first = cli("diagnose", logs, "--format", "json").stdout
    for name in ("firstfault.ingest.run.read_unit", "firstfault.correlate.engine.diagnose"):
        monkeypatch.setattr(name, lambda *_: pytest.fail("something was read or judged again"))
    assert cli("diagnose", logs, "--format", "json").stdout == first


def test_a_second_look_sees_what_changed(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLE, logs)
    before = json.loads(cli("diagnose", logs, "--format", "json").stdout)
    (logs / "more.log").write_text("2026-05-04 10:00:00,000 - root - INFO - one more line\n")
    after = json.loads(cli("diagnose", logs, "--format", "json").stdout)
    assert after["job"]["lines"] == before["job"]["lines"] + 1
