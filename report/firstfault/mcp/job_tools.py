"""Tools about a job as a whole: its diagnosis, what would settle it, why somebody is not to blame, other jobs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from anyio.to_thread import run_sync
from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

from firstfault.followup.compare import compare
from firstfault.followup.saved import saved_from
from firstfault.mcp import answers, asking
from firstfault.mcp.answered import READ_ONLY, JobId, Result, answered, in_words, jobs_of, plain, table
from firstfault.mcp.jobs import Jobs, Settings
from firstfault.mcp.roots import Refused
from firstfault.mcp.untrusted import ANSWER, prose, shown
from firstfault.report.document import document
from firstfault.report.text import to_text


def add_job_tools(server: MCPServer[Jobs], settings: Settings) -> None:
    """Add them to a server."""

    @server.tool(title="Diagnose a job", annotations=READ_ONLY)
    async def diagnose(
        ctx: Context[Jobs, Any],
        paths: Annotated[
            list[str],
            Field(description="Directories, log files or archives, together one job.", min_length=1, max_length=64),
        ],
        healthy: Annotated[
            str | None, Field(description="Logs of a run of the same job that went well, to compare with.")
        ] = None,
        tz: Annotated[
            str | None, Field(description="Zone of stamps that carry none, such as UTC or Europe/Berlin.")
        ] = None,
        year: Annotated[int | None, Field(description="Year of stamps that carry none.")] = None,
    ) -> Result:
        """What failed first in a distributed job: reads its logs, answers with rank, host, kind of failure, evidence.

        Takes seconds for small jobs, minutes for tens of gigabytes; reports progress and can be cancelled. What has not
        changed since the last time is not read again. The answer's job id is what the other tools ask for.
        """
        done = 0

        async def tell(phase: str, at: int, total: int) -> None:
            nonlocal done
            done += 1  # progress has to rise, and phases count in units of their own
            share = f" {100 * at // total} %" if total else ""
            await ctx.report_progress(done, None, f"{phase}{share}")

        with in_words():
            job = await jobs_of(ctx).diagnose(paths, tell, healthy=healthy, tz=tz, year=year)
        one = job.diagnosis
        data = answers.verdict(one)
        report, left = to_text(one, 110), data.pop("notes")
        if len(report) > ANSWER:
            left.append(f"the report is longer; the resource firstfault://jobs/{job.id}/report.md has more of it")
        return answered(f"{answers.headline(one)}\njob id: {job.id}", prose(report), data, job, left)

    @server.tool(title="What would settle it", annotations=READ_ONLY)
    async def missing_facts(ctx: Context[Jobs, Any], job: JobId) -> Result:
        """The piece of evidence that would settle an undetermined verdict, the candidates with reasons for and against,
        what could not be read, how clocks were aligned, and what to save before a restart destroys it."""
        with in_words():
            found = jobs_of(ctx).get(job)
        data = answers.missing(found.diagnosis)
        return answered(answers.headline(found.diagnosis), plain(data), data, found, data.pop("notes"))

    @server.tool(title="Why not this rank or host", annotations=READ_ONLY)
    async def why_not(
        ctx: Context[Jobs, Any],
        job: JobId,
        rank: Annotated[int | None, Field(description="A global rank.", ge=0)] = None,
        host: Annotated[str | None, Field(description="A host, by the name that the answer uses.")] = None,
    ) -> Result:
        """Why a rank or a host is, or is not, called the first to fail: reasons, fate, hypotheses, its first error and
        its last lines. Give one of rank and host."""
        with in_words():
            found = jobs_of(ctx).get(job)
            if (rank is None) == (host is None):
                raise Refused("give a rank or a host, one of them")
            data = answers.cleared(found.diagnosis, rank, host)
            async with found.lock:
                rows = await run_sync(asking.about, found.database, rank, host)
        data.update((name, table(one)) for name, one in rows.items())
        left = [*data.pop("notes"), *(note for one in rows.values() for note in one.notes)]
        if not (data["fate"] or any(one.rows for one in rows.values())):
            left.append("the logs show nothing of it; query: SELECT DISTINCT host, rank FROM placement")
        return answered(answers.headline(found.diagnosis), plain(data), data, found, left)

    @server.tool(title="Compare jobs", annotations=READ_ONLY)
    async def compare_jobs(
        ctx: Context[Jobs, Any],
        jobs: Annotated[
            list[str], Field(description="Ids of diagnosed jobs, the oldest first.", min_length=2, max_length=6)
        ],
    ) -> Result:
        """Whether several diagnosed jobs failed of the same root, and which hosts and GPUs come again. Attempts inside
        one job stand in the answer of `diagnose`."""
        with in_words():
            found = [jobs_of(ctx).get(one) for one in jobs]
        made = compare([saved_from(document(one.diagnosis), one.id) for one in found])
        data = {
            "jobs": [
                {"job": one.name, "verdict": one.verdict, "class": one.cls, "entry": one.entry,
                 "hosts": [shown(host) for host in one.hosts[:16]], "at": one.at} for one in made.jobs
            ],
            "pairs": [{**asdict(one), "shared": [shown(name) for name in one.shared[:16]]} for one in made.pairs],
            "recurring": [{**asdict(one), "name": shown(one.name)} for one in made.recurring[:16]],
        }  # fmt: skip
        said = "; ".join(f"{one.one} and {one.other}: {one.likeness}" for one in made.pairs)
        return answered(f"firstfault: {said}", plain(data), data, None, [])

    @server.tool(title="List logs", annotations=READ_ONLY)
    async def list_logs(
        directory: Annotated[str, Field(description="A directory, relative to the server's root or absolute.")] = ".",
    ) -> Result:
        """What lies in a directory below the server's root, with the number of files and bytes below each folder: to
        find the logs to diagnose. Contents are not read."""
        with in_words():
            entries = await run_sync(settings.roots.listed, directory)
            here = await run_sync(settings.roots.resolve, directory)
        data: dict[str, Any] = {
            "directory": shown(str(here)),
            "entries": [
                {"name": shown(one.name) + ("/" if one.folder else ""), "files": one.files, "bytes": one.bytes}
                for one in entries[:200]
            ],
        }
        left = [f"{len(entries) - 200:,} more entries; list a folder below"] if len(entries) > 200 else []
        rows = (f"{one['name']}  {one['files']:,} files, {one['bytes']:,} bytes" for one in data["entries"])
        text = "\n".join((data["directory"], *rows))
        return answered(f"{len(entries)} entries", text, data, None, left)
