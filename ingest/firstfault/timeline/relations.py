"""The tables and views of a timeline as their `.sql` files describe them: rows, columns, questions and examples.

A file holds one statement. Its first lines are comments: what a row is, then, where people ask for it, a `Question:`
and an `Example:` whose query is indented by four spaces. Each column carries its comment behind it.
The pages in `docs/`, the prompt of `firstfault sql` and the table `guide` inside every timeline all come from here.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

_NAME = re.compile(r"(?m)^CREATE (TABLE|VIEW) (\w+)")
_TABLE_COLUMN = re.compile(r"(?m)^    (\w+) +[A-Z].*?-- (.+)$")
_VIEW_COLUMN = re.compile(r"(?m)^.*\bAS (\w+),? -- (.+)$")


@dataclass(frozen=True, slots=True)
class Column:
    """One column and what it holds."""

    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Relation:
    """One table or view; `question` and `example` are None where nobody would begin there."""

    name: str
    view: bool
    what: str
    columns: tuple[Column, ...]
    question: str | None
    example: str | None
    statement: str


@cache
def relations() -> tuple[Relation, ...]:
    """All tables, then all views, in the order in which they can be made."""
    return tuple(parse(text) for folder in ("schema", "views") for text in _texts(folder))


@cache
def relation(name: str) -> Relation | None:
    """The table or view of that name."""
    return next((one for one in relations() if one.name == name.lower()), None)


def questions() -> tuple[Relation, ...]:
    """What answers a question that people ask, in the order of `QUESTIONS`."""
    asked = {one.name: one for one in relations() if one.question and one.example}
    return tuple(asked[name] for name in QUESTIONS if name in asked)


QUESTIONS = (
    "verdicts",
    "evidence",
    "hypotheses",
    "edges",
    "first_errors",
    "spread",
    "last_lines",
    "silences",
    "behind",
    "signals",
    "lost_peers",
    "around_root",
    "lead_up",
    "lines",
    "folded_errors",
    "faults",
    "exceptions",
    "warnings",
    "changes",
    "machine_faults",
    "exits",
    "about_process",
    "placement",
    "host_summary",
    "rank_progress",
    "steps",
    "step_times",
    "line_rate",
    "attempts",
    "checkpoints",
    "clocks",
    "coverage",
    "problems",
    "guide",
)
"""Names in the order in which somebody on call would come to them."""


def parse(text: str) -> Relation:
    """One `.sql` file."""
    head, _, _ = text.partition("CREATE ")
    found = _NAME.search(text)
    if found is None:
        raise ValueError(f"no CREATE TABLE or CREATE VIEW in {text[:60]!r}")
    view = found[1] == "VIEW"
    what: list[str] = []
    example: list[str] = []
    question = None
    for line in head.splitlines():
        said = line.removeprefix("--").removeprefix(" ")
        if said.startswith("Question: "):
            question = said.removeprefix("Question: ")
        elif said.startswith("    "):
            example.append(said[4:])
        elif said != "Example:":
            what.append(said)
    pattern = _VIEW_COLUMN if view else _TABLE_COLUMN
    columns = tuple(Column(*one) for one in pattern.findall(text[found.start() :]))
    return Relation(found[2], view, "\n".join(what), columns, question, "\n".join(example) or None, text)


def guide() -> tuple[tuple[int, str, str | None, str, str | None, str | None], ...]:
    """The rows of the table `guide`: the questions first, then everything else."""
    order = {name: position for position, name in enumerate(QUESTIONS)}
    rows: list[tuple[str, str | None, str, str | None, str | None]] = []
    for one in sorted(relations(), key=lambda one: order.get(one.name, len(order))):
        rows.append((one.name, None, one.what, one.question, one.example))
    rows.extend((one.name, column.name, column.what, None, None) for one in relations() for column in one.columns)
    return tuple((position, *row) for position, row in enumerate(rows, start=1))


@cache
def digest() -> str:
    """Short name of this set of tables and views."""
    return hashlib.sha256("\0".join(one.statement for one in relations()).encode()).hexdigest()[:16]


def _texts(folder: str) -> tuple[str, ...]:
    files = sorted(resources.files(__package__).joinpath(folder).iterdir(), key=lambda file: file.name)
    return tuple(file.read_text(encoding="utf-8") for file in files if file.name.endswith(".sql"))
