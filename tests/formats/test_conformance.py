"""The samples of the reference, through the public face: the share of right fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from firstfault.ingest.formats import Formats, SourceFormat


def samples(shared: Path) -> Iterator[dict[str, Any]]:
    for line in (shared / "reference" / "formats_samples.jsonl").read_text().splitlines():
        sample = json.loads(line)
        if not sample.get("multiline"):  # blocks are for records, not for lines
            yield sample


def source_of(formats: Formats, sample: dict[str, Any]) -> SourceFormat:
    """What the sample says about the file that its line comes from."""
    context = sample.get("ctx", {})
    source = replace(formats.sniff([sample["line"]]), year=context.get("year"))
    if "ntasks" in context:
        source = source.trusting("srun-label")
    if "template" in context:
        source = source.trusting("torch-tee-custom")
    if "--role rank" in context.get("note", ""):
        source = source.trusting("torch-tee-rank")
    if "boot_time" in context:
        source = replace(source, boot_ns=int(datetime.fromisoformat(context["boot_time"]).timestamp()) * 1_000_000_000)
    return source


def got_from(formats: Formats, sample: dict[str, Any]) -> dict[str, Any]:
    expect, line = sample["expect"], sample["line"]
    if expect.get("message", "") is None and not line.startswith("{"):
        return dict(formats.read_path(line))
    got = formats.peel(line, source_of(formats, sample)).flat()
    for name, value in formats.read_path(sample.get("ctx", {}).get("file", "")).items():
        got[name] = value if got.get(name) is None else got[name]
    return got


def test_share_of_right_fields(formats: Formats, shared: Path) -> None:
    wrong, total = [], 0
    for sample in samples(shared):
        got = got_from(formats, sample)
        for name, value in sample["expect"].items():
            total += 1
            if got.get(name) != value and (value is None or str(got.get(name)) != str(value)):
                wrong.append((sample["id"], name, got.get(name), value))
    share = 1 - len(wrong) / total
    print(f"{share:.2%} of {total} fields, wrong: {[one[:2] for one in wrong]}")  # noqa: T201
    assert share >= 0.99, wrong


def test_negatives_stay_whole(formats: Formats, shared: Path) -> None:
    for sample in samples(shared):
        if sample.get("ctx", {}).get("negative"):
            peeled = formats.peel(sample["line"], formats.sniff([sample["line"]]))
            assert (peeled.message, peeled.wrappers, peeled.rank, peeled.host) == (sample["line"], (), None, None)
