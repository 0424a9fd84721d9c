"""What reading a job costs, beside `wc -l`, ripgrep and lnav: all on the same corpus, in turns, in one run.

    python bench/corpus.py /tmp/corpus --size 1G --ranks 256
    python bench/bench_ingest.py /tmp/corpus [--rounds 5] [--patterns FILE] [--only NAME...] [--code CHECKOUT]

CPU seconds are those of a command with all its children, MB are 10^6 bytes, figures are medians over the rounds after
one round that warms the page cache. On a shared machine CPU seconds can be trusted, wall times cannot; the load of the
machine is printed beside them. Memory is that of the largest process. `--patterns` is a file of one regular expression
a line for ripgrep; what is not installed is left out. The stages of firstfault are those of its own profile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PORTIONS = ("ingest", "correlate", "report")
MARK = "firstfault-profile "


@dataclass(frozen=True, slots=True)
class Command:
    """A command to measure. `{db}` in its arguments becomes a file in a new folder of each round."""

    name: str
    arguments: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)
    files: bool = False
    """Whether the names of all files come behind its arguments."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command."""

    cpu: float
    wall: float
    rss: int
    left: int
    """Bytes of what it wrote."""
    stages: Counter[str]


def commands(paths: list[str], code: Path, patterns: Path | None) -> list[Command]:
    """What is compared, as far as it is installed."""
    own = {
        "PYTHONPATH": os.pathsep.join(str(code / portion) for portion in PORTIONS),
        "FIRSTFAULT_PROFILE": "1",
    }
    start = [sys.executable, "-c", "from firstfault.cli import main; main()"]
    ingest = [*start, "ingest", *paths, "--quiet", "--fresh", "--db", "{db}"]
    found = [Command("wc -l", ["wc", "-l"], files=True)]
    if patterns is not None and (rg := _installed("rg")):
        grep = [rg, "--no-unicode", "--no-ignore", "--hidden", "-a", "-n", "-f", str(patterns)]
        found += [Command("ripgrep -j1", [*grep, "-j1", *paths]), Command("ripgrep", [*grep, *paths])]
    if lnav := _installed("lnav"):
        count = [lnav, "-n", "-N", "-c", ";select count(*) from all_logs", "-r"]
        found.append(Command("lnav", [*count, *paths]))
    found += [
        Command("ingest, text left, 1 worker", [*ingest, "--leave-text", "--workers", "1"], own),
        Command("ingest, text kept, 1 worker", [*ingest, "--keep-text", "--workers", "1"], own),
        Command("ingest, text kept, 2 workers", [*ingest, "--keep-text", "--workers", "2"], own),
        Command("diagnose, 2 workers", [*start, "diagnose", *paths, "--quiet", "--fresh", "--workers", "2"], own),
    ]
    return found


def _installed(name: str) -> str | None:
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else shutil.which(name)


def run(command: Command, files: list[str]) -> Run:
    """Run a command in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "db").mkdir()
        database = f"{folder}/db/timeline.duckdb"
        arguments = [one.replace("{db}", database) for one in command.arguments]
        arguments += files if command.files else []
        environment = {**os.environ, "XDG_CACHE_HOME": f"{folder}/cache"} | command.environment
        if "XDG_CACHE_HOME" in os.environ:  # compiled patterns of the warming round may stay
            environment["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]
        if "PYTHONPYCACHEPREFIX" in os.environ:  # so may compiled modules, as they do where firstfault is installed
            environment["PYTHONDONTWRITEBYTECODE"] = ""
        said = Path(folder) / "said"
        begun = time.perf_counter()
        with said.open("wb") as out:
            child = subprocess.Popen(
                arguments, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=out
            )
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - begun
        text = said.read_text(encoding="utf-8", errors="replace")
        left = sum(file.stat().st_size for file in (Path(folder) / "db").iterdir())
    if child.returncode not in (0, 1):
        sys.exit(f"{command.name} failed:\n{text}")
    stages: Counter[str] = Counter()
    for line in text.splitlines():
        if line.startswith(MARK):
            profile = json.loads(line.removeprefix(MARK))
            stages.update({name: value for name, value in profile.items() if name != "bytes"})
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss << 10, left, stages)


def files_of(paths: list[str]) -> list[str]:
    """All files below the paths."""
    found = [file for path in paths for file in ([Path(path)] if Path(path).is_file() else Path(path).rglob("*"))]
    return sorted(str(file) for file in found if file.is_file())


def machine() -> str:
    """The machine in a few words."""
    model = "unknown processor"
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{os.cpu_count()} x {model}, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def main() -> None:
    """Prints the figures as a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patterns", type=Path, help="regular expressions for ripgrep, one a line")
    parser.add_argument("--only", nargs="+", help="only commands whose names begin so")
    parser.add_argument("--code", type=Path, default=ROOT, help="a checkout to take firstfault from")
    options = parser.parse_args()
    files, out = files_of(options.paths), sys.stdout.write
    size = sum(os.stat(file).st_size for file in files)
    chosen = commands(options.paths, options.code, options.patterns)
    if options.only:
        chosen = [one for one in chosen if one.name.startswith(tuple(options.only))]
    runs: dict[str, list[Run]] = {one.name: [] for one in chosen}
    load = [os.getloadavg()[0]]
    for number in range(options.rounds + 1):
        for one in chosen:
            made = run(one, files)
            if number or options.rounds == 0:
                runs[one.name].append(made)
            print(f"round {number}: {one.name}: {made.cpu:.2f} s", file=sys.stderr, flush=True)  # noqa: T201
        load.append(os.getloadavg()[0])
    out(f"{machine()}; load {min(load):.0f} to {max(load):.0f}\n")
    out(f"{size / 1e6:.0f} MB in {len(files)} files, {options.rounds} rounds in turns, medians\n\n")
    out("| command | CPU s | s/GB | MB/s per core | x ripgrep -j1 | wall s | memory MiB | written, % |\n")
    out("|---|---:|---:|---:|---:|---:|---:|---:|\n")
    base = statistics.median(one.cpu for one in runs["ripgrep -j1"]) if runs.get("ripgrep -j1") else None
    for name, all_of in runs.items():
        cpu, wall = (statistics.median(getattr(one, key) for one in all_of) for key in ("cpu", "wall"))
        rss, left = max(one.rss for one in all_of) >> 20, max(one.left for one in all_of)
        ratio = f"{cpu / base:.1f}" if base else ""
        written = f"{left / size * 100:.0f}" if left else ""
        out(
            f"| {name} | {cpu:.2f} | {cpu / size * 1e9:.2f} | {size / 1e6 / max(cpu, 1e-3):.0f} | {ratio} |"
            f" {wall:.1f} | {rss} | {written} |\n"
        )
    for name, all_of in runs.items():
        stages = {key for one in all_of for key in one.stages}
        if stages:
            shares = {key: statistics.median(one.stages[key] for one in all_of) for key in stages}
            told = ", ".join(
                f"{key} {value:.2f}"
                for key, value in sorted(shares.items(), key=lambda pair: -pair[1])
                if value > 0.005
            )
            out(f"\n{name}, CPU seconds by stage: {told}\n")


if __name__ == "__main__":
    main()
