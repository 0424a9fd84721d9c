"""Which files an assistant may have read: those below the folders that the server was started with, and no others."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_FILES = 200_000


class Refused(Exception):
    """A wish that is not granted or cannot be met, in words that help the assistant on.

    `quotes` says that the words may hold text of a log.
    """

    def __init__(self, message: str, *, quotes: bool = False) -> None:
        super().__init__(message)
        self.quotes = quotes


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder: `files` and `bytes` count all that lies below a folder, links not followed."""

    name: str
    folder: bool
    files: int
    bytes: int


class Roots:
    """Folders, with all links in their own paths resolved."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(dict.fromkeys(Path(os.path.realpath(one)) for one in folders))

    def resolve(self, given: str) -> Path:
        """The real path of a file or folder, relative to a root or absolute. Raises `Refused`.

        Links are resolved first: one that leads out is refused, and nothing is told about what lies there.
        """
        if not given or "\0" in given or given == "-":
            raise Refused("give the path of a directory, a log file or an archive")
        inside = [one for one in self._candidates(given) if any(one.is_relative_to(root) for root in self.folders)]
        if not inside:
            raise Refused(
                f"{given!r} is outside of what this server may read; it reads below {self.words()} "
                "(whoever runs it can allow more with --root DIR)"
            )
        for one in inside:
            if one.exists():
                if one.suffix == ".duckdb":
                    raise Refused(f"{given!r} is a timeline; give the logs that it was made from")
                return one
        raise Refused(f"{given!r}: no such file or directory below {self.words()}; list_logs shows what is there")

    def _candidates(self, given: str) -> list[Path]:
        places = [given] if os.path.isabs(given) else [os.path.join(root, given) for root in self.folders]
        return [Path(os.path.realpath(place)) for place in places]

    def words(self) -> str:
        """The roots, for messages."""
        return ", ".join(map(str, self.folders))

    def listed(self, given: str) -> list[Entry]:
        """What lies in a folder, by name. Raises `Refused`."""
        folder = self.resolve(given)
        if not folder.is_dir():
            raise Refused(f"{given!r} is a file; give a directory")
        found = []
        left = MOST_FILES
        try:
            entries = sorted(os.scandir(folder), key=lambda one: one.name)
        except OSError as error:
            raise Refused(f"{given!r}: {error.strerror}") from error
        for one in entries:
            if one.is_dir(follow_symlinks=False):
                files, size = measure(Path(one.path), left)
                left -= files
                found.append(Entry(one.name, True, files, size))
            elif one.is_file(follow_symlinks=False):
                found.append(Entry(one.name, False, 1, one.stat(follow_symlinks=False).st_size))
        return found


def measure(path: Path, most: int = MOST_FILES, most_bytes: int | None = None) -> tuple[int, int]:
    """Files and bytes at or below a path; counting ends once there are more than so many."""
    files = size = 0
    for one in _sizes(path):
        files, size = files + 1, size + one
        if files > most or (most_bytes is not None and size > most_bytes):
            break
    return files, size


def _sizes(path: Path) -> Iterator[int]:
    """Sizes of the regular files; what cannot be looked into counts as nothing."""
    if not path.is_dir():
        yield path.stat().st_size
        return
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                found = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode):
                yield found.st_size
