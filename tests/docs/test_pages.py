"""The pages: those made from the program are current, links lead somewhere, the README keeps its promises."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
MADE = (
    "docs/commands.md",
    "docs/timeline.md",
    "docs/rules.md",
    "docs/document.md",
    "docs/python.ipynb",
    "sample_logs/README.md",
    "README.md",
)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "sample_logs" / "README.md"])


@cache
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_make", ROOT / "docs" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def made() -> dict[str, str]:
    pages: dict[str, str] = make().pages()
    return pages


@pytest.mark.parametrize("name", MADE)
def test_a_page_made_from_the_program_is_current(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == made()[name], "python3 dev.py python docs/make.py"


def test_all_made_pages_are_looked_at() -> None:
    assert tuple(made()) == MADE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    text = re.sub(r"(?s)```.*?```", "", page.read_text(encoding="utf-8"))
    targets = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_every_page_is_reached_from_the_readme() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#\s]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert {f"docs/{page.name}" for page in ROOT.glob("docs/*.md")} <= linked


def test_the_readme_shows_two_commands_of_one_line_each() -> None:
    """`.ci/run` runs the lines that begin so."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("python3 dev.py ")]
    assert lines == [f"python3 dev.py diagnose {make().SHOWN_JOB}", "python3 dev.py test"]


def test_the_answers_to_most_questions_are_shown_not_empty() -> None:
    """The examples run on the sample job when the page is made."""
    answers = re.findall(r"(?s)### ([^\n]+)\n\n```sql\n.+?\n```\n\n```\n(.+?)\n```", made()["docs/timeline.md"])
    empty = [question for question, answer in answers if len(answer.splitlines()) < 3]
    assert len(answers) >= 20
    assert len(empty) <= 6, empty


def test_the_notebook_has_the_answers_of_its_code() -> None:
    cells = json.loads(made()["docs/python.ipynb"])["cells"]
    codes = [one for one in cells if one["cell_type"] == "code"]
    assert [one["execution_count"] for one in codes] == list(range(1, len(codes) + 1))
    assert "identified collective-rank-absent" in codes[0]["outputs"][0]["text"][0]
    assert sum(bool(one["outputs"]) for one in codes) >= len(codes) - 1


def test_every_command_has_help() -> None:
    text = made()["docs/commands.md"]
    assert "| --- | --- |\n| `PATH...` | Directories, files, archives" in text
    assert re.findall(r"\| `[^`]+` \|  ?\|", text) == []


def test_no_page_names_a_place_of_its_maker() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("needs a git checkout")
    texts = [
        (name, ROOT / name) for name in listed.stdout.splitlines() if name.endswith((".md", ".yml", ".toml", ".py"))
    ]
    own = re.compile(r"/(?:work|root)/(?:main|stage|shared|venv)\b")
    assert [name for name, path in texts if path.is_file() and own.search(path.read_text(encoding="utf-8"))] == []
