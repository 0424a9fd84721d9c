"""What the targets of fuzzing share: a folder, the kept corpus, and what is costly to make, made once."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).resolve().parent / "corpus"
MOST = 1 << 16
"""Bytes of an input; what grows with size is the business of the tests of bounds."""


@cache
def folder() -> Path:
    """A folder of this process, in memory where there is such a place."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    made = Path(tempfile.mkdtemp(prefix="firstfault-fuzz-", dir=base))
    atexit.register(shutil.rmtree, made, True)
    return made


def corpus(name: str) -> list[bytes]:
    """The kept inputs of a target, findings among them."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


@cache
def the_catalog() -> Any:
    """The catalog of the project."""
    from firstfault.catalog import load_catalog

    return load_catalog()


@cache
def the_formats() -> Any:
    """The formats of the project."""
    from firstfault.ingest.formats import Formats

    return Formats()


@cache
def the_timeline() -> Path:
    """A timeline, with a file beside it that no query may reach."""
    from firstfault.ingest import IngestOptions, ingest

    place = folder() / "gate"
    place.mkdir()
    ingest([ROOT / "sample_logs" / "mute-rank6" / "logs"], place / "t.duckdb", IngestOptions(workers=1))
    (place / "secret.csv").write_text("the,secret\n4711,4712\n", encoding="utf-8")
    return place / "t.duckdb"


@cache
def the_part() -> bytes:
    """A part of a timeline, as `ingest --shard` writes it."""
    from firstfault.ingest import IngestOptions
    from firstfault.ingest.run import ingest_shard
    from firstfault.ingest.shards import Shard

    ingest_shard(
        [ROOT / "sample_logs" / "healthy-pair" / "logs"], folder() / "p0", Shard(0, 1), IngestOptions(workers=1)
    )
    return (folder() / "p0").read_bytes()
