"""The site: every entry has a page, every link leads somewhere, and text from the catalog cannot become markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from firstfault.catalog import Catalog
from firstfault.catalog.site import main, write_site

from .conftest import make_catalog, make_entry


class Links(HTMLParser):
    """Collects links and counts of tags."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One tag."""
        values = dict(attrs)
        self.links += [value for name in ("href", "src") if (value := values.get(name))]
        self.ids |= {value for value in [values.get("id")] if value}
        self.scripts += tag == "script"


def read(path: Path) -> Links:
    parser = Links()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


@pytest.fixture(scope="module")
def site(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    write_site(catalog, out)
    return out


def test_every_entry_and_class_has_a_page(catalog: Catalog, site: Path) -> None:
    assert {path.stem for path in (site / "entry").glob("*.html")} == set(catalog.entries)
    assert {path.stem for path in (site / "class").glob("*.html")} == set(catalog.classes)


def test_every_link_inside_the_site_leads_somewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        for link in read(page).links:
            if not link.startswith(("https://", "http://")):
                target, _, anchor = link.partition("#")
                path = (page.parent / target).resolve() if target else page
                assert path.exists(), (page, link)
                assert not anchor or anchor in read(path).ids, (page, link)


def test_the_search_knows_all_entries(catalog: Catalog, site: Path) -> None:
    script = (site / "entries.js").read_text(encoding="utf-8")
    rows = json.loads(script.removeprefix("const ENTRIES = ").rstrip(";\n"))
    assert set(catalog.entries) <= {row[0] for row in rows}


def test_pages_fit_a_phone_and_need_no_other_server(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert 'name="viewport"' in text
        assert not re.search(r'(?:src|rel="stylesheet" href)="http', text)


def test_text_of_the_catalog_never_becomes_markup(tmp_path: Path) -> None:
    entry = replace(
        make_entry("odd", r"<script>alert\(1\)</script>"),
        title="<script>alert(1)</script>",
        mechanism="a < b & c",
        references=("javascript:alert(1)",),
    )
    write_site(make_catalog(entry), tmp_path)
    page = read(tmp_path / "entry" / "odd.html")
    assert page.scripts == 0
    assert not any(link.startswith("javascript") for link in page.links)
    assert "</script>" not in (tmp_path / "entries.js").read_text(encoding="utf-8")


def test_the_site_is_the_same_every_time(catalog: Catalog, site: Path, tmp_path: Path) -> None:
    write_site(catalog, tmp_path)
    for path in site.rglob("*.*"):
        assert (tmp_path / path.relative_to(site)).read_bytes() == path.read_bytes()


def test_the_command_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "out")]) == 0
    assert f"pages in {tmp_path / 'out'}" in capsys.readouterr().err
