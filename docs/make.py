"""Writes the pages that are made from the program itself: commands, timeline, rules, document, and the README's report.

    python3 dev.py python docs/make.py [--check]

With `--check` nothing is written; the exit status is 1 where a page is not as it should be.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SHOWN_JOB = "sample_logs/mute-rank6/logs"
COMPARED_JOB = "sample_logs/healthy-pair/logs"
SHOWN_ROWS = 6
SHOWN_WIDTH = 120
MADE = "<!-- made by docs/make.py -->"


def pages() -> dict[str, str]:
    """Every page that is made, by its path."""
    return {
        "docs/commands.md": commands(),
        "docs/timeline.md": timeline(),
        "docs/rules.md": rules(),
        "docs/document.md": document(),
        "docs/python.ipynb": notebook(),
        "sample_logs/README.md": samples(),
        "README.md": readme(),
    }


def page(title: str, intro: str, body: Iterator[str]) -> str:
    """One page: title, introduction, body."""
    return "\n".join([f"# {title}", "", MADE, "", intro, "", *body]).rstrip() + "\n"


def cell(text: str) -> str:
    """Text of a table cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# commands


def commands() -> str:
    """The commands with their arguments and options."""
    import typer

    from firstfault.cli.app import app

    return page(
        "Commands",
        "Results go to standard output, progress and warnings to standard error.\n"
        "Exit status: 0 the command did its work, whatever the verdict; 1 it could not; 2 wrong usage; "
        "3 `diagnose --fail-on-failure` and the verdict is not `no-failure`.",
        _commands("firstfault", typer.main.get_command(app)),
    )


def _commands(name: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is not None:
        for one in inner.values():
            yield from _commands(f"{name} {one.name}", one)
        return
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = " ".join([name, *(["[OPTION]..."] if options else []), *(one.metavar for one in arguments)])
    yield f"## `{name}`"
    yield ""
    yield " ".join(command.help.split())
    yield ""
    yield "```"
    yield usage
    yield "```"
    yield ""
    if arguments or options:
        yield "| argument or option | meaning |"
        yield "| --- | --- |"
        for one in arguments:
            yield f"| `{cell(one.metavar)}` | {cell(one.help or '')} |"
        for one in options:
            value = "" if one.is_flag else f" {one.metavar or one.name.upper()}"
            must = " Required." if one.required else ""
            yield f"| `{cell(', '.join([*one.opts, *one.secondary_opts]) + value)}` | {cell(one.help or '')}{must} |"
        yield ""


# timeline


def timeline() -> str:
    """Questions with their answers for a sample job, then all tables and views with their columns."""
    return page(
        "The timeline",
        "`firstfault ingest PATH... --db FILE` and `firstfault diagnose PATH... --output DIR` leave one DuckDB file.\n"
        "`firstfault sql FILE 'SELECT ...'` asks it, and `firstfault sql FILE` without a query gives a prompt;\n"
        "any DuckDB client that reads storage version 1.2 can as well, and finds this page in the table `guide`.\n"
        "Names of tables, views and columns stay: a released one is never renamed or dropped.\n"
        "What a diagnosis adds is there once `diagnose --output` or `report` ran on the file.",
        _timeline(),
    )


def _timeline() -> Iterator[str]:
    import duckdb

    from firstfault.timeline import create_schema
    from firstfault.timeline.relations import questions, relations

    asked = questions()
    yield "## Questions"
    yield ""
    yield f"Each with a query and its answer for `{SHOWN_JOB}`, at most {SHOWN_ROWS} rows of it."
    yield f"That job was diagnosed with `--healthy {COMPARED_JOB}`."
    yield "`firstfault sql FILE .examples` lists them, `firstfault sql FILE '.run 5'` asks one."
    yield ""
    yield from (f"{number}. [{one.question}](#{_anchor(one.question or '')})" for number, one in enumerate(asked, 1))
    yield ""
    with sample_timeline(COMPARED_JOB) as database:
        for one in asked:
            yield f"### {one.question}"
            yield ""
            yield f"```sql\n{one.example}\n```"
            yield ""
            yield f"```\n{_answer(database, one.example or '')}\n```"
            yield ""
    with duckdb.connect() as con:
        create_schema(con)
        for one in sorted(relations(), key=lambda one: not one.view):
            yield f"## {'View' if one.view else 'Table'} `{one.name}`"
            yield ""
            yield one.what
            yield ""
            types = {row[0]: row[1] for row in con.execute(f"DESCRIBE {one.name}").fetchall()}
            yield "| column | type | what |"
            yield "| --- | --- | --- |"
            yield from (
                f"| `{column.name}` | {cell(types[column.name])} | {cell(column.what)} |" for column in one.columns
            )
            yield ""


def _anchor(title: str) -> str:
    """The name that Markdown renderers give a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


@contextlib.contextmanager
def sample_timeline(healthy: str | None = None) -> Iterator[Path]:
    """The timeline of the job that the pages show, with its diagnosis, compared with a job that went well."""
    from firstfault.correlate.engine import diagnose
    from firstfault.correlate.healthy import Healthy
    from firstfault.ingest import IngestOptions, ingest

    with tempfile.TemporaryDirectory() as folder:
        database, other = Path(folder) / "timeline.duckdb", Path(folder) / "healthy.duckdb"
        ingest([ROOT / SHOWN_JOB], database, IngestOptions(workers=1))
        if healthy is not None:
            ingest([ROOT / healthy], other, IngestOptions(workers=1))
        diagnose(database, healthy=None if healthy is None else Healthy(other, healthy, True))
        yield database


def _answer(database: Path, query: str) -> str:
    from firstfault.cli.sql_rows import table
    from firstfault.timeline.gate import open_gate

    out = io.StringIO()
    with open_gate(database) as gate:
        found = gate.ask(query)
        rows = list(found.rows)
        table(found.names, iter(rows[:SHOWN_ROWS]), out, SHOWN_WIDTH)
    more = len(rows) - SHOWN_ROWS
    return out.getvalue().rstrip() + (f"\n({more} more)" if more > 0 else "")


# rules


def rules() -> str:
    """The rules that join effects to causes."""
    return page(
        "Rules",
        "The causal graph joins an effect to its cause by these rules and no others.\n"
        "`certain` and `strong` rules explain an effect away; a `weak` one only where nothing closer does.\n"
        "The file is `correlate/firstfault/correlate/rules.toml`; each link of a report names its rule.",
        _rules(),
    )


def _rules() -> Iterator[str]:
    text = resources.files("firstfault.correlate").joinpath("rules.toml").read_text(encoding="utf-8")
    for rule in tomllib.loads(text)["rule"]:
        yield f"## `{rule['id']}`"
        yield ""
        yield f"{rule['effect']} ← {rule['cause']}, {rule['strength']}: {rule['condition']}."
        yield ""
        yield f"Source: {rule['source']}"
        yield ""


# document


def document() -> str:
    """The JSON document, key by key."""
    return page(
        "The JSON document",
        "`firstfault diagnose PATH --format json` prints exactly one document `firstfault.diagnosis/1`.\n"
        "Its JSON Schema ships in the package: `firstfault/report/diagnosis.schema.json`.\n"
        "Readers ignore keys that they do not know. Unknown numbers are null, never NaN or Infinity.",
        _document(),
    )


def _document() -> Iterator[str]:
    text = resources.files("firstfault.report").joinpath("diagnosis.schema.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    yield from _object("The document", schema, schema)
    for name, one in schema["$defs"].items():
        if one.get("type") == "object":
            yield from _object(f"`{name}`", one, schema)


def _object(title: str, one: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield one["description"]
    yield ""
    yield "| key | type | what |"
    yield "| --- | --- | --- |"
    yield from _keys("", one, schema)
    yield ""


def _keys(prefix: str, one: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    for name, value in one["properties"].items():
        said = value.get("description") or schema["$defs"].get(_target(value), {}).get("description", "")
        yield f"| `{prefix}{name}` | {_type(value)} | {cell(said)} |"
        inner = value.get("items", value) if isinstance(value.get("items", value), dict) else value
        if "properties" in inner:
            mark = "[]." if inner is not value else "."
            yield from _keys(f"{prefix}{name}{mark}", inner, schema)


def _target(value: Mapping[str, Any]) -> str:
    return str(value.get("$ref", "")).rpartition("/")[2]


def _type(value: Mapping[str, Any]) -> str:
    if "$ref" in value:
        return "time or null" if _target(value) == "moment" else f"`{_target(value)}`"
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join("null" if one is None else f"`{one}`" for one in value["enum"])
    if "anyOf" in value:
        return " or ".join(_type(one) for one in reversed(value["anyOf"]))
    if value.get("type") == "array":
        return f"list of {_type(value['items'])}"
    kind = value.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


# notebook


def notebook() -> str:
    """The page about Python as a notebook, its code run from top to bottom."""
    import polars

    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    cells: list[dict[str, Any]] = []
    names: dict[str, Any] = {}
    with contextlib.chdir(ROOT / "docs"), polars.Config():
        for prose, code in re.findall(r"(?s)(.*?)```python\n(.*?)```\n", text):
            if prose.strip():
                cells.append(_cell("markdown", prose.strip(), len(cells)))
            number = sum(one["cell_type"] == "code" for one in cells) + 1
            outputs = _outputs(code, names, number)
            cells.append({**_cell("code", code.strip(), len(cells)), "execution_count": number, "outputs": outputs})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str, number: int) -> dict[str, Any]:
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}


def _outputs(code: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run one cell: what it printed, then the value of its last line where that is an expression."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        said = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": said})
    if value is not None and not isinstance(value, type):
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


# samples


def samples() -> str:
    """The sample jobs with what happened in each."""
    return page(
        "Sample jobs",
        "Real multi-process runs on several hosts with a fault injected, each with its truth in `case.toml`.\n"
        "`make/run.py` makes them. Diagnose one: `firstfault diagnose sample_logs/NAME/logs`.",
        _samples(),
    )


def _samples() -> Iterator[str]:
    yield "| job | what happened | class | ranks |"
    yield "| --- | --- | --- | --- |"
    for file in sorted((ROOT / "sample_logs").glob("*/case.toml")):
        case = tomllib.loads(file.read_text(encoding="utf-8"))
        truth = case["truth"]
        ranks = ", ".join(map(str, truth["initiating_ranks"]))
        kind = "" if truth["failure_class"] in ("none", "unknown") else f"`{truth['failure_class']}`"
        said = "" if truth["determined"] else " The logs do not settle it."
        yield f"| [{file.parent.name}]({file.parent.name}) | {cell(case['summary'])}.{said} | {kind} | {ranks} |"


# readme


def readme() -> str:
    """The README with the report of a sample job, as it is printed."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    begin, end = "<!-- report: made by docs/make.py -->\n", "<!-- end of report -->\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    shown = f"```console\n$ firstfault diagnose {SHOWN_JOB}\n{first_screen()}\n```\n"
    return f"{before}{begin}\n{shown}\n{end}{after}"


def first_screen() -> str:
    """What a terminal shows of that job before the details."""
    from firstfault.correlate.engine import diagnose
    from firstfault.report.text import to_text

    with sample_timeline() as database:
        blocks = to_text(diagnose(database), 100).split("\n\n")
    return "\n\n".join(blocks[:2])


def main(arguments: list[str]) -> int:
    stale = []
    for name, text in pages().items():
        path = ROOT / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    for name in stale:
        sys.stderr.write(f"{name}: {'is not current' if '--check' in arguments else 'written'}\n")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
