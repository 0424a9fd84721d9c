"""The page without a browser: who may ask, uploads and their bounds, the diagnosis, SQL, the catalog."""

from __future__ import annotations

import json
import signal
import socket
import time
import urllib.parse
from typing import Any

import pytest

from .conftest import SAMPLE, TOKEN, Server, reached, started


def make(server: Server) -> str:
    status, job = server.json("POST", "/api/jobs", {"name": "a job"})
    assert status == 201
    return str(job["id"])


def put(server: Server, job: str, path: str, content: bytes) -> int:
    return server.ask("PUT", f"/api/jobs/{job}/file?path={urllib.parse.quote(path)}", content)[0]


@pytest.fixture(scope="module")
def done(server: Server) -> dict[str, Any]:
    """A sample job, uploaded and diagnosed."""
    job = make(server)
    for file in sorted(SAMPLE.rglob("*")):
        if file.is_file():
            assert put(server, job, file.relative_to(SAMPLE).as_posix(), file.read_bytes()) == 201
    assert server.json("POST", f"/api/jobs/{job}/diagnose")[0] == 202
    return server.finished(job)


def test_an_uploaded_job_is_diagnosed(server: Server, done: dict[str, Any]) -> None:
    assert (done["state"], done["message"]) == ("done", "")
    status, document = server.json("GET", f"/jobs/{done['id']}/diagnosis.json")
    assert status == 200
    assert document["verdict"] == "identified"
    for name in ("report.html", "report.md", "timeline.duckdb"):
        assert server.ask("GET", f"/jobs/{done['id']}/{name}")[0] == 200


def test_the_timeline_is_asked_read_only(server: Server, done: dict[str, Any]) -> None:
    path = f"/api/jobs/{done['id']}/sql"
    status, answer = server.json("POST", path, {"query": "SELECT 1 AS a, NULL AS b, 'x' AS c, 0.5 AS d"})
    assert (status, answer) == (200, {"names": ["a", "b", "c", "d"], "rows": [[1, None, "x", "0.5"]], "more": False})
    status, answer = server.json("POST", path, {"query": "SELECT range FROM range(2000)"})
    assert (len(answer["rows"]), answer["more"]) == (1000, True)
    for query in (
        "DROP TABLE line_rows",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT nonsense",
        "",
        "SET threads=1",
    ):
        status, answer = server.json("POST", path, {"query": query})
        assert status == 400, query
        assert answer["error"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {}, 401),
        ("GET", "/?token=wrong", {}, 401),
        ("GET", "/api/jobs", {"Cookie": "firstfault=wrong"}, 401),
        ("GET", "/api/jobs", {"Cookie": f"firstfault={TOKEN}"}, 200),
        ("GET", "/api/jobs", {"Cookie": f"firstfault={TOKEN}", "Host": "evil.example"}, 403),
        ("GET", "/api/jobs", {"Cookie": f"firstfault={TOKEN}", "Host": "evil.example:8642"}, 403),
        ("GET", "/api/jobs", {"Cookie": f"firstfault={TOKEN}", "Host": "localhost:2222"}, 200),
        ("POST", "/api/jobs", {"Cookie": f"firstfault={TOKEN}"}, 403),
        ("POST", "/api/jobs", {"Cookie": f"firstfault={TOKEN}", "X-Firstfault": "1", "Origin": "http://evil"}, 403),
        ("POST", "/api/jobs", {"X-Firstfault": "1"}, 401),
        ("GET", "/jobs/none/report.html", {"Cookie": f"firstfault={TOKEN}"}, 404),
        ("GET", "/catalog/../../etc/passwd", {"Cookie": f"firstfault={TOKEN}"}, 404),
    ],
)
def test_who_may_ask(server: Server, method: str, path: str, headers: dict[str, str], status: int) -> None:
    assert server.ask(method, path, headers=headers)[0] == status


def test_the_token_is_taken_out_of_the_address(server: Server) -> None:
    status, headers, _ = server.ask("GET", f"/?token={TOKEN}", headers={})
    assert (status, headers["location"]) == (303, "/")
    assert "httponly" in headers["set-cookie"].lower()
    assert "samesite=strict" in headers["set-cookie"].lower()


def test_every_answer_carries_the_policies(server: Server, done: dict[str, Any]) -> None:
    for path in ("/", "/app.js", "/api/jobs", "/catalog/index.html", "/nothing", f"/jobs/{done['id']}/report.html"):
        _, headers, _ = server.ask("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http:" not in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in policy


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../up.log", "a/../../up.log", "a/\0.log", "a\n.log", "x" * 300, "a/" * 70 + "b"]
)
def test_a_name_that_leads_elsewhere_is_refused(server: Server, path: str) -> None:
    assert put(server, make(server), path, b"line\n") == 400


def test_uploads_are_bounded(server: Server) -> None:
    job = make(server)
    assert put(server, job, "small.log", b"line\n") == 201
    assert put(server, job, "small.log", b"again\n") == 409
    assert put(server, job, "small.log/below.log", b"again\n") == 409
    assert put(server, job, "big.log", b"x" * (9 << 20)) == 413
    assert server.json("GET", f"/api/jobs/{job}")[1]["bytes"] == 5
    assert put(server, job, "next.log", b"x" * (6 << 20)) == 201
    assert server.json("DELETE", f"/api/jobs/{job}")[0] == 204
    assert put(server, make(server), "room.log", b"x" * (6 << 20)) == 201
    for one in server.json("GET", "/api/jobs")[1]["jobs"]:
        if one["state"] == "open":
            server.json("DELETE", f"/api/jobs/{one['id']}")


def test_a_client_that_hangs_up_leaves_nothing(server: Server) -> None:
    job = make(server)
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        head = f"PUT /api/jobs/{job}/file?path=half.log HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Firstfault: 1\r\n"
        head += f"Authorization: Bearer {TOKEN}\r\nContent-Length: 4000000\r\n\r\n"
        line.sendall(head.encode() + b"x" * 2_000_000)
    while put(server, job, "half.log", b"whole\n") != 201:
        time.sleep(0.05)
    assert server.json("GET", f"/api/jobs/{job}")[1]["bytes"] == 6


def test_what_holds_no_log_fails_in_words(server: Server) -> None:
    job = make(server)
    assert server.json("POST", f"/api/jobs/{job}/diagnose") == (400, {"error": "nothing was uploaded"})
    put(server, job, "core", b"\x7fELF\0\0\0" * 100)
    server.json("POST", f"/api/jobs/{job}/diagnose")
    found = server.finished(job)
    assert found["state"] == "failed"
    assert "no log line was found" in found["message"]


def test_a_body_that_is_no_json_is_refused(server: Server) -> None:
    for body in (b"[1]", b"{", b"\xff", b'{"name": "' + b"x" * (2 << 20) + b'"}'):
        assert server.ask("POST", "/api/jobs", body)[0] in (400, 413)


def test_the_catalog_is_there(server: Server) -> None:
    status, headers, body = server.ask("GET", "/catalog/index.html")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"onsubmit" not in body
    assert server.ask("GET", "/catalog/entries.js")[0] == 200


def test_a_port_in_use_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = started("--port", port)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"--port {port}: 127.0.0.1:{port} cannot be used: Address already in use" in said


def test_paths_are_diagnosed_at_once_and_where_they_are() -> None:
    process = started(SAMPLE)
    try:
        server = reached(process)
        (job,) = server.json("GET", "/api/jobs")[1]["jobs"]
        assert server.finished(job["id"])["state"] == "done"
        document = json.loads(server.ask("GET", f"/jobs/{job['id']}/diagnosis.json")[2])
        assert document["verdict"] == "identified"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0
