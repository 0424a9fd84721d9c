"""The main job as one call: logs, or a timeline that stands, to a `Diagnosis`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from firstfault.catalog import load_catalog
from firstfault.correlate import engine
from firstfault.correlate.diagnosis import Diagnosis
from firstfault.ingest import IngestOptions, ingest
from firstfault.timeline import TimelineError


def diagnose(
    *paths: str | Path,
    database: str | Path | None = None,
    options: IngestOptions | None = None,
    catalogs: Sequence[str | Path] = (),
) -> Diagnosis:
    """What failed first in the job whose logs lie in `paths`: directories, files, archives, together one job.

    `database` keeps the timeline in that file. One single path that is a timeline (`*.duckdb`) is not read again.
    `options` are those of `firstfault ingest`, `catalogs` folders of entries of your own.
    Raises `FileNotFoundError` where a path is not there, `TimelineError` where there is nothing to read in it or the
    timeline cannot be used.
    """
    if not paths:
        raise ValueError("diagnose() needs the paths of a job's logs, or of its timeline")
    folders = tuple(Path(one) for one in catalogs)
    catalog = load_catalog(folders)
    if len(paths) == 1 and database is None and os.fspath(paths[0]).endswith(".duckdb"):
        return engine.diagnose(paths[0], catalog)
    for path in paths:
        if not os.path.lexists(path):
            raise FileNotFoundError(f"{path}: no such file or directory")
    with tempfile.TemporaryDirectory(prefix="firstfault-") as folder:
        file = Path(folder) / "timeline.duckdb" if database is None else Path(database)
        chosen = options or IngestOptions(catalogs=folders)
        result = ingest([os.fspath(path) for path in paths], file, chosen)
        if result.lines == 0:
            raise TimelineError(f"{', '.join(map(str, paths))}: nothing readable in it")
        return engine.diagnose(file, catalog)
