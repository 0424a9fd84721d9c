"""Scan, confirm and best: what a line-by-line search with the exact patterns would find, at the speed of one pass."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import hyperscan
import numpy as np
import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from firstfault.catalog import Catalog
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.textsearch import TextSearch

from .conftest import make_catalog, make_entry, make_fact

SMALL = make_catalog(
    make_entry("gpu-memory", r"CUDA out of memory\. Tried to allocate (?P<tried>\S+ .iB)"),
    make_entry("python-traceback", r"^(?P<exception>\w+Error): (?P<text>.*)"),
    make_entry("vague", r"out of memory", weak=True),
    make_entry("two-ways", r"peer <(?P<peer>[^>\n]+)> is gone|lost connection to (?P<peer2>\S+)"),
    facts=(make_fact("step", r"step (?P<step>\d+) of memory"),),
)


@pytest.fixture(scope="module")
def small() -> Matcher:
    return Matcher.load(SMALL)


def number(matcher: Matcher, entry: str) -> int:
    return next(one.number for one in matcher.patterns if one.id == entry)


def by_line(matcher: Matcher, chunk: bytes) -> set[tuple[int, int]]:
    """(line, pattern) that scan and confirm find when the whole line is the message."""
    newlines = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == 10)
    lines = [line.decode("utf-8", "replace") for line in chunk.split(b"\n")]
    ends, patterns = matcher.scan(chunk)
    found = set(zip(np.searchsorted(newlines, ends - 1).tolist(), patterns.tolist(), strict=True))
    return {(line, pattern) for line, pattern in found if matcher.confirm(pattern, lines[line]) is not None}


def all_exact(matcher: Matcher) -> Any:
    """All exact patterns together, for a search without triggers."""
    options = re2.Options()
    options.max_mem = 1 << 30
    together = re2.Set.SearchSet(options)
    for one in matcher.patterns:
        together.Add(one.regex)
    together.Compile()
    return together


def line_by_line(together: Any, chunk: bytes) -> set[tuple[int, int]]:
    """The same by searching every exact pattern in every line."""
    lines = [line.decode("utf-8", "replace").encode() for line in chunk.split(b"\n")]
    return {(at, pattern) for at, line in enumerate(lines) for pattern in together.Match(line) or ()}


@pytest.fixture(scope="module")
def together(matcher: Matcher) -> Any:
    return all_exact(matcher)


def test_patterns_are_numbered_by_their_place_and_carry_what_the_entry_says(small: Matcher) -> None:
    assert [one.number for one in small.patterns] == list(range(len(small.patterns)))
    vague = small.patterns[number(small, "vague")]
    assert (vague.kind, vague.cls, vague.weak, vague.pattern_id) == ("entry", "python-exception", True, "p0")
    step = small.patterns[number(small, "step")]
    assert (step.kind, step.cls, step.role) == ("fact", None, None)


def test_scan_names_the_line_in_which_a_trigger_ends(small: Matcher) -> None:
    chunk = b"ordinary\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\nordinary\n"
    ends, patterns = small.scan(chunk)
    assert ends.dtype == np.int64
    assert patterns.dtype == np.int32
    assert {chunk[: end - 1].count(b"\n") for end in ends.tolist()} == {1}
    assert set(patterns.tolist()) == {number(small, name) for name in ("gpu-memory", "python-traceback", "vague")}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_scan_takes_any_buffer(small: Matcher, kind: type) -> None:
    assert small.scan(kind(b"run out of memory"))[1].tolist() == [number(small, "vague")]


def test_scan_of_nothing_finds_nothing(small: Matcher) -> None:
    ends, patterns = small.scan(b"")
    assert (ends.tolist(), patterns.tolist()) == ([], [])


def test_confirm_gives_captures_under_their_plain_names(small: Matcher) -> None:
    pattern = number(small, "two-ways")
    assert small.confirm(pattern, "peer <10.0.0.7> is gone") == {"peer": "10.0.0.7"}
    assert small.confirm(pattern, "lost connection to node-2") == {"peer": "node-2"}
    assert small.confirm(pattern, "all peers are well") is None


def test_confirm_survives_text_that_is_no_valid_unicode(small: Matcher) -> None:
    assert small.confirm(number(small, "vague"), "\ud800 out of memory") == {}


def test_the_narrow_entry_speaks_for_a_line_before_the_weak_and_both_before_the_fallback(small: Matcher) -> None:
    names = ("python-traceback", "gpu-memory", "vague", "step")
    order = [number(small, name) for name in names]
    assert small.best(order) == number(small, "gpu-memory")
    assert small.best(order[:1] + order[2:]) == number(small, "vague")
    assert small.best(order[:1] + order[3:]) == number(small, "python-traceback")
    assert small.best(order[3:]) == number(small, "step")


def test_matches_lists_the_best_first(small: Matcher) -> None:
    found = small.matches("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB")
    assert [small.patterns[one].id for one, _ in found] == ["gpu-memory", "vague", "python-traceback"]
    assert found[0][1] == {"tried": "2.00 GiB"}


def test_a_storm_of_hits_is_bounded_and_no_line_is_lost(small: Matcher) -> None:
    storm = b"out of memory" * 200 + b"\n"
    chunk = storm * 500 + b"lost connection to node-2\n"
    ends, patterns = small.scan(chunk)
    assert len(ends) < 1500
    newlines = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == 10)
    lines = np.searchsorted(newlines, ends - 1)
    assert lines[patterns == number(small, "vague")].tolist() == list(range(500))
    assert lines[patterns == number(small, "two-ways")].tolist() == [500]


def test_the_second_load_compiles_nothing(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Matcher.load(SMALL, cache_dir)
    monkeypatch.setattr(TextSearch, "of", lambda *_: pytest.fail("compiled again"))
    second = Matcher.load(SMALL, cache_dir)
    assert second.patterns == first.patterns
    assert second.scan(b"run out of memory")[1].tolist() == [number(second, "vague")]
    assert stat.S_IMODE(cache_dir.stat().st_mode) == 0o700


def test_a_cache_that_cannot_be_used_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert Matcher.load(SMALL, tmp_path / "file").scan(b"out of memory")[0].size == 1


def test_a_damaged_cache_is_replaced(cache_dir: Path) -> None:
    Matcher.load(SMALL, cache_dir)
    (kept,) = cache_dir.glob("matcher-*")
    good = kept.read_bytes()
    kept.write_bytes(good[:-9] + b"\0" * 9)
    assert Matcher.load(SMALL, cache_dir).scan(b"out of memory")[0].size == 1
    assert kept.read_bytes() == good


def test_a_database_for_another_processor_is_compiled_anew(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Matcher.load(SMALL, cache_dir)

    def refuse(*_: object) -> None:
        raise hyperscan.DatabasePlatformError("compiled elsewhere")

    monkeypatch.setattr(hyperscan, "loadb", refuse)
    assert Matcher.load(SMALL, cache_dir).scan(b"out of memory")[0].size == 1


def test_a_catalog_without_patterns_matches_nothing() -> None:
    assert Matcher.load(make_catalog()).scan(b"anything")[0].size == 0


def test_the_exact_patterns_find_the_same_lines_on_all_examples(
    catalog: Catalog, matcher: Matcher, together: Any
) -> None:
    lines = [one.line for entry in catalog.entries.values() for one in (*entry.match, *entry.no_match, *entry.missed)]
    lines += [one.line for fact in catalog.facts.values() for one in (*fact.match, *fact.no_match)]
    chunk = "\n".join(line.replace("\n", " ") for line in lines).encode()
    assert by_line(matcher, chunk) == line_by_line(together, chunk)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_exact_patterns_find_the_same_lines_on_mixed_and_damaged_text(
    catalog: Catalog, matcher: Matcher, together: Any, data: st.DataObject
) -> None:
    lines = [one.line.encode() for entry in catalog.entries.values() for one in (*entry.match, *entry.no_match)]
    lines += [one.line.encode() for fact in catalog.facts.values() for one in fact.match]
    chosen = data.draw(st.lists(st.sampled_from(lines or [b"ordinary"]), min_size=1, max_size=5))
    chunk = bytearray(b"\n".join(chosen))
    for _ in range(data.draw(st.integers(0, 12))):
        at = data.draw(st.integers(0, len(chunk)))
        chunk[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    assert by_line(matcher, bytes(chunk)) == line_by_line(together, bytes(chunk))
