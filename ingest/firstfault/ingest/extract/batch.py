"""One batch of lines, of one big source or of many small ones: text, header columns, hits of the catalog.

A batch is worked on without memory of earlier ones, so that its size changes nothing; what spans lines is `source`'s.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.ingest.extract.blocks import NCCL, SLURM
from firstfault.ingest.extract.hits import Patterns, Quota, Rows, Searched, find, owns, with_headers
from firstfault.ingest.extract.partial import parts_of
from firstfault.ingest.extract.records import OPENERS
from firstfault.ingest.extract.rows import TEXT_LIMIT, SignalRow
from firstfault.ingest.formats import Formats, SourceFormat
from firstfault.ingest.frame import Lines, fold, in_pieces, series
from firstfault.ingest.stages import stage

_OPENERS = "|".join(map(re.escape, OPENERS))
COLUMNS = (
    "stamp_ns", "stamp_kind", "stamp_res_ns", "utc_offset_s", "collect_ns", "level", "host", "rank", "local_rank",
    "task", "pid", "gpu", "format", "message",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Segment:
    """Lines of one source inside a batch. `first_line` is the 1-based number of the first of them.

    `logged` says that the lines are those of a log and have headers, `searched` that the catalog applies to them.
    """

    source: int
    first_line: int
    lines: Lines
    format: SourceFormat
    logged: bool = True
    searched: bool = True


@dataclass(frozen=True, slots=True)
class Batch:
    """The columns of a batch's lines, which of them open a record, and what the catalog says about them.

    `starts` are the first rows of the segments; pairs are sorted by row; `parts` are the rows of lines that go on in a
    later one.
    """

    segments: tuple[Segment, ...]
    starts: tuple[int, ...]
    frame: pl.DataFrame
    openers: list[int]
    hits: list[tuple[int, SignalRow]]
    errors: list[tuple[int, SignalRow]]
    cut: list[int]
    formats: Mapping[int, Counter[str]]
    progress: pl.DataFrame
    folded: pl.DataFrame
    raw: pl.Series
    parts: npt.NDArray[np.int64]


@stage("batch")
def read_batch(segments: Sequence[Segment], formats: Formats, patterns: Patterns, bound: int, quota: Quota) -> Batch:
    """Peel and search the lines of a batch."""
    starts, text, ends = _joined(segments)
    part_of = np.repeat(np.arange(len(segments)), [len(part.lines) for part in segments])
    raw = series(text, ends)
    several = in_pieces(text, ends, bound)
    if several is not None:
        rows = pl.Series(np.flatnonzero(several))
        raw = raw.scatter(rows, fold(raw.gather(rows)))
    raw, cut = _bounded(raw, bound)
    cut += [start + row for start, part in zip(starts, segments, strict=True) for row in part.lines.cut]
    frame = pl.DataFrame(
        {
            "source": np.array([part.source for part in segments], dtype=np.int32)[part_of],
            "line": np.concatenate([np.arange(len(part.lines), dtype=np.int64) + part.first_line for part in segments]),
            "byte_offset": np.concatenate([part.lines.offsets for part in segments]),
            "byte_length": np.concatenate([part.lines.lengths for part in segments]),
        }
    )
    peeled = _peel(raw, segments, part_of, formats)
    frame = frame.hstack(peeled.select(COLUMNS))
    quiet = _marked(part_of, [not part.searched for part in segments])
    hits = find(Searched(text, ends, frame, several, bound, quota), quiet, formats, patterns)
    progress = with_headers(hits.progress, peeled["step"])
    openers = _openers(frame)
    return Batch(
        tuple(segments),
        starts,
        frame,
        openers,
        sorted(hits.signals, key=lambda pair: pair[0]),
        _errors(frame),
        sorted(set(cut)),
        _formats(frame),
        progress,
        hits.folded,
        raw,
        parts_of(text, raw),
    )


def _openers(frame: pl.DataFrame) -> list[int]:
    """The rows that a record may begin with: by their words, or because of what their format is."""
    by_form = (pl.col("format") == SLURM) | ((pl.col("format") == NCCL) & (pl.col("level") == "WARN"))
    found = frame.select(pl.col("message").str.contains(_OPENERS).fill_null(False) | by_form.fill_null(False))
    return found.to_series().arg_true().to_list()


def _marked(part_of: Rows, marks: Sequence[bool]) -> npt.NDArray[np.bool_] | None:
    """The rows of the marked segments, None where no segment is marked."""
    return np.array(marks, dtype=bool)[part_of] if any(marks) else None


def _joined(segments: Sequence[Segment]) -> tuple[tuple[int, ...], bytes, Rows]:
    """The texts of all segments behind one another: first row of each segment, the text, its line ends."""
    starts, ends, base, rows = [], [], 0, 0
    for segment in segments:
        starts.append(rows)
        ends.append(segment.lines.ends + base)
        base += len(segment.lines.text)
        rows += len(segment.lines)
    text = segments[0].lines.text if len(segments) == 1 else b"".join(part.lines.text for part in segments)
    return tuple(starts), text, np.concatenate(ends)


def _bounded(raw: pl.Series, bound: int) -> tuple[pl.Series, list[int]]:
    """Texts beyond the bound cut, and which rows those are."""
    cut = (raw.str.len_bytes() > bound).arg_true()
    if not len(cut):
        return raw, []
    return raw.str.slice(0, bound), cut.to_list()


@stage("peel")
def _peel(raw: pl.Series, segments: Sequence[Segment], part_of: Rows, formats: Formats) -> pl.DataFrame:
    """What the headers say, and the messages."""
    kinds: dict[SourceFormat, int] = {}
    numbers = np.array([kinds.setdefault(part.format, len(kinds)) for part in segments])
    peeled = formats.peel_many(raw, list(kinds), numbers[part_of])
    plain = _marked(part_of, [not part.logged for part in segments])
    if plain is not None:
        bare = [
            pl.when(pl.Series(plain)).then(None).otherwise(pl.col(name)).alias(name) for name in (*COLUMNS[:-1], "step")
        ]
        message = pl.when(pl.Series(plain)).then(raw).otherwise(pl.col("message")).alias("message")
        peeled = peeled.with_columns(*bare, message)
    # a pod or an address in front of a line is where it was written, too
    return peeled.with_columns(host=pl.coalesce("host", "pod", "ip"))


@stage("errors")
def _errors(frame: pl.DataFrame) -> list[tuple[int, SignalRow]]:
    """Signals without an entry for the lines that call themselves errors."""
    wanted = frame["level"].is_in(["ERROR", "FATAL"]).fill_null(False).arg_true().to_numpy().astype(np.int64)
    messages = frame["message"].gather(pl.Series(wanted)).to_list()
    return [
        (row, SignalRow(line=0, event="exception", text=message[:TEXT_LIMIT], own=own))
        for row, own, message in zip(wanted.tolist(), owns(frame, wanted), messages, strict=True)
        if message
    ]


def _formats(frame: pl.DataFrame) -> Mapping[int, Counter[str]]:
    """How many lines of each source follow which format."""
    found: dict[int, Counter[str]] = {}
    counts = frame.select("source", "format").drop_nulls().group_by("source", "format", maintain_order=True).len()
    for source, name, count in counts.iter_rows():
        found.setdefault(source, Counter())[name] = count
    return found
