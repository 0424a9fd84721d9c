"""What `firstfault sql` knows beside SQL: `.tables`, `.views`, `.schema`, `.examples`, `.run`, `.help`."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstfault.timeline.gate import QueryError
from firstfault.timeline.relations import Relation, questions, relation, relations

if TYPE_CHECKING:
    from firstfault.timeline.gate import Gate

COMMANDS = {
    ".examples": "the questions with a number; .examples 5 or .examples silences shows the query",
    ".run": ".run 5 or .run silences asks that question",
    ".views": "the views and the question that each answers",
    ".tables": "the tables and what a row is",
    ".schema": ".schema lines: the columns of a table or view and what they hold",
    ".format": ".format table, csv, json or markdown: how rows are printed (at the prompt)",
    ".help": "this list",
    ".quit": "leave (at the prompt)",
}


@dataclass(frozen=True, slots=True)
class Said:
    """What a command prints, or the query that it stands for."""

    text: str = ""
    query: str | None = None


def dot_command(gate: Gate, line: str) -> Said:
    """One command that begins with a dot. Raises `QueryError` where there is no such one."""
    name, _, rest = line.rstrip("; ").partition(" ")
    rest = rest.strip()
    match name:
        case ".help":
            return Said(listed(list(COMMANDS.items())))
        case ".tables":
            return Said(listed([(one.name, _first(one.what)) for one in relations() if not one.view]))
        case ".views":
            return Said(listed([(one.name, one.question or _first(one.what)) for one in relations() if one.view]))
        case ".schema":
            return Said(_schema(gate, _known(rest)) if rest else _all_columns())
        case ".examples" | ".example":
            return Said(_example(chosen(rest)) if rest else _questions())
        case ".run":
            if not rest:
                raise QueryError(".run needs a number or a name; .examples lists them")
            return Said(query=chosen(rest).example)
    raise QueryError(f"{name}: no such command; {', '.join(COMMANDS)}")


def chosen(text: str) -> Relation:
    """The question of that number, or of the table or view of that name."""
    asked = questions()
    if text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= len(asked):
        return asked[int(text) - 1]
    found = next((one for one in asked if one.name == text.lower()), None)
    if found is None:
        raise QueryError(f"{text}: no such example; 1 to {len(asked)}, or a name out of .examples")
    return found


def listed(rows: list[tuple[str, str]]) -> str:
    """Names with what they are, one a line."""
    wide = max(len(name) for name, _ in rows)
    return "".join(f"{name:<{wide}}  {what}\n" for name, what in rows)


def _questions() -> str:
    return listed([(f"{number:>2}  {one.name}", one.question or "") for number, one in enumerate(questions(), start=1)])


def _example(one: Relation) -> str:
    return f"-- {one.question}\n{one.example};\n"


def _first(text: str) -> str:
    return text.partition("\n")[0]


def _known(name: str) -> Relation:
    found = relation(name)
    if found is None:
        raise QueryError(f"{name}: no such table or view; .tables and .views list them")
    return found


def _schema(gate: Gate, one: Relation) -> str:
    types = {row[0]: str(row[1]) for row in gate.ask(f"DESCRIBE {one.name}").rows}
    what = {column.name: column.what for column in one.columns}
    wide, typed = max(map(len, types)), min(26, max(map(len, types.values())))
    out = io.StringIO()
    out.write(f"{'view' if one.view else 'table'} {one.name}\n")
    out.writelines(f"  {line}\n" for line in one.what.splitlines())
    out.write("\n")
    out.writelines(f"{name:<{wide}}  {kind:<{typed}}  {what.get(name, '')}\n" for name, kind in types.items())
    return out.getvalue()


def _all_columns() -> str:
    return listed([(one.name, ", ".join(column.name for column in one.columns)) for one in relations()])
