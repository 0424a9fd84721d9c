"""Small catalogs for the tests of this folder, and the catalog that comes with the package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from firstfault.catalog import Catalog, Event, Fact, load_catalog
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.model import Entry
from firstfault.catalog.shape import Reader

MakeCatalog = Callable[..., Catalog]


def make_entry(entry_id: str, *regexes: str, weak: bool = False, role: str = "initiating") -> Entry:
    """An entry that holds little more than its patterns."""
    reader = Reader(
        f"{entry_id}.toml",
        {
            "id": entry_id,
            "class": "python-exception",
            "title": entry_id,
            "role": role,
            "scope": "rank",
            "event": "exception",
            "pattern": [{"id": f"p{at}", "regex": regex, "weak": weak} for at, regex in enumerate(regexes)],
        },
    )
    entries = list(reader.entries())
    assert reader.faults == []
    return entries[0]


def make_catalog(*entries: Entry, facts: tuple[Fact, ...] = ()) -> Catalog:
    """A catalog of these entries and facts."""
    return Catalog({one.id: one for one in entries}, {one.id: one for one in facts}, {}, (), "test")


def make_fact(fact_id: str, regex: str) -> Fact:
    """A fact without examples."""
    return Fact(fact_id, Event.PROGRESS, regex, (), (), "facts.toml")


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The catalog that comes with the package."""
    return load_catalog()


@pytest.fixture(scope="session")
def matcher(catalog: Catalog) -> Matcher:
    """All its patterns."""
    return Matcher.load(catalog)


@pytest.fixture
def cache_dir(tmp_path: Path) -> Path:
    """A cache folder of this test alone."""
    return tmp_path / "cache"
