"""`explain` and `catalog`: from a line, a word or an id to an entry, and entries of one's own."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from .conftest import Cli

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with one entry of a user's own, made from one that ships."""
    from firstfault.catalog import load_catalog
    from firstfault.catalog.loader import HERE

    shipped = load_catalog().entries["disk-quota"]
    text = (HERE / shipped.path).read_text(encoding="utf-8")
    assert 'id = "disk-quota"' in text
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "disk-quota.toml").write_text(text, encoding="utf-8")
    return folder


def test_a_line_leads_to_its_entry(cli: Cli) -> None:
    done = cli("explain", f"2026-05-04 10:11:12 [rank3]: {OOM}")
    assert done.exit_code == 0
    assert "  cuda-oom · class cuda-oom · initiating" in done.stdout
    assert "\nFix\n  - " in done.stdout


def test_a_traceback_from_standard_input(cli: Cli) -> None:
    pasted = f'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n{OOM}\n'
    assert "cuda-oom · class cuda-oom" in cli("explain", "-", stdin=pasted).stdout


def test_ids_codes_and_classes_are_explained(cli: Cli) -> None:
    assert "  xid-79 · class gpu-fell-off-bus" in cli("explain", "xid-79").stdout
    assert "- xid 79, GPU has fallen off the bus" in cli("explain", "Xid 79").stdout
    assert "class disk-full · " in cli("explain", "disk-full-tmp").stdout
    assert "First commands" in cli("explain", "gpu-ecc-uncorrectable").stdout


@pytest.mark.parametrize("text", ["", "   ", "zzqx qqzx"])
def test_what_nothing_explains_is_said(cli: Cli, text: str) -> None:
    done = cli("explain", text)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("firstfault: no")


def test_a_list_can_be_narrowed(cli: Cli) -> None:
    everything = cli("catalog", "list").stdout.splitlines()
    one_class = cli("catalog", "list", "--class", "disk-full").stdout.splitlines()
    assert len(everything) > 300
    assert {line.split()[0] for line in one_class} < {line.split()[0] for line in everything}
    assert "disk-full" in [line.split()[0] for line in one_class]
    assert "gpu-fell-off-bus" in [line.split()[0] for line in cli("catalog", "list", "--classes").stdout.splitlines()]


@pytest.mark.parametrize("arguments", [("--class", "nope"), ("--role", "guilty"), ("--catalog", "no/such")])
def test_a_wrong_choice_is_wrong_usage(cli: Cli, arguments: tuple[str, str]) -> None:
    assert cli("catalog", "list", *arguments).exit_code == 2


def test_search_finds_by_words(cli: Cli) -> None:
    found = [line.split()[0] for line in cli("catalog", "search", "disk", "quota").stdout.splitlines()]
    assert found[0] == "disk-quota"
    assert cli("catalog", "search", "zzqx").exit_code == 1


def test_show_suggests_what_was_meant(cli: Cli) -> None:
    assert cli("catalog", "show", "disk-quota").exit_code == 0
    done = cli("catalog", "show", "disk-quot")
    assert done.exit_code == 2
    assert "perhaps disk-quota" in done.stderr


def test_entries_of_ones_own_are_checked_and_tested(cli: Cli, own: Path) -> None:
    assert cli("catalog", "check", own).exit_code == 0
    done = cli("catalog", "test", own)
    assert done.exit_code == 0
    assert done.stdout.startswith("ok      disk-quota: ")


def test_a_broken_example_is_named_with_its_place(cli: Cli, own: Path) -> None:
    file = own / "disk-quota.toml"
    file.write_text(file.read_text() + '\n[[match]]\nline = "nothing of the kind"\n')
    for command in ("check", "test"):
        done = cli("catalog", command, own)
        assert done.exit_code == 1
        assert f"{file}:" in done.stdout
        assert "does not match its example" in done.stdout


def test_entries_are_tried_on_a_log(cli: Cli, own: Path, tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    log.write_text("step 1\nOSError: [Errno 122] Disk quota exceeded: '/home/x'\n")
    done = cli("catalog", "test", own, "--log", log)
    assert "rank0.log:2: disk-quota" in done.stdout


def test_no_entry_is_no_success(cli: Cli, tmp_path: Path) -> None:
    assert cli("catalog", "test", tmp_path).exit_code == 1
    assert cli("catalog", "check", tmp_path / "none").exit_code == 2


def test_a_diagnosis_speaks_by_entries_of_ones_own(cli: Cli, own: Path, tmp_path: Path) -> None:
    file = own / "disk-quota.toml"
    title = 'title = "Quota of our own file server"'
    lines = [title if line.startswith("title = ") else line for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines) + "\n")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "rank0.log").write_text("step 1\n[rank0]: OSError: [Errno 122] Disk quota exceeded: '/home/x'\n")
    assert "what      Quota of our own file server\n" in cli("diagnose", logs, "--catalog", own).stdout


@pytest.mark.parametrize("form", ["grep", "loki", "prometheus-rule", "ripgrep", "vector"])
def test_patterns_go_to_monitoring(cli: Cli, form: str) -> None:
    everything = cli("catalog", "export", "--format", form).stdout
    chosen = cli("catalog", "export", "--format", form, "disk-quota", "xid-79").stdout
    assert 0 < len(chosen) < len(everything)
    assert "Disk quota exceeded" in chosen


def test_a_class_exports_what_may_start_a_failure(cli: Cli) -> None:
    named = cli("catalog", "export", "--format", "loki", "store-lost").stdout
    assert 'entry: "ray-gcs-died"' in named
    assert 'entry: "elastic-keepalive-failed"' not in named
    assert "elastic-keepalive-failed" in cli("catalog", "export", "--format", "loki", "elastic-keepalive-failed").stdout


@pytest.mark.parametrize("arguments", [("--format", "syslog"), ("--format", "loki", "no-such-entry")])
def test_a_wrong_export_is_wrong_usage(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("catalog", "export", *arguments).exit_code == 2


def test_pages_are_written_with_entries_of_ones_own(cli: Cli, own: Path, tmp_path: Path) -> None:
    entry = own / "disk-quota.toml"
    entry.write_text(
        re.sub(r"(?m)^title = .*", 'title = "Our quota"', entry.read_text(encoding="utf-8")), encoding="utf-8"
    )
    assert cli("catalog", "site", "--output", tmp_path / "site", "--catalog", own).exit_code == 0
    assert "<h1>Our quota</h1>" in (tmp_path / "site" / "entry" / "disk-quota.html").read_text(encoding="utf-8")


def test_the_environment_names_folders_of_entries(
    cli: Cli, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = own / "disk-quota.toml"
    entry.write_text(
        re.sub(r"(?m)^title = .*", 'title = "Our quota"', entry.read_text(encoding="utf-8")), encoding="utf-8"
    )
    (tmp_path / "second").mkdir()
    monkeypatch.setenv("FIRSTFAULT_CATALOG", f"{own}{os.pathsep}{tmp_path / 'second'}")
    assert "Our quota" in cli("explain", "disk-quota").stdout
    assert "Our quota" not in cli("explain", "disk-quota", "--catalog", tmp_path / "second").stdout
    monkeypatch.setenv("FIRSTFAULT_CATALOG", str(tmp_path / "none"))
    assert cli("explain", "disk-quota").exit_code == 2
