"""`firstfault ci`: what is made of a diagnosis for a pull request and for later steps."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from firstfault.api import diagnose, document
from firstfault.followup.ci import Annotation, Frame, comment, marker, messages, outputs, summary

ROOT = Path(__file__).parents[2]
PORTIONS = os.pathsep.join(str(ROOT / portion) for portion in ("ingest", "correlate", "report"))


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return document(diagnose(ROOT / "sample_logs" / "absent-shard-one-host" / "logs"))


@pytest.fixture
def answer(made: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(made)


def test_a_comment_names_what_where_and_the_lines(answer: dict[str, Any]) -> None:
    text = comment(answer, "train", "https://github.com/o/r/actions/runs/1")
    assert text.startswith("<!-- firstfault:train -->\n### firstfault: first failure identified\n")
    for part in (
        "`data-missing`",
        "`rank 6 on host scr-2`",
        "`scr-2.log.gz:60`",
        "shard-00014.npy",
        "**Who only followed**",
    ):
        assert part in text
    assert "[The whole report](https://github.com/o/r/actions/runs/1)" in text


def test_an_open_verdict_names_nobody_and_the_missing_fact(answer: dict[str, Any]) -> None:
    answer |= {"verdict": "undetermined", "missing_fact": "the log of rank 3", "confidence": 0.6}
    answer["failure"] = dict.fromkeys(answer["failure"])
    answer["initiating"] |= {"component": None, "ranks": [], "hosts": [], "at": None}
    text = comment(answer)
    assert "### firstfault: not determined" in text
    assert "| missing fact | the log of rank 3 |" in text
    assert "| where |" not in text
    assert outputs(answer)["class"] == outputs(answer)["ranks"] == ""
    assert next(messages(answer, (), None)).level == "warning"


def test_words_of_a_log_are_only_words(answer: dict[str, Any]) -> None:
    answer["summary"] = "@team/all see #12, GH-7, www.a.com and https://b.com/ <b>x</b> $y$ | <!-- `"
    line = comment(answer).splitlines()[3]
    assert not any(live in line for live in ("@t", "#1", "GH-7", "www.a", "://b", "<b>", "$y", " | ", "<!--", " `"))
    answer["evidence"][0]["text"] = "a ``` b\n@c <d>"
    assert "````a ``` b\\x0a@c <d>````" in comment(answer)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("ab1@#$`<>&|\\[]()!*_~:/.-w \n\x1b\u202e"), max_size=60))
def test_whatever_a_log_says_renders_as_words_and_code(answer: dict[str, Any], said: str) -> None:
    answer["summary"] = answer["next_action"] = said
    answer["evidence"] = [{**answer["evidence"][0], "path": said or "a", "text": said, "why": said}]
    answer["why_not"] = [{"who": said, "why": said}]
    answer["initiating"]["hosts"] = [said]
    own = ("<br>", "<span>", "</span>", "<sub>", "</sub>")
    for block in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(comment(answer)):
        assert block.type not in ("fence", "code_block")
        assert block.type != "html_block" or block.content == "<!-- firstfault:firstfault -->\n"
        for one in block.children or ():
            assert one.type not in ("link_open", "image", "em_open", "strong_open", "s_open") or "strong" in one.type
            assert one.type != "html_inline" or one.content in own
            if one.type == "text":
                assert not re.search(r"@[a-z0-9]|#[0-9]|://|www\.", one.content)


@pytest.mark.parametrize(("name", "expected"), [("a b-->", "a-b---"), ("train/3", "train-3"), ("x" * 300, "x" * 100)])
def test_a_name_stays_inside_the_mark(name: str, expected: str) -> None:
    assert marker(name) == f"<!-- firstfault:{expected} -->"


def test_a_long_answer_is_cut_and_says_so(answer: dict[str, Any]) -> None:
    answer["collateral"]["groups"] = [{"what": "w" * 5000, "hosts": [], "ranks": list(range(0, 40_000, 2))}] * 5
    answer["evidence"] = [
        {**answer["evidence"][0], "text": "`" * 500, "path": f"{number}" * 400} for number in range(9)
    ]
    answer["why_not"] = [{"who": "@" * 900, "why": "$" * 900}] * 9
    answer["advice"]["fix"] = ["#" * 900] * 9
    text = comment(answer, link="https://x.org/y")
    assert len(text) <= 30_000
    assert text.rstrip().endswith("</sub>")
    assert "<details>" not in summary(answer, "x" * 500_000)


def test_outputs_hold_nothing_that_a_script_could_run(answer: dict[str, Any]) -> None:
    answer["initiating"]["hosts"] = ["a$(id)`b`;c\nverdict=no-failure", "n1.example.com"]
    assert outputs(answer)["hosts"] == "a__id__b__c_verdict_no-failure, n1.example.com"


def test_an_annotation_is_one_command() -> None:
    one = Annotation("error", "a: b, c", "100 %\n::error::x\r", "logs/r,0.log", 3)
    assert one.command() == ("::error title=a%3A b%2C c,file=logs/r%2C0.log,line=3::100 %25%0A::error::x%0D")


def test_a_place_in_the_code_counts_where_it_reads_the_same(answer: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "data.py").write_text("import os\n    raise ValueError(x)\n", encoding="utf-8")

    def place(file: str, line: int, text: str) -> str | None:
        return next(messages(answer, (), tmp_path, [Frame(file, line, text)])).file

    assert place("/srv/code/pkg/data.py", 2, "    raise ValueError(x)") == "pkg/data.py"
    assert place("/srv/code/pkg/data.py", 1, "    raise ValueError(x)") is None
    assert place("/srv/code/pkg/data.py", 2, "    raise KeyError(x)") is None
    assert place("/srv/code/pkg/data.py", 2, "") is None
    assert place("../../pkg/data.py", 9, "raise ValueError(x)") is None
    assert place("/srv/other.py", 1, "import os") is None


def command(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`firstfault ci` outside of GitHub."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    return subprocess.run(
        [sys.executable, "-m", "firstfault", "ci", *options, str(folder)], capture_output=True, text=True, check=False,
        env={**environment, "PYTHONPATH": PORTIONS}, timeout=60,
    )  # fmt: skip


def test_elsewhere_the_comment_is_printed(answer: dict[str, Any], tmp_path: Path) -> None:
    assert "`firstfault diagnose PATH..." in command(tmp_path).stderr
    (tmp_path / "diagnosis.json").write_text(json.dumps(answer), encoding="utf-8")
    done = command(tmp_path, "--name", "nightly")
    assert (done.returncode, done.stdout) == (0, comment(answer, "nightly"))
    assert (tmp_path / "comment.md").read_text(encoding="utf-8") == done.stdout
    assert command(tmp_path, "--link", "javascript:alert(1)").returncode == 2
    (tmp_path / "diagnosis.json").write_text('{"schema": "other"}', encoding="utf-8")
    assert command(tmp_path).returncode == 1
