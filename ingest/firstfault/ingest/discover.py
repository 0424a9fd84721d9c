"""Which files make up a job: the given paths walked in sorted order, each find with the path that evidence will cite.

Nothing is opened here. What is no ordinary file becomes a problem, as does a link that leads out of the tree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from firstfault.ingest.options import SETTINGS_NAME
from firstfault.ingest.problems import Problem, Severity
from firstfault.timeline.place import is_workplace

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Found:
    """A file to read. `root` is the number of the given PATH, `alone` says that PATH named the file itself."""

    root: int
    path: str
    file: str
    size: int
    mtime_ns: int
    alone: bool


def discover(paths: Sequence[str | Path], *, follow_links: bool, problems: list[Problem]) -> Iterator[Found]:
    """Every file below the given paths, in the order of the paths and then by name."""
    for root, given in enumerate(paths):
        yield from _given(root, str(given), follow_links, problems)


def _given(root: int, given: str, follow_links: bool, problems: list[Problem]) -> Iterator[Found]:
    if given == STDIN:
        yield Found(root, STDIN, STDIN, 0, 0, True)
        return
    try:
        status = os.stat(given)
    except (OSError, ValueError) as error:
        problems.append(Problem(printable(given), "unreadable", Severity.ERROR, _reason(error)))
        return
    if stat.S_ISDIR(status.st_mode):
        if os.path.islink(given):
            problems.append(
                Problem(printable(given), "link", Severity.INFO, "the PATH itself is a link and was followed")
            )
        top = os.path.realpath(given)
        yield from _walk(root, top, "", top, {top}, follow_links, problems)
    elif stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode):
        name = printable(os.path.basename(os.path.normpath(given)))
        yield Found(root, name, given, status.st_size, status.st_mtime_ns, True)
    else:
        problems.append(Problem(printable(given), "not-a-file", Severity.ERROR, f"{_kind(status.st_mode)}, not read"))


def _walk(
    root: int, folder: str, inner: str, top: str, seen: set[str], follow_links: bool, problems: list[Problem]
) -> Iterator[Found]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        problems.append(Problem(inner or ".", "unreadable", Severity.ERROR, _reason(error)))
        return
    names = {entry.name for entry in found}
    for entry in found:
        path = f"{inner}/{printable(entry.name)}" if inner else printable(entry.name)
        if entry.name == SETTINGS_NAME or is_workplace(entry.name) or _own_output(entry.name, names):
            problems.append(Problem(path, "own-file", Severity.INFO, "written by or for firstfault, not read as a log"))
            continue
        try:
            if entry.is_symlink() and not _follow(entry, path, top, seen, follow_links, problems):
                continue
            status = entry.stat()
        except OSError as error:
            problems.append(Problem(path, "unreadable", Severity.ERROR, _reason(error)))
            continue
        if stat.S_ISDIR(status.st_mode):
            if entry.is_symlink():
                seen.add(os.path.realpath(entry.path))
            yield from _walk(root, entry.path, path, top, seen, follow_links, problems)
        elif stat.S_ISREG(status.st_mode):
            yield Found(root, path, entry.path, status.st_size, status.st_mtime_ns, False)
        else:
            problems.append(Problem(path, "not-a-file", Severity.NOTICE, f"{_kind(status.st_mode)}, not read"))


def _follow(
    entry: os.DirEntry[str], path: str, top: str, seen: set[str], follow_links: bool, problems: list[Problem]
) -> bool:
    """Whether a link is to be followed; says why where not."""
    target = os.path.realpath(entry.path)
    inside = target == top or target.startswith(top + os.sep)
    if not os.path.exists(target):
        problems.append(Problem(path, "link", Severity.NOTICE, "the link leads nowhere"))
        return False
    if inside:
        problems.append(Problem(path, "link", Severity.INFO, "leads to a place in the same tree, which is read there"))
        return False
    if not follow_links:
        detail = "leads out of the tree and was not followed; --follow-links reads it"
        problems.append(Problem(path, "link", Severity.DATA_LOSS, detail))
        return False
    if any(target == known or known.startswith(target + os.sep) for known in seen):
        problems.append(Problem(path, "link", Severity.INFO, "leads to a place that is read already"))
        return False
    return True


def _own_output(name: str, names: set[str]) -> bool:
    outputs = {"timeline.duckdb", "diagnosis.json", "report.md", "report.html"}
    return name in outputs and {"timeline.duckdb", "diagnosis.json"} <= names


def printable(name: str) -> str:
    """A name as valid text: bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISCHR, "a device"),
    )
    return next((name for test, name in kinds if test(mode)), "no ordinary file")


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
