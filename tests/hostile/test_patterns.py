"""No pattern can be made to cost more than its text: worst inputs of two lengths for each, and which engine runs it."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import re2  # type: ignore[import-untyped]

from firstfault.catalog import load_catalog
from firstfault.catalog.exact import ExactPattern
from firstfault.ingest.format_regex import for_line
from firstfault.ingest.formats import Formats

# a test of all takes minutes; which ones come here changes with the catalog
EVERY = 160
ONLY_MATCH = ("firstfault.ingest.dumps.json_places.TOKEN", "firstfault.timeline.gate._EXPLAIN")
"""Patterns that are only ever tried at one place; searching for them would be quadratic."""
PACKAGES = ("catalog", "timeline", "ingest", "correlate", "report", "export", "followup", "api", "live", "cli")


@cache
def own_patterns() -> dict[str, re.Pattern[Any]]:
    """Every pattern of Python's own engine that a module keeps, by its place."""
    found: dict[str, re.Pattern[Any]] = {}

    def take(where: str, value: Any) -> None:
        if isinstance(value, re.Pattern):
            found[where] = value
        elif isinstance(value, tuple | list):
            for number, one in enumerate(value):
                take(f"{where}.{number}", one)
        elif isinstance(value, dict):
            for key, one in value.items():
                take(f"{where}.{key}", one)

    for package in PACKAGES:
        top = importlib.import_module(f"firstfault.{package}")
        names = [
            f"firstfault.{package}",
            *(one.name for one in pkgutil.walk_packages(top.__path__, f"{top.__name__}.")),
        ]
        for name in names:
            if not name.endswith("__main__"):
                for key, value in vars(importlib.import_module(name)).items():
                    take(f"{name}.{key}", value)
    return found


def pieces(pattern: str) -> list[str]:
    """Texts that bring a pattern far: its literals, one character of each class, all of it once."""
    plain = re.sub(r"\(\?P<\w+>|\(\?[a-zA-Z-]*[:)]|\\[bAzBZ]|[\^$()]", "", pattern)
    literals = [
        one
        for one in re.findall(r"[A-Za-z0-9 :=,/\"'<>.-]{2,}", re.sub(r"\[[^\]]*\]|\{[^}]*\}", "\0", plain))
        if one.strip()
    ]
    likely = re.sub(r"\\d", "1", plain)
    likely = re.sub(r"\\w", "a", likely)
    likely = re.sub(r"\\s", " ", likely)
    likely = re.sub(r"\[\^[^\]]*\]", "x", likely)
    likely = re.sub(r"\[([^\]\\])[^\]]*\]", r"\1", likely)
    likely = re.sub(r"\{[^}]*\}|[*+?|]|\\(?=.)", "", likely)
    return list(dict.fromkeys([*literals[:3], likely[:200], "a", "1", " ", "a ", "1.", "(", "[", ": ", "/a", "\t"]))


def worst(pattern: str, size: int) -> Iterator[str]:
    """Long repeats that match as long as can be and fail at the end."""
    found = pieces(pattern)
    for one in found:
        for tail in ("\x01", "\n", ""):
            yield (one * (size // max(len(one), 1) + 1))[:size] + tail
    for head in found[:4]:
        yield head + "a" * size + "\x01"
        yield head + " " * size + "\x01"


def cost(call: Callable[[Any], object], text: str | bytes) -> float:
    """The least CPU time of some calls, in seconds."""
    best = float("inf")
    for _ in range(3):
        begun = time.thread_time()
        call(text)
        best = min(best, time.thread_time() - begun)
    return best


def grows(call: Callable[[Any], object], pattern: str, small: int, big: int, as_bytes: bool = False) -> str | None:
    """What shows that the cost grows faster than the text; None where nothing does.

    A text that is eight times as long may cost sixteen times as much before it counts: quadratic would be sixty-four.
    """
    for short, long in zip(worst(pattern, small), worst(pattern, big), strict=True):
        one, two = (short.encode(), long.encode()) if as_bytes else (short, long)
        begun = time.thread_time()
        call(two)
        if time.thread_time() - begun < 0.01:
            continue
        ratios = [cost(call, two) / max(cost(call, one), 1e-6) for _ in range(3)]
        if min(ratios) > 2 * big / small:
            return f"{short[:60]!r}: {min(ratios):.0f} times"
    return None


def test_patterns_of_python_cost_no_more_than_their_text() -> None:
    """They see paths, lines that are cut, or what a bound allows; they are linear on top of that."""
    assert len(own_patterns()) > 50
    bad = {}
    for where, pattern in own_patterns().items():
        is_bytes = isinstance(pattern.pattern, bytes)
        text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
        for use in (pattern.match,) if where in ONLY_MATCH else (pattern.match, pattern.search):
            found = grows(use, text, 1 << 10, 1 << 13, is_bytes)
            if found is not None:
                bad[where] = found
    assert bad == {}


def test_patterns_of_the_catalog_and_of_formats_cost_no_more_than_their_text() -> None:
    catalog = load_catalog()
    regexes = [one.regex for entry in catalog.entries.values() for one in entry.patterns]
    regexes += [fact.regex for fact in catalog.facts.values()]
    regexes += [one.regex for one in Formats().formats if one.regex]
    for regex in regexes[::EVERY]:
        call = for_line(regex).search
        assert grows(call, regex, 1 << 14, 1 << 17) is None, regex


def test_what_reads_log_text_runs_in_a_linear_engine() -> None:
    exact = ExactPattern("a(?P<rank>b+)")
    assert isinstance(exact._regexp, type(re2.compile("a")))
    assert isinstance(for_line("a+b"), type(re2.compile("a")))
    with pytest.raises(ValueError, match=r".+"):
        ExactPattern(r"(a)\1")  # what needs going back does not compile
    with pytest.raises(ValueError, match=r".+"):
        ExactPattern(r"(?=a)b")
