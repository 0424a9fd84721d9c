"""Formats as they come with the package, read once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from firstfault.ingest.formats import Formats


@pytest.fixture(scope="session")
def formats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Formats]:
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    try:
        made = Formats()
        made.peel_many(made.example_lines())
        yield made
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before


SHARED = Path(__file__).parents[2].parent / "shared"


@pytest.fixture
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the reference files are not here")
    return SHARED
