"""Patterns that are asked together say of each message what each says alone."""

from __future__ import annotations

import numpy as np
import pytest

from firstfault.catalog import together, triggers
from firstfault.catalog.exact import ExactPattern
from firstfault.catalog.loader import Catalog
from firstfault.catalog.together import Together, groups

REGEXES = (r"Xid \d+: 79\b", r"Xid \d+: (?:7|13)9?\b", r"Xid \d+: [1-7]\d*$", r"Xid \d+: \d+")
MESSAGES = [b"Xid 7: 79", b"Xid 79: 13", b"Xid 1: 13 (", b"Xid 1: 8", "é Xid 3: 139".encode(), b"none"]


def test_only_patterns_that_tell_digits_apart_and_share_a_text_are_one_group() -> None:
    assert groups([triggers.derive(regex) for regex in (*REGEXES, r"GPU 17 lost")]) == [0, 0, 0, -1, -1]


@pytest.mark.parametrize("memory", [1 << 25, 1000], ids=["together", "too large together"])
def test_each_answer_is_that_of_its_pattern(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "_MEMORY", memory)
    asked = [(pattern, message) for pattern in range(len(REGEXES)) for message in range(len(MESSAGES))]
    patterns, which = np.array(asked).T
    answers = Together(REGEXES, [0, 0, 1, 1]).hold(patterns, MESSAGES, which)
    assert answers.tolist() == [
        ExactPattern(REGEXES[pattern]).search(MESSAGES[message].decode()) is not None for pattern, message in asked
    ]


def test_the_groups_of_the_catalog_say_what_their_patterns_say(catalog: Catalog) -> None:
    found = [(one, entry) for entry in catalog.entries.values() for one in entry.patterns]
    group = groups([triggers.derive(one.regex) for one, _ in found])
    mine = [number for number, one in enumerate(group) if one >= 0]
    lines = sorted({line.line for number in mine for line in (*found[number][1].match, *found[number][1].no_match)})
    regexes = [one.regex for one, _ in found]
    patterns, which = np.repeat(mine, len(lines)), np.tile(np.arange(len(lines)), len(mine))
    answers = Together(regexes, group).hold(patterns, [line.encode() for line in lines], which)
    expected = [ExactPattern(regexes[number]).held([line.encode() for line in lines]) for number in mine]
    assert (answers == np.concatenate(expected)).all()
