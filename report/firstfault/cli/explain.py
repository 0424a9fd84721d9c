"""`explain`: from a pasted line, traceback, code or id to what the catalog says about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from firstfault.catalog import load_catalog
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.search import Explanation, explain
from firstfault.cli.messages import CommandError
from firstfault.cli.pages import class_page, entry_page, listed, text
from firstfault.report.layout import cut
from firstfault.report.words import clean, one_sentence


def explain_text(pasted: str, catalogs: Sequence[Path] = ()) -> str:
    """The page of the likely root among what the text matches, and in short what else it says."""
    if not pasted.strip():
        raise CommandError("nothing to explain: the text is empty")
    catalog = load_catalog(catalogs)
    found = explain(catalog, Matcher.load(catalog), pasted)
    if found.failure_class is not None:
        return class_page(found.failure_class, found.related)
    if not (found.candidates or found.meanings or found.facts):
        raise CommandError(_unknown(pasted, found))
    return "\n".join(_page(found)) + "\n"


def _page(found: Explanation) -> Iterator[str]:
    if found.candidates:
        yield entry_page(found.candidates[0].entry).rstrip("\n")
    if found.meanings:
        yield from _title("Codes", bool(found.candidates))
        for meaning in found.meanings:
            yield from text(f"{meaning.kind} {meaning.code}, {meaning.name}: {meaning.means}", "    ", "  - ")
    others = [one for one in found.candidates[1:] if one.line]
    if others:
        yield from _title("The text also matches", True)
        for one in others:
            yield from text(f"{one.entry.id} (line {one.line}): {one.entry.title}", "    ", "  - ")
    if found.facts and not found.candidates:
        yield from _title("No failure, but what the line tells", bool(found.meanings))
        for fact in found.facts:
            yield from text(f"{fact.id}: {fact.event}{f', {fact.note}' if fact.note else ''}", "    ", "  - ")
    if found.related and not found.candidates:
        yield from _title("Entries that are about something like it", True)
        yield from (f"  {line}" for line in listed(found.related).splitlines())


def _title(title: str, behind: bool) -> Iterator[str]:
    if behind:
        yield ""
    yield title


def _unknown(pasted: str, found: Explanation) -> str:
    said = f"no entry of the catalog matches {cut(clean(one_sentence(pasted)), 160)!r}"
    if found.related:
        near = "\n".join(f"  {line}" for line in listed(found.related).splitlines())
        return f"{said}; entries with words of it:\n{near}"
    return f"{said}; try single words with 'firstfault catalog search'"
