"""Whether the answer depends on the layout: labelled cases whose logs are rendered again as other programs leave them.

    python bench/relayout.py run [--sample N] [--layout WORD ...] [--case WORD] [--cases FOLDER ...] [--to FILE]
    python bench/relayout.py table FILE ... [--page docs/accuracy.md]

Cases are those with one file a rank (`relayout_job`) that are answered rightly as they are; their logs come in the
layouts of `relayout_forms` and `relayout_names`, and the truth moves along. `right` agrees with the truth; `part` names
nobody innocent and lacks a class, a rank or a host; `refused` is undetermined; `ACCUSED` names somebody innocent. One
line of JSON a job goes to the file as it is done, with whether the answer `cites` a line that names the root; what the
file holds is not made again.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for portion in ("ingest", "correlate", "report", "tests/cases", "bench"):
    sys.path.insert(0, str(ROOT / portion))

from relayout_forms import COLLECTED, ONE_FILE  # noqa: E402
from relayout_job import Files, Job, Origin, read_job  # noqa: E402
from relayout_layout import BOTH, Layout, same  # noqa: E402
from relayout_names import BYTES, FILES, HOSTS, known_as  # noqa: E402
from test_cases import faults, innocent  # noqa: E402

import firstfault.ingest.run as ingest_run  # noqa: E402
from firstfault.catalog import load_catalog  # noqa: E402
from firstfault.correlate.engine import diagnose  # noqa: E402
from firstfault.ingest import ingest  # noqa: E402
from firstfault.report.document import document  # noqa: E402

CATALOG = load_catalog(())
GROUPS = (("one file", ONE_FILE), ("collected", COLLECTED), ("names", FILES), ("bytes", BYTES), ("hosts", HOSTS))
LAYOUTS = (
    Layout("as it was", "", BOTH, same),
    *(Layout(name, group, keeps, make) for group, layouts in GROUPS for name, keeps, make in layouts),
)
COLUMNS = ("right", "part", "refused", "ACCUSED")
NEAR = 3
"""Lines of the case between a line that an answer cites and one that names the root."""
Row = dict[str, Any]


def write(files: Files, exact: Container[str], folder: Path) -> dict[Origin, str]:
    """Put a rendered job on disk; where each line of the case went, as `path:line`. `exact`: whose ends stay."""
    moved: dict[Origin, str] = {}
    for path, rows in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        data = b"\n".join(line for _, line in rows)
        if rows and not (rows[-1][0] and rows[-1][0][0] in exact):
            data += b"\n"
        target.write_bytes(gzip.compress(data, 1, mtime=0) if path.endswith(".gz") else data)
        moved.update({origin: f"{path}:{n}" for n, (origin, _) in enumerate(rows, 1) if origin})
    return moved


def judge(answer: dict[str, Any], truth: dict[str, Any]) -> tuple[str, list[str]]:
    """The column of an answer, and what is wrong with it."""
    if wrong := innocent(answer, truth):
        return "ACCUSED", wrong
    if not (wrong := faults(answer, truth)):
        return "right", []
    return "refused" if answer["verdict"] == "undetermined" else "part", wrong


def answer_to(job: Job, layout: Layout, keep: Path | None = None) -> Row | None:
    """Render, read and judge one case in one layout; None where the case cannot be rendered so."""
    files = layout.make(job)
    if files is None:
        return None
    hosts = {name for host in job.truth["initiating_hosts"] for name in known_as(layout.name, job, host)}
    truth = {**job.truth, "initiating_hosts": sorted(hosts)}
    with tempfile.TemporaryDirectory() as work:
        logs = (keep / job.name / re.sub(r"\W+", "-", layout.name).strip("-") if keep else Path(work)) / "logs"
        moved = write(files, job.others, logs)
        begun = process_time()
        ingest([logs], Path(work) / "t.duckdb")
        answer = document(diagnose(Path(work) / "t.duckdb", CATALOG))
        spent = process_time() - begun
    outcome, wrong = judge(answer, truth)
    back = {place: origin for origin, place in moved.items()}
    cited = {back.get(f"{one['path']}:{one['line']}") for one in answer["evidence"] or ()}
    cls, place = (answer["failure"] or {}).get("class"), answer["initiating"] or {}
    return {
        "case": job.name,
        "layout": layout.name,
        "outcome": outcome,
        "wrong": wrong,
        "cites": any(one and (one[0], one[1] + off) in job.roots for one in cited for off in range(-NEAR, NEAR + 1)),
        "said": f"{answer['verdict']} {cls} {place.get('ranks')} {place.get('hosts')}",
        "truth": f"{truth['failure_class']} {truth['initiating_ranks']} {truth['initiating_hosts']}",
        "cpu_s": round(spent, 2),
    }


def jobs(folders: Iterable[Path], word: str) -> Iterator[Job]:
    """Cases with one file a rank, in an order that is always the same and that of no name."""
    cases = (path.parent for folder in folders for path in folder.glob("*/case.toml") if word in path.parent.name)
    for case in sorted(cases, key=lambda case: hashlib.sha256(case.name.encode()).digest()):
        if job := read_job(case):
            yield job


def run(given: argparse.Namespace) -> list[Row]:
    """All pairs of case and layout that the file does not hold yet."""
    done = list(read(given.to)) if given.to and given.to.exists() else []
    known = {(row["case"], row["layout"]): row for row in done}
    chosen = [
        one for one in LAYOUTS if not given.layout or any(word in f"{one.group} {one.name}" for word in given.layout)
    ]
    made: Counter[str] = Counter()
    with open(given.to or os.devnull, "a", encoding="utf-8") as file:
        for job in jobs(given.cases, given.case):
            for layout in [LAYOUTS[0], *(one for one in chosen if one is not LAYOUTS[0])]:
                if made[layout.name] >= given.sample and layout is not LAYOUTS[0]:
                    continue
                row = known.get((job.name, layout.name)) or answer_to(job, layout, given.keep)
                if row and (job.name, layout.name) not in known:
                    done.append(row)
                    file.write(json.dumps(row) + "\n")
                    file.flush()
                if layout is LAYOUTS[0] and (row is None or row["outcome"] != "right"):
                    break
                made[layout.name] += row is not None
    return done


def read(file: Path) -> Iterator[Row]:
    """Rows of a file, one JSON object a line."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)


def table(rows: Iterable[Row]) -> list[str]:
    """One row a layout, of cases that are answered rightly as they are."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row["layout"]][row["outcome"]] += 1
    text = ["| layout | tells by itself | jobs | " + " | ".join(COLUMNS) + " |", "| --- | --- |" + " ---: |" * 5]
    group = ""
    for layout in LAYOUTS[1:]:
        if count := counts.get(layout.name):
            if layout.group != group:
                group = layout.group
                text.append(f"| **{group}** |" + " |" * 6)
            cells = " | ".join(str(count[name]) for name in COLUMNS)
            name = layout.name.replace("|", "\\|")
            text.append(f"| `{name}` | {layout.keeps} | {sum(count[one] for one in COLUMNS)} | {cells} |")
    return text


def main() -> None:
    """Render, read, judge, print."""
    ingest_run.load_catalog = lambda _folders: CATALOG  # read once for all jobs
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = options.add_subparsers(dest="command", required=True)
    making = commands.add_parser("run")
    making.add_argument("--sample", type=int, default=40, help="cases a layout")
    making.add_argument("--layout", nargs="+", help="only layouts whose group or name holds a word")
    making.add_argument("--case", default="", help="only cases whose name holds this")
    making.add_argument("--cases", type=Path, nargs="+", default=[ROOT / "tests" / "cases", ROOT / "sample_logs"])
    making.add_argument("--to", type=Path, help="one line of JSON a job; what it holds is not made again")
    making.add_argument("--keep", type=Path, help="a folder in which the rendered logs stay")
    printing = commands.add_parser("table")
    printing.add_argument("file", type=Path, nargs="+")
    printing.add_argument("--page", type=Path, help="a page whose section about layouts is written anew")
    given = options.parse_args()
    if given.command == "table":
        text = "\n".join(table(row for file in given.file for row in read(file)))
        if given.page is None:
            print(text)  # noqa: T201
            return
        from accuracy_page import LAYOUTS_HEAD, with_layouts

        page = with_layouts(given.page.read_text(encoding="utf-8"), f"{LAYOUTS_HEAD}\n{text}")
        given.page.write_text(page, encoding="utf-8")
        return
    rows = run(given)
    print("\n".join(table(rows)))  # noqa: T201
    for row in rows:
        if row["outcome"] != "right" and row["layout"] != LAYOUTS[0].name:
            print(f"{row['outcome']:8} {row['layout']:28} {row['case']}: {row['said']}; truth {row['truth']}")  # noqa: T201


if __name__ == "__main__":
    main()
