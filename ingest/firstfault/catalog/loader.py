"""Reads the catalog: entries, facts and failure classes out of TOML, the package's own and a user's.

A file that cannot be used is left out and named in `Catalog.problems`; what is merely incomplete is for `check`.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from firstfault.catalog import cache, shape
from firstfault.catalog.model import Entry, Fact, FailureClass
from firstfault.catalog.problem import Places, Problem

HERE = Path(__file__).parent
Named = TypeVar("Named", Entry, Fact, FailureClass)


@dataclass(frozen=True, slots=True)
class Catalog:
    """All entries, facts and classes by id, in the order of their ids; `digest` changes with any of their files."""

    entries: Mapping[str, Entry]
    facts: Mapping[str, Fact]
    classes: Mapping[str, FailureClass]
    problems: tuple[Problem, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class _File:
    """One TOML file: the name it is cited by, and its content."""

    name: str
    content: bytes


def load_catalog(extra_dirs: Iterable[Path | str] = (), cache_dir: Path | None = None) -> Catalog:
    """The catalog of the package, with the files of `extra_dirs` (folders or single files) added or in its place."""
    package = list(_package_files())
    own = frozenset(file.name for file in package)
    files = [*package, *_extra_files(extra_dirs)]
    digest = _digest(files)
    root = cache.cache_root(cache_dir)
    kept = cache.read(root, "catalog", digest)
    if kept is not None:
        return _build([(name, document) for name, document in json.loads(kept)], [], digest, lambda _: "", own, True)
    documents, problems = [], []
    for file in files:
        try:
            documents.append((file.name, tomllib.loads(file.content.decode())))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            problems.append(_unreadable(file, error))
    texts = {file.name: file.content.decode(errors="replace") for file in files}
    catalog = _build(documents, problems, digest, texts.__getitem__, own, False)
    if not catalog.problems:
        cache.write(root, "catalog", digest, json.dumps(documents).encode())
    return catalog


def _package_files() -> Iterator[_File]:
    yield _File("classes.toml", (HERE / "classes.toml").read_bytes())
    for folder in ("entries", "facts"):
        for path in sorted((HERE / folder).glob("*.toml")):
            yield _File(f"{folder}/{path.name}", path.read_bytes())


def _extra_files(extra_dirs: Iterable[Path | str]) -> Iterator[_File]:
    for extra in map(Path, extra_dirs):
        for path in sorted(extra.rglob("*.toml")) if extra.is_dir() else [extra]:
            yield _File(str(path), path.read_bytes())


def _digest(files: Iterable[_File]) -> str:
    digest = hashlib.sha256(f"{_package_version()}\0{shape.VERSION}".encode())
    for file in files:
        digest.update(f"\0{file.name}\0{len(file.content)}\0".encode())
        digest.update(file.content)
    return digest.hexdigest()[:32]


def _package_version() -> str:
    try:
        return version("firstfault")
    except PackageNotFoundError:
        return "unknown"


def _unreadable(file: _File, error: ValueError) -> Problem:
    line = getattr(error, "lineno", 0)
    if not line and " (at line " in str(error):
        line = int(str(error).rpartition(" (at line ")[2].partition(",")[0])
    what = f"not readable as TOML: {error}"
    return Problem(file.name, line, what, "nothing in this file can be used", "mend the TOML, saved as UTF-8")


def _build(
    documents: list[tuple[str, dict[str, Any]]],
    problems: list[Problem],
    digest: str,
    text_of: Callable[[str], str],
    own: frozenset[str],
    trusted: bool,
) -> Catalog:
    entries: dict[str, Entry] = {}
    facts: dict[str, Fact] = {}
    classes: dict[str, FailureClass] = {}
    for name, document in documents:
        reader = shape.Reader(name, document, trusted)
        if "class" in document and isinstance(document["class"], list):
            _keep(classes, reader.classes(), reader, own)
        elif "fact" in document:
            _keep(facts, reader.facts(), reader, own)
        else:
            _keep(entries, reader.entries(), reader, own)
        if reader.faults:
            places = Places(text_of(name))
            problems.extend(
                Problem(name, places.of(fault.key, fault.table, fault.index), fault.what, fault.why, fault.mend)
                for fault in reader.faults
            )
    return Catalog(
        entries=dict(sorted(entries.items())),
        facts=dict(sorted(facts.items())),
        classes=classes,
        problems=tuple(sorted(problems)),
        digest=digest,
    )


def _keep(known: dict[str, Named], found: Iterable[Named], reader: shape.Reader, own: frozenset[str]) -> None:
    """Adds what was found. A user's file may replace what comes with the package, not what another one of his says."""
    for index, one in enumerate(found):
        first = known.get(one.id)
        if first is None or (reader.path not in own and _path(first) in own):
            known[one.id] = one
        else:
            reader.fault(
                f"the id {one.id!r} is already taken by {_path(first)}",
                "an id names one thing in reports and links; the first one is kept",
                "give this one another id",
                key="id",
                table="fact" if isinstance(one, Fact) else "",
                index=index,
            )


def _path(one: Entry | Fact | FailureClass) -> str:
    return "classes.toml" if isinstance(one, FailureClass) else one.path
