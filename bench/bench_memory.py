"""Makes logs of a shape that hurts, reads them, and says how much memory all processes held together.

    python bench/bench_memory.py SHAPE [--size 10G] [--folder /tmp/big] [--workers 2] [--keep]

SHAPE is one of
    file        one plain file of that size: the lines of a made-up rank, again and again
    tree        256 files of that size together
    line        one line of that size between ordinary ones
    templates   100,000 different messages, each a few times, over 16 files
    many        16,384 small files, read with at most 256 open files
    job         16,384 files of a job of 8,192 ranks (bench/corpus.py) of that size together, likewise

Once or twice a second the PSS of every process of the command is added up (its own pages, and its share of those that
several map); the greatest sum is the peak. `--again` keeps the timeline in the cache and asks a second time, when
nothing has changed. `--keep` leaves the logs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PORTIONS = [str(ROOT / portion) for portion in ("ingest", "correlate", "report")]
UNITS = {"K": 10, "M": 20, "G": 30}


def amount(text: str) -> int:
    """Bytes of an amount such as 10G."""
    return int(text[:-1]) << UNITS[text[-1]] if text[-1] in UNITS else int(text)


def sample(folder: Path) -> bytes:
    """Sixteen megabytes of the lines of one rank."""
    made = folder / "sample"
    command = [sys.executable, str(ROOT / "bench" / "corpus.py"), str(made), "--ranks", "8", "--size", "64M"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    text = max((path for path in made.rglob("*.log")), key=lambda path: path.stat().st_size).read_bytes()[: 16 << 20]
    shutil.rmtree(made)
    return text[: text.rfind(b"\n") + 1]


def repeated(place: Path, text: bytes, size: int) -> None:
    """A file of about that size."""
    with place.open("wb") as file:
        for _ in range(max(size // len(text), 1)):
            file.write(text)


def file_(logs: Path, size: int) -> None:
    repeated(logs / "rank0.log", sample(logs.parent), size)


def tree(logs: Path, size: int) -> None:
    text = sample(logs.parent)[: 2 << 20]
    text = text[: text.rfind(b"\n") + 1]
    for rank in range(256):
        (logs / f"node-{rank // 8:02d}").mkdir(exist_ok=True)
        repeated(logs / f"node-{rank // 8:02d}" / f"rank{rank}.log", text, size // 256)


def line(logs: Path, size: int) -> None:
    with (logs / "rank0.log").open("wb") as file:
        file.write(b"2026-05-12 09:00:00,000 - train - INFO - step 1 loss 2.0\n")
        for _ in range(size >> 20):
            file.write(b"0123456789abcdef" * (1 << 16))
        file.write(b"\n[rank0]: RuntimeError: after the long line\n")


def templates(logs: Path, _: int) -> None:
    for rank in range(16):
        with (logs / f"rank{rank}.log").open("w", encoding="utf-8") as file:
            for number in range(100_000):
                letters = "".join(chr(97 + number // 26**place % 26) for place in range(4))
                level = "WARNING" if number % 10 == 0 else "INFO"
                stamp = f"{9 + number // 36000:02d}:{number // 600 % 60:02d}:{number // 10 % 60:02d},{number % 10}00"
                file.write(
                    f"2026-05-12 {stamp} - {letters} - {level} - module {letters} of kind {letters[::-1]} said so\n"
                )


def many(logs: Path, _: int) -> None:
    for rank in range(16_384):
        (logs / f"node-{rank // 8:04d}").mkdir(exist_ok=True)
        text = "".join(f"2026-05-12 09:00:{at:02d},000 - train - INFO - step {at} loss 2.0\n" for at in range(20))
        if rank == 77:
            text += "[rank77]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
        (logs / f"node-{rank // 8:04d}" / f"rank{rank}.log").write_text(text, encoding="utf-8")


def job(logs: Path, size: int) -> None:
    logs.rmdir()
    command = [sys.executable, str(ROOT / "bench" / "corpus.py"), str(logs), "--ranks", "8192", "--size", str(size)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


SHAPES: dict[str, Callable[[Path, int], None]] = {
    "file": file_, "tree": tree, "line": line, "templates": templates, "many": many, "job": job,
}  # fmt: skip


def family(root: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for one in found:
        found += children.get(one, [])
    return found


def held(root: int) -> int:
    """Bytes that the processes hold, pages that they share counted once."""
    total = 0
    for one in family(root):
        try:
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(row.split()[1]) << 10 for row in text.splitlines() if row.startswith("Pss:"))
    return total


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--size", default="10G", type=amount)
    parser.add_argument("--folder", default=Path("/tmp/firstfault-memory"), type=Path)
    parser.add_argument("--workers", default="2")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    logs = given.folder / "logs"
    if not logs.is_dir():
        logs.mkdir(parents=True)
        SHAPES[given.shape](logs, given.size)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(PORTIONS), "XDG_CACHE_HOME": str(given.folder / "cache")}
    command = [sys.executable, "-m", "firstfault", "diagnose", str(logs), "--output", str(given.folder / "out")]
    if given.again:
        command = command[:-2]
    command += ["--workers", given.workers, "--quiet", "--format", "json"]
    limit = (256, 256) if given.shape in ("many", "job") else resource.getrlimit(resource.RLIMIT_NOFILE)
    begun, peak = time.monotonic(), 0
    printed = given.folder / "printed.json"  # a pipe that nobody reads meanwhile would stop the command when it is full
    with printed.open("wb") as file:
        running = subprocess.Popen(
            command, env=env, stdout=file, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        )
    while running.poll() is None:
        peak = max(peak, held(running.pid))
        time.sleep(0.5)
    answer = json.loads(printed.read_bytes())
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    read = [path.stat().st_size for path in logs.rglob("*") if path.is_file()]
    timelines = [*given.folder.rglob("*.duckdb")]
    result = {
        "shape": given.shape,
        "files": len(read),
        "MB": sum(read) >> 20,
        "lines": answer["job"]["lines"],
        "verdict": answer["verdict"],
        "peak PSS MiB": peak >> 20,
        "timeline MB": sum(path.stat().st_size for path in timelines) >> 20,
        "CPU s": round(spent.ru_utime + spent.ru_stime),
        "wall s": round(time.monotonic() - begun),
        "status": running.returncode,
    }
    if given.again:
        begun = time.monotonic()
        same = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True).stdout == printed.read_bytes()
        more = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = more.ru_utime + more.ru_stime - spent.ru_utime - spent.ru_stime
        result |= {"again, s": round(time.monotonic() - begun, 2), "again, CPU s": round(cpu, 2), "same": same}
    print(json.dumps(result))  # noqa: T201
    if not given.keep:
        shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
