"""Turns the tables of one TOML file into entries, facts or classes, and notes every fault of shape with its place.

Shape is: keys that exist, values of the right kind, words out of the closed sets, patterns that both engines read,
capture names of docs/captures.md. Whether sentences are there and links lead somewhere is the business of `check`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from firstfault.catalog.captures import base_name
from firstfault.catalog.exact import ExactPattern
from firstfault.catalog.model import Entry, Event, Example, Fact, FailureClass, FrameworkFix, Pattern, Role, Scope
from firstfault.catalog.regex import PatternError
from firstfault.catalog.triggers import derive

VERSION = 1
"""Raised when a cached document of an earlier reader must not be used."""

_TEXT = (
    *("id", "class", "title", "status", "role", "scope", "event", "decides", "mechanism", "observe", "resume"),
    *("affects", "cannot_prove", "missing_fact"),
)
_TEXTS = (
    *("points_at", "upstream", "downstream", "siblings", "overlaps", "sequence", "confirm", "fix", "verify", "prevent"),
    "references",
)
_TABLES = ("fix_for", "pattern", "match", "no_match", "missed")
ENTRY_KEYS = frozenset((*_TEXT, *_TEXTS, *_TABLES))
_ENTRY_REQUIRED = ("id", "class", "title", "role", "scope", "event", "pattern")
_PATTERN_KEYS = frozenset(("id", "regex", "program", "versions", "weak", "names_peer"))
_EXAMPLE_KEYS = frozenset(("line", "pattern", "captures", "why", "source"))
_FACT_KEYS = frozenset(("id", "event", "regex", "note", "match", "no_match"))
_CLASS_KEYS = frozenset(("id", "group", "title", "owner", "restart", "first_commands", "observe"))
_SLUG = re.compile(r"[a-z][a-z0-9-]{0,79}")
_WORDS = {
    "role": frozenset(Role),
    "scope": frozenset(Scope),
    "event": frozenset(Event),
    "status": frozenset(("stable", "draft")),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of shape: the key and table it is in, and what to say about it."""

    what: str
    why: str
    mend: str
    key: str = ""
    table: str = ""
    index: int = 0


class Reader:
    """Reads one document. A `trusted` one was read without a fault before: its patterns are not compiled again."""

    def __init__(self, path: str, document: dict[str, Any], trusted: bool = False) -> None:
        self.path = path
        self.document = document
        self.trusted = trusted
        self.faults: list[Fault] = []

    def fault(self, what: str, why: str, mend: str, key: str = "", table: str = "", index: int = 0) -> None:
        self.faults.append(Fault(what, why, mend, key, table, index))

    def entries(self) -> Iterator[Entry]:
        """The entry of this file; none where a fault makes it unusable."""
        table = self.document
        self._unknown(table, ENTRY_KEYS)
        self._required(table, _ENTRY_REQUIRED)
        self._slug(table)
        texts = {key: self._text(table, key) for key in _TEXT}
        lists = {key: self._texts(table, key) for key in _TEXTS}
        words = {key: self._word(table, key) for key in ("role", "scope", "event", "status") if key in table}
        patterns = tuple(self._pattern(one, index) for index, one in enumerate(self._tables(table, "pattern")))
        examples = {key: self._examples(table, key) for key in ("match", "no_match", "missed")}
        fixes = tuple(
            FrameworkFix(self._text(one, "framework", "fix_for", at), self._text(one, "do", "fix_for", at))
            for at, one in enumerate(self._tables(table, "fix_for"))
        )
        if not self.faults:
            yield Entry(
                id=texts["id"],
                cls=texts["class"],
                title=texts["title"],
                status=words.get("status", "draft"),
                role=Role(words["role"]),
                scope=Scope(words["scope"]),
                event=Event(words["event"]),
                decides=texts["decides"],
                patterns=patterns,
                mechanism=texts["mechanism"].strip(),
                observe=texts["observe"].strip(),
                fix_for=fixes,
                resume=texts["resume"],
                affects=texts["affects"],
                cannot_prove=texts["cannot_prove"],
                missing_fact=texts["missing_fact"],
                path=self.path,
                points_at=lists["points_at"],
                upstream=lists["upstream"],
                downstream=lists["downstream"],
                siblings=lists["siblings"],
                overlaps=lists["overlaps"],
                sequence=lists["sequence"],
                confirm=lists["confirm"],
                fix=lists["fix"],
                verify=lists["verify"],
                prevent=lists["prevent"],
                references=lists["references"],
                match=examples["match"],
                no_match=examples["no_match"],
                missed=examples["missed"],
            )

    def facts(self) -> Iterator[Fact]:
        """The facts of this file that have no fault."""
        self._unknown(self.document, frozenset(("fact",)))
        for index, one in enumerate(self._tables(self.document, "fact")):
            before = len(self.faults)
            self._unknown(one, _FACT_KEYS, "fact", index)
            self._required(one, ("id", "event", "regex"), "fact", index)
            self._slug(one, "fact", index)
            regex = self._text(one, "regex", "fact", index)
            self._regex(regex, "fact", index)
            event = self._word(one, "event", "fact", index)
            examples = {key: self._examples(one, key, "fact", index) for key in ("match", "no_match")}
            if len(self.faults) == before:
                yield Fact(
                    id=self._text(one, "id", "fact", index),
                    event=Event(event),
                    regex=regex,
                    path=self.path,
                    note=self._text(one, "note", "fact", index),
                    **examples,
                )

    def classes(self) -> Iterator[FailureClass]:
        """The failure classes of this file that have no fault."""
        self._unknown(self.document, frozenset(("class",)))
        for index, one in enumerate(self._tables(self.document, "class")):
            before = len(self.faults)
            self._unknown(one, _CLASS_KEYS, "class", index)
            self._required(one, tuple(sorted(_CLASS_KEYS)), "class", index)
            commands = self._texts(one, "first_commands", "class", index)
            texts = {key: self._text(one, key, "class", index) for key in sorted(_CLASS_KEYS - {"first_commands"})}
            if len(self.faults) == before:
                yield FailureClass(first_commands=commands, **texts)

    def _pattern(self, table: dict[str, Any], index: int) -> Pattern:
        self._unknown(table, _PATTERN_KEYS, "pattern", index)
        self._required(table, ("id", "regex"), "pattern", index)
        regex = self._text(table, "regex", "pattern", index)
        self._regex(regex, "pattern", index)
        return Pattern(
            id=self._text(table, "id", "pattern", index),
            regex=regex,
            program=self._text(table, "program", "pattern", index),
            versions=self._text(table, "versions", "pattern", index),
            weak=self._flag(table, "weak", "pattern", index),
            names_peer=self._flag(table, "names_peer", "pattern", index),
        )

    def _regex(self, regex: str, table: str, index: int) -> None:
        if self.trusted or not regex:
            return
        try:
            trigger = derive(regex)
            ExactPattern(regex)
        except PatternError as error:
            self.fault(
                f"the pattern is not usable: {error}",
                "one syntax has to serve both engines, in linear time and inside one line",
                f"rewrite it around {regex[max(0, error.at - 10) : error.at + 15]!r}",
                "regex",
                table,
                index,
            )
            return
        except ValueError as error:
            what = f"RE2 refuses the pattern: {error}"
            self.fault(what, "it takes out the captures", "rewrite it", "regex", table, index)
            return
        for name in trigger.captures:
            if base_name(name) is None:
                self.fault(
                    f"the capture name {name!r} is not one of docs/captures.md",
                    "the stages behind the catalog know captures by their names",
                    "use a name of that page (with 2 or 3 behind it for a second or third alternative)",
                    "regex",
                    table,
                    index,
                )

    def _examples(self, table: dict[str, Any], key: str, within: str = "", at: int = 0) -> tuple[Example, ...]:
        found = []
        for index, one in enumerate(self._tables(table, key, within, at)):
            place = (within, at) if within else (key, index)
            self._unknown(one, _EXAMPLE_KEYS, *place)
            self._required(one, ("line",), *place)
            captures = one.get("captures", {})
            if not isinstance(captures, dict) or not all(isinstance(value, str) for value in captures.values()):
                self._wrong_kind("captures", "a table of texts", *place)
                captures = {}
            pattern = self._text(one, "pattern", *place) or None
            found.append(Example(self._text(one, "line", *place), pattern, captures, self._text(one, "why", *place)))
        return tuple(found)

    def _unknown(self, table: dict[str, Any], known: frozenset[str], within: str = "", at: int = 0) -> None:
        for key in table:
            if key not in known:
                self.fault(
                    f"unknown key {key!r}",
                    "nothing reads it, so what it says is lost",
                    f"use one of: {', '.join(sorted(known))}",
                    key,
                    within,
                    at,
                )

    def _required(self, table: dict[str, Any], keys: tuple[str, ...], within: str = "", at: int = 0) -> None:
        for key in keys:
            if table.get(key) in (None, "", []):
                what = f"{key!r} is missing or empty"
                self.fault(what, "nothing works without it", f"add {key} = ...", key, within, at)

    def _slug(self, table: dict[str, Any], within: str = "", at: int = 0) -> None:
        value = self._text(table, "id", within, at)
        if value and not _SLUG.fullmatch(value):
            self.fault(
                f"the id {value!r} is no plain name",
                "ids become file names, links and labels",
                "use lower-case letters, digits and '-', at most 80 characters, a letter first",
                "id",
                within,
                at,
            )

    def _wrong_kind(self, key: str, kind: str, within: str, at: int) -> None:
        self.fault(f"{key!r} must be {kind}", "it is shown or used as such", "change the value", key, within, at)

    def _text(self, table: dict[str, Any], key: str, within: str = "", at: int = 0) -> str:
        value = table.get(key, "")
        if isinstance(value, str):
            return value
        self._wrong_kind(key, "a text", within, at)
        return ""

    def _texts(self, table: dict[str, Any], key: str, within: str = "", at: int = 0) -> tuple[str, ...]:
        value = table.get(key, [])
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        self._wrong_kind(key, "a list of texts", within, at)
        return ()

    def _flag(self, table: dict[str, Any], key: str, within: str, at: int) -> bool:
        value = table.get(key, False)
        if isinstance(value, bool):
            return value
        self._wrong_kind(key, "true or false", within, at)
        return False

    def _tables(self, table: dict[str, Any], key: str, within: str = "", at: int = 0) -> list[dict[str, Any]]:
        value = table.get(key, [])
        if isinstance(value, list) and all(isinstance(one, dict) for one in value):
            return value
        self._wrong_kind(key, f"written as [[{key}]] tables", within, at)
        return []

    def _word(self, table: dict[str, Any], key: str, within: str = "", at: int = 0) -> str:
        value = self._text(table, key, within, at)
        if value and value not in _WORDS[key]:
            self.fault(
                f"{key} = {value!r} is no word of the catalog",
                "the later stages know only the closed set",
                f"use one of: {', '.join(sorted(_WORDS[key]))}",
                key,
                within,
                at,
            )
        return value
