"""The routes of the page."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from firstfault.catalog import load_catalog
from firstfault.catalog.site import site_files
from firstfault.report.html import policy
from firstfault.serve.guard import Guard
from firstfault.serve.jobs import RESULTS, JobError, Jobs
from firstfault.timeline import TimelineError
from firstfault.timeline.gate import QueryError, open_gate

_ASSETS = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
}
_CATALOG_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_SECONDS = 30.0
_ROWS = 1000
_CELL = 4000
_BODY = 1 << 20


def make_app(token: str, root: Path, most_bytes: int, paths: Sequence[str], catalogs: Sequence[Path]) -> Starlette:
    """The application. `root` is a private folder for uploads and results, `paths` a first job to diagnose at once."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        jobs = app.state.jobs = Jobs(root, most_bytes, catalogs)
        if paths:
            jobs.begin(jobs.make(", ".join(paths), paths))
        yield
        await jobs.close()

    app = Starlette(
        routes=[
            *(Route(path, partial(_asset, name, kind)) for path, (name, kind) in _ASSETS.items()),
            Route("/favicon.ico", _no_picture),
            Route("/catalog/{page:path}", _catalog),
            Route("/api/jobs", _list),
            Route("/api/jobs", _make, methods=["POST"]),
            Route("/api/jobs/{id}", _status),
            Route("/api/jobs/{id}", _remove, methods=["DELETE"]),
            Route("/api/jobs/{id}/file", _upload, methods=["PUT"]),
            Route("/api/jobs/{id}/diagnose", _begin, methods=["POST"]),
            Route("/api/jobs/{id}/sql", _sql, methods=["POST"]),
            Route("/jobs/{id}/{name}", _result),
        ],
        middleware=[Middleware(Guard, token=token)],
        exception_handlers={JobError: _refused},
        lifespan=lifespan,
    )
    app.state.catalogs = tuple(catalogs)
    app.state.root = root
    return app


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, JobError)
    return JSONResponse({"error": str(error)}, error.status)


async def _asset(name: str, kind: str, request: Request) -> Response:
    content = resources.files(__package__ or "").joinpath("assets", name).read_bytes()
    return Response(content, media_type=kind)


async def _no_picture(request: Request) -> Response:
    return Response(status_code=204)


async def _catalog(request: Request) -> Response:
    state = request.app.state
    if not hasattr(state, "site"):
        state.site = await run_sync(lambda: site_files(load_catalog(state.catalogs)))
    name = request.path_params["page"] or "index.html"
    if name not in state.site:
        return PlainTextResponse("no such page of the catalog\n", 404)
    kind = _CATALOG_TYPES[name.rpartition(".")[2]]
    return Response(state.site[name], media_type=f"{kind}; charset=utf-8")


async def _list(request: Request) -> Response:
    jobs: Jobs = request.app.state.jobs
    return JSONResponse({"root": str(request.app.state.root), "jobs": [job.status() for job in jobs.listed()]})


async def _make(request: Request) -> Response:
    return JSONResponse(request.app.state.jobs.make(str((await _json(request)).get("name", ""))).status(), 201)


async def _status(request: Request) -> Response:
    return JSONResponse(request.app.state.jobs.get(request.path_params["id"]).status())


async def _remove(request: Request) -> Response:
    jobs: Jobs = request.app.state.jobs
    await jobs.remove(jobs.get(request.path_params["id"]))
    return Response(status_code=204)


async def _upload(request: Request) -> Response:
    jobs: Jobs = request.app.state.jobs
    job = jobs.get(request.path_params["id"])
    try:
        size = await jobs.take(job, request.query_params.get("path", ""), request.stream())
    except ClientDisconnect:
        return Response(status_code=400)  # nobody reads it; what had come is deleted
    return JSONResponse({"bytes": size}, 201)


async def _begin(request: Request) -> Response:
    jobs: Jobs = request.app.state.jobs
    job = jobs.get(request.path_params["id"])
    jobs.begin(job)
    return JSONResponse(job.status(), 202)


async def _result(request: Request) -> Response:
    job = request.app.state.jobs.get(request.path_params["id"])
    name = request.path_params["name"]
    if name not in RESULTS or job.state != "done":
        raise JobError(404, "no such result")
    headers = {}
    if name == "report.html":  # quotes logs: it may run its own script and nothing else, in an origin of its own
        headers["Content-Security-Policy"] = f"{policy()}; frame-ancestors 'self'; sandbox allow-scripts allow-popups"
    shown = "inline" if name.endswith((".html", ".json")) else "attachment"
    return FileResponse(
        job.results / name, media_type=RESULTS[name], headers=headers, filename=name, content_disposition_type=shown
    )


async def _sql(request: Request) -> Response:
    job = request.app.state.jobs.get(request.path_params["id"])
    if job.state != "done":
        raise JobError(409, "there is no timeline yet")
    query = str((await _json(request)).get("query", ""))
    return JSONResponse(await run_sync(_asked, job.results / "timeline.duckdb", query))


def _asked(database: Path, query: str) -> dict[str, Any]:
    """Names and rows of the answer to a query, bounded in time, rows and width."""
    try:
        with open_gate(database, seconds=_SECONDS, memory="2GB") as gate:
            answer = gate.ask(query)
            rows = [[_cell(value) for value in row] for row in islice(answer.rows, _ROWS + 1)]
    except (QueryError, TimelineError) as error:
        raise JobError(400, str(error)) from error
    return {"names": answer.names, "rows": rows[:_ROWS], "more": len(rows) > _ROWS}


def _cell(value: Any) -> str | int | None:
    """A value as the page shows it."""
    if value is None or (isinstance(value, int) and abs(value) < 1 << 53):
        return value
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    return str(value)[:_CELL]


async def _json(request: Request) -> dict[str, Any]:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _BODY:
            raise JobError(413, "longer than a request may be; upload it as a file")
    import json

    try:
        value = json.loads(body or b"{}")
    except ValueError as error:
        raise JobError(400, f"no JSON: {error}") from error
    if not isinstance(value, dict):
        raise JobError(400, "no JSON object")
    return value
