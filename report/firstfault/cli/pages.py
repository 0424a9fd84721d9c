"""Catalog entries as text for a terminal: what `explain` and `catalog show` print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from firstfault.catalog import load_catalog
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.model import Entry
from firstfault.cli.messages import CommandError


def entry_page(entry: Entry, width: int = 96) -> str:
    """One entry as a page."""
    return "\n".join(_page(entry, width)) + "\n"


def _wrapped(text: str, width: int, indent: str = "  ") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _steps(title: str, steps: Sequence[str], width: int) -> Iterator[str]:
    if steps:
        yield ""
        yield title
        for step in steps:
            yield textwrap.fill(
                " ".join(step.split()),
                width,
                initial_indent="  - ",
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )


def _page(entry: Entry, width: int) -> Iterator[str]:
    yield f"{entry.title}"
    yield f"  {entry.id} · class {entry.cls} · {entry.role} · scope {entry.scope}"
    if entry.decides:
        yield _wrapped(f"What decides: {entry.decides}", width)
    yield ""
    yield _wrapped(entry.mechanism, width)
    for title, text in (("What one sees", entry.observe), ("What it does not prove", entry.cannot_prove)):
        if text:
            yield ""
            yield title
            yield _wrapped(text, width)
    yield from _steps("Confirm", entry.confirm, width)
    yield from _steps("Fix", entry.fix, width)
    yield from _steps("In your framework", [f"{one.framework}: {one.do}" for one in entry.fix_for], width)
    yield from _steps("See that it worked", entry.verify, width)
    yield from _steps("Prevent", entry.prevent, width)
    if entry.resume:
        yield from _steps("Resume", [entry.resume], width)
    if entry.missing_fact:
        yield from _steps("The fact that would settle it", [entry.missing_fact], width)
    related = [*entry.upstream, *entry.downstream, *entry.siblings]
    if related:
        yield ""
        yield "See also"
        yield _wrapped(", ".join(dict.fromkeys(related)), width)
    yield from _steps("References", entry.references, width)


def explain_text(text: str) -> str:
    """The page of an entry id, or of what the lines of a pasted text match, the most telling first."""
    catalog = load_catalog()
    if text.strip() in catalog.entries:
        return entry_page(catalog.entries[text.strip()])
    if text.strip() in catalog.classes:
        inside = [entry for _, entry in sorted(catalog.entries.items()) if entry.cls == text.strip()]
        return "".join(f"{entry.id}: {entry.title}\n" for entry in inside)
    matcher = Matcher.load(catalog)
    found: list[str] = []
    for line in text.splitlines() or [text]:
        _, numbers = matcher.scan(line.encode("utf-8", "replace"))
        hits = [int(number) for number in numbers if matcher.patterns[int(number)].kind == "entry"]
        hits = [number for number in dict.fromkeys(hits) if matcher.confirm(number, line) is not None]
        if hits:
            best = matcher.patterns[matcher.best(hits)].id
            found.append(best)
    if not found:
        raise CommandError(
            f"no entry of the catalog matches {text[:200]!r}; try single words with 'firstfault catalog search'"
        )
    order = sorted(dict.fromkeys(found), key=lambda one: (catalog.entries[one].role != "initiating", found.index(one)))
    page = entry_page(catalog.entries[order[0]])
    if len(order) > 1:
        page += "\nThe text also matches: " + ", ".join(order[1:]) + "\n"
    return page
