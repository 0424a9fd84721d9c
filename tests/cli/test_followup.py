"""`verify` and `compare`: cited lines that stand, moved or went; fixes that held; roots that come again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firstfault.followup.after import Held, after
from firstfault.followup.compare import Likeness, compare, likeness
from firstfault.followup.saved import Saved, SavedError, saved_from
from firstfault.timeline import open_timeline

from ..correlate.timeline_builder import Job
from .conftest import ROOT, Cli

MUTE = ROOT / "sample_logs" / "mute-rank6" / "logs"
HEALTHY = ROOT / "sample_logs" / "healthy-pair" / "logs"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from firstfault.api import diagnose, to_json

    file = tmp_path_factory.mktemp("report") / "diagnosis.json"
    file.write_text(to_json(diagnose(MUTE)), encoding="utf-8")
    return file


def copy(folder: Path) -> Path:
    for file in sorted(MUTE.rglob("*")):
        if file.is_file():
            target = folder / file.relative_to(MUTE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    return folder


def test_lines_that_stand_are_as_cited(cli: Cli, report: Path) -> None:
    done = cli("verify", report, MUTE, "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.endswith("cited lines: 8 as cited, 0 not\n")
    assert cli("verify", report.parent, MUTE, "--quiet", "--format", "json").exit_code == 0


def test_lines_that_moved_changed_or_went_are_named(cli: Cli, report: Path, tmp_path: Path) -> None:
    logs = copy(tmp_path / "logs")
    moved = logs / "v100-r2n6" / "none_2huq6pt7" / "attempt_0" / "2" / "stderr.log"
    moved.write_text("a new first line\n" + moved.read_text())
    (logs / "v100-r2n5" / "none_28btplu_" / "attempt_0" / "0" / "error.json").unlink()
    agent = logs / "v100-r2n6" / "agent.log"
    agent.write_text("".join(line for line in agent.read_text().splitlines(keepends=True) if "30846" not in line))
    done = cli("verify", report, logs, "--quiet", "--format", "json")
    assert done.exit_code == 3
    found = {
        (one["cited"]["path"].rsplit("/", 1)[-1], one["state"]): one["line"] for one in json.loads(done.stdout)["lines"]
    }
    assert found["stderr.log", "moved"] == 13
    assert ("error.json", "no-file") in found
    assert ("agent.log", "changed") in found or ("agent.log", "gone") in found
    text = cli("verify", report, logs, "--quiet").stdout
    assert "moved    v100-r2n6/none_2huq6pt7/attempt_0/2/stderr.log:12  now at line 13" in text


@pytest.mark.parametrize(
    "content", ["no json", "[1]", '{"schema": "firstfault.diagnosis/9"}', '{"schema": "firstfault.diagnosis/1"}']
)
def test_what_is_no_diagnosis_is_refused(cli: Cli, tmp_path: Path, content: str) -> None:
    (tmp_path / "d.json").write_text(content)
    done = cli("verify", tmp_path / "d.json", MUTE, "--quiet")
    assert (done.exit_code, done.stdout) == (1, "")
    assert str(tmp_path / "d.json") in done.stderr


def test_a_redacted_report_is_checked_against_the_logs_by_whoever_has_them(cli: Cli, tmp_path: Path) -> None:
    assert cli("diagnose", MUTE, "--redact", "--output", tmp_path / "out", "--quiet").exit_code == 0
    done = cli("verify", tmp_path / "out", MUTE, "--redact", "--quiet")
    assert (done.exit_code, done.stdout) == (0, "8 cited lines: 8 as cited, 0 not\n")
    without = cli("verify", tmp_path / "out", MUTE, "--quiet")
    assert without.exit_code == 3
    assert "where it was made with --redact, give that here too" in without.stderr
    assert cli("verify", tmp_path / "out", "--after", MUTE, "--redact").exit_code == 2


def test_usage_of_verify(cli: Cli, report: Path) -> None:
    assert cli("verify", report).exit_code == 2
    assert cli("verify", report, MUTE, "--after", MUTE).exit_code == 2
    assert cli("verify", report, MUTE, "--format", "html").exit_code == 2
    assert cli("verify", "no-such.json", MUTE).exit_code == 1


def test_after_a_fix_the_new_run_completed(cli: Cli, report: Path) -> None:
    done = cli("verify", report, "--after", HEALTHY, "--quiet")
    assert done.exit_code == 0
    assert done.stdout.startswith("fixed: the new run completed\n")


def test_the_same_failure_again_is_no_fix(cli: Cli, report: Path) -> None:
    done = cli("verify", report, "--after", MUTE, "--quiet", "--format", "json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["held"] == "back"


def saved(name: str, cls: str | None = "cuda-oom", **changes: object) -> Saved:
    document: dict[str, object] = {
        "schema": "firstfault.diagnosis/1",
        "verdict": "identified" if cls else "undetermined",
        "failure": {"class": cls, "entry": changes.get("entry", "cuda-oom" if cls == "cuda-oom" else None)},
        "initiating": {
            "ranks": [3],
            "hosts": changes.get("hosts", ["b"]),
            "gpus": changes.get("gpus", []),
            "at": changes.get("at"),
        },
        "evidence": [],
        "confidence": 0.9,
        "job": {"last_step": changes.get("step"), "started": changes.get("started"), "ended": changes.get("ended")},
    }
    return saved_from({**document, "verdict": changes.get("verdict", document["verdict"])}, name)


@pytest.mark.parametrize(
    ("old_step", "new", "error_again", "held"),
    [
        (5, saved("new", None, verdict="no-failure", step=4), False, Held.FIXED),
        (5, saved("new", None, step=9), False, Held.FIXED),
        (5, saved("new", None, step=9), True, Held.STILL_SEEN),
        (5, saved("new", "disk-full", step=9), False, Held.FIXED),
        (5, saved("new", "disk-full", step=3), False, Held.OTHER),
        (5, saved("new", None, step=5), False, Held.TOO_EARLY),
        (5, saved("new", None), False, Held.TOO_EARLY),
        (5, saved("new", "cuda-oom", step=9, hosts=["c"]), True, Held.BACK),
    ],
)
def test_whether_a_fix_held(tmp_path: Path, old_step: int, new: Saved, error_again: bool, held: Held) -> None:
    job = Job(a=1)
    job.rank(0).steps(3)
    if error_again:
        job.rank(0).error("cuda-oom", at=4)
    with open_timeline(job.write(tmp_path / "t.duckdb")) as con:
        found = after(con, saved("old", step=old_step), new)
    assert (found.held, found.times_seen) == (held, int(error_again))


def test_without_steps_the_time_counts(tmp_path: Path) -> None:
    old = saved("old", started="2026-01-01T00:00:00Z", at="2026-01-01T01:00:00Z")
    with open_timeline(Job(a=1).write(tmp_path / "t.duckdb")) as con:
        longer = saved("new", None, started="2026-01-02T00:00:00Z", ended="2026-01-02T02:00:00Z")
        assert after(con, old, longer).held is Held.FIXED
        mixed = saved("new", None, started="2026-01-02T00:00:00Z", ended="2026-01-02T02:00:00")
        assert after(con, old, mixed).held is Held.TOO_EARLY
        with pytest.raises(ValueError, match="names no failure"):
            after(con, saved("old", None), longer)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (saved("b"), Likeness.SAME),
        (saved("b", hosts=["c"]), Likeness.SAME_KIND),
        (saved("b", entry="other"), Likeness.RELATED),
        (saved("b", "disk-full"), Likeness.SAME_PLACE),
        (saved("b", "disk-full", hosts=["c"]), Likeness.DIFFERENT),
        (saved("b", None), Likeness.UNKNOWN),
        (saved("b", None, verdict="no-failure"), Likeness.NO_FAILURE),
    ],
)
def test_how_alike_two_roots_are(other: Saved, expected: Likeness) -> None:
    assert likeness(saved("a"), other) is expected


def test_hosts_and_gpus_that_come_again() -> None:
    jobs = [
        saved("a", gpus=["b/3"]),
        saved("b", hosts=["c"]),
        saved("c", "disk-full", gpus=["b/3"]),
        saved("d", None, hosts=[]),
    ]
    found = [(one.kind, one.name, one.times, one.where, one.classes) for one in compare(jobs).recurring]
    assert found == [
        ("gpu", "b/3", 2, ("a", "c"), ("cuda-oom", "disk-full")),
        ("host", "b", 2, ("a", "c"), ("cuda-oom", "disk-full")),
    ]


def test_compare_takes_reports_timelines_and_logs(cli: Cli, report: Path, timeline: Path) -> None:
    done = cli("compare", report.parent, report, timeline, HEALTHY, "--quiet")
    assert done.exit_code == 0
    assert "the same root (both name v100-r2n6)" in done.stdout
    assert "host v100-r2n6: 2 times the place of the root" in done.stdout
    assert "at least one of them completed" in done.stdout
    assert len(json.loads(cli("compare", report, report, "--format", "json").stdout)["jobs"]) == 2
    assert cli("compare", report).exit_code == 2


def test_a_document_of_another_kind_is_no_diagnosis() -> None:
    with pytest.raises(SavedError, match="not a diagnosis"):
        saved_from({"schema": "other/1"}, "x.json")
