"""Ingest: from the files that a job left behind to its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstfault.ingest.options import Bounds, Cluster, IngestOptions, OptionError

if TYPE_CHECKING:
    from firstfault.ingest.run import IngestResult, ingest

__all__ = ["Bounds", "Cluster", "IngestOptions", "IngestResult", "OptionError", "ingest"]


def __getattr__(name: str) -> object:
    """Load the pipeline, with all that it imports, only when it is used."""
    if name in ("ingest", "IngestResult"):
        from firstfault.ingest import run

        return getattr(run, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
