"""Writes the catalog as a static site: a page an entry, a page a class, the codes in words, a search without a server.

    python -m firstfault.catalog.site OUT

Plain HTML with one style sheet and one script, readable on a phone, in the dark and without the script.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from firstfault.catalog.decode import CodeKind, code_table
from firstfault.catalog.loader import Catalog, load_catalog
from firstfault.catalog.model import Entry, FailureClass

_ASSETS = Path(__file__).parent / "site_assets"
_ROLE_WORDS = {
    "initiating": "may be what failed first",
    "ambiguous": "may be the cause or the consequence",
    "collateral": "follows from something else",
    "context": "no failure by itself",
}


def site_files(catalog: Catalog) -> dict[str, bytes]:
    """Every file of the site by its path below the site's root."""
    files = {name: content.encode("utf-8") for name, content in _pages(catalog)}
    files |= {asset: (_ASSETS / asset).read_bytes() for asset in ("style.css", "search.js")}
    return files | {"entries.js": _search_data(catalog).encode("utf-8")}


def write_site(catalog: Catalog, out: Path) -> int:
    """Writes all pages below `out` and returns how many they are."""
    files = site_files(catalog)
    for name, content in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return sum(name.endswith(".html") for name in files)


def _pages(catalog: Catalog) -> Iterator[tuple[str, str]]:
    yield "index.html", _page("Catalog of failures", _index(catalog), "")
    for failure_class in catalog.classes.values():
        yield f"class/{failure_class.id}.html", _page(failure_class.title, _class(catalog, failure_class), "../")
    for entry in catalog.entries.values():
        yield f"entry/{entry.id}.html", _page(entry.title, _entry(catalog, entry), "../")
    yield "codes.html", _page("Codes in words", _codes(), "")


def _page(title: str, body: Iterable[str], root: str) -> str:
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)} · firstfault</title>",
            f'<link rel="stylesheet" href="{root}style.css">',
            "</head>",
            "<body>",
            f'<nav><a href="{root}index.html">Catalog</a> <a href="{root}codes.html">Codes</a></nav>',
            f"<main>\n<h1>{escape(title)}</h1>",
            *body,
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _index(catalog: Catalog) -> Iterator[str]:
    yield '<form role="search"><input id="words" type="search" autocomplete="off" '
    yield 'placeholder="words, a code, or a line of a log" aria-label="Search the catalog"></form>'
    yield '<ol id="found" aria-live="polite"></ol>'
    yield '<div id="groups">'
    group = ""
    for failure_class in catalog.classes.values():
        if failure_class.group != group:
            group = failure_class.group
            yield f"<h2>{escape(group)}</h2>"
        inside = [entry for entry in catalog.entries.values() if entry.cls == failure_class.id]
        yield f"<details><summary>{_link(f'class/{failure_class.id}.html', failure_class.title)} "
        yield f"<small>{len(inside)}</small></summary>"
        yield from _entry_list(inside, "")
        yield "</details>"
    yield "</div>"
    yield '<script src="entries.js"></script>'
    yield '<script src="search.js"></script>'


def _class(catalog: Catalog, failure_class: FailureClass) -> Iterator[str]:
    yield f'<p class="id"><code>{escape(failure_class.id)}</code></p>'
    yield f"<p>{escape(failure_class.observe)}</p>"
    yield "<dl>"
    yield f"<dt>Who can mend it</dt><dd>{escape(failure_class.owner)}</dd>"
    yield f"<dt>Restart</dt><dd>{escape(failure_class.restart)}</dd>"
    yield "</dl>"
    yield from _list("Look first at", failure_class.first_commands, code=True)
    yield "<h2>Entries</h2>"
    yield from _entry_list([one for one in catalog.entries.values() if one.cls == failure_class.id], "../")


def _entry(catalog: Catalog, entry: Entry) -> Iterator[str]:
    failure_class = catalog.classes.get(entry.cls)
    yield f'<p class="id"><code>{escape(entry.id)}</code></p>'
    yield '<ul class="facts">'
    if failure_class is not None:
        yield f"<li>{_link(f'../class/{entry.cls}.html', failure_class.title)}</li>"
    yield f'<li class="{entry.role}">{entry.role}: {_ROLE_WORDS[entry.role]}</li>'
    yield f"<li>reach: {entry.scope}</li>"
    if entry.status == "draft":
        yield "<li>draft: the text was not seen in a public log</li>"
    yield "</ul>"
    if entry.decides:
        yield f"<p><strong>What decides:</strong> {escape(entry.decides)}</p>"
    yield f"<p>{escape(entry.mechanism)}</p>"
    yield from _section("What one sees", entry.observe)
    yield from _list("In this order", entry.sequence)
    yield from _list("Confirm", entry.confirm)
    yield from _list("Fix", entry.fix)
    if entry.fix_for:
        yield "<h2>In your framework</h2>\n<dl>"
        yield from (f"<dt>{escape(one.framework)}</dt><dd>{escape(one.do)}</dd>" for one in entry.fix_for)
        yield "</dl>"
    yield from _list("See that it worked", entry.verify)
    yield from _section("Resume from", entry.resume)
    yield from _list("Prevent", entry.prevent)
    yield from _section("What it does not prove", entry.cannot_prove)
    yield from _section("The fact that would settle it", entry.missing_fact)
    yield from _section("Affects", entry.affects)
    yield "<h2>Lines</h2>"
    yield from (f"<pre>{escape(one.line)}</pre>" for one in entry.match)
    yield from _related(catalog, entry)
    yield from _references(entry.references)


def _related(catalog: Catalog, entry: Entry) -> Iterator[str]:
    for title, names in (
        ("Often before it", entry.upstream),
        ("Often behind it", entry.downstream),
        ("Akin", entry.siblings),
    ):
        known = [catalog.entries[name] for name in names if name in catalog.entries]
        if known:
            yield f"<h2>{title}</h2>"
            yield from _entry_list(known, "../")


def _references(references: Sequence[str]) -> Iterator[str]:
    if references:
        yield "<h2>References</h2>\n<ul>"
        yield from (f"<li>{_link(address, address)}</li>" for address in references)
        yield "</ul>"


def _codes() -> Iterator[str]:
    yield "<ul>"
    yield from (f'<li><a href="#{kind}">{escape(code_table(kind).title)}</a></li>' for kind in CodeKind)
    yield "</ul>"
    for kind in CodeKind:
        table = code_table(kind)
        yield f'<h2 id="{kind}">{escape(table.title)}</h2>\n<dl class="codes">'
        for one in table.meanings.values():
            name = f" {escape(one.name)}" if one.name != one.code else ""
            yield f"<dt><code>{escape(one.code)}</code>{name}</dt><dd>{escape(one.means)}</dd>"
        yield f"</dl>\n<p>{_link(table.reference, 'Reference')}</p>"


def _section(title: str, text: str) -> Iterator[str]:
    if text:
        yield f"<h2>{title}</h2>\n<p>{escape(text)}</p>"


def _list(title: str, items: Sequence[str], code: bool = False) -> Iterator[str]:
    if items:
        yield f"<h2>{title}</h2>\n<ol>"
        yield from (f"<li>{f'<code>{escape(item)}</code>' if code else escape(item)}</li>" for item in items)
        yield "</ol>"


def _entry_list(entries: Iterable[Entry], root: str) -> Iterator[str]:
    yield '<ul class="entries">'
    for entry in entries:
        link = _link(f"{root}entry/{entry.id}.html", entry.title)
        yield f'<li class="{entry.role}">{link} <code>{escape(entry.id)}</code></li>'
    yield "</ul>"


def _link(address: str, text: str) -> str:
    safe = address if address.startswith(("http://", "https://")) or ":" not in address else "#"
    return f'<a href="{escape(safe, quote=True)}">{escape(text)}</a>'


def _search_data(catalog: Catalog) -> str:
    """What the script searches: id, title, class, role and words of each entry, as a script that needs no server."""
    rows = []
    for entry in catalog.entries.values():
        lines = " ".join(one.line for one in entry.match)
        rows.append([entry.id, entry.title, entry.cls, str(entry.role), f"{lines} {entry.mechanism} {entry.observe}"])
    for kind in CodeKind:
        for one in code_table(kind).meanings.values():
            rows.append([f"{kind} {one.code}", f"{one.name}: {one.means}", code_table(kind).title, "code", ""])
    data = json.dumps(rows, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return f"const ENTRIES = {data};\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: writes the site and says how many pages."""
    parser = argparse.ArgumentParser(
        prog="python -m firstfault.catalog.site", description="Write the catalog as a site."
    )
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders of your own entries")
    options = parser.parse_args(arguments)
    count = write_site(load_catalog(options.paths), options.out)
    sys.stderr.write(f"{count} pages in {options.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
