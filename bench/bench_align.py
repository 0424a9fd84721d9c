"""How well clocks are aligned: error in milliseconds and the share inside the stated bound, on simulated jobs.

    python bench/bench_align.py [SEEDS] [--text] [--page FILE]

With --text every job is written as logs and read through the whole ingest stage; without it the observations are made
directly, which is fifty times faster.

8 hosts whose clocks are off by up to 300 s, stand in five time zones and drift by up to 50 ppm; 40 steps of 2 s.
A cell holds median / 95th percentile / maximum of the absolute error against the reference clock, then the share of
hosts whose error lies inside the bound, and the median bound.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for portion in ("ingest", "correlate", "report", "tests/correlate"):
    sys.path.insert(0, str(ROOT / portion))

import numpy as np  # noqa: E402
from simulator.clocks import MOMENTS, SITUATIONS, measure  # noqa: E402


def main(seeds: int) -> None:
    """Print the table."""
    print(f"{'':44}" + "".join(f"{name:>34}" for name in MOMENTS))  # noqa: T201
    for situation in SITUATIONS:
        begun = time.perf_counter()
        cells = []
        for one in measure(situation, range(seeds)).values():
            error, bound = np.array(one.error_s) * 1e3, np.array(one.bound_s) * 1e3
            inside = float(np.mean(error <= bound))
            middle, most = np.median(error), np.percentile(error, 95)
            cells.append(f"{middle:8.1f} {most:7.1f} {error.max():7.0f} {inside:4.2f} {np.median(bound):5.0f}")
        each = (time.perf_counter() - begun) / seeds * 1e3
        print(f"{situation.name:44}" + "".join(f"{cell:>34}" for cell in cells) + f"  {each:4.0f} ms")  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 150)
