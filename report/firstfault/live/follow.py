"""Follows files that grow: new ones, renamed ones, truncated ones. Knows nothing of what stands in them.

Files are asked for their size, since no notice of a change comes from network file systems. What was read of a file
belongs to its inode, so a log that is rotated by renaming is read to its end under its new name, and its successor
from its beginning.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firstfault.ingest.discover import printable

Key = tuple[int, int]
"""Device and inode."""

_PACKED = (".gz", ".zst", ".xz", ".bz2", ".tar", ".tgz", ".zip")
_HEAD = 64
_STEP = 4 << 20
_BUDGET = 32 << 20
"""Bytes of one file, and of all, that are read at one look."""
_LINE = 64 << 10
"""Bytes that are kept of a line without an end."""
_TAIL = 16 << 20
_LARGE = 64 << 20
"""Of a file that is larger when it is found, only the end is read; the lines before are counted."""
_UNSURE_NS = 2_000_000_000
"""A folder that changed so shortly before it was listed may have changed again in the same tick of its clock."""
_RELIST = 30.0
_EVERY = 3
"""Looks from one search for new files to the next."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Whole lines that a file gained. `fresh` says that they are the first of the file, or of its new content."""

    key: Key
    path: str
    first_line: int
    offset: int
    data: bytes
    fresh: bool


@dataclass(slots=True)
class _File:
    key: Key
    path: str
    shown: str
    offset: int = 0
    line: int = 1
    pending: bytes = b""
    skipping: bool = False
    head: bytes = b""
    fresh: bool = True
    ignored: bool = False
    seen_size: int = -1


@dataclass(slots=True)
class _Folder:
    shown: str
    mtime_ns: int = -1
    listed_ns: int = 0
    listed: float = 0.0


@dataclass(slots=True)
class Counts:
    """What the follower has to do with, for metrics and for messages."""

    files: int = 0
    bytes: int = 0
    backlog: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    not_followed: int = 0


class Follower:
    """The files below some paths. A path that is not there yet is waited for."""

    def __init__(self, paths: Sequence[str], excluded: Callable[[str], bool] = lambda path: False) -> None:
        self.counts = Counts()
        self._roots = [(path, _root_name(path)) for path in paths]
        self._excluded = excluded
        self._folders: dict[str, _Folder] = {}
        self._files: dict[Key, _File] = {}
        self._at: dict[str, Key] = {}
        self._packed: set[str] = set()
        self._looks = 0

    def look(self) -> list[Growth]:
        """What the files gained since the last look, in the order of their names."""
        if self._looks % _EVERY == 0:
            self._list()
        self._looks += 1
        budget, found = _BUDGET, []
        self.counts.backlog = 0
        asked, files = os.stat, self._files
        for path, key in list(self._at.items()):
            known = files.get(key)
            try:  # nearly all files nearly always: nothing new, told from what was asked anyway
                status = asked(path)
                if known is not None and status.st_size == known.offset and status.st_ino == key[1]:
                    known.seen_size = known.offset
                    continue
            except OSError:
                self._gone(path)
                continue
            file = self._same(path, status)
            if file is None or file.ignored:
                continue
            if budget <= 0:
                self.counts.backlog += max(file.seen_size - file.offset, 0)
                continue
            if growth := self._read(file):
                budget -= len(growth.data)
                found.append(growth)
            self.counts.backlog += max(file.seen_size - file.offset, 0)
        self.counts.files = len(self._at)
        self.counts.not_followed = len(self._packed)
        return sorted(found, key=lambda one: (one.path, one.first_line))

    def _list(self) -> None:
        """Find new and renamed files in folders that changed."""
        for root, shown in self._roots:
            try:
                status = os.stat(root)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                self._folders.setdefault(root, _Folder(""))
            elif stat.S_ISREG(status.st_mode):
                self._found(root, shown, status)
                self._successor(root)
        now = time.monotonic()
        waiting = list(self._folders)
        while waiting:
            known = len(self._folders)
            self._list_folder(waiting.pop(), now)
            if len(self._folders) > known:
                waiting += list(self._folders)[known:]

    def _successor(self, root: str) -> None:
        """A file given by its name that was rotated: read the end of the old one, which has a longer name."""
        for file in list(self._files.values()):
            if file.path == root and self._at.get(root) != file.key:
                folder, name = os.path.split(root)
                for entry in _entries(folder or "."):
                    if entry.name.startswith(name) and _key(entry) == file.key:
                        file.path, file.shown = entry.path, printable(entry.name)
                        self._at[entry.path] = file.key

    def _list_folder(self, path: str, now: float) -> None:
        folder = self._folders[path]
        try:
            status = os.stat(path)
        except OSError:
            del self._folders[path]
            return
        settled = folder.listed_ns - folder.mtime_ns > _UNSURE_NS
        if status.st_mtime_ns == folder.mtime_ns and settled and now - folder.listed < _RELIST:
            return
        folder.mtime_ns, folder.listed_ns, folder.listed = status.st_mtime_ns, time.time_ns(), now
        for entry in _entries(path):
            shown = f"{folder.shown}/{printable(entry.name)}" if folder.shown else printable(entry.name)
            try:
                if entry.is_symlink() or self._excluded(entry.path):
                    continue
                if entry.is_dir():
                    self._folders.setdefault(entry.path, _Folder(shown))
                elif entry.is_file() and self._at.get(entry.path) != _key(entry):
                    self._found(entry.path, shown, entry.stat())
            except OSError:
                continue

    def _found(self, path: str, shown: str, status: os.stat_result) -> None:
        if path.lower().endswith(_PACKED):
            self._packed.add(path)
            return
        key = (status.st_dev, status.st_ino)
        if self._at.get(path) == key:
            return
        self._at[path] = key
        known = self._files.get(key)
        if known is not None:
            known.path, known.shown = path, shown
            return
        self._files[key] = file = _File(key, path, shown)
        if status.st_size > _LARGE:
            self._skip(file, status.st_size - _TAIL)

    def _skip(self, file: _File, to: int) -> None:
        """Count the lines of the beginning of a large file without reading what they say."""
        try:
            with open(file.path, "rb", buffering=0) as stream:
                file.head = stream.read(_HEAD)
                stream.seek(0)
                at, lines = 0, 0
                while at < to and (data := stream.read(min(_STEP, to - at))):
                    at += len(data)
                    lines += data.count(b"\n")
        except OSError:
            return
        file.offset, file.line, file.skipping = at, lines + 1, True

    def _same(self, path: str, status: os.stat_result) -> _File | None:
        """The file at this path, with its size; another one than before where it was rotated."""
        key = self._at[path]
        if (status.st_dev, status.st_ino) != key:
            shown = self._files[key].shown if key in self._files else os.path.basename(path)
            self._looks = 0  # the old one has a new name: look for it at once
            self._found(path, shown, status)
        file = self._files.get(self._at[path])
        if file is None or file.path != path:
            return None
        file.seen_size = status.st_size
        return file

    def _gone(self, path: str) -> None:
        key = self._at.pop(path)
        file = self._files.get(key)
        if file is not None and file.path == path and key not in self._at.values():
            self._looks = 0
            if file.seen_size >= 0 and file.offset >= file.seen_size:
                return  # kept: it may come back under another name

    def _read(self, file: _File) -> Growth | None:
        size = file.seen_size
        if size == file.offset:
            return None
        try:
            with open(file.path, "rb", buffering=0) as stream:
                if size < file.offset or stream.read(len(file.head)) != file.head:
                    file.offset, file.line, file.pending, file.head, file.fresh = 0, 1, b"", b"", True
                    file.skipping = False
                stream.seek(file.offset)
                data = stream.read(min(_STEP, size - file.offset))
                if len(file.head) < _HEAD:
                    stream.seek(0)
                    file.head = stream.read(min(_HEAD, file.offset + len(data)))
        except OSError as error:
            self.counts.unreadable[file.shown] = error.strerror or str(error)
            file.ignored = isinstance(error, PermissionError)
            return None
        if file.offset == 0 and b"\0" in data[:8192]:
            file.ignored = True
            return None
        self.counts.bytes += len(data)
        return self._lines(file, data)

    def _lines(self, file: _File, data: bytes) -> Growth | None:
        """The whole lines among the bytes; the beginning of the next one is kept."""
        file.offset += len(data)
        if file.skipping:  # the place that was jumped to lies inside a line
            cut = data.find(b"\n") + 1
            if not cut:
                return None
            data, file.skipping, file.line = data[cut:], False, file.line + 1
        whole = file.pending + data
        cut = whole.rfind(b"\n") + 1
        file.pending = whole[cut:][:_LINE]
        if not cut:
            return None
        first, fresh = file.line, file.fresh
        whole = whole[:cut]
        file.line += whole.count(b"\n")
        file.fresh = False
        return Growth(file.key, file.shown, first, file.offset - len(file.pending) - cut, whole, fresh)


def _root_name(path: str) -> str:
    return printable(os.path.basename(os.path.normpath(path)))


def _key(entry: os.DirEntry[str]) -> Key:
    status = entry.stat()
    return (status.st_dev, status.st_ino)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return


def below(folder: Path) -> Callable[[str], bool]:
    """Whether a path is this folder or lies in it."""
    top = os.path.realpath(folder)
    return lambda path: (real := os.path.realpath(path)) == top or real.startswith(top + os.sep)
