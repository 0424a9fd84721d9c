"""The process that makes one diagnosis for the page: an order on standard input, progress as JSON lines on output."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

_OFTEN = 0.2


def main() -> int:
    """Do the order; the exit status is 1 where it could not be done."""
    order = json.loads(sys.stdin.read())
    try:
        _diagnose(order)
    except Exception as error:  # noqa: BLE001 - the page shows it, standard error has the rest
        import traceback

        traceback.print_exc()
        _tell({"error": str(error) or type(error).__name__})
        return 1
    _tell({"finished": True})
    return 0


def _diagnose(order: dict[str, Any]) -> None:
    from firstfault.catalog import load_catalog
    from firstfault.correlate.engine import diagnose
    from firstfault.ingest import IngestOptions, ingest
    from firstfault.report.document import to_json
    from firstfault.report.html import to_html
    from firstfault.report.markdown import to_markdown

    results = Path(order["results"])
    catalogs = tuple(Path(one) for one in order["catalogs"])
    last = 0.0

    def progress(phase: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _OFTEN or done == total:
            last = time.monotonic()
            _tell({"phase": phase, "done": done, "total": total})

    result = ingest(order["paths"], results / "timeline.duckdb", IngestOptions(catalogs=catalogs), progress)
    if result.lines == 0:
        raise ValueError("nothing readable in it: no log line was found")
    _tell({"phase": "correlate", "done": 0, "total": 0})
    found = diagnose(results / "timeline.duckdb", load_catalog(catalogs))
    for name, text in (
        ("diagnosis.json", to_json(found) + "\n"),
        ("report.md", to_markdown(found)),
        ("report.html", to_html(found)),
    ):
        (results / name).write_bytes(text.encode("utf-8", "backslashreplace"))


def _tell(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
