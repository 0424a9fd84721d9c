"""How often the answer is right on simulated and recorded jobs, beside naive readers of the same logs.

    python bench/bench_accuracy.py run [--cases N] [--first SEED] [--knobs normal|poor|noisy|lossy ...] [--to FILE]
    python bench/bench_accuracy.py table FILE [--page docs/accuracy.md]

Each simulated job is written as text in the formats of PyTorch, NCCL, gloo, torchelastic, the kernel and Slurm, then
read and diagnosed as any other. `right` names exactly the ranks (or, where no rank began it, the cause), or withholds
where nothing can tell; `partial` some of them, or more; `host` only their host; `needless` is withheld although the
logs hold the decisive lines; `withheld` is withheld where they do not; `false` names somebody else. One line of JSON a
job goes to the file as it is done, and a second run goes on where the first was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for portion in ("ingest", "correlate", "report", "tests/correlate", "bench"):
    sys.path.insert(0, str(ROOT / portion))

from naive import NAIVE  # noqa: E402
from simulator.case import PRESETS, make_case  # noqa: E402
from simulator.faults import FAULTS  # noqa: E402
from simulator.judge import outcome  # noqa: E402

import firstfault.ingest.run as ingest_run  # noqa: E402
from firstfault.catalog import load_catalog  # noqa: E402
from firstfault.correlate.diagnosis import Verdict  # noqa: E402
from firstfault.correlate.engine import diagnose  # noqa: E402
from firstfault.ingest import ingest  # noqa: E402
from firstfault.timeline import open_timeline  # noqa: E402

CATALOG = load_catalog(())
ingest_run.load_catalog = lambda _folders: CATALOG  # read once for all jobs

COLUMNS = ("right", "partial", "host", "needless", "withheld", "false")
Row = dict[str, Any]


def naive_answers(database: Path) -> dict[str, list[int]]:
    """What each naive reader names."""
    with open_timeline(database) as con:
        return {name: list(read(con)) for name, read in NAIVE.items()}


def simulated(seed: int, fault: str, knobs: str, keep: Path | None) -> Row:
    """Make, read and judge one job."""
    with tempfile.TemporaryDirectory() as folder:
        logs, database = Path(folder) / "logs", Path(folder) / "t.duckdb"
        case = make_case(seed, fault, PRESETS[knobs], logs)
        begun = process_time()
        ingest([logs], database)
        found = diagnose(database, CATALOG)
        spent = process_time() - begun
        how = outcome(case, found)
        if keep and how in ("false", "needless", "partial"):
            target = keep / f"{how}-{knobs}-{fault}-{seed}"
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(logs, target)
        return {
            "knobs": knobs,
            "fault": fault,
            "seed": seed,
            "outcome": how,
            "class": None if case.truth.healthy else found.failure.cls in case.truth.classes,
            "said": f"{found.verdict.value} {found.failure.cls} {list(found.initiating.ranks)} "
            f"{list(found.initiating.hosts)}",
            "confidence": found.confidence,
            "truth": f"{case.truth.classes[0]} {list(case.truth.ranks)} {list(case.truth.hosts)}",
            "ranks": list(case.truth.ranks),
            "culprit_log": case.shows_first,
            "notes": " ".join(case.notes),
            "naive": naive_answers(database),
            "cpu_s": round(spent, 3),
        }


def recorded(folder: Path) -> Row:
    """Read and judge one job of sample_logs."""
    truth = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))["truth"]
    with tempfile.TemporaryDirectory() as work:
        database = Path(work) / "t.duckdb"
        ingest([folder / "logs"], database)
        found = diagnose(database, CATALOG)
        ranks = list(truth.get("initiating_ranks", []))
        allowed = [sorted(ranks), *(sorted(one) for one in truth.get("also_acceptable_ranks", []) if one)]
        healthy, open_ = truth["failure_class"] == "none", not truth["determined"]
        if found.verdict is Verdict.UNDETERMINED:
            how = "right" if open_ else "needless"
        elif found.verdict is Verdict.NO_FAILURE:
            how = "right" if healthy else "false"
        else:
            how = "right" if not healthy and not open_ and sorted(found.initiating.ranks) in allowed else "false"
        return {
            "knobs": "recorded",
            "fault": folder.name,
            "seed": 0,
            "outcome": how,
            "said": f"{found.verdict.value} {found.failure.cls} {list(found.initiating.ranks)}",
            "ranks": [] if open_ else ranks,
            "naive": naive_answers(database),
        }


def run(cases: int, first: int, knobs: list[str], faults: list[str], to: Path | None, keep: Path | None) -> list[Row]:
    """All jobs that the file does not hold yet; `cases` jobs for each knob, faults in turn."""
    done = list(read(to)) if to and to.exists() else []
    known = {(row["knobs"], row["fault"], row["seed"]) for row in done}
    jobs = [
        (name, faults[number % len(faults)], first + number // len(faults)) for name in knobs for number in range(cases)
    ]
    with open(to or os.devnull, "a", encoding="utf-8") as file:
        for name, fault, seed in jobs:
            if (name, fault, seed) not in known:
                row = simulated(seed, fault, name, keep)
                done.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
    return done


def read(file: Path) -> Iterator[Row]:
    """Rows of a file, one JSON object a line."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)


# tables


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.1f}"


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    names = list(head)
    return [
        "| " + " | ".join(names) + " |",
        "| --- |" + " ---: |" * (len(names) - 1),
        *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows),
        "",
    ]


def _shares(rows: list[Row]) -> list[str]:
    counts = Counter(row["outcome"] for row in rows)
    named = [row for row in rows if row["outcome"] in ("right", "partial", "host") and row.get("class") is not None]
    named = [row for row in named if not row["said"].startswith("undetermined")]
    return [
        *(_percent(counts[name], len(rows)) for name in COLUMNS),
        _percent(sum(bool(row["class"]) for row in named), len(named)) if named else "-",
    ]


def by_knobs(rows: list[Row]) -> list[str]:
    """One row for each kind of visibility."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["knobs"]].append(row)
    head = ("visibility", "jobs", *(f"{name}, %" for name in COLUMNS), "class, %")
    return _table(head, ((name, len(group), *_shares(group)) for name, group in groups.items()))


def by_fault(rows: list[Row]) -> list[str]:
    """One row for each fault."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["fault"]].append(row)
    head = ("fault", "jobs", *(f"{name}, %" for name in COLUMNS), "class, %")
    return _table(head, ((name, len(group), *_shares(group)) for name, group in groups.items()))


def by_reader(rows: list[Row]) -> list[str]:
    """firstfault and the naive readers on the same jobs: who is named rightly, who wrongly, nobody."""
    ours = Counter(
        "right" if row["outcome"] == "right" else "wrong" if row["outcome"] == "false" else "other" for row in rows
    )
    cells = [("firstfault", _percent(ours["right"], len(rows)), _percent(ours["wrong"], len(rows)))]
    for name in NAIVE:
        said = [(tuple(row["naive"][name]), tuple(row["ranks"])) for row in rows]
        right = sum(answer == truth and bool(answer) for answer, truth in said)
        cells.append((name, _percent(right, len(rows)), _percent(sum(bool(a) and a != t for a, t in said), len(rows))))
    return _table(("reader", "right, %", "names somebody else, %"), cells)


def by_confidence(rows: list[Row]) -> list[str]:
    """Whether the stated confidence is met."""
    named = [row for row in rows if row["said"].startswith("identified") and "confidence" in row]
    found = []
    for low, high in ((0.9, 1.01), (0.8, 0.9), (0.7, 0.8), (0.0, 0.7)):
        inside = [row for row in named if low <= row["confidence"] < high]
        good = sum(row["outcome"] == "right" and row["class"] is not False for row in inside)
        if inside:
            found.append((f"{low:.1f} to {min(high, 1.0):.1f}", len(inside), _percent(good, len(inside))))
    return _table(("stated confidence", "answers", "ranks and class right, %"), found)


def main() -> None:
    """Make, read, judge, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = options.add_subparsers(dest="command", required=True)
    making = commands.add_parser("run")
    making.add_argument("--cases", type=int, default=57)
    making.add_argument("--first", type=int, default=0)
    making.add_argument("--knobs", nargs="+", choices=sorted(PRESETS), default=["normal"])
    making.add_argument("--fault", choices=sorted(FAULTS), action="append")
    making.add_argument("--to", type=Path, help="one line of JSON a job; what it holds is not made again")
    making.add_argument("--keep", type=Path, help="keep the logs of answers that are not right")
    printing = commands.add_parser("table")
    printing.add_argument("file", type=Path, nargs="+")
    printing.add_argument("--page", type=Path, help="write a page instead of printing tables")
    given = options.parse_args()
    if given.command == "table":
        from accuracy_page import layouts_of, page, with_layouts

        text = page(
            [row for file in given.file for row in read(file)],
            [recorded(one.parent) for one in sorted(ROOT.glob("sample_logs/*/case.toml"))],
        )
        if given.page is None:
            print(text)  # noqa: T201
            return
        kept = layouts_of(given.page.read_text(encoding="utf-8")) if given.page.exists() else ""
        given.page.write_text(with_layouts(text, kept), encoding="utf-8")
        return
    rows = run(given.cases, given.first, given.knobs, given.fault or list(FAULTS), given.to, given.keep)
    print("\n".join(by_knobs(rows) + by_fault(rows) + by_reader(rows) + by_confidence(rows)))  # noqa: T201
    print(f"{sum(row['cpu_s'] for row in rows):.0f} s of one core")  # noqa: T201
    for row in rows:
        if row["outcome"] in ("false", "needless", "partial"):
            said = f"{row['said']} c={row['confidence']}; truth {row['truth']}; {row['notes']}"
            print(f"{row['outcome']:9} {row['knobs']} {row['fault']} {row['seed']}: {said}")  # noqa: T201


if __name__ == "__main__":
    main()
