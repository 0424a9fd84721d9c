"""From a file on disk to streams of plain bytes: compressed files and archives are opened as they are read.

Members of archives come one after another, none is ever written to disk, and sizes and ratios are bounded.
What stops early leaves what was read and a problem.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from firstfault.ingest.discover import STDIN, Found
from firstfault.ingest.options import Bounds
from firstfault.ingest.problems import Problem, Severity
from firstfault.ingest.unpack import BOMB_FREE, BROKEN, PACKERS, Plain, Unpacked

_NOT_ARCHIVES = (".pt", ".pth", ".npz", ".whl", ".jar", ".egg", ".docx", ".xlsx", ".safetensors", ".ckpt", ".distcp")


@dataclass(slots=True)
class Opened:
    """One source, ready to be read from its first byte."""

    path: str
    stream: Plain
    mtime_ns: int


_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_NO_TEXT = (
    b"\x7fELF", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05",
    *_ZIP,
    b"PAR1", b"\x93NUMPY", b"\x89HDF", b"SQLite format 3", b"\xcf\xfa\xed\xfe", b"MZ\x90",
)  # fmt: skip
_NAME = 4096
"""Characters of a name inside an archive, where nothing else bounds them."""
_CONTROL = bytes([*range(1, 9), *range(14, 27), 28, 29, 30, 31, 127])


def is_packed(head: bytes) -> bool:
    """Whether a file is compressed or an archive."""
    return head.startswith((*(magic for magic, _, _ in PACKERS), *_ZIP)) or head[257:262] == b"ustar"


def is_binary(head: bytes) -> bool:
    """Whether a file is no text at all. A log with holes of NUL bytes or in another encoding is text."""
    if head.startswith(_NO_TEXT) or head[8:12] == b"DUCK":
        return True
    sample = head[:8192].replace(b"\0", b"")
    if len(sample) < 512 or head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    return len(sample) - len(sample.translate(None, _CONTROL)) > len(sample) // 10


def open_found(found: Found, bounds: Bounds, problems: list[Problem]) -> Iterator[Opened]:
    """The sources in a file: itself, or the members of the archive that it is."""
    if found.file == STDIN:
        yield from _open(Plain(sys.stdin.buffer, STDIN), found.path, 0, bounds, problems, 0, alone=True)
        return
    try:
        file = open(found.file, "rb", buffering=0, opener=None if found.alone else _at_once)  # noqa: SIM115 - closed below
    except OSError as error:
        problems.append(Problem(found.path, "unreadable", Severity.ERROR, error.strerror or str(error)))
        return
    with file:
        if not found.alone and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            problems.append(Problem(found.path, "not-a-file", Severity.DATA_LOSS, "no file any more when it was read"))
            return
        if (hole := hole_of(file, bounds)) is not None:
            problems.append(Problem(found.path, "bomb", Severity.DATA_LOSS, hole))
            return
        yield from _open(
            Plain(file, found.path), found.path, found.mtime_ns, bounds, problems, 0, alone=found.alone, file=file
        )


def _at_once(path: str, flags: int) -> int:
    """Open without waiting: what was a file when it was found may be a pipe by now."""
    return os.open(path, flags | os.O_NONBLOCK)


def hole_of(file: IO[bytes], bounds: Bounds) -> str | None:
    """Why a file is not read that is next to nothing but a hole; None for all others."""
    status = os.fstat(file.fileno())
    there = status.st_blocks * 512
    if status.st_size - there <= bounds.hole or there * bounds.ratio >= status.st_size:
        return None
    return f"{status.st_size} bytes of which {there} are there, the rest is a hole; not read"


def _open(
    stream: Plain,
    path: str,
    mtime_ns: int,
    bounds: Bounds,
    problems: list[Problem],
    depth: int,
    *,
    alone: bool,
    file: IO[bytes] | None = None,
) -> Iterator[Opened]:
    head = stream.peek(512)
    packed = False
    for magic, make, piece in PACKERS:
        if head.startswith(magic):
            stream = Unpacked(stream, path, make, piece, bounds.ratio)
            head, packed = stream.peek(512), True
            break
    inside = "" if alone and depth == 0 else f"{path}!/"
    if head[257:262] == b"ustar" or (
        path.endswith((".tar", ".tar.gz", ".tgz")) and not head and stream.trouble is None
    ):
        if _too_deep(path, depth, bounds, problems):
            return
        yield from _tar(stream, path, inside, bounds, problems, depth)
    elif head.startswith(_ZIP) and not path.lower().endswith(_NOT_ARCHIVES):
        if _too_deep(path, depth, bounds, problems):
            return
        yield from _zip(stream, file if not packed else None, path, inside, bounds, problems, depth)
    else:
        yield Opened(path, stream, mtime_ns)
    if stream.trouble is not None:
        problems.append(stream.trouble)


def _too_deep(path: str, depth: int, bounds: Bounds, problems: list[Problem]) -> bool:
    if depth < bounds.archive_depth:
        return False
    problems.append(Problem(path, "bomb", Severity.DATA_LOSS, f"an archive inside {depth} others was not opened"))
    return True


def _tar(
    stream: Plain, path: str, inside: str, bounds: Bounds, problems: list[Problem], depth: int
) -> Iterator[Opened]:
    total = 0
    try:
        with tarfile.open(fileobj=stream, mode="r|", errorlevel=0, encoding="utf-8", errors="replace") as archive:  # type: ignore[call-overload]
            for count, member in enumerate(archive):
                name = inside + _clean(member.name)
                total += member.size
                if count >= bounds.archive_members or total > bounds.archive_bytes:
                    problems.append(
                        Problem(
                            path, "bomb", Severity.DATA_LOSS, "too many or too large members; the rest was not read"
                        )
                    )
                    return
                archive.members = []  # a long archive would keep a record of each
                stored = sum(size for _, size in member.sparse) if member.issparse() else member.size
                if member.issym() or member.islnk():
                    problems.append(Problem(name, "link", Severity.NOTICE, "a link inside an archive is not followed"))
                elif member.isdir():
                    continue
                elif not member.isreg():
                    problems.append(Problem(name, "not-a-file", Severity.NOTICE, "a device or pipe inside an archive"))
                elif member.size > BOMB_FREE and member.size > bounds.ratio * max(stored, 1):
                    problems.append(Problem(name, "bomb", Severity.DATA_LOSS, "next to nothing but a hole; not read"))
                else:
                    content = archive.extractfile(member)
                    if content is not None:
                        mtime_ns = _nanoseconds(member.mtime)
                        yield from _open(Plain(content, name), name, mtime_ns, bounds, problems, depth + 1, alone=False)
    except BROKEN as error:
        problems.append(Problem(path, "truncated-archive", Severity.DATA_LOSS, f"the archive breaks off: {error}"))


def _zip(
    stream: Plain,
    file: IO[bytes] | None,
    path: str,
    inside: str,
    bounds: Bounds,
    problems: list[Problem],
    depth: int,
) -> Iterator[Opened]:
    if file is None or not file.seekable():
        content = stream.read(bounds.dump + 1)
        if len(content) > bounds.dump:
            problems.append(
                Problem(path, "bomb", Severity.DATA_LOSS, f"a zip of more than {bounds.dump} bytes inside a stream")
            )
            return
        file = io.BytesIO(content)
    if _directory(file) > bounds.directory:
        problems.append(Problem(path, "bomb", Severity.DATA_LOSS, "more members than any job has; not opened"))
        return
    try:
        with zipfile.ZipFile(file) as archive:
            total = 0
            for count, member in enumerate(sorted(archive.infolist(), key=lambda member: member.filename)):
                name = inside + _clean(member.filename)
                if member.filename.endswith("/"):
                    continue
                total += member.file_size
                if count >= bounds.archive_members or total > bounds.archive_bytes:
                    problems.append(
                        Problem(
                            path, "bomb", Severity.DATA_LOSS, "too many or too large members; the rest was not read"
                        )
                    )
                    return
                if member.file_size > BOMB_FREE and member.file_size > bounds.ratio * max(member.compress_size, 1):
                    problems.append(
                        Problem(
                            name,
                            "bomb",
                            Severity.DATA_LOSS,
                            f"more than {bounds.ratio} bytes come out of one; not read",
                        )
                    )
                    continue
                try:
                    content_stream = archive.open(member)
                except BROKEN as error:
                    problems.append(Problem(name, "unreadable", Severity.ERROR, str(error)))
                    continue
                with content_stream:
                    yield from _open(
                        Plain(content_stream, name), name, _zip_time(member), bounds, problems, depth + 1, alone=False
                    )
    except BROKEN as error:
        problems.append(Problem(path, "truncated-archive", Severity.DATA_LOSS, f"the archive breaks off: {error}"))


def _directory(file: IO[bytes]) -> int:
    """Bytes that the list of members of a zip says to have: all of it is read at once."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - (1 << 16) - 22, 0))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    said = int.from_bytes(tail[at + 12 : at + 16], "little") if at >= 0 else 0
    if said == 0xFFFFFFFF and (large := tail.rfind(b"PK\x06\x06")) >= 0:
        said = int.from_bytes(tail[large + 40 : large + 48], "little")
    return min(said, size)


def _zip_time(member: zipfile.ZipInfo) -> int:
    import calendar

    try:
        return _nanoseconds(calendar.timegm((*member.date_time, 0, 0, 0)))
    except ValueError:  # no date at all, as some programs write it
        return 0


def _nanoseconds(seconds: float) -> int:
    """A time of change that fits its column; what an archive says may be any number, or none."""
    return int(seconds * 1_000_000_000) if abs(seconds) < 1 << 33 else 0


def _clean(name: str) -> str:
    """A member's name without what leads out of the archive."""
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    clean = "/".join(parts).encode("utf-8", "replace").decode("utf-8") or "unnamed"
    return clean if len(clean) <= _NAME else f"{clean[: _NAME // 2]}…{clean[-_NAME // 2 :]}"
