"""Owns reading format files: TOML in, formats in the order in which they are tried out, kept in the cache as JSON.

The order is computed: where format A's examples are also matched by B but not the other way round, A is the more
specific one and comes first.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import re2  # type: ignore[import-untyped]

from firstfault.catalog import cache
from firstfault.ingest.format_model import FormatExample, FormatKind, LineFormat
from firstfault.ingest.format_regex import for_line

JSON_START = r"\{[ \t]*\x22"
CACHE_VERSION = 7
_APART = (
    (FormatKind.WRAPPER, FormatKind.HEADER, FormatKind.TAG),
    (FormatKind.JSON,),
    (FormatKind.DETAIL,),
    (FormatKind.PATH,),
)
"""Kinds that compete with one another for a line."""

USER_FOLDERS = "FIRSTFAULT_FORMATS"
_KEYS = {
    "id", "kind", "title", "regex", "source", "notes", "trust", "open", "own", "final", "sniff", "keys", "need",
    "match", "no_match",
}  # fmt: skip


class FormatError(ValueError):
    """A format file that cannot be used: which one, and why."""


def folders(extra: Sequence[Path] = ()) -> list[Path]:
    """The folders that formats are read from: the package's own, those of the environment, those given."""
    own = Path(str(resources.files("firstfault.ingest") / "formats"))
    named = [Path(part) for part in os.environ.get(USER_FOLDERS, "").split(os.pathsep) if part]
    return [own, *named, *extra]


def read_files(where: Iterable[Path]) -> list[tuple[str, bytes]]:
    files: list[tuple[str, bytes]] = []
    for folder in where:
        if not folder.is_dir():
            raise FormatError(f"{folder}: no folder of formats")
        files += [(str(path), path.read_bytes()) for path in sorted(folder.glob("*.toml"))]
    return files


def load(extra: Sequence[Path] = ()) -> list[LineFormat]:
    """All formats in the order in which they are tried."""
    files = read_files(folders(extra))
    digest = hashlib.sha256(f"{CACHE_VERSION}".encode())
    for name, content in files:
        digest.update(name.encode() + b"\0" + content + b"\0")
    root, key = cache.cache_root(), digest.hexdigest()[:32]
    kept = cache.read(root, "formats", key)
    if kept is not None:
        return [_from_table(table, table["path"]) for table in json.loads(kept)]
    formats = in_order(usable(parse(files)))
    cache.write(root, "formats", key, json.dumps([_to_table(one) for one in formats]).encode())
    return formats


def parse(files: Iterable[tuple[str, bytes]]) -> list[LineFormat]:
    """Formats of the files; a later file with the same id replaces an earlier one."""
    found: dict[str, LineFormat] = {}
    for name, content in files:
        try:
            table = tomllib.loads(content.decode())
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise FormatError(f"{name}: {error}") from error
        for one in table.get("format", [table]):
            made = _from_table(one, name)
            found[made.id] = made
    return list(found.values())


def usable(formats: Sequence[LineFormat]) -> Sequence[LineFormat]:
    """The formats. Raises FormatError where the pattern of one does not compile, before a line is met with it."""
    for one in formats:
        try:
            for_line(one.regex)
        except re2.error as error:
            said = error.args[0] if error.args else error
            why = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
            raise FormatError(f"{one.path}: {one.id}: regex: {why}; patterns are those of RE2") from error
    return formats


def _from_table(table: Mapping[str, Any], path: str) -> LineFormat:
    unknown = set(table) - _KEYS - {"path"}
    if unknown:
        raise FormatError(f"{path}: unknown key {', '.join(sorted(unknown))}")
    try:
        return LineFormat(
            id=table["id"],
            kind=FormatKind(table["kind"]),
            regex=table.get("regex", ""),
            title=table.get("title", ""),
            source=table.get("source", ""),
            notes=table.get("notes", ""),
            trust=table.get("trust", False),
            open=table.get("open", False),
            own=table.get("own", False),
            final=table.get("final", False),
            sniff=table.get("sniff", {}),
            keys={
                name: (paths,) if isinstance(paths, str) else tuple(paths)
                for name, paths in table.get("keys", {}).items()
            },
            need=tuple(table.get("need", ())),
            match=tuple(
                FormatExample(one["line"], one.get("expect", {}), one.get("why", "")) for one in table.get("match", ())
            ),
            no_match=tuple(FormatExample(one["line"], {}, one.get("why", "")) for one in table.get("no_match", ())),
            path=path,
        )
    except (KeyError, ValueError, TypeError) as error:
        raise FormatError(f"{path}: {table.get('id', '?')}: {error!r}") from error


def _to_table(one: LineFormat) -> dict[str, Any]:
    def example(it: FormatExample) -> dict[str, Any]:
        return {"line": it.line, "expect": dict(it.expect), "why": it.why}

    return {
        "id": one.id, "kind": str(one.kind), "regex": one.regex, "title": one.title, "source": one.source,
        "notes": one.notes, "trust": one.trust, "open": one.open, "own": one.own, "final": one.final,
        "sniff": dict(one.sniff), "keys": {name: list(paths) for name, paths in one.keys.items()},
        "need": list(one.need), "match": [example(it) for it in one.match],
        "no_match": [example(it) for it in one.no_match], "path": one.path,
    }  # fmt: skip


def fits(one: LineFormat, line: str) -> bool:
    """Whether the format applies at the start of the line (a detail or path format: somewhere in it)."""
    if one.kind is FormatKind.JSON:
        return for_line(JSON_START).match(line) is not None and all(f'"{name}"' in line for name in one.need)
    pattern = for_line(one.regex)
    found = pattern.search(line) if one.kind in (FormatKind.DETAIL, FormatKind.PATH) else pattern.match(line)
    return found is not None


def meetings(formats: Sequence[LineFormat]) -> dict[str, set[str]]:
    """For each format the others that match one of its examples."""
    return {
        one.id: {other.id for other in formats if other is not one and any(fits(other, it.line) for it in one.match)}
        for one in formats
    }


def in_order(formats: Sequence[LineFormat]) -> list[LineFormat]:
    """The formats, the more specific first; where the examples do not decide, in the order of their ids."""
    by_id = {one.id: one for one in formats}
    waits: dict[str, set[str]] = {name: set() for name in by_id}
    for group in _APART:
        hits = meetings([one for one in formats if one.kind in group])
        for name, others in hits.items():
            for wider in others:
                if name not in hits[wider]:
                    waits[wider].add(name)
    ordered: list[LineFormat] = []
    done: set[str] = set()
    left = sorted(by_id)
    while left:
        ready = next((name for name in left if waits[name] <= done), None)
        taken = ready or min(left, key=lambda name: (len(waits[name] - done), name))
        ordered.append(by_id[taken])
        done.add(taken)
        left.remove(taken)
    return ordered
