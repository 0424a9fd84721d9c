"""What need not be read again: a timeline that still holds its files as they are, and parts of files that only grew.

A file is taken for the same where path, size, time of change, inode and the bytes at both ends are. Of a big file that
grew, the shards before its end are taken for the same where inode and samples of their bytes are: logs are appended to.
Parts are kept in the cache folder, whole or not at all, and the oldest go first; losing them costs only time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from importlib import metadata, resources
from pathlib import Path

import duckdb

from firstfault.catalog.cache import cache_root
from firstfault.ingest.discover import STDIN, Found
from firstfault.ingest.formats import Formats, SourceFormat
from firstfault.ingest.options import IngestOptions
from firstfault.ingest.part import Part, load, save
from firstfault.ingest.plan import Unit
from firstfault.ingest.problems import Problem
from firstfault.ingest.saved import SavedError, to_plain
from firstfault.ingest.sharding import LOOK_AHEAD, sample_lines

LIMIT = "FIRSTFAULT_CACHE_SIZE"
_LIMIT = 4 << 30
_ENDS = 4096
_SAMPLES = 16
_PACKAGES = ("firstfault.catalog", "firstfault.timeline", "firstfault.ingest")
_FOLDERS = ("FIRSTFAULT_CATALOG", "FIRSTFAULT_FORMATS")


def job_mark(
    roots: Sequence[str], files: Sequence[Found], problems: Sequence[Problem], options: IngestOptions
) -> str | None:
    """What stands for all that a timeline is made of; None where it cannot be known before it is read."""
    marks = [file_mark(found) for found in files]
    if any(mark is None for mark in marks):
        return None
    said = asdict(options)
    for name in ("workers", "memory_limit", "reuse", "catalogs", "cluster"):
        del said[name]
    text = json.dumps([code_mark(options), list(roots), to_plain(list(problems)), marks, said], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def file_mark(found: Found) -> list[object] | None:
    """What stands for a file and its content, None for what is no plain file."""
    if found.file == STDIN:
        return None
    try:
        if not stat.S_ISREG(os.stat(found.file).st_mode):  # what is read of a pipe is gone
            return None
        with open(found.file, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if found.size != status.st_size:
                return None
            ends = hashlib.blake2b(file.read(_ENDS), digest_size=16)
            if found.size > _ENDS:
                file.seek(-_ENDS, os.SEEK_END)
                ends.update(file.read(_ENDS))
    except OSError:
        return [found.root, found.path, found.size, found.mtime_ns, found.alone]
    return [
        found.root, found.path, found.size, found.mtime_ns, found.alone, status.st_dev, status.st_ino, ends.hexdigest()
    ]  # fmt: skip


def code_mark(options: IngestOptions) -> str:
    """What stands for the code, the catalog and the formats that logs are read with."""
    named = [Path(part) for name in _FOLDERS for part in os.environ.get(name, "").split(os.pathsep) if part]
    own = [path for path in (*named, *options.catalogs) if path.exists()]
    return f"{state_of_code(*_PACKAGES)}{_state_of(own)}"


@cache
def state_of_code(*packages: str) -> str:
    """What stands for the version of the program and the files of these packages."""
    try:
        version = metadata.version("firstfault")
    except metadata.PackageNotFoundError:
        version = "unknown"
    folders = [Path(str(resources.files(name))) for name in packages]
    return version + _state_of(folder for folder in folders if folder.is_dir())


def _state_of(paths: Iterable[Path]) -> str:
    """Sizes and times of all files below some paths."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix != ".pyc" and file.is_file():
                status = file.stat()
                digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def still_holds(db: Path, mark: str | None) -> tuple[int, int, int, int] | None:
    """The counts of a timeline that was made of exactly this, None where there is none."""
    facts = facts_of(db) if mark is not None else {}
    try:
        if facts.get("made_of") != mark or facts.get("complete") != "true":
            return None
        sources, lines, signals, problems = json.loads(facts["counts"])
        return int(sources), int(lines), int(signals), int(problems)
    except (ValueError, KeyError, TypeError):
        return None


def facts_of(db: Path) -> dict[str, str]:
    """What a timeline says of itself, nothing where it cannot be read."""
    if not db.is_file():
        return {}
    try:
        with duckdb.connect(str(db), read_only=True) as connection:
            return dict(connection.execute("SELECT key, value FROM meta").fetchall())
    except duckdb.Error:
        return {}


class Keep:
    """Parts of earlier runs in the cache folder, by what they were made of."""

    def __init__(self, options: IngestOptions, formats: Formats) -> None:
        self._options, self._formats = options, formats
        self._code = code_mark(options)
        self._root = folder("parts")
        self._forms: dict[str, SourceFormat] = {}

    def mark(self, unit: Unit) -> str | None:
        """What stands for a unit, None where it cannot be kept."""
        if self._root is None:
            return None
        bounds = asdict(self._options.bounds)
        if unit.shard is None:
            marks: list[object] = [file_mark(found) for found in unit.files]
            if any(mark is None for mark in marks):
                return None
        else:
            one = self._shard_mark(unit)
            if one is None:
                return None
            marks = [one]
        return hashlib.sha256(json.dumps([self._code, bounds, marks], sort_keys=True).encode()).hexdigest()

    def get(self, mark: str | None, unit: Unit, into: Path) -> Part | None:
        """The part of a unit, its file linked into a folder so that it stays while it is needed."""
        if mark is None or self._root is None:
            return None
        kept, mine = self._root / f"{mark}.zip", into / f"{mark}.zip"
        try:
            _linked(kept, mine)
            os.utime(kept)
            with zipfile.ZipFile(mine) as archive:
                if archive.testzip() is not None:
                    return None
                part = load(mine, archive, "0")
        except (OSError, zipfile.BadZipFile, zlib.error, SavedError):
            return None
        if unit.shard is not None:
            for state in part.states:
                state.mtime_ns = unit.files[0].mtime_ns
                state.format_why = self._form(unit.files[0]).why
        return part

    def put(self, mark: str | None, part: Part) -> None:
        """Keep a part; where there is no room it is not kept."""
        if mark is None or self._root is None:
            return
        temporary = self._root / f".{mark}.{os.getpid()}.tmp"
        try:
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                save(part, archive, "0")
            os.replace(temporary, self._root / f"{mark}.zip")
        except OSError:
            temporary.unlink(missing_ok=True)

    def trim(self) -> None:
        """Forget the parts that were not used for longest, until the others are within the limit."""
        if self._root is not None:
            trim(self._root)

    def _shard_mark(self, unit: Unit) -> list[object] | None:
        """What stands for a shard: where it lies, samples of its bytes, how the lines of the file are taken apart."""
        found, shard = unit.files[0], unit.shard
        assert shard is not None
        digest = hashlib.blake2b(digest_size=16)
        try:
            with open(found.file, "rb") as file:
                status = os.fstat(file.fileno())
                step = max((shard.stop - shard.start - _ENDS) // (_SAMPLES - 1), 1)
                for at in range(shard.start, shard.stop, step):
                    file.seek(at)
                    digest.update(file.read(min(_ENDS, shard.stop - at)))
            form = self._form(found)
        except OSError:
            return None
        # a record that a shard begins may end in the next one
        last = [found.size, found.mtime_ns] if shard.stop + 2 * LOOK_AHEAD > found.size else None
        return [
            found.root, found.path, found.alone, status.st_dev, status.st_ino, shard.start, shard.stop, last,
            digest.hexdigest(), sorted(form.trusted), form.tee_role, form.task_means,
        ]  # fmt: skip

    def _form(self, found: Found) -> SourceFormat:
        """How the lines of a big file are taken apart."""
        known = self._forms.get(found.file)
        if known is None:
            with open(found.file, "rb") as file:
                sample = sample_lines(file, found.size)
            known = self._forms[found.file] = self._formats.sniff(sample, found.path)
        return known


def folder(name: str) -> Path | None:
    """A folder in the cache, None where nothing can be kept or `FIRSTFAULT_CACHE_SIZE` is 0."""
    root = cache_root()
    if root is None or limit() == 0:
        return None
    try:
        (root / name).mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return root / name


def limit() -> int:
    """Bytes that the cache may hold of timelines and of parts each."""
    text = os.environ.get(LIMIT, "")
    return int(text) if text.isascii() and text.isdigit() else _LIMIT


def trim(kept: Path) -> None:
    """Delete the files of a folder that were not used for longest, until the others are within the limit."""
    aged = []
    for path in kept.iterdir():
        try:
            status = path.stat()
        except OSError:
            continue
        aged.append((status.st_mtime_ns, status.st_size, path))
    left = limit()
    for _, size, path in sorted(aged, reverse=True):
        left -= size
        if left < 0:
            path.unlink(missing_ok=True)


def _linked(kept: Path, mine: Path) -> None:
    try:
        os.link(kept, mine)
    except OSError:
        shutil.copyfile(kept, mine)
