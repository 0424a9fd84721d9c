"""What all tools share: the form of their answers, and errors in words."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypedDict

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from firstfault.mcp.asking import Rows
from firstfault.mcp.jobs import Job, Jobs
from firstfault.mcp.roots import Refused
from firstfault.mcp.untrusted import NOTE, cut, fenced, prose

READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

JobId = Annotated[str, Field(description="The id that `diagnose` gave, such as job-1a2b3c4d.")]


class Answer(TypedDict):
    """What every tool answers: `data` is of the tool, `notes` say what is missing of it and how to get it."""

    job: str | None
    untrusted: str
    notes: list[str]
    data: dict[str, Any]


Result = Annotated[CallToolResult, Answer]


def jobs_of(ctx: Context[Jobs, Any]) -> Jobs:
    """The jobs of the server."""
    return ctx.request_context.lifespan_context


@contextlib.contextmanager
def in_words() -> Iterator[None]:
    """What is refused, as the error that an assistant reads; between marks where it may quote a log."""
    try:
        yield
    except Refused as error:
        said = prose(str(error), 3000)
        raise ToolError(f"it was not possible:\n{fenced(said)}" if error.quotes else said) from error


def answered(
    head: str, text: str, data: Mapping[str, Any], job: Job | None, left: list[str], *, quoting: bool = True
) -> CallToolResult:
    """Text and structured data of one answer."""
    note = NOTE if quoting else "Nothing in this answer quotes logs."
    parts = [head, fenced(cut(text)) if quoting else cut(text), *(f"note: {one}" for one in left)]
    whole = Answer(job=job.id if job else None, untrusted=note, notes=left, data=dict(data))
    return CallToolResult(content=[TextContent(type="text", text="\n".join(parts))], structured_content=dict(whole))


def table(rows: Rows) -> dict[str, Any]:
    """Rows as structured data."""
    return {"columns": list(rows.names), "rows": [list(row) for row in rows.rows]}


def plain(value: Any, indent: str = "") -> str:
    """Values for a reader: a name and its value on each line, what is empty left out."""
    if isinstance(value, Mapping):
        if list(value) == ["columns", "rows"]:
            return "\n".join(
                f"{indent}{json.dumps(row, ensure_ascii=False)}" for row in (value["columns"], *value["rows"])
            )
        return "\n".join(
            f"{indent}{name}:\n{plain(one, indent + '  ')}"
            if isinstance(one, Mapping | list)
            else f"{indent}{name}: {one}"
            for name, one in value.items()
            if one not in (None, "", [], {})
        )
    if isinstance(value, list):
        return "\n".join(f"{indent}- {plain(one, indent + '  ').lstrip()}" for one in value)
    return f"{indent}{value}"
