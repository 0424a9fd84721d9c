"""Owns the public face of line formats: wrappers and headers off a line or off a column of lines, their fields by name.

What the formats are stands in `formats/*.toml`, one file each, and in the folders that FIRSTFAULT_FORMATS names.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from firstfault.ingest import format_one, format_sniff
from firstfault.ingest.format_load import FormatError, load
from firstfault.ingest.format_model import PLAIN, FormatKind, LineFormat, Peeled, SourceFormat, Value
from firstfault.ingest.format_peel import Peeler
from firstfault.ingest.format_state import SCHEMA
from firstfault.ingest.stages import stage

__all__ = ["PLAIN", "SCHEMA", "FormatError", "FormatKind", "Formats", "LineFormat", "Peeled", "SourceFormat"]


OTHERS = frozenset({"submitit", "rfc3339-nano"})
"""Headers that a launcher or a collector puts on the lines of others."""


class Formats:
    """All formats in the order in which they are tried."""

    @stage("start")
    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.formats = load(folders)

    @cached_property
    def headers(self) -> frozenset[str]:
        """Formats that a program puts in front of its own lines; what follows without one goes on from there."""
        return frozenset(one.id for one in self.formats if one.kind is FormatKind.HEADER and one.id not in OTHERS)

    @cached_property
    def _peeler(self) -> Peeler:
        return Peeler(self.formats)

    def example_lines(self) -> pl.Series:
        """The lines that the formats give as examples and as near misses."""
        return pl.Series([it.line for one in self.formats for it in (*one.match, *one.no_match)], dtype=pl.String)

    @stage("sniff")
    def sniff(self, sample_lines: Sequence[str], path: str = "") -> SourceFormat:
        """What is decided once for a source, from a sample of its lines: head, middle and end, some hundred of them."""
        found = format_sniff.sniff(self.formats, sample_lines, path)
        messages = format_sniff.inside(sample_lines)
        return found.trusting(*format_sniff.marks(self.formats, messages)) if messages else found

    def read_path(self, path: str) -> dict[str, Value]:
        """What a file name says: local rank of a torchrun tree, host and pid of NCCL's debug file, pod of a CRI log."""
        return format_one.read_path(self.formats, path)

    def peel(self, line: str, context: SourceFormat = PLAIN) -> Peeled:
        """One line with all its fields."""
        return format_one.peel(self.formats, line, context)

    def peel_many(
        self,
        text: pl.Series,
        source: SourceFormat | Sequence[SourceFormat] = PLAIN,
        source_of: NDArray[np.integer] | None = None,
    ) -> pl.DataFrame:
        """The columns of `SCHEMA` for lines without their ends, of one source or, with `source_of`, of many."""
        sources = [source] if isinstance(source, SourceFormat) else list(source)
        return self._peeler.peel(text, sources or [PLAIN], None if source_of is None else source_of.astype(np.intp))
