"""What a log says is shown in every form, and acts in none: markup, terminal escapes, text turned round, formulas."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from .conftest import Process

EVIL = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)> ]]> &lt; \u202eabc\u202c \u2066x\u2069 \x9b31m"
    " \x1b]0; `code` **bold** [link](javascript:alert(1)) | a | b | =1+1 ${x} %s"
)
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evil") / "logs"
    (folder / "=cmd()<b>").mkdir(parents=True)
    for rank in range(2):
        lines = [f"2025-05-12 10:00:0{at},000 - train - INFO - step {at} {EVIL}" for at in range(5)]
        lines.append(f"=HYPERLINK({rank}) {EVIL}")
        if rank:
            lines += ["Traceback (most recent call last):", '  File "a.py", line 3, in f', f"ValueError: {EVIL}"]
        (folder / "=cmd()<b>" / f"rank{rank}\x1b[31m.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


class Page(HTMLParser):
    """The elements of a page and those of their attributes that could act."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.acting: list[str] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        values = dict(attrs)
        if values.get("http-equiv", "").lower() == "content-security-policy":  # type: ignore[union-attr]
            self.policy = values["content"] or ""
        for name, value in attrs:
            if name.startswith("on") or "javascript:" in (value or "").lower().replace("\\", ""):
                self.acting.append(f"{tag} {name}")


def test_no_report_lets_a_log_act(process: Process, logs: Path, tmp_path: Path) -> None:
    done = process("diagnose", logs, "--output", tmp_path / "out")
    assert done.returncode == 0
    assert ACTING.search(done.stdout + done.stderr) is None
    for name in ("report.md", "diagnosis.json", "report.html", "swimlanes.svg"):
        assert ACTING.search((tmp_path / "out" / name).read_text(encoding="utf-8")) is None, name
    page = Page()
    page.feed((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert page.acting == []
    assert not {"img", "iframe", "object", "embed", "base", "form", "link"} & set(page.elements)
    assert "default-src 'none'" in page.policy
    assert "unsafe" not in page.policy
    picture = ElementTree.fromstring((tmp_path / "out" / "swimlanes.svg").read_text(encoding="utf-8"))
    tags = {one.tag.rpartition("}")[2] for one in picture.iter()}
    assert not tags & {"script", "foreignObject", "image", "a", "iframe"}
    cited = json.loads((tmp_path / "out" / "diagnosis.json").read_text(encoding="utf-8"))["evidence"]
    assert any("\u202eabc" in one["text"] for one in cited), "readers of JSON get the text as it is"

    db = tmp_path / "out" / "timeline.duckdb"
    for form in ("table", "csv", "json", "markdown"):
        said = process("sql", db, "SELECT path, line, message FROM lines", "--format", form).stdout
        assert "HYPERLINK" in said
        assert ACTING.search(said) is None, form
        if form == "csv":
            cells = [cell for row in csv.reader(io.StringIO(said)) for cell in row]
            assert [cell for cell in cells if cell[:1] in ("=", "+", "-", "@")] == []
    for form in ("json", "dot", "graphml"):
        said = process("graph", db, "--format", form).stdout
        assert ACTING.search(said) is None, form
        if form == "graphml":
            assert "script" not in {one.tag.rpartition("}")[2] for one in ElementTree.fromstring(said).iter()}
