"""Catalog entries and classes as pages of text for a terminal: what `explain` and `catalog show` print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firstfault.catalog import Entry, FailureClass
from firstfault.report.layout import Piece, plain, wrapped
from firstfault.report.words import one_sentence

WIDTH = 96


def entry_page(entry: Entry) -> str:
    """One entry as a page."""
    return "\n".join(_entry(entry)) + "\n"


def class_page(failure_class: FailureClass, entries: Sequence[Entry]) -> str:
    """One class as a page, with the entries that lead to it."""
    return "\n".join(_class(failure_class, entries)) + "\n"


def listed(entries: Sequence[Entry]) -> str:
    """Entries in short, one a line."""
    wide = max((len(entry.id) for entry in entries), default=0)
    return "".join(f"{entry.id:<{wide}}  {one_sentence(entry.title)}\n" for entry in entries)


def text(said: str, indent: str = "  ", first: str | None = None) -> Iterator[str]:
    """A sentence or more, wrapped."""
    head = None if first is None else Piece(first)
    yield from (plain(line) for line in wrapped([Piece(one_sentence(said))], WIDTH, indent, head))


def _steps(title: str, steps: Sequence[str]) -> Iterator[str]:
    if steps:
        yield ""
        yield title
        for step in steps:
            yield from text(step, "    ", "  - ")


def _entry(entry: Entry) -> Iterator[str]:
    yield one_sentence(entry.title)
    yield f"  {entry.id} · class {entry.cls} · {entry.role} · scope {entry.scope}"
    if entry.decides:
        yield from text(f"What decides: {entry.decides}")
    yield ""
    yield from text(entry.mechanism)
    for title, said in (("What one sees", entry.observe), ("What it does not prove", entry.cannot_prove)):
        if said:
            yield ""
            yield title
            yield from text(said)
    yield from _steps("Confirm", entry.confirm)
    yield from _steps("Fix", entry.fix)
    yield from _steps("In your framework", [f"{one.framework}: {one.do}" for one in entry.fix_for])
    yield from _steps("See that it worked", entry.verify)
    yield from _steps("Prevent", entry.prevent)
    yield from _steps("Resume", [entry.resume] if entry.resume else [])
    yield from _steps("The fact that would settle it", [entry.missing_fact] if entry.missing_fact else [])
    related = dict.fromkeys([*entry.upstream, *entry.downstream, *entry.siblings])
    if related:
        yield ""
        yield "See also"
        yield from text(", ".join(related))
    yield from _steps("References", entry.references)


def _class(one: FailureClass, entries: Sequence[Entry]) -> Iterator[str]:
    yield one_sentence(one.title)
    yield f"  class {one.id} · {one.group} · owner {one.owner} · restart: {one.restart}"
    yield ""
    yield from text(one.observe)
    yield from _steps("First commands", one.first_commands)
    yield ""
    yield "Entries"
    yield from (f"  {line}" for line in listed(entries).splitlines())
