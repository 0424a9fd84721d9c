"""Two workers of a Ray cluster against one, start-up stated apart.

    python bench/corpus.py /tmp/corpus --size 256M --ranks 64
    ray start --head --num-cpus=1 --disable-usage-stats --include-dashboard=false     # and a second node
    python bench/bench_ray.py /tmp/corpus [--address HOST:PORT] [--rounds 1]

Each figure is the shortest wall time of the rounds, in seconds: `start` of a log of one line, which is connecting,
processes of the cluster with their catalog, and the timeline; then the job with one worker and with two, and what of
that is beyond `start`; and the job on this machine without Ray, one worker, its own start in it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PORTIONS = [str(ROOT / portion) for portion in ("ingest", "correlate", "report")]


def took(logs: Path, *options: str) -> float:
    """Wall seconds of one reading."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "firstfault", "ingest", str(logs), "--db", f"{folder}/t.duckdb", "--fresh"]
        begun = time.monotonic()
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(PORTIONS)}
        subprocess.run([*command, "--quiet", *options], check=True, env=env, stderr=subprocess.DEVNULL)
        return time.monotonic() - begun


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path)
    parser.add_argument("--address", default="auto")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    ray = ("--engine", "ray", "--address", given.address, "--workers")
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder) / "rank0.log"
        tiny.write_text("2026-05-12 09:00:00,000 - train - INFO - step 1\n")
        ways = {
            "start": (tiny, (*ray, "1")),
            "one": (given.logs, (*ray, "1")),
            "two": (given.logs, (*ray, "2")),
            "local": (given.logs, ("--workers", "1")),
        }
        found = {name: min(took(logs, *way) for _ in range(given.rounds)) for name, (logs, way) in ways.items()}
    found["one beyond start"], found["two beyond start"] = found["one"] - found["start"], found["two"] - found["start"]
    print(json.dumps({name: round(seconds, 1) for name, seconds in found.items()}))  # noqa: T201


if __name__ == "__main__":
    main()
