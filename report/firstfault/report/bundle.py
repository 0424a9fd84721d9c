"""One file to pass on: the report in every form, the timeline, the logs that are cited, and a list of all that.

Secrets are masked in each part; with a redactor, names are replaced as well, the same in each part. The archive has no
time and no owner of its own: the same job gives the same bytes but for the timeline.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from firstfault.correlate.diagnosis import Diagnosis
from firstfault.correlate.secrets import LineMasker
from firstfault.ingest.discover import discover
from firstfault.ingest.opening import open_found
from firstfault.ingest.options import Bounds
from firstfault.ingest.problems import Problem
from firstfault.report.document import to_json
from firstfault.report.html import to_html
from firstfault.report.markdown import to_markdown
from firstfault.report.swim_svg import standalone
from firstfault.report.text import to_text
from firstfault.report.words import clean, verdict_words

MOST_BYTES = 8 << 20
"""A longer log is cut: its head, and what stands before its last cited line."""
_HEAD = 256 << 10

Change = Callable[[str], str]


def cited(one: Diagnosis) -> dict[str, int]:
    """Logs that the answer cites, with the last cited line of each."""
    found: dict[str, int] = {}
    lines = [(line.path, line.line) for line in one.evidence]
    lines += [(line.path, line.line) for link in one.chain for line in link.evidence]
    lines += [(group.example.path, group.example.line) for group in one.collateral.groups if group.example]
    lines += [(line.path, line.line) for other in one.also for line in other.evidence]
    for path, line in lines:
        found[path] = max(line, found.get(path, 0))
    return found


def write_bundle(
    target: Path,
    plain: Diagnosis,
    shown: Diagnosis,
    database: Path,
    paths: Sequence[str],
    text: Change,
    path: Change | None,
) -> list[str]:
    """Write the archive, complete or not at all; what could not be put in, in words.

    `plain` knows the paths as they are on disk; `shown` is what the reports may say; `text` makes a line fit to show,
    `path` likewise a path (None leaves paths as they are).
    """
    left: list[str] = []
    rows: list[str] = []
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with (
            temporary.open("wb") as raw,
            gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):

            def put(name: str, content: bytes) -> None:
                about = tarfile.TarInfo(name)
                about.size, about.mode = len(content), 0o644
                archive.addfile(about, io.BytesIO(content))
                rows.append(f"{hashlib.sha256(content).hexdigest()}  {len(content):>12,}  {name}")

            for name, content in _reports(shown):
                put(name, content.encode("utf-8", "backslashreplace"))
            put("timeline.duckdb", database.read_bytes())
            wanted = cited(plain)
            for log, log_bytes in _logs(paths, wanted, text):
                put(f"logs/{_inside(path(log) if path else log)}", log_bytes)
                wanted.pop(log)
            left = [f"{clean(path(log) if path else log)}: not found again" for log in sorted(wanted)]
            put("MANIFEST.txt", _manifest(shown, rows, left, path is not None).encode("utf-8", "backslashreplace"))
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return left


def _reports(one: Diagnosis) -> Iterator[tuple[str, str]]:
    yield "report.html", to_html(one)
    yield "report.md", to_markdown(one)
    yield "report.txt", to_text(one)
    yield "diagnosis.json", to_json(one) + "\n"
    if one.swim.lanes:
        yield "swimlanes.svg", standalone(one.swim)


def _inside(path: str) -> str:
    """A name inside the archive that leads nowhere else."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return clean("/".join(parts)) or "log"


def _logs(paths: Sequence[str], wanted: dict[str, int], text: Change) -> Iterator[tuple[str, bytes]]:
    """The cited logs as they lie in the given paths, each line made fit to show."""
    problems: list[Problem] = []
    for found in discover(paths, follow_links=False, problems=problems):
        if found.file == "-":
            continue
        for opened in open_found(found, Bounds(), problems):
            if opened.path in wanted:
                yield opened.path, _content(opened.stream.read, wanted[opened.path], text)


def _content(read: Callable[[int], bytes], last: int, text: Change) -> bytes:
    """A log up to some lines behind the last cited one; where that is too long, its head and its tail."""
    kept = bytearray()
    lines = 0
    while len(kept) <= 16 * MOST_BYTES:
        part = read(1 << 20)
        if not part:
            break
        kept += part
        lines += part.count(b"\n")
        if lines > last + 10_000 and len(kept) > MOST_BYTES:
            break
    whole = bytes(kept).split(b"\n")
    shown = whole[: last + 10_000]
    if sum(map(len, shown)) > MOST_BYTES:
        head = _fill(shown, range(len(shown)), _HEAD)
        middle = range(max(0, min(last, len(shown)) - 1), -1, -1)
        tail = _fill(shown, middle, MOST_BYTES - _HEAD)
        keep = set(head) | set(tail)
        gap = b"[line left out of the bundle]"  # one for each, so that line numbers stay what they are
        shown = [line if number in keep else gap for number, line in enumerate(shown[:last])]
    return b"\n".join(_clean_lines(shown, text))


def _fill(lines: list[bytes], order: Iterable[int], room: int) -> list[int]:
    found = []
    for number in order:
        room -= len(lines[number]) + 1
        if room < 0:
            break
        found.append(number)
    return found


def _clean_lines(lines: Iterable[bytes], text: Change) -> Iterator[bytes]:
    show = LineMasker(text)
    for line in lines:
        yield show(line.decode("utf-8", "replace")).encode("utf-8", "backslashreplace")


def _manifest(one: Diagnosis, rows: list[str], left: list[str], redacted: bool) -> str:
    said = [
        f"firstfault: {verdict_words(one)}",
        clean(one.summary),
        "",
        "Secrets are masked in every part."
        + (" Hosts, users, addresses and paths are replaced, the same everywhere." if redacted else ""),
        "Logs: those that the report cites; of long ones the head and what stands before the last cited line.",
        "",
        *rows,
    ]
    if left:
        said += ["", "Left out:", *left]
    return "\n".join(said) + "\n"
