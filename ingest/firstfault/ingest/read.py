"""Reads sources one after another into parts: packs small ones into one batch, cuts big ones into chunks.

This is what a worker does with its share of the files. It knows nothing of the other workers, and what it makes of a
source does not depend on which other sources it has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from firstfault.catalog.matcher import Matcher
from firstfault.ingest import dumps
from firstfault.ingest.discover import Found
from firstfault.ingest.extract.batch import Batch, Segment, read_batch
from firstfault.ingest.extract.source import SourceState, absorb, settle
from firstfault.ingest.formats import Formats, SourceFormat
from firstfault.ingest.frame import Lines, chunks, frame
from firstfault.ingest.identify import merge, summarise
from firstfault.ingest.identity_paths import claims_of
from firstfault.ingest.opening import Opened, Plain, open_found
from firstfault.ingest.options import IngestOptions
from firstfault.ingest.problems import Problem, Severity
from firstfault.ingest.times import merge_stamps, summarise_stamps

_SPILL_ROWS = 1 << 20
_HEAD = 16384
_SAMPLE = 120
_MAGIC = (
    b"\x7fELF", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05",
    b"PK\x03\x04", b"PAR1", b"\x93NUMPY", b"\x89HDF", b"SQLite format 3", b"\xcf\xfa\xed\xfe", b"MZ\x90",
)  # fmt: skip


@dataclass(slots=True)
class Part:
    """What one worker made: lines in memory or in Parquet files, and the state of its sources."""

    states: list[SourceState] = field(default_factory=list)
    lines: list[pl.DataFrame] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    progress: list[pl.DataFrame] = field(default_factory=list)
    dumps: list[tuple[int, dumps.DumpRows]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    summary: pl.DataFrame | None = None
    stamps: pl.DataFrame | None = None


class Reading:
    """A worker's reading of its sources."""

    def __init__(
        self, matcher: Matcher, formats: Formats, options: IngestOptions, first_number: int, spill: Path | None
    ) -> None:
        self.part = Part()
        self._matcher, self._formats, self._options, self._spill = matcher, formats, options, spill
        self._next = first_number
        self._states: dict[int, SourceState] = {}
        self._segments: list[Segment] = []
        self._waiting = 0
        self._rows = 0
        self._summaries: list[pl.DataFrame] = []
        self._stamps: list[pl.DataFrame] = []

    def read(self, files: Iterable[Found]) -> Part:
        """Read every source in the files."""
        for found in files:
            for opened in open_found(found, self._options.bounds, self.part.problems):
                self._source(opened, found.root)
        self._flush()
        for state in self.part.states:
            settle(state, self._matcher)
        self._spill_lines()
        self.part.summary = merge(self._summaries)
        if self._stamps:
            self.part.stamps = merge_stamps(self._stamps)
        return self.part

    def _source(self, opened: Opened, root: int) -> None:
        state = SourceState(self._next, opened.path, root, opened.mtime_ns)
        self._next += 1
        self._states[state.number] = state
        self.part.states.append(state)
        head = opened.stream.peek(dumps.HEAD_BYTES)
        state.head = head[:_HEAD]
        reader = dumps.find_reader(opened.path, head)
        if reader is not None:
            self._dump(state, reader, opened)
            return
        if _binary(head):
            state.kind = "binary"
            detail = "no text; no reader for this kind of file"
            self.part.problems.append(Problem(opened.path, "binary", Severity.NOTICE, detail, source=opened.path))
            return
        self._text(state, opened.stream, searched=True)

    def _dump(self, state: SourceState, reader: dumps.Reader, opened: Opened) -> None:
        bound = self._options.bounds.dump
        data = opened.stream.read(bound + 1)
        state.reader, state.kind = reader.name, reader.kind
        if len(data) > bound:
            detail = f"longer than the {bound} bytes that {reader.name} reads; its beginning was read as text"
            self.part.problems.append(Problem(opened.path, "too-large", Severity.DATA_LOSS, detail, source=opened.path))
        else:
            claims = claims_of(opened.path)
            ctx = dumps.DumpContext(
                opened.path, claims.hosts[0] if claims.hosts else None, claims.rank, claims.local_rank, claims.attempt
            )
            self.part.dumps.append((state.number, dumps.read_dump(reader, ctx, data)))
        if not _binary(data[: dumps.HEAD_BYTES]):
            import io

            self._text(state, io.BytesIO(data), searched=not reader.whole)
        else:
            state.bytes = len(data)
            state.digest = hashlib.blake2b(data, digest_size=16).hexdigest()

    def _text(self, state: SourceState, stream: Plain | object, *, searched: bool) -> None:
        bounds = self._options.bounds
        digest = hashlib.blake2b(digest_size=16)
        line, form = 1, SourceFormat()
        for chunk in chunks(stream, bounds.chunk, bounds.line):  # type: ignore[arg-type]
            digest.update(chunk.data)
            lines = frame(chunk, bounds.line)
            state.bytes = int(lines.offsets[-1] + lines.lengths[-1]) + int(chunk.data.endswith(b"\n"))
            self._damage(state, line, len(lines.undecodable), lines.undecodable, "undecodable")
            self._damage(state, line, len(lines.cut), lines.cut, "cut-line")
            if line == 1:
                form = self._formats.sniff(_sample(lines), state.path)
            self._segments.append(Segment(state.number, line, lines, form, searched))
            line += len(lines)
            self._waiting += len(chunk.data)
            if self._waiting >= bounds.chunk:
                self._flush()
        state.digest = digest.hexdigest()

    def _damage(self, state: SourceState, first_line: int, count: int, lines: object, kind: str) -> None:
        if not count:
            return
        detail = {
            "undecodable": "bytes that are no UTF-8 became U+FFFD",
            "cut-line": f"only the first {self._options.bounds.line} bytes of the line were kept",
        }[kind]
        severity = Severity.NOTICE if kind == "undecodable" else Severity.DATA_LOSS
        at = first_line + int(lines[0])  # type: ignore[index]
        state.problems.append(Problem(state.path, kind, severity, detail, line=at, count=count, source=state.path))

    def _flush(self) -> None:
        if not self._segments:
            return
        batch = read_batch(self._segments, self._formats, self._matcher)
        self._segments, self._waiting = [], 0
        for number, formats in batch.formats.items():
            self._states[number].formats.update(formats)
        for part, segment in enumerate(batch.segments):
            absorb(self._states[segment.source], batch, part)
        self._keep(batch)

    def _keep(self, batch: Batch) -> None:
        self.part.lines.append(batch.frame)
        self._summaries.append(summarise(batch.frame.rename({"source": "source_id"})))
        self._stamps.append(summarise_stamps(batch.frame))
        if len(batch.progress):
            at = batch.frame.select("source", "line")[batch.progress["row"]]
            self.part.progress.append(batch.progress.drop("row").hstack(at))
        self._rows += len(batch.frame)
        if self._rows >= _SPILL_ROWS:
            self._spill_lines()

    def _spill_lines(self) -> None:
        if self._spill is None or not self.part.lines:
            return
        path = self._spill / f"lines-{self._next:08d}-{len(self.part.files):06d}.parquet"
        pl.concat(self.part.lines).write_parquet(path, compression="zstd", compression_level=1, statistics=False)
        self.part.files.append(path)
        self.part.lines, self._rows = [], 0


def _sample(lines: Lines) -> list[str]:
    """Some lines of the beginning and of the end of a chunk."""
    count = len(lines)
    wanted = [*range(min(count, _SAMPLE)), *range(max(count - _SAMPLE, _SAMPLE), count)]
    starts = [int(lines.ends[row - 1]) + 1 if row else 0 for row in wanted]
    texts = [lines.text[start : int(lines.ends[row])] for row, start in zip(wanted, starts, strict=True)]
    return [text[:4096].decode("utf-8", "replace") for text in texts]


def _binary(head: bytes) -> bool:
    """Whether a file is no text at all. A log with holes of NUL bytes or in another encoding is text."""
    if head.startswith(_MAGIC) or head[8:12] == b"DUCK":
        return True
    sample = head[:8192].replace(b"\0", b"")
    if len(sample) < 512 or head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    odd = len(sample) - len(sample.translate(None, bytes(range(1, 9)) + bytes(range(14, 27)) + b"\x1c\x1d\x1e\x1f\x7f"))
    return odd > len(sample) // 10
