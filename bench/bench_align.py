"""How well clocks are aligned: error in milliseconds and the share inside the stated bound, on simulated jobs.

    python bench/bench_align.py [--seeds N] [--direct] [--page FILE]

8 hosts whose clocks are off by up to 300 s, stand in five time zones and drift by up to 50 ppm; 40 steps of 2 s. Every
job is written as logs and read through the whole ingest stage; with --direct the observations are handed over without
text, which is thirty times faster. A cell holds median / 95th percentile of the absolute error against the reference
clock, and the share of hosts whose error lies inside the stated bound.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for portion in ("ingest", "correlate", "report", "tests/correlate"):
    sys.path.insert(0, str(ROOT / portion))

import numpy as np  # noqa: E402
from simulator.clock_logs import aligned_text  # noqa: E402
from simulator.clocks import MOMENTS, SITUATIONS, aligned, measure  # noqa: E402

import firstfault.ingest.run as ingest_run  # noqa: E402
from firstfault.catalog import load_catalog  # noqa: E402

CATALOG = load_catalog(())
ingest_run.load_catalog = lambda _folders: CATALOG  # read once for all jobs


def main() -> None:
    """Print the table, or write the page."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--seeds", type=int, default=40)
    options.add_argument("--direct", action="store_true")
    options.add_argument("--page", type=Path)
    given = options.parse_args()
    head = ["situation", *(f"{name}: median / 95 %, ms" for name in MOMENTS), "inside the bound", "median bound, ms"]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    how = aligned if given.direct else aligned_text
    rows = [(situation.name, situation, how) for situation in SITUATIONS]
    if not given.direct:  # torch prints the dump signal with whole seconds; collectors may stamp it more finely
        dump = next(situation for situation in SITUATIONS if situation.dump and not situation.steps)
        rows.append((f"{dump.name}, ms stamps (without text)", dump, aligned))
    for name, situation, way in rows:
        found = measure(situation, range(given.seeds), how=way)
        cells = [
            f"{np.median(one.error_s) * 1e3:.1f} / {np.percentile(one.error_s, 95) * 1e3:.1f}" for one in found.values()
        ]
        inside = ", ".join(f"{np.mean(np.array(one.error_s) <= np.array(one.bound_s)):.2f}" for one in found.values())
        bound = f"{np.median(found[MOMENTS[1]].bound_s) * 1e3:.0f}"
        lines.append("| " + " | ".join([name, *cells, inside, bound]) + " |")
        print(lines[-1], flush=True)  # noqa: T201
    if given.page:
        about = (__doc__ or "").split("\n\n")[2].replace("\n", " ").replace(". ", ".\n").strip()
        direct = " --direct" if given.direct else ""
        command = f"python bench/bench_align.py --seeds {given.seeds}{direct} --page docs/alignment.md"
        text = ["# How well clocks are aligned", "", about, "", "```sh", command, "```", "", *lines, ""]
        given.page.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
