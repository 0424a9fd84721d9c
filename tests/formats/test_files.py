"""The format files keep their word, and a file that does not is named with what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.ingest.format_check import check
from firstfault.ingest.format_load import FormatError, in_order, parse
from firstfault.ingest.formats import Formats

GOOD = """
id = "mine"
kind = "header"
title = "our own logger"
regex = '''<(?P<level>[A-Z]+)> (?P<t_ymd>\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d) \\[(?P<rank>\\d+)\\] '''
notes = "made up"

[[match]]
line = "<ERROR> 2025-05-12 10:11:12 [3] boom"
expect = { level = "ERROR", rank = 3, ts = "2025-05-12T10:11:12", message = "boom" }

[[no_match]]
line = "<b> 2025"
"""


def test_all_formats_pass_their_checks(formats: Formats) -> None:
    assert check(formats.formats) == []


def test_a_folder_of_ones_own_joins_in(formats: Formats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mine.toml").write_text(GOOD)
    line = "<ERROR> 2025-05-12 10:11:12 [3] boom"
    assert formats.peel(line).rank is None
    given = Formats([tmp_path])
    assert check(given.formats) == []
    assert (given.peel(line).rank, given.peel(line).level) == (3, "ERROR")
    monkeypatch.setenv("FIRSTFAULT_FORMATS", str(tmp_path))
    assert Formats().peel(line).format == "mine"
    assert Formats().peel(line).format == "mine"  # now out of the cache


def test_a_file_of_ones_own_replaces_one_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "glog.toml").write_text(GOOD.replace('"mine"', '"glog"'))
    assert Formats([tmp_path]).peel("<ERROR> 2025-05-12 10:11:12 [3] boom").format == "glog"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('line = "<ERROR>', 'line = "ERROR>', "does not match"),
        ("rank = 3", "rank = 4", "is 3, not 4"),
        ('line = "<b> 2025"', 'line = "<ERROR> 2025-05-12 10:11:12 [3] x"', "near miss"),
        ("t_ymd", "t_dmy", "no such shape"),
        ("<(?P", "(?=<)<(?P", "pattern refused"),
        ('notes = "made up"', "", "neither a source nor a note"),
        ("regex = '''<", "regex = '''^<", "without '^'"),
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, what: str) -> None:
    problems = check(parse([("mine.toml", GOOD.replace(old, new, 1).encode())]))
    assert any(problem.startswith("mine.toml: mine: ") and what in problem for problem in problems), problems


@pytest.mark.parametrize(
    "text", ["id = ", 'id = "x"', 'id = "x"\nkind = "nothing"', 'id = "x"\nkind = "header"\nodd = 1', b"\xff"]
)
def test_a_file_that_cannot_be_read_is_named(text: str | bytes) -> None:
    with pytest.raises(FormatError, match=r"mine\.toml"):
        parse([("mine.toml", text if isinstance(text, bytes) else text.encode())])


def test_two_formats_that_match_each_others_lines_are_named() -> None:
    twin = GOOD.replace('"mine"', '"yours"')
    problems = check(parse([("mine.toml", GOOD.encode()), ("yours.toml", twin.encode())]))
    assert "mine: yours: each matches the examples of the other" in problems


def test_the_narrower_format_comes_first_whatever_its_name() -> None:
    wide = (
        GOOD.replace('"mine"', '"a"')
        .replace("\\[(?P<rank>\\d+)\\] ", "")
        .replace("rank = 3, ", "")
        .replace(' "boom"', ' "x"')
    )
    wide = wide.replace("12 [3] boom", "12 x")
    ordered = in_order(parse([("a.toml", wide.encode()), ("mine.toml", GOOD.encode())]))
    assert [one.id for one in ordered] == ["mine", "a"]
