"""What a watch costs and how soon it speaks: CPU while logs rest and while they grow, time from a line to its alert.

    python3 dev.py python bench/bench_watch.py [--files 1024] [--seconds 20] [--faults 20]

Writes logs of many ranks into a temporary directory and follows them with `firstfault watch --format json`.
CPU is that of the watch (user and system), as a share of one core.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
LINE = "{stamp},000 [rank{rank}] INFO step {step} | loss 2.3456 | grad norm 0.812 | 14.2 samples/s\n"
FAULT = (
    "[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    "GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free.\n"
)


def cpu(pid: int) -> float:
    """Seconds of user and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS


def log_of(root: Path, rank: int) -> Path:
    """The log of a rank, in torchrun's layout of eight ranks a host."""
    return root / f"host{rank // 8:03d}" / "attempt_0" / str(rank % 8) / "stderr.log"


def grow(root: Path, files: int, steps: range) -> None:
    """A line for each rank and step."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    for rank in range(files):
        with log_of(root, rank).open("a") as file:
            file.writelines(LINE.format(stamp=stamp, rank=rank, step=step) for step in steps)


def share(pid: int, seconds: float) -> float:
    """CPU of a process over some seconds, as a share of a core."""
    before, began = cpu(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu(pid) - before) / (time.monotonic() - began)


def measure(files: int, seconds: float, faults: int) -> dict[str, float]:
    """All figures."""
    with tempfile.TemporaryDirectory(prefix="bench-watch-") as folder:
        root = Path(folder) / "logs"
        for rank in range(files):
            log_of(root, rank).parent.mkdir(parents=True)
        grow(root, files, range(20))
        command = [sys.executable, "-m", "firstfault", "watch", str(root), "--format", "json", "--settle", "0.5"]
        watch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert watch.stdout is not None
        alerts: queue.Queue[tuple[float, dict[str, object]]] = queue.Queue()
        lines = watch.stdout

        def read() -> None:
            for line in lines:
                alerts.put((time.time(), json.loads(line)))

        threading.Thread(target=read, daemon=True).start()
        try:
            time.sleep(8)
            idle = share(watch.pid, seconds)
            growing = _growing(root, files, watch.pid, seconds)
            late = [_latency(root, rank * files // faults, alerts) for rank in range(faults)]
        finally:
            status = Path(f"/proc/{watch.pid}/status").read_text()
            peak = int(status.partition("VmHWM:")[2].split()[0])
            watch.terminate()
            watch.wait()
        return {
            "idle_percent": 100 * idle,
            "growing_percent": 100 * growing,
            "latency_median_s": statistics.median(late),
            "latency_max_s": max(late),
            "peak_mib": peak / 1024,
        }


def _growing(root: Path, files: int, pid: int, seconds: float) -> float:
    """CPU while each log gains a line a second."""
    before, began, step = cpu(pid), time.monotonic(), 20
    while time.monotonic() - began < seconds:
        grow(root, files, range(step, step + 1))
        step += 1
        time.sleep(max(0.0, began + (step - 20) - time.monotonic()))
    return (cpu(pid) - before) / (time.monotonic() - began)


def _latency(root: Path, rank: int, alerts: queue.Queue[tuple[float, dict[str, object]]]) -> float:
    """Seconds from the write of a fault to its alert."""
    with log_of(root, rank).open("a") as file:
        file.write(FAULT.format(rank=rank))
    written, found = time.time(), None
    while True:
        at, alert = alerts.get(timeout=120)
        if alert["kind"] == "first-sign":
            found = at
        if alert["kind"] in ("settled", "trouble") and found is not None:
            return found - written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--faults", type=int, default=20)
    given = parser.parse_args()
    for name, value in measure(given.files, given.seconds, given.faults).items():
        sys.stdout.write(f"{name:20} {value:10.2f}\n")


if __name__ == "__main__":
    main()
