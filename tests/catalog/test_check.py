"""The checks: a broken file is named with its line and all that is wrong with it, and what ships passes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.catalog import Catalog, load_catalog
from firstfault.catalog.captures import NAMES
from firstfault.catalog.check import check_catalog, main, read_healthy

HERE = Path(__file__).parent
BROKEN = HERE / "broken"
HEALTHY = HERE / "healthy"


def test_broken_files_are_named_with_the_line_and_everything_that_is_wrong() -> None:
    problems = check_catalog(load_catalog([BROKEN]))
    found = [f"{one.path}:{one.line}: {one.what}" for one in problems if one.path.startswith(str(BROKEN))]
    expected = (BROKEN / "messages.txt").read_text(encoding="utf-8").splitlines()
    assert [one.replace(f"{BROKEN}/", "") for one in found] == expected


def test_every_message_says_why_and_how_to_mend_it() -> None:
    for problem in check_catalog(load_catalog([BROKEN])):
        assert problem.why
        assert problem.mend
        assert str(problem).count("\n") == 2


def test_the_command_prints_what_concerns_the_given_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(BROKEN / "not-toml.toml")]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith(f"{BROKEN}/not-toml.toml:2: not readable as TOML")
    assert printed.count("why:") == 1


def test_the_command_says_which_path_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(HERE / "nowhere.toml")]) == 1
    assert "nowhere.toml: cannot be read" in capsys.readouterr().err


def test_an_entry_that_fires_on_a_healthy_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "too-eager.toml").write_text(
        'id = "too-eager"\nclass = "python-exception"\ntitle = "t"\nrole = "initiating"\nscope = "rank"\n'
        'event = "exception"\n[[pattern]]\nid = "p"\nregex = "engine started"\n',
        encoding="utf-8",
    )
    problems = check_catalog(load_catalog([tmp_path]), {"good.log": ["all is well", "engine started in 3 s"]})
    assert [one.what for one in problems if "healthy line" in one.what] == [
        "the pattern 'p' fires on a healthy line, good.log:2: 'engine started in 3 s'"
    ]


def test_the_corpus_of_healthy_lines_is_rich() -> None:
    lines = {line for lines in read_healthy(HEALTHY).values() for line in lines if line}
    assert len(lines) >= 500


def test_the_catalog_that_ships_passes_all_checks(catalog: Catalog) -> None:
    assert [str(problem) for problem in check_catalog(catalog, read_healthy(HEALTHY))] == []


def test_the_names_of_captures_are_those_of_the_page() -> None:
    page = (HERE.parents[1] / "docs" / "captures.md").read_text(encoding="utf-8")
    table = "".join(line.split("|")[1] for line in page.partition("\n## ")[0].splitlines() if line.startswith("| `"))
    assert set(table.replace("`", " ").replace(",", " ").split()) == NAMES
