"""The small real jobs that travel inside the package, laid out as a directory of logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path


def demo_names() -> tuple[str, ...]:
    """Names of the jobs, sorted."""
    folder = files("firstfault.cli").joinpath("demo")
    return tuple(sorted(one.name for one in folder.iterdir() if one.is_dir()))


@contextmanager
def demo_logs(name: str | None = None) -> Iterator[Path]:
    """The log directory of a demo job, the first one by default."""
    chosen = name or demo_names()[0]
    with as_file(files("firstfault.cli").joinpath("demo", chosen, "logs")) as folder:
        yield Path(folder)
