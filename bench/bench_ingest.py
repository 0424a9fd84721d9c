"""What an ingest costs: CPU seconds with all workers, MB/s per core, wall time, peak memory, and seconds by stage.

    python bench/corpus.py /tmp/corpus --size 256M --ranks 128
    python bench/bench_ingest.py /tmp/corpus [--rounds 3] [--workers 1 2]

On a shared machine CPU seconds can be trusted, wall times cannot; the load of the machine is printed beside them.
MB are 10^6 bytes; memory is that of the largest process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PORTIONS = ("ingest", "correlate", "report")


@dataclass(frozen=True, slots=True)
class Run:
    """One ingest."""

    cpu: float
    wall: float
    rss: int
    stages: Counter[str]


def run(paths: list[str], workers: int, code: Path) -> Run:
    """Ingest in a process of its own."""
    from firstfault.ingest.stages import MARK

    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-c",
            "from firstfault.cli import main; main()",
            "ingest",
            *paths,
            "--db",
            f"{folder}/timeline.duckdb",
        ]
        command += ["--workers", str(workers), "--quiet"]
        search = os.pathsep.join(str(code / portion) for portion in PORTIONS)
        env = {**os.environ, "PYTHONPATH": search, "FIRSTFAULT_PROFILE": "1"}
        said = Path(folder) / "said"
        begun = time.perf_counter()
        with said.open("wb") as out:
            child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=out)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - begun
        text = said.read_text(encoding="utf-8")
    if child.returncode:
        sys.exit(f"the ingest failed:\n{text}")
    stages: Counter[str] = Counter()
    for line in text.splitlines():
        if line.startswith(MARK):
            stages.update(json.loads(line.removeprefix(MARK)))
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss << 10, stages)


def size_of(paths: list[str]) -> int:
    """Bytes of all files below the paths."""
    files = [file for path in paths for file in ([Path(path)] if Path(path).is_file() else Path(path).rglob("*"))]
    return sum(file.stat().st_size for file in files if file.is_file())


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument("--code", type=Path, default=ROOT, help="a checkout to take firstfault from")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / portion) for portion in PORTIONS]
    size, out = size_of(options.paths), sys.stdout.write
    out(f"{size / 1e6:.0f} MB, {options.rounds} rounds, medians, load {os.getloadavg()[0]:.1f}\n")
    out("workers  CPU s  MB/s/core  wall s  MB/s wall  RSS MiB\n")
    for workers in options.workers:
        runs = [run(options.paths, workers, options.code) for _ in range(options.rounds)]
        cpu, wall = statistics.median(one.cpu for one in runs), statistics.median(one.wall for one in runs)
        rss = max(one.rss for one in runs) >> 20
        out(f"{workers:7} {cpu:6.2f} {size / 1e6 / cpu:10.1f} {wall:7.2f} {size / 1e6 / wall:10.1f} {rss:8}\n")
        names = {name for one in runs for name in one.stages}
        by_stage = {name: statistics.median(one.stages[name] for one in runs) for name in names}
        for name, seconds in sorted(by_stage.items(), key=lambda pair: -pair[1]):
            out(f"    {seconds:7.3f} s  {name}\n")
    out(f"load {os.getloadavg()[0]:.1f}\n")


if __name__ == "__main__":
    main()
