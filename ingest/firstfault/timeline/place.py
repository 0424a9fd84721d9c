"""A folder beside a file that is being made, and the step that puts the file in its place for good.

A lock in the folder says that its maker lives, on whatever machine of a shared disk or in whatever container. What a
killed maker left goes when the next one comes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".firstfault"
_LOCK = "lock"
_NEW = 3600.0
"""Seconds in which a folder without a lock may be one that is just being made."""


@contextlib.contextmanager
def workplace(file: Path) -> Iterator[Path]:
    """A folder on the same disk as `file`, gone afterwards. Removes what killed makers of the file left."""
    file.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(file)
    folder = Path(tempfile.mkdtemp(prefix=_prefix(file), suffix=SUFFIX, dir=file.parent))
    handle = -1
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # a disk without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle >= 0:
            os.close(handle)


def leftovers(file: Path) -> list[Path]:
    """What makers of a file that were killed left behind."""
    prefix = _prefix(file)
    try:
        names = [name for name in sorted(os.listdir(file.parent)) if name.startswith(prefix) and is_workplace(name)]
    except OSError:
        return []
    found = [file.parent / name for name in names]
    return [path for path in found if path.is_dir() and not _alive(path)]


def remove_leftovers(file: Path) -> None:
    """Delete what makers of a file that were killed left behind."""
    for path in leftovers(file):
        shutil.rmtree(path, ignore_errors=True)


def is_workplace(name: str) -> bool:
    """Whether a folder of this name is one of these."""
    return name.startswith(".") and name.endswith(SUFFIX)


def put(made: Path, file: Path) -> None:
    """Move a file to its place in one step: after a crash or a loss of power either the old or the new one is there."""
    with made.open("rb") as content:
        os.fsync(content.fileno())
    os.replace(made, file)
    with contextlib.suppress(OSError):  # some disks do not sync folders
        handle = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _prefix(file: Path) -> str:
    return f".{file.name[:100]}."


def _alive(folder: Path) -> bool:
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        with contextlib.suppress(OSError):
            return time.time() - folder.stat().st_mtime < _NEW
        return True
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
