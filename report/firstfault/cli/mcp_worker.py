"""The process that makes one diagnosis for the MCP server: an order on standard input, answers as JSON lines on output.

It ends with the server: when the server's end of standard input closes, so does everything that was started here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firstfault.correlate.diagnosis import Diagnosis

_OFTEN = 0.5
_last = 0.0


def main() -> int:
    """Do the order; the exit status is 1 where it could not be done."""
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    from firstfault.cli.messages import in_words
    from firstfault.ingest.saved import to_plain

    try:
        answer = _diagnosed(order)
    except Exception as error:
        found = in_words(error)
        if found is None:
            _say({"error": f"firstfault failed by itself ({type(error).__name__}); the server's log says more"})
            raise
        _say({"error": found[0]})
        return 1
    _say({"diagnosis": to_plain(answer)})
    return 0


def _diagnosed(order: dict[str, Any]) -> Diagnosis:
    from firstfault.cli.healthy import read_healthy
    from firstfault.cli.kept import keep_diagnosis, known_diagnosis
    from firstfault.cli.run import judge, read_logs
    from firstfault.correlate.contexts import Wanted
    from firstfault.ingest import IngestOptions

    database, paths, healthy = Path(order["database"]), order["paths"], order["healthy"]
    for given in (*paths, *([healthy] if healthy else [])):
        _check_size(Path(given), order["most_bytes"])
    catalogs = tuple(Path(one) for one in order["catalogs"])
    options = IngestOptions(tz=order["tz"], year=order["year"], catalogs=catalogs)
    read_logs(paths, database, options, quiet=True, report=_progress)
    alone = not healthy and not order["redact"]
    answer = known_diagnosis(database, options, Wanted()) if alone else None
    if answer is None:
        _say({"phase": "correlate", "done": 0, "total": 0})
        with tempfile.TemporaryDirectory(prefix="firstfault-") as folder:
            answer = judge(database, catalogs, Wanted(), read_healthy(healthy, Path(folder), options, quiet=True))
        if alone:
            keep_diagnosis(database, options, Wanted(), answer)
    if order["redact"]:
        from firstfault.cli.redaction import redact_in_place, redactor

        names = redactor(database, answer)
        answer = names.answer(answer)
        redact_in_place(database, names)
    return answer


def _check_size(path: Path, most: int) -> None:
    from firstfault.cli.messages import CommandError
    from firstfault.mcp.roots import MOST_FILES, measure

    files, size = measure(path, MOST_FILES, most)
    if files > MOST_FILES or size > most:
        raise CommandError(
            f"{path}: more than {most >> 30} GiB or {MOST_FILES:,} files; give the folder of one job "
            "(whoever runs the server can allow more with --max-gib)"
        )


def _progress(phase: str, done: int, total: int) -> None:
    global _last
    if time.monotonic() - _last >= _OFTEN or done == total:
        _last = time.monotonic()
        _say({"phase": phase, "done": done, "total": total})


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _end_with_the_server() -> None:
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
