"""The files of a job before any of them is read: what lies below the given paths, and what was said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firstfault.ingest.discover import STDIN, Found, discover, printable
from firstfault.ingest.options import IngestOptions, check, with_settings
from firstfault.ingest.problems import Problem


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The files of a job, and what was said of it. `shown` are the given paths as text."""

    shown: list[str]
    options: IngestOptions
    files: list[Found]
    problems: list[Problem]


def job_files(paths: Sequence[str | Path], options: IngestOptions) -> JobFiles:
    """What lies below some paths. Raises OptionError where the options cannot be meant."""
    roots = [str(path) for path in paths]
    for root in roots:
        if root != STDIN and Path(root).is_dir():
            options = with_settings(options, Path(root))
    check(options)
    problems: list[Problem] = []
    files = list(discover(roots, follow_links=options.follow_links, problems=problems))
    return JobFiles([printable(root) for root in roots], options, files, problems)
