"""Reads one unit of work into a part: packs small sources into one batch, cuts big ones into chunks.

What is made of a source does not depend on which other sources travel with it, nor on which worker reads it.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from firstfault.catalog.matcher import Matcher
from firstfault.ingest import dumps, exports, times
from firstfault.ingest.discover import STDIN, Found
from firstfault.ingest.documents import Document
from firstfault.ingest.extract.batch import Batch, Segment, read_batch
from firstfault.ingest.extract.hits import Patterns
from firstfault.ingest.extract.partial import Joiner
from firstfault.ingest.extract.records import RecordReader
from firstfault.ingest.extract.settle import settle
from firstfault.ingest.extract.source import SourceState, absorb, follow, join
from firstfault.ingest.formats import Formats, SourceFormat
from firstfault.ingest.frame import Chunk, Lines, Stream, chunks, frame
from firstfault.ingest.identify import merge, summarise
from firstfault.ingest.identity_paths import claims_of
from firstfault.ingest.opening import Opened, is_binary, open_found
from firstfault.ingest.options import IngestOptions
from firstfault.ingest.part import Part, Rows
from firstfault.ingest.plan import Shard, Unit
from firstfault.ingest.problems import Problem, Severity
from firstfault.ingest.sharding import LOOK_AHEAD, ShardStream, sample_lines
from firstfault.ingest.stages import count, stage

_ROWS = 1 << 16
_HEAD = 8192
_SAMPLE = 100
_SOURCE_CODE = (
    ".py",
    ".pyi",
    ".sh",
    ".bash",
    ".c",
    ".cc",
    ".cpp",
    ".cu",
    ".cuh",
    ".h",
    ".hpp",
    ".js",
    ".css",
    ".ipynb",
)


@dataclass(frozen=True, slots=True)
class Tools:
    """What every unit is read with; made once in each worker."""

    patterns: Patterns
    formats: Formats
    options: IngestOptions

    @property
    def matcher(self) -> Matcher:
        return self.patterns.matcher


def read_unit(unit: Unit, place: int, tools: Tools, spill: Path | None) -> Part:
    """Read every source of the unit at this place of the plan; lines go to files in `spill`, if given."""
    reading = _Reading(place, tools, spill)
    if unit.shard is not None:
        reading.shard(unit.files[0], unit.shard)
    else:
        for found in unit.files:
            for opened in open_found(found, tools.options.bounds, reading.part.problems):
                reading.source(opened, found)
            reading.changed(found)
    return reading.finish()


class _Reading:
    def __init__(self, place: int, tools: Tools, spill: Path | None) -> None:
        self.part = Part()
        self._tools, self._spill = tools, spill
        self._bounds = tools.options.bounds
        self._place, self._next, self._rows = place, 0, 0
        self._states: dict[int, SourceState] = {}
        self._records: dict[int, RecordReader] = {}
        self._segments: list[Segment] = []
        self._waiting = 0
        self._forms: dict[int, SourceFormat] = {}
        self._exports: dict[int, exports.Export | Document | None] = {}
        self._keys: list[pl.DataFrame] = []
        self._stamps: list[pl.DataFrame] = []

    def source(self, opened: Opened, found: Found) -> None:
        """Read one source from its first byte to its last."""
        state = self._state(opened.path, found.root, opened.mtime_ns)
        head = opened.stream.peek(dumps.HEAD_BYTES)
        state.head = head[:_HEAD]
        reader = dumps.find_reader(opened.path, head)
        if reader is not None:
            self._dump(state, reader, opened.stream)
        elif is_binary(head):
            state.kind = "binary"
            state.note("binary", Severity.NOTICE, "no text, and no reader for this kind of file")
        else:
            code = opened.path.lower().endswith(_SOURCE_CODE)
            if code:
                state.note("not-a-log", Severity.INFO, "source code: kept as text, not searched")
            self._exports[state.number] = exports.export_of(head)
            self._text(state, opened.stream, searched=not code)

    def changed(self, found: Found) -> None:
        """Say so where a file grew or changed since it was found."""
        if found.file == STDIN:
            return
        try:
            now = os.stat(found.file)
        except OSError:
            return
        if (now.st_size, now.st_mtime_ns) != (found.size, found.mtime_ns):
            detail = (
                f"had {found.size} bytes when it was found and {now.st_size} when it was read: still being written?"
            )
            self.part.problems.append(Problem(found.path, "changed-while-reading", Severity.NOTICE, detail))

    def shard(self, found: Found, shard: Shard) -> None:
        """Read the lines of a plain file that begin in the shard, and the records that they begin."""
        state = self._state(found.path, found.root, found.mtime_ns)
        self.part.shard = shard
        try:
            with open(found.file, "rb") as file:
                head = file.read(dumps.HEAD_BYTES)
                state.head = head[:_HEAD]
                sample = exports.sample(exports.export_of(head, begins=False), sample_lines(file, found.size))
                self._exports[state.number] = exports.export_of(head, begins=not shard.start)
                form = self._tools.formats.sniff(sample, found.path)
                stream = ShardStream(file, shard.start, shard.stop)
                self._text(state, stream, form=form, offset=stream.offset)
                self._flush()
                self._look_ahead(state, stream, form)
        except OSError as error:
            state.note("unreadable", Severity.ERROR, error.strerror or str(error))
        if shard.stop == found.size:
            self.changed(found)

    @stage("settle")
    def finish(self) -> Part:
        """All is read: close records, join them with signals, and hand over."""
        self._flush()
        for number, reading in self._records.items():
            reading.finish()
            state = self._states[number]
            state.failures, state.spans, state.owned = reading.failures, reading.spans, reading.blocks.owned
            self._join(state, reading.joiner)
        if self.part.shard is None:
            for state in self.part.states:
                settle(state, self._tools.matcher)
        for name, rows in (("lines", self.part.lines), ("progress", self.part.progress), ("folded", self.part.folded)):
            self._write(name, rows)
        self.part.keys = merge(self._keys)
        self.part.stamps = times.merge(self._stamps)
        return self.part

    def _join(self, state: SourceState, joiner: Joiner) -> None:
        """Read the lines that came in parts once more, as whole ones."""
        lines = list(joiner.finish())
        if not lines:
            return
        text = "".join(one.text().replace("\n", " ") + "\n" for one in lines).encode("utf-8", "replace")
        framed = frame(Chunk(text, 1))
        join(state, lines, self._batch([Segment(state.number, 1, framed, self._forms[state.number])]))

    def _state(self, path: str, root: int, mtime_ns: int) -> SourceState:
        state = SourceState(self._next, path, root, mtime_ns)
        self._states[self._next] = state
        self._records[self._next] = RecordReader(self._tools.formats.headers)
        self._next += 1
        self.part.states.append(state)
        return state

    def _dump(self, state: SourceState, reader: dumps.Reader, stream: Stream) -> None:
        bound = self._bounds.dump
        data = stream.read(bound + 1)
        state.reader, state.kind = reader.name, reader.kind
        if len(data) > bound:
            state.note(
                "too-large", Severity.DATA_LOSS, f"longer than the {bound} bytes that {reader.name} reads at once"
            )
        else:
            claims = claims_of(state.path)
            host = claims.hosts[0] if claims.hosts else None
            ctx = dumps.DumpContext(state.path, host, claims.rank, claims.local_rank, claims.attempt)
            self.part.dumps.append((state.number, dumps.read_dump(reader, ctx, data)))
        if is_binary(data[: dumps.HEAD_BYTES]):
            state.bytes = len(data)
            state.digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        else:
            self._text(state, io.BytesIO(data), logged=not reader.whole, searched=not reader.whole)

    def _text(
        self,
        state: SourceState,
        stream: Stream,
        *,
        logged: bool = True,
        searched: bool = True,
        form: SourceFormat | None = None,
        offset: int = 0,
    ) -> None:
        digest = hashlib.blake2b(digest_size=16)
        line = 1
        for chunk in chunks(stream, self._bounds.chunk, self._bounds.line, offset):
            digest.update(chunk.data)
            lines = self._framed(state, chunk)
            if form is None:
                form = self._tools.formats.sniff(_sample(lines), state.path)
            state.format_why = form.why
            self._forms[state.number] = form
            last = int(lines.offsets[-1] + lines.lengths[-1])
            state.bytes = last - offset + int(chunk.data.endswith(b"\n"))
            if len(lines.undecodable):
                at = line + int(lines.undecodable[0])
                detail = "bytes that are no UTF-8 became U+FFFD"
                state.note("undecodable", Severity.NOTICE, detail, at, len(lines.undecodable))
            self._segments.append(Segment(state.number, line, lines, form, logged, searched))
            line += len(lines)
            self._waiting += len(chunk.data)
            if self._waiting >= self._bounds.chunk:
                self._flush()
        state.digest = digest.hexdigest()

    def _framed(self, state: SourceState, chunk: Chunk) -> Lines:
        """The lines of a chunk; those of a table as objects."""
        export = self._exports.get(state.number)
        return frame(chunk) if export is None else export.lines(frame(chunk))

    def _look_ahead(self, state: SourceState, stream: ShardStream, form: SourceFormat) -> None:
        """A record that the shard began may end in the next one, whose lines it does not own."""
        reading = self._records[state.number]
        reading.stop = state.lines
        if not (reading.waiting or reading.joiner.busy):
            return
        line = state.lines + 1
        for chunk in chunks(stream.after(LOOK_AHEAD), self._bounds.chunk, self._bounds.line):
            lines = self._framed(state, chunk)
            batch = self._batch([Segment(state.number, line, lines, form, searched=False)])
            follow(reading, batch.frame, [])
            reading.joiner.feed(batch.raw, line, batch.parts.tolist(), opens=False)
            line += len(lines)
            if not (reading.busy or reading.joiner.busy):
                break

    def _batch(self, segments: Sequence[Segment]) -> Batch:
        def quota(source: int, pattern: int) -> int:
            return self._states[source].quota(pattern)

        return read_batch(segments, self._tools.formats, self._tools.patterns, self._bounds.line, quota)

    def _flush(self) -> None:
        if not self._segments:
            return
        batch = self._batch(self._segments)
        self._segments, self._waiting = [], 0
        for number, formats in batch.formats.items():
            self._states[number].formats.update(formats)
        for part, segment in enumerate(batch.segments):
            absorb(self._states[segment.source], self._records[segment.source], batch, part)
        for row in batch.cut:
            number, line = batch.frame.row(row)[:2]
            detail = f"only {self._bounds.line} bytes of the line were kept"
            self._states[number].note("cut-line", Severity.DATA_LOSS, detail, line)
        self._keys.append(summarise(batch.frame.rename({"source": "source_id"})))
        self._stamps.append(times.summarise(batch.frame))
        if len(batch.progress):
            places = batch.frame.select("source", "line")[batch.progress["row"]]
            self.part.progress.waiting.append(batch.progress.drop("row").hstack(places))
        if len(batch.folded):
            places = batch.frame.select("source", "line")[batch.folded["row"]]
            self.part.folded.waiting.append(batch.folded.drop("row").hstack(places))
        self.part.lines.waiting.append(batch.frame)
        self._rows += len(batch.frame)
        if self._rows >= _ROWS:
            self._write("lines", self.part.lines)
            self._rows = 0

    @stage("parts")
    def _write(self, name: str, rows: Rows) -> None:
        if self._spill is not None:
            count("parts", rows.write(self._spill / f"{name}-{self._place:09d}"))


def _sample(lines: Lines) -> list[str]:
    """Some lines of the beginning, the middle and the end of a chunk."""
    count = len(lines)
    starts = (0, max(count // 2 - _SAMPLE // 2, 0), max(count - _SAMPLE, 0))
    wanted = sorted({row for start in starts for row in range(start, min(start + _SAMPLE, count))})
    spans = [(int(lines.ends[row - 1]) + 1 if row else 0, int(lines.ends[row])) for row in wanted]
    return [lines.text[start : min(stop, start + 4096)].decode("utf-8", "replace") for start, stop in spans]
