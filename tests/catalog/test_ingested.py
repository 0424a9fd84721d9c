"""The examples of the catalog are found in logs: as they stand, and inside of JSON as several writers escape it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from firstfault.catalog import Catalog
from firstfault.ingest import ingest

OF_RECORDS = {
    "dcp-exception",
    "elastic-child-failed",
    "python-traceback",
    "ray-task-wrapper",
    "sglang-scheduler-exception",
}
"""What tracebacks and failure tables say counts once for the record, and step times are kept as progress."""
KEPT_ELSEWHERE = OF_RECORDS | {"straggler-steptime"}

Write = Callable[[str], str]


def _docker(write: Write) -> Write:
    return lambda line: f'{{"log":{write(line + chr(10))},"stream":"stderr","time":"2025-03-04T10:11:12.000000001Z"}}'


def _go(text: str) -> str:
    return json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _json_c(text: str) -> str:
    return json.dumps(text).replace("/", "\\/")


@pytest.mark.parametrize(
    "write", [str, _docker(json.dumps), _docker(_go), _docker(_json_c)], ids=["bare", "python", "go", "json-c"]
)
def test_every_example_is_found_in_a_log(write: Write, catalog: Catalog, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    examples = {
        entry.id: [one.line for one in entry.match if "\n" not in one.line] for entry in catalog.entries.values()
    }
    for entry, lines in examples.items():
        (logs / f"{entry}.log").write_text("".join(f"{write(line)}\n" for line in lines), encoding="utf-8")
    ingest([logs], tmp_path / "timeline.duckdb")
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    with duckdb.connect(str(tmp_path / "timeline.duckdb"), read_only=True) as con:
        for path, line, entry in con.execute(
            "SELECT path, line, entry FROM signals WHERE entry IS NOT NULL"
        ).fetchall():
            found[Path(path).stem, line].add(entry)
    missed = [
        f"{entry}: {line}"
        for entry, lines in examples.items()
        for at, line in enumerate(lines, 1)
        if entry not in found[entry, at] and entry not in KEPT_ELSEWHERE
    ]
    assert missed == []


def test_no_entry_speaks_for_a_line_that_quotes_an_error(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    quoted = (Path(__file__).parent / "healthy" / "quoted.log").read_text(encoding="utf-8")
    headed = "".join(f"2026-05-12 10:11:03,114 - train - INFO - {line}\n" for line in quoted.splitlines())
    (logs / "rank0.log").write_text(headed + "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    ingest([logs], tmp_path / "timeline.duckdb")
    with duckdb.connect(str(tmp_path / "timeline.duckdb"), read_only=True) as con:
        found = con.execute("SELECT DISTINCT line FROM signals WHERE entry IS NOT NULL").fetchall()
    assert found == [(len(quoted.splitlines()) + 1,)]
