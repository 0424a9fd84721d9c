"""How long each question of docs/timeline.md takes on the timeline of a large job.

    python bench/bench_queries.py TIMELINE [--runs 3] [--limit 1.0]

`bench/corpus.py` writes a job of any size and `firstfault diagnose FOLDER --output DIR` makes its timeline. For each
question: the shortest wall time of the runs and its CPU seconds, of the example and of the whole table or view. Views
that are no answer by themselves (`lines`, `signals`, `steps` and the like) are asked by their example only. Exits with
1 where a time is above the limit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from firstfault.timeline.gate import Gate, open_gate
from firstfault.timeline.relations import questions

BY_EXAMPLE_ONLY = frozenset({"lines", "signals", "about_process", "steps", "line_rate"})


def asked(gate: Gate, query: str, runs: int) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and rows of the fastest run."""
    found = []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        _, batches = gate.batches(query)
        rows = sum(batch.num_rows for batch in batches)
        found.append((time.perf_counter() - wall, time.process_time() - cpu, rows))
    return min(found)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("timeline", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=1.0, metavar="SECONDS")
    given = parser.parse_args(arguments)
    slow = []
    sys.stdout.write(f"{'question':<16} {'query':<8} {'wall s':>8} {'CPU s':>8} {'rows':>9}\n")
    with open_gate(given.timeline, seconds=None) as gate:
        row = next(gate.ask("SELECT count(*), count(DISTINCT rank) FROM line_rows").rows)
        for one in questions():
            queries = [("example", one.example or "")]
            if one.name not in BY_EXAMPLE_ONLY:
                queries.append(("all", f"SELECT * FROM {one.name}"))
            for name, query in queries:
                wall, cpu, rows = asked(gate, query, given.runs)
                sys.stdout.write(f"{one.name:<16} {name:<8} {wall:>8.3f} {cpu:>8.3f} {rows:>9,}\n")
                if wall > given.limit:
                    slow.append(f"{one.name} ({name})")
    sys.stdout.write(f"{row[0]:,} lines of {row[1]:,} ranks; above {given.limit:g} s: {', '.join(slow) or 'none'}\n")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
