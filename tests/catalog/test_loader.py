"""Loading: the package's catalog, a user's files beside or over it, and the cache."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path

import pytest

from firstfault.catalog import Catalog, Event, Role, cache, load_catalog

ENTRY = """
id = "{id}"
class = "python-exception"
title = "{title}"
role = "initiating"
scope = "rank"
event = "exception"
[[pattern]]
id = "p"
regex = '''engine (?P<name>\\S+) stopped'''
weak = true
[[match]]
line = "engine A stopped"
captures = {{ name = "A" }}
"""


def write(path: Path, **values: str) -> Path:
    path.write_text(ENTRY.format(**values), encoding="utf-8")
    return path


def test_the_package_brings_entries_facts_and_all_classes(catalog: Catalog) -> None:
    assert len(catalog.entries) > 250
    assert len(catalog.classes) == 56
    assert list(catalog.entries) == sorted(catalog.entries)
    assert catalog.problems == ()


def test_the_classes_are_those_of_the_closed_set(catalog: Catalog) -> None:
    page = Path(__file__).parents[3] / "shared" / "classes.md"
    if not page.exists():
        pytest.skip("needs the reference beside the repository")
    listed = [line.split("`")[1] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("- `")]
    assert set(catalog.classes) == set(listed)


def test_a_users_entry_stands_beside_the_others(tmp_path: Path, cache_dir: Path) -> None:
    write(tmp_path / "my-engine.toml", id="my-engine", title="My engine stopped")
    entry = load_catalog([tmp_path], cache_dir).entries["my-engine"]
    assert (entry.title, entry.role, entry.event, entry.status) == (
        "My engine stopped",
        Role.INITIATING,
        Event.EXCEPTION,
        "draft",
    )
    assert (entry.patterns[0].id, entry.patterns[0].weak) == ("p", True)
    assert entry.match[0].captures == {"name": "A"}


def test_a_users_entry_replaces_one_that_ships(tmp_path: Path, cache_dir: Path) -> None:
    write(tmp_path / "disk-full.toml", id="disk-full", title="Our disk is full")
    found = load_catalog([tmp_path], cache_dir)
    assert found.entries["disk-full"].title == "Our disk is full"
    assert found.problems == ()


def test_two_files_of_a_user_with_one_id_are_a_problem(tmp_path: Path, cache_dir: Path) -> None:
    first = write(tmp_path / "a.toml", id="my-engine", title="first")
    write(tmp_path / "b.toml", id="my-engine", title="second")
    found = load_catalog([tmp_path], cache_dir)
    assert found.entries["my-engine"].title == "first"
    assert [one.what for one in found.problems] == [f"the id 'my-engine' is already taken by {first}"]


def test_a_broken_file_is_left_out_and_named(tmp_path: Path, cache_dir: Path) -> None:
    (tmp_path / "broken.toml").write_bytes(b"id = \xff")
    write(tmp_path / "good.toml", id="good", title="Good")
    found = load_catalog([tmp_path], cache_dir)
    assert "good" in found.entries
    assert [Path(one.path).name for one in found.problems] == ["broken.toml"]


def test_a_second_load_reads_no_toml(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_catalog(cache_dir=cache_dir)
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("read again"))
    second = load_catalog(cache_dir=cache_dir)
    assert second == first
    assert {stat.S_IMODE(path.stat().st_mode) for path in cache_dir.iterdir()} == {0o600}


def test_a_changed_file_is_read_again(tmp_path: Path, cache_dir: Path) -> None:
    path = write(tmp_path / "my-engine.toml", id="my-engine", title="before")
    before = load_catalog([tmp_path], cache_dir)
    write(path, id="my-engine", title="after")
    after = load_catalog([tmp_path], cache_dir)
    assert after.entries["my-engine"].title == "after"
    assert after.digest != before.digest


def test_the_cache_follows_xdg_and_belongs_to_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "firstfault").mkdir(mode=0o755)
    load_catalog()
    assert stat.S_IMODE((tmp_path / "firstfault").stat().st_mode) == 0o700
    assert len(list((tmp_path / "firstfault").glob("catalog-*"))) == 1


def test_old_cache_files_are_dropped(cache_dir: Path) -> None:
    root = cache.cache_root(cache_dir)
    for number in range(12):
        cache.write(root, "catalog", str(number), b"payload")
        os.utime(cache_dir / f"catalog-{number}", ns=(number, number))
    cache.write(root, "catalog", "newest", b"payload")
    kept = {path.name.removeprefix("catalog-") for path in cache_dir.iterdir()}
    assert kept == {"newest", *map(str, range(5, 12))}


def test_a_cut_cache_file_is_no_cache_file(cache_dir: Path) -> None:
    root = cache.cache_root(cache_dir)
    cache.write(root, "catalog", "key", b"payload")
    (cache_dir / "catalog-key").write_bytes((cache_dir / "catalog-key").read_bytes()[:-1])
    assert cache.read(root, "catalog", "key") is None
