"""Where the timeline of a diagnosis lies that nobody asked to keep: in the cache, so that the next one finds it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firstfault.correlate.diagnosis import Diagnosis
    from firstfault.ingest import IngestOptions


@contextmanager
def timeline_of(paths: Sequence[str], options: IngestOptions) -> Iterator[Path]:
    """A place for the timeline of these paths: the one of the last time, or a passing one where none can be kept.

    Only one process at a time has the place of the last time; others get passing ones.
    """
    from firstfault.ingest.again import folder

    kept = folder("timelines") if options.reuse and "-" not in paths else None
    name = _name(paths, options)
    with ExitStack() as closing:
        if kept is not None and _locked(kept / f"{name}.lock", closing):
            closing.callback(_trimmed, kept, kept / f"{name}.duckdb")
            yield kept / f"{name}.duckdb"
        else:
            passing = closing.enter_context(tempfile.TemporaryDirectory(prefix="firstfault-"))
            yield Path(passing) / "timeline.duckdb"


def known_diagnosis(database: Path, options: IngestOptions, wanted: object) -> Diagnosis | None:
    """The diagnosis of the last time, where neither the timeline nor what judges it has changed since."""
    from firstfault.correlate.diagnosis import Diagnosis
    from firstfault.ingest.saved import SavedError, from_plain

    try:
        kept = json.loads(_beside(database).read_text(encoding="utf-8"))
        if kept["of"] != _judged(database, options, wanted):
            return None
        found: Diagnosis = from_plain(Diagnosis, kept["diagnosis"])
    except (OSError, ValueError, KeyError, TypeError, SavedError):
        return None
    return found


def keep_diagnosis(database: Path, options: IngestOptions, wanted: object, answer: Diagnosis) -> None:
    """Keep a diagnosis beside its timeline for the next time."""
    from firstfault.cli.files import replace_file
    from firstfault.ingest.saved import SavedError, to_plain

    mark = _judged(database, options, wanted)
    if mark is not None:
        with suppress(OSError, SavedError):
            text = json.dumps({"of": mark, "diagnosis": to_plain(answer)})
            replace_file(_beside(database), text.encode())


def _beside(database: Path) -> Path:
    return database.with_suffix(".json")


def _judged(database: Path, options: IngestOptions, wanted: object) -> str | None:
    """What stands for all that a diagnosis is made of, None where the timeline does not say what it is made of."""
    from firstfault.ingest.again import code_mark, facts_of, state_of_code

    made_of = facts_of(database).get("made_of")
    if made_of is None:
        return None
    text = repr((made_of, code_mark(options), state_of_code("firstfault.correlate"), wanted))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _locked(file: Path, closing: ExitStack) -> bool:
    """Whether this process alone has the place that a file stands for, as long as `closing` is open."""
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        closing.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _trimmed(kept: Path, used: Path) -> None:
    from firstfault.ingest.again import trim

    with suppress(OSError):
        os.utime(used)
        trim(kept)


def _name(paths: Sequence[str], options: IngestOptions) -> str:
    said = {name: one for name, one in asdict(options).items() if name not in ("workers", "memory_limit", "cluster")}
    said["per_node"] = options.cluster.per_node if options.cluster else ()
    text = repr(([os.path.abspath(path) for path in paths], list(paths), sorted(said.items())))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
