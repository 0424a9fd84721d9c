"""How often the answer is right on simulated jobs, by fault, beside three naive readers.

    python bench/bench_accuracy.py [--seeds N] [--first S] [--knobs normal|poor|noisy|lossy] [--fault NAME] [--keep DIR]

Each job is written as text in the formats of PyTorch, NCCL, gloo, torchelastic, the kernel and Slurm, then read and
diagnosed as any other. `right` names exactly the ranks (or, where no rank began it, the cause); `partial` some of
them, or more; `host` only their host; `needless` is withheld although the logs hold the decisive lines; `withheld` is
withheld where they do not; `false` names somebody else. Jobs are made here and hold one reading of what programs do:
figures compare versions of the engine, they do not promise as much on real logs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for portion in ("ingest", "correlate", "report", "tests/correlate"):
    sys.path.insert(0, str(ROOT / portion))

from simulator.case import PRESETS, Case, first_error, first_observed, first_watchdog, make_case  # noqa: E402
from simulator.faults import FAULTS  # noqa: E402

from firstfault.correlate.diagnosis import Diagnosis, Verdict  # noqa: E402
from firstfault.correlate.engine import diagnose  # noqa: E402
from firstfault.ingest import ingest  # noqa: E402

COLUMNS = ("right", "partial", "host", "needless", "withheld", "false")
NAIVE = {"first error": first_error, "first watchdog": first_watchdog, "first observed": first_observed}


def outcome(case: Case, found: Diagnosis) -> str:
    """Where an answer stands."""
    truth = case.truth
    if truth.healthy:
        if found.verdict is Verdict.IDENTIFIED:
            return "false"
        if found.verdict is Verdict.NO_FAILURE:
            return "right"
        return "needless" if case.settled else "withheld"
    if found.verdict is Verdict.NO_FAILURE:
        return "false"
    if found.verdict is Verdict.UNDETERMINED:
        return "needless" if case.settled else "withheld"
    ranks, hosts = set(found.initiating.ranks), set(found.initiating.hosts)
    right = set(truth.ranks)
    if not right:
        return "right" if not ranks and found.failure.cls in truth.classes else "false"
    if ranks == right:
        return "right"
    if ranks & right or (truth.later and not case.settled and ranks & set(truth.later)):
        return "partial"
    if not ranks and hosts == set(truth.hosts):
        return "host"
    return "false"


def main() -> None:
    """Make, read, judge, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--knobs", choices=sorted(PRESETS), default="normal")
    options.add_argument("--fault", choices=sorted(FAULTS), action="append")
    options.add_argument("--keep", type=Path, help="keep the logs of answers that are false or needlessly withheld")
    given = options.parse_args()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    classes: dict[str, Counter[bool]] = defaultdict(Counter)
    naive: dict[str, Counter[bool]] = defaultdict(Counter)
    complaints: list[str] = []
    begun = time.perf_counter()
    for fault in given.fault or FAULTS:
        for seed in range(given.first, given.first + given.seeds):
            with tempfile.TemporaryDirectory() as folder:
                logs = Path(folder) / "logs"
                case = make_case(seed, fault, PRESETS[given.knobs], logs)
                database = Path(folder) / "t.duckdb"
                ingest([logs], database)
                found = diagnose(database)
                how = outcome(case, found)
                if given.keep and how in ("false", "needless", "partial"):
                    target = given.keep / f"{how}-{fault}-{seed}"
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.rename(logs, target) if not target.exists() else None
            table[fault][how] += 1
            if how in ("right", "partial", "host") and not case.truth.healthy:
                classes[fault][found.failure.cls in case.truth.classes] += 1
            if len(case.truth.ranks) == 1:
                for name, read in NAIVE.items():
                    naive[name][read(case) == case.truth.ranks] += 1
            if how in ("false", "needless", "partial"):
                said = f"{found.failure.cls} {list(found.initiating.ranks)} {list(found.initiating.hosts)}"
                complaints.append(
                    f"{how:9} {fault} seed {seed}: {found.verdict.value} {said} c={found.confidence}; truth "
                    f"{case.truth.classes[0]} {list(case.truth.ranks)} {list(case.truth.hosts)}; {' '.join(case.notes)}"
                )
    lines = [f"{given.knobs}, seeds {given.first} to {given.first + given.seeds - 1}"]
    lines.append(f"{'fault':18}" + "".join(f"{name:>10}" for name in COLUMNS) + f"{'class':>8}")
    total: Counter[str] = Counter()
    for fault, counts in table.items():
        total += counts
        good = classes[fault]
        share = f"{good[True]}/{good.total()}" if good else "-"
        lines.append(f"{fault:18}" + "".join(f"{counts[name]:10}" for name in COLUMNS) + f"{share:>8}")
    every = max(1, total.total())
    lines.append(f"{'all, %':18}" + "".join(f"{100 * total[name] / every:10.1f}" for name in COLUMNS))
    for name, hits in naive.items():
        lines.append(f"naive, {name}: right in {100 * hits[True] / max(1, hits.total()):.1f} % of {hits.total()} jobs")
    lines.append(f"{every} jobs in {time.perf_counter() - begun:.0f} s")
    print("\n".join(lines + complaints))  # noqa: T201


if __name__ == "__main__":
    main()
