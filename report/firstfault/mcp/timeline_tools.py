"""Tools that look things up: rows and lines of a job's timeline, its tables, the catalog."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from anyio import CancelScope
from anyio.to_thread import run_sync
from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

from firstfault.mcp import asking
from firstfault.mcp.answered import READ_ONLY, JobId, Result, answered, in_words, jobs_of, plain, table
from firstfault.mcp.jobs import Jobs, Settings
from firstfault.mcp.roots import Refused
from firstfault.mcp.untrusted import prose, shown

Explain = Callable[[str, Sequence[Path]], str]
"""Gives the page of the catalog for a text, with folders of entries of one's own."""


def add_timeline_tools(server: MCPServer[Jobs], settings: Settings) -> None:
    """Add those that ask a timeline."""

    @server.tool(title="Query the timeline", annotations=READ_ONLY)
    async def query(
        ctx: Context[Jobs, Any],
        job: JobId,
        sql: Annotated[
            str, Field(description="One SELECT in DuckDB's SQL; `schema` lists tables and views.", max_length=20_000)
        ],
        max_rows: Annotated[int, Field(ge=1, le=asking.MOST_ROWS)] = 50,
    ) -> Result:
        """Read-only SQL over all lines of a diagnosed job on one aligned clock: `lines` (path, line, time, host, rank,
        level, message, entry, class), `first_errors`, `last_lines`, `signals`, `steps`, `exceptions` and others.

        Bounded in rows, width and time. Search text with: SELECT path, line, rank, message FROM lines
        WHERE message ILIKE '%xid%' ORDER BY time LIMIT 20
        """
        with in_words():
            found = jobs_of(ctx).get(job)
            async with found.lock:
                asked = asking.Asked(found.database, sql, max_rows, settings.seconds)
                rows = await _stoppable(asked)
        head = f"{len(rows.rows)} rows"
        return answered(head, rows.text(), table(rows), found, list(rows.notes))

    @server.tool(title="Lines around a place", annotations=READ_ONLY)
    async def lines(
        ctx: Context[Jobs, Any],
        job: JobId,
        path: Annotated[str, Field(description="A log as evidence cites it; an unmistakable end of it will do.")],
        line: Annotated[int, Field(description="The line, counted from 1.", ge=1)],
        before: Annotated[int, Field(ge=0, le=asking.MOST_LINES // 2)] = 10,
        after: Annotated[int, Field(ge=0, le=asking.MOST_LINES // 2)] = 10,
    ) -> Result:
        """The lines around a cited line of a diagnosed job's logs, with time, host and rank. Only logs that `diagnose`
        read can be asked for."""
        with in_words():
            found = jobs_of(ctx).get(job)
            async with found.lock:
                around = partial(asking.lines, found.database, path, line, before, after)
                source, rows = await run_sync(around)
        data = {"path": shown(source), **table(rows)}
        return answered(f"{len(rows.rows)} lines", f"{shown(source)}\n{rows.text()}", data, found, list(rows.notes))


def add_catalog_tools(server: MCPServer[Jobs], settings: Settings, explain_text: Explain) -> None:
    """Add those that need no job."""

    @server.tool(title="Explain a log line", annotations=READ_ONLY)
    async def explain(
        text: Annotated[
            str, Field(description="A log line, a traceback, a code such as 'Xid 79', or an id.", max_length=100_000)
        ],
    ) -> Result:
        """What a log line, a traceback, a code or an id of the catalog means: the failure, what it is no proof of, fix,
        check and sources. Needs no job."""
        with in_words():
            try:
                page = await run_sync(explain_text, text, settings.catalogs)
            except Exception as error:
                raise Refused(str(error), quotes=True) from error
        return answered("from the catalog", prose(page), {"page": prose(page)}, None, [])

    @server.tool(title="Tables of the timeline", annotations=READ_ONLY)
    async def schema(
        table: Annotated[str | None, Field(description="A table or view, for its columns and an example.")] = None,
    ) -> Result:
        """Tables and views that `query` can ask, each with the question that it answers; or the columns of one."""
        with in_words():
            data = asking.described(table) if table else {"tables": asking.catalogue()}
        text = plain(data) if table else "\n".join(f"{t['name']}: {t['question'] or t['what']}" for t in data["tables"])
        return answered("tables and views", text, data, None, [], quoting=False)


async def _stoppable(asked: asking.Asked) -> asking.Rows:
    """The answer to a query, which is stopped, and has ended, where the request is cancelled."""
    task = asyncio.ensure_future(asyncio.to_thread(asked.answer))
    try:
        return await asyncio.shield(task)
    finally:
        with CancelScope(shield=True):
            while not task.done():
                asked.stop()  # again, since it does nothing to a query that is about to begin
                await asyncio.wait([task], timeout=0.2)
            task.exception()
