"""The page of measured accuracy: which command made it, and what came out."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from bench_accuracy import by_confidence, by_fault, by_knobs, by_reader

Row = dict[str, Any]

LAYOUTS = "## The same logs in other layouts"
LAYOUTS_HEAD = f"""{LAYOUTS}

Made by `bench/relayout.py`: labelled jobs whose ranks have files of their own, and which are answered rightly as they
are, are written again as other programs leave their logs, with only what those tell; the truth moves along.
What reads them was mended with these jobs in sight.

- `right`: agrees with the truth.
- `part`: names nobody innocent, and lacks a class, a rank or a host.
- `refused`: no answer. Where a layout tells ranks or hosts no longer apart, that may be the right one.
- `ACCUSED`: names somebody innocent.

```sh
python bench/relayout.py run --sample 30 --to layouts.jsonl
python bench/relayout.py table layouts.jsonl --page docs/accuracy.md
```
"""

HEAD = """# Measured accuracy

Made by `bench/bench_accuracy.py`; change nothing by hand.

Simulated jobs are written as text, in the formats that the programs print, read and diagnosed like any other.
Their seeds were not looked at while rules were made; other seeds were.
They hold one reading of what programs do after a fault, so the figures compare readers and versions;
they promise no such share on logs that nobody has seen.

- `right`: exactly the ranks that began it, or the cause where no rank did, or no answer where nothing could tell.
- `partial`: some of them, or more.
- `host`: only their host.
- `needless`: no answer although the decisive lines are there.
- `withheld`: no answer, and the decisive lines are missing
  (the log of the rank, of its launcher, of the kernel or of the scheduler was left out of the bundle).
- `false`: somebody else is named.

`normal` keeps nine in ten logs of the rank that failed, four in five of launchers,
three in five of kernels and schedulers.
`poor` keeps half, three in ten, two in ten and three in ten.
A third of the jobs holds old or foreign records of machines, a quarter tracebacks that the program survived,
a fifth errors on the way out.
Six in ten have clocks that are up to five minutes off, some of them in another time zone.
"""


def page(simulated: list[Row], recorded: list[Row]) -> str:
    """The whole page."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in simulated:
        groups[row["knobs"]].append(row)
    parts = [HEAD, "```sh"]
    for name, rows in groups.items():
        first = min(row["seed"] for row in rows)
        parts.append(
            f"python bench/bench_accuracy.py run --cases {len(rows)} --first {first} --knobs {name} --to {name}.jsonl"
        )
    parts += [
        f"python bench/bench_accuracy.py table {' '.join(f'{name}.jsonl' for name in groups)} --page docs/accuracy.md"
    ]
    parts += ["```", "", f"## {len(simulated):,} simulated jobs", "", *by_knobs(simulated)]
    for name, rows in groups.items():
        ordered = sorted(rows, key=lambda row: row["seed"])
        parts += [f"## By fault, {name} visibility", "", *by_fault(ordered)]
    for name, rows in groups.items():
        parts += [
            f"## Beside plain rules, {name} visibility",
            "",
            "The plain rules get what firstfault read: which rank wrote a line, and the stamp near it.",
            "",
            *by_reader(rows),
        ]
    parts += [
        f"## Beside plain rules, the {len(recorded)} recorded jobs of sample_logs",
        "",
        "Real runs with an injected fault; rules were made with these jobs in sight.",
        "",
        *by_reader(recorded),
        "## Stated confidence, simulated jobs",
        "",
        *by_confidence(simulated),
    ]
    return "\n".join(parts)


def with_layouts(page: str, section: str) -> str:
    """The page with another section about layouts, which is its last."""
    return f"{page.partition(LAYOUTS)[0].rstrip()}\n\n{section.rstrip()}\n"


def layouts_of(page: str) -> str:
    """The section about layouts of a page, nothing where it has none."""
    _, heading, text = page.partition(LAYOUTS)
    return heading + text
