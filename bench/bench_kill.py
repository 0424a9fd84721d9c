"""Kills an ingest at random moments, again and again, and looks at what is left.

    python bench/bench_kill.py --kills 200 [--size 3M] [--seed 1]

A made-up job is read by two workers, its parts kept for the next run; SIGKILL comes at a moment between the start and
the usual end, to the process that asked alone, and in every third round to its workers as well. Then: the last good
timeline opens and holds what it held; no worker lives on; and every fifth round the run is begun again and left alone:
its rows are those of a run that nothing disturbed (digest of an ordered export of each table), and of what the killed
ones left nothing remains. In half of the rounds there is a good timeline of fewer logs before, in the others none.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PORTIONS = [str(ROOT / portion) for portion in ("ingest", "correlate", "report")]
sys.path[:0] = [*PORTIONS, str(ROOT / "bench")]

INGEST = """
import sys
from firstfault.ingest import Bounds, IngestOptions, ingest
if __name__ == "__main__":
    bounds = Bounds(in_process=0, memory=0, unit=256 << 10, shard=512 << 10, chunk=256 << 10)
    ingest([sys.argv[1]], sys.argv[2], IngestOptions(workers=2, bounds=bounds))
"""


def start(folder: Path, logs: Path, db: Path) -> subprocess.Popen[bytes]:
    """An ingest in a session of its own, with a cache of its own."""
    (folder / "ingest.py").write_text(INGEST, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(PORTIONS), "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.Popen(
        [sys.executable, str(folder / "ingest.py"), str(logs), str(db)],
        env=env,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def ended(running: subprocess.Popen[bytes]) -> int:
    """The exit status of an ingest, when it has ended."""
    running.communicate()
    return running.returncode


def members(session: int) -> list[int]:
    """Processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def gone(session: int, seconds: float) -> bool:
    """Whether nothing of a session is left within that time."""
    end = time.monotonic() + seconds
    while members(session):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def rounds(folder: Path, logs: Path, kills: int, rng: random.Random, every: int = 5) -> dict[str, object]:
    """Kill so many runs; what was seen. Raises AssertionError where a promise was broken."""
    from fingerprint import fingerprint

    from firstfault.timeline import open_timeline

    few = folder / "few"
    few.mkdir()
    first = next(path for path in sorted(logs.rglob("*")) if path.is_file())
    shutil.copy(first, few / first.name)
    before, wanted, out = folder / "before.duckdb", folder / "wanted.duckdb", folder / "out"
    out.mkdir()
    assert ended(start(folder, few, before)) == 0
    shutil.rmtree(folder / "cache")
    assert ended(start(folder, logs, wanted)) == 0  # compiles what the cache keeps
    wanted.unlink()
    shutil.rmtree(folder / "cache" / "firstfault" / "parts", ignore_errors=True)
    begun = time.monotonic()
    assert ended(start(folder, logs, wanted)) == 0
    took = time.monotonic() - begun
    old, new = fingerprint(before), fingerprint(wanted)
    seen = {
        "kills": 0,
        "before the end": 0,
        "old timeline intact": 0,
        "no timeline": 0,
        "new timeline": 0,
        "resumed": 0,
    }
    db = out / "t.duckdb"
    while seen["kills"] < kills:
        number = seen["kills"] = seen["kills"] + 1
        db.unlink(missing_ok=True)
        if rng.random() < 0.7:  # else what the last one kept is found
            shutil.rmtree(folder / "cache" / "firstfault" / "parts", ignore_errors=True)
        if number % 2:
            shutil.copy(before, db)
        running = start(folder, logs, db)
        time.sleep(rng.uniform(0.0, took))
        os.kill(running.pid, signal.SIGKILL)
        if number % 3 == 0:
            for one in members(running.pid):
                os.kill(one, signal.SIGKILL)
        seen["before the end"] += ended(running) == -signal.SIGKILL
        assert gone(running.pid, 20), f"round {number}: workers live on"
        if db.exists():
            with open_timeline(db):
                pass
            found = fingerprint(db)
            assert found in (old, new), f"round {number}: a timeline of something else"
            seen["old timeline intact" if found == old else "new timeline"] += 1
        else:
            assert number % 2 == 0, f"round {number}: the old timeline is gone"
            seen["no timeline"] += 1
        if number % every == 0:
            again = start(folder, logs, db)
            _, said = again.communicate()
            assert again.returncode == 0, said.decode()
            assert fingerprint(db) == new, f"round {number}: other rows than an undisturbed run"
            assert [path.name for path in out.iterdir()] == ["t.duckdb"], f"round {number}: something is left over"
            seen["resumed"] += 1
    return {**seen, "seconds of a run": round(took, 1), "rows": new}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--size", default="3M")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="firstfault-kill-") as name:
        folder = Path(name)
        make = [sys.executable, str(ROOT / "bench" / "corpus.py"), str(folder / "logs"), "--ranks", "16"]
        subprocess.run([*make, "--size", given.size], check=True, stdout=subprocess.DEVNULL)
        begun = time.monotonic()
        seen = rounds(folder, folder / "logs", given.kills, random.Random(given.seed))
        print(json.dumps({**seen, "minutes": round((time.monotonic() - begun) / 60, 1)}, indent=1))  # noqa: T201


if __name__ == "__main__":
    main()
