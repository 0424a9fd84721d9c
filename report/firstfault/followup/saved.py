"""Diagnoses that were saved: the document `firstfault.diagnosis/1` read back, with only what the others here need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = "firstfault.diagnosis/"
MOST_BYTES = 200_000_000
"""No document comes near; a file of that size is something else."""


class SavedError(Exception):
    """A file that is no diagnosis, or one of a version that is not known here."""


@dataclass(frozen=True, slots=True)
class Cited:
    """A line that a diagnosis rests on."""

    path: str
    line: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Saved:
    """One diagnosis: what failed where, and the lines it cites. `step` is the furthest that the job showed."""

    name: str
    verdict: str
    cls: str | None
    entry: str | None
    title: str | None
    component: str | None
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    gpus: tuple[str, ...]
    at: str | None
    confidence: float | None
    started: str | None
    ended: str | None
    step: int | None
    cited: tuple[Cited, ...]
    collateral_hosts: tuple[str, ...]


def read_saved(file: Path, name: str | None = None) -> Saved:
    """Read a `diagnosis.json`. Raises `SavedError`, `OSError`."""
    if file.stat().st_size > MOST_BYTES:
        raise SavedError(f"{file}: too large for a diagnosis; give the diagnosis.json of `diagnose --output`")
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise SavedError(f"{file}: no JSON document ({error}); give what `diagnose --format json` printed") from error
    return saved_from(document, name or str(file))


def saved_from(document: object, name: str) -> Saved:
    """What is needed of a document; keys that are not known are ignored. Raises `SavedError`."""
    if not isinstance(document, dict) or not str(document.get("schema", "")).startswith(SCHEMA):
        raise SavedError(f"{name}: not a diagnosis of firstfault; give what `diagnose --format json` printed")
    if document["schema"] != f"{SCHEMA}1":
        raise SavedError(f"{name}: {document['schema']}; this version reads {SCHEMA}1")
    try:
        return _saved(document, name)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SavedError(f"{name}: a damaged diagnosis ({type(error).__name__}: {error})") from error


def _saved(document: Mapping[str, Any], name: str) -> Saved:
    failure, place, job = document["failure"], document["initiating"], document["job"]
    return Saved(
        name=name,
        verdict=str(document["verdict"]),
        cls=failure["class"],
        entry=failure["entry"],
        title=failure.get("title"),
        component=place.get("component"),
        ranks=tuple(int(rank) for rank in place["ranks"]),
        hosts=tuple(str(host) for host in place["hosts"]),
        gpus=tuple(str(gpu) for gpu in place.get("gpus", ())),
        at=place.get("at"),
        confidence=document.get("confidence"),
        started=job.get("started"),
        ended=job.get("ended"),
        step=job.get("last_step"),
        cited=tuple(dict.fromkeys(_cited(document))),
        collateral_hosts=tuple(str(host) for host in document.get("collateral", {}).get("hosts", ())),
    )


def _cited(document: Mapping[str, Any]) -> Iterator[Cited]:
    """Every line that the document cites, the evidence of the root first."""
    lists = [
        document["evidence"],
        *(one.get("evidence", ()) for one in document.get("also", ())),
        *(one.get("evidence", ()) for one in document.get("attempts", ())),
        *(one.get("evidence", ()) for one in document.get("chain", ())),
        [one["example"] for one in document.get("collateral", {}).get("groups", ()) if one.get("example")],
    ]
    seen = set()
    for one in (line for lines in lists for line in lines):
        place = (str(one["path"]), int(one["line"]))
        if place not in seen:
            seen.add(place)
            yield Cited(*place, str(one["text"]), str(one.get("why", "")))
