"""How the correlate stage grows: a hang of 1,024, 4,096 and 16,384 ranks, CPU seconds of one core and peak memory.

    python bench/bench_scale.py [RANKS ...] [--page FILE]

Eight ranks a host, clocks minutes apart. All print 20 steps; then one never comes to a collective of all ranks, the
others wait to the limit, are told to dump and end; every eighth host adds a wait in a group of its own. The timeline is
written as the ingest stage leaves it; what is measured is what follows: reading it, aligning the clocks, ranking the
candidates (together `correlate`), and writing graph, collectives and hypotheses back with the answer.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

ROOT = Path(__file__).resolve().parents[1]
for portion in ("ingest", "correlate", "report", "."):
    sys.path.insert(0, str(ROOT / portion))

PER_HOST = 8
STEPS = 20
SIZES = (1024, 4096, 16384)


def build(ranks: int, database: Path) -> None:
    """Write the timeline of a job that hangs."""
    from tests.correlate.timeline_builder import Job

    hosts = [f"node-{number:05d}" for number in range(ranks // PER_HOST)]
    skew = {host: float((number * 37) % 601 - 300) for number, host in enumerate(hosts)}
    job = Job(skew=skew, **dict.fromkeys(hosts, PER_HOST))
    guilty = ranks // 3
    for log in job.ranks():
        log.steps(STEPS)
    for rank in range(ranks):
        log = job.rank(rank)
        if rank == guilty:
            log.dump_signal(0, at=621.0)
            continue
        if rank // PER_HOST % 8 == 0 and rank != guilty:
            log.timeout(
                3, at=619.9, waited=598.0, op="ALLGATHER", group=f"tp{rank // PER_HOST}", pg_rank=rank % PER_HOST
            )
        log.timeout(STEPS + 7, at=620.0, waited=599.0, enqueued=STEPS + 7, completed=STEPS + 6)
        log.dump_signal(0, at=620.5)
    job.rank(guilty).counters(STEPS + 6, STEPS + 6, at=621.1)
    job.write(database)


def measure(database: Path) -> dict[str, object]:
    """Correlate a timeline; seconds of CPU for each part, and the most memory in MB."""
    from firstfault.catalog import load_catalog
    from firstfault.correlate.attempts import attempts_of  # noqa: F401 - loads the stage before the clock runs
    from firstfault.correlate.engine import correlate
    from firstfault.correlate.load import load
    from firstfault.correlate.store import save
    from firstfault.correlate.times import Times
    from firstfault.correlate.verdict import compose
    from firstfault.timeline import open_timeline

    catalog = load_catalog(())
    con = open_timeline(database, writable=True)
    con.execute("SET threads = 1")
    begun = process_time()
    timeline = load(con)
    loaded = process_time()
    Times(timeline)
    aligned = process_time()
    found = correlate(con)
    ranked = process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answer = compose(found, catalog)
    composed = process_time()
    save(con, found, answer)
    return {
        "load": loaded - begun,
        "align": aligned - loaded,
        "correlate": ranked - aligned,
        "compose": composed - ranked,
        "save": process_time() - composed,
        "mb": peak,
        "mb_all": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "signals": len(timeline.signals),
        "marks": len(timeline.marks),
        "answer": f"{answer.failure.cls} {list(answer.initiating.ranks)}",
    }


def child(*words: str) -> str:
    """Run a part in a process of its own, so that its memory is its own."""
    done = subprocess.run([sys.executable, __file__, *words], check=True, capture_output=True, text=True)
    return done.stdout


def main() -> None:
    """Build and measure every size, print a table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("ranks", nargs="*", type=int, default=list(SIZES))
    options.add_argument("--page", type=Path)
    options.add_argument("--build", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.build:
        build(given.ranks[0], given.build)
        return
    if given.measure:
        print(json.dumps(measure(given.measure)))  # noqa: T201
        return
    lines = [
        "| ranks | signals | sync points | load, s | align, s | correlate, s | peak, MB | answer, s | write back, s |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for ranks in given.ranks:
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder) / "t.duckdb"
            child(str(ranks), "--build", str(database))
            one = json.loads(child(str(ranks), "--measure", str(database)))
        assert one["answer"] == f"collective-rank-absent [{ranks // 3}]", one["answer"]
        cells = (
            f"{ranks:,}",
            f"{one['signals']:,}",
            f"{one['marks']:,}",
            *(f"{one[k]:.2f}" for k in ("load", "align", "correlate")),
            f"{one['mb']:.0f}",
            f"{one['compose']:.2f}",
            f"{one['save']:.2f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)  # noqa: T201
    if given.page:
        text = (__doc__ or "").split("\n\n")
        given.page.write_text(
            "\n".join(
                [
                    "# How the correlate stage grows",
                    "",
                    text[-1].strip(),
                    "",
                    "```sh",
                    "python bench/bench_scale.py --page docs/scale.md",
                    "```",
                    "",
                    *lines,
                    "",
                ]
            ),
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
