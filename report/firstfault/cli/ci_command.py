"""`firstfault ci`: what a CI job shows of a diagnosis that `diagnose --output` left."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstfault.cli.messages import CommandError, Status, errors_in_words, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firstfault.followup.ci import Frame


def ci(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of diagnose --output.")],
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Marks the comment, so that the next run replaces it.")
    ] = "firstfault",
    link: Annotated[
        str | None, typer.Option("--link", metavar="URL", help="Where the report can be read; the comment leads there.")
    ] = None,
    logs: Annotated[
        list[Path] | None,
        typer.Option("--logs", metavar="PATH", help="The PATHs that were diagnosed, for annotations at their lines."),
    ] = None,
) -> None:
    """Write DIR/comment.md, ready for a pull request; in GitHub Actions also summary, outputs and annotations.

    Elsewhere it prints the comment.
    """
    with errors_in_words():
        from firstfault.cli.files import replace_file
        from firstfault.followup import ci as made
        from firstfault.followup.saved import saved_from

        if "\n" in str(folder):
            raise CommandError("the name of the folder holds a line break", Status.USAGE)
        document = _read(folder / "diagnosis.json")
        saved_from(document, str(folder / "diagnosis.json"))
        try:
            text = made.comment(document, name, link)
        except ValueError as error:
            raise CommandError(f"--link: {error}", Status.USAGE) from error
        replace_file(folder / "comment.md", text.encode("utf-8", "backslashreplace"))
        if os.environ.get("GITHUB_ACTIONS") != "true":
            sys.stdout.write(text)
            return
        report = folder / "report.md"
        whole = report.read_text(encoding="utf-8", errors="replace") if report.is_file() else ""
        _append("GITHUB_STEP_SUMMARY", made.summary(document, whole))
        values = {**made.outputs(document), "report": str(folder), "comment": str(folder / "comment.md")}
        _append("GITHUB_OUTPUT", "".join(f"{key}={value}\n" for key, value in values.items()))
        workspace = os.environ.get("GITHUB_WORKSPACE")
        places = _raised_at(folder / "timeline.duckdb") if document["verdict"] == "identified" else []
        for one in made.messages(document, logs or (), Path(workspace) if workspace else None, places):
            sys.stdout.write(one.command() + "\n")


def _read(file: Path) -> dict[str, Any]:
    from firstfault.followup.saved import MOST_BYTES

    if not file.is_file():
        raise CommandError(f"{file}: not there; `firstfault diagnose PATH... --output {file.parent}` makes it")
    if file.stat().st_size > MOST_BYTES:
        raise CommandError(f"{file}: too large for a diagnosis")
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{file}: no JSON document ({error})") from error
    return found


def _append(variable: str, text: str) -> None:
    """To the file that a variable of the runner names."""
    file = os.environ.get(variable)
    if not file:
        say(f"firstfault ci: {variable} is not set; that part is left out")
        return
    with open(file, "a", encoding="utf-8", errors="backslashreplace") as out:
        out.write(text)


def _raised_at(database: Path) -> Sequence[Frame]:
    """Where the code raised the exception that the answer rests on, and what the line there reads."""
    from firstfault.followup.ci import Frame
    from firstfault.timeline import TimelineError, open_timeline

    query = """
        SELECT s.src_file, s.src_line, text.message
        FROM evidence e
        JOIN signals s ON s.path = e.path AND s.line = e.line
        JOIN lines frame ON frame.path = s.path AND frame.line BETWEEN s.first_line AND s.last_line
            AND contains(frame.message, concat('File "', s.src_file, '", line ', s.src_line, ','))
        JOIN lines text ON text.path = s.path AND text.line = frame.line + 1
        WHERE text.message IS NOT NULL
        ORDER BY e.position, frame.line DESC LIMIT 1
    """
    if not database.is_file():
        return []
    try:
        with open_timeline(database) as con:
            return [Frame(str(file), int(line), str(text)) for file, line, text in con.execute(query).fetchall()]
    except TimelineError as error:
        say(f"firstfault ci: {error}")
        return []
