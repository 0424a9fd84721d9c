"""A watch end to end: lines are written, alerts come out of each sink."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from firstfault.live.alarm import Alert, Kind, State
from firstfault.live.follow import Counts, Follower
from firstfault.live.metrics import Metrics, serve_metrics
from firstfault.live.reading import LogReader
from firstfault.live.sinks import JsonLines, Webhook

ROOT = Path(__file__).parents[2]
TRACEBACK = (
    "[rank2]: Traceback (most recent call last):\n"
    '[rank2]:   File "train.py", line 10, in <module>\n'
    "[rank2]:     loss = step(batch)\n"
    "[rank2]: KeyError: 'mask'\n"
)
TIMEOUT = (
    "[rank{0}]:[E1130 10:00:00.000000000 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 "
    "milliseconds before timing out.\n"
)
HEALTHY = "[rank{0}]: step {1} | loss 2.1 | retrying download, attempt 1 of 5\n"


@pytest.fixture(scope="module")
def reader() -> LogReader:
    return LogReader()


def test_a_traceback_is_one_sign_at_its_last_line_however_it_comes_in(reader: LogReader, tmp_path: Path) -> None:
    log = tmp_path / "all.log"
    follower, now, signs = Follower([str(tmp_path)]), 0.0, []
    for line in [HEALTHY.format(2, 7), *TRACEBACK.splitlines(keepends=True)]:
        with log.open("a") as file:
            file.write(line)
        for _ in range(3):
            signs += reader.read(follower.look(), now).signs
        now += 0.1
    signs += reader.read([], now).signs
    assert [(one.path, one.line, one.rank, one.entry) for one in signs][-1] == ("all.log", 5, 2, "python-traceback")


def test_steps_and_ranks_come_from_lines_and_paths(reader: LogReader, tmp_path: Path) -> None:
    (tmp_path / "rank5.log").write_text("step 3 | loss 2.0\nstep 4 | loss 1.9\n")
    seen = reader.read(Follower([str(tmp_path)]).look(), 0.0)
    assert [(one.who, one.step) for one in seen.steps] == [("rank 5", 3), ("rank 5", 4)]
    assert seen.signs == []


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """A server that takes posts; its first answer is an error of its own."""
    taken: list[dict[str, object]] = []
    answers = [500]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = answers.pop() if answers else 200
            if status == 200:
                taken.append(json.loads(body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/services/T0/secret", taken
    server.shutdown()
    server.server_close()


def test_a_webhook_gets_slack_s_text_with_secrets_masked(hook: tuple[str, list[dict[str, object]]]) -> None:
    url, taken = hook
    said: list[str] = []
    sink = Webhook(url, False, said.append)
    sink.send(Alert(Kind.SIGN, "a < b & HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789"))
    sink.close()
    assert taken == [{"text": "a &lt; b &amp; HF_TOKEN=[masked]"}]
    assert said == []


def test_a_webhook_that_refuses_costs_an_alert_and_tells_no_secret() -> None:
    said: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/services/secret"
        threading.Thread(target=server.handle_request, daemon=True).start()
        sink = Webhook(url, False, said.append)
        sink.send(Alert(Kind.SIGN, "text"))
        sink.close()
    assert sink.lost == 1
    assert said == ["webhook at http://127.0.0.1: answered 404; an alert was not delivered"]


@pytest.mark.parametrize("url", ["ftp://host/x", "not a url", "file:///etc/passwd"])
def test_only_web_addresses_are_webhooks(url: str) -> None:
    with pytest.raises(ValueError, match="http or https"):
        Webhook(url, False, lambda text: None)


def test_metrics_are_read_on_the_loopback_interface() -> None:
    metrics = Metrics()
    state = State(lines=7)
    state.signs["an-entry", 'odd"class'] = 2
    metrics.update(state, Counts(files=3, bytes=100), 1, 0.0)
    server = serve_metrics(metrics, 0)
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        with urllib.request.urlopen(f"{address}/metrics") as answer:
            text = answer.read().decode()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}/logs")
        refused.value.close()
    finally:
        server.shutdown()
        server.server_close()
    assert "firstfault_watch_lines_total 7\n" in text
    assert 'firstfault_watch_signs_total{entry="an-entry",class="odd\\"class"} 2\n' in text
    assert all(line.startswith(("#", "firstfault_watch_")) for line in text.splitlines())


def test_alerts_are_lines_of_json(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path / "alerts.jsonl")
    sink.send(Alert(Kind.HANG, "No progress", ranks=("rank 2",)))
    sink.close()
    (line,) = (tmp_path / "alerts.jsonl").read_text().splitlines()
    document = json.loads(line)
    assert (document["schema"], document["kind"], document["ranks"]) == ("firstfault.alert/1", "hang", ["rank 2"])


def watch(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join(str(ROOT / portion) for portion in ("ingest", "correlate", "report"))
    command, pipe = [sys.executable, "-m", "firstfault", "watch", *arguments], subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=environment)


def test_a_job_is_watched_from_before_its_start_to_its_failure(tmp_path: Path) -> None:
    process = watch(tmp_path, "logs", "--once", "--settle", "1", "--format", "json", "--output", "out")
    assert process.stderr is not None
    assert "not there yet; waiting for it" in process.stderr.readline()
    assert "nothing leaves this machine" in process.stderr.readline()
    (tmp_path / "logs").mkdir()
    for rank in range(4):
        (tmp_path / "logs" / f"rank{rank}.log").write_text(HEALTHY.format(rank, 1) + HEALTHY.format(rank, 2))
    with (tmp_path / "logs" / "rank2.log").open("a") as file:
        file.write(TRACEBACK)
    for rank in (0, 1, 3):
        with (tmp_path / "logs" / f"rank{rank}.log").open("a") as file:
            file.write(TIMEOUT.format(rank))
    out, _ = process.communicate(timeout=120)
    first, *_, last = [json.loads(line) for line in out.splitlines()]
    assert first["kind"] == "first-sign"
    assert last["kind"] == "settled"
    assert last["diagnosis"]["initiating"]["ranks"] == [2]
    assert process.returncode == 3
    assert (tmp_path / "out" / "timeline.duckdb").is_file()


def test_a_watch_ends_with_its_process_and_says_how_that_ended(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("step 1 | loss 2.1\n")
    job = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = watch(tmp_path, "rank0.log", "--pid", str(job.pid))
    assert process.stderr is not None
    process.stderr.readline()
    (tmp_path / "rank0.log").write_text("step 1 | loss 2.1\nstep 2 | loss 2.1\ntorchrun exit code: 0\n")
    job.communicate(b"\n")
    out, _ = process.communicate(timeout=120)
    assert "No failure: the job completed" in out
    assert process.returncode == 0


def test_the_timeline_is_kept_current_without_an_alert(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text(HEALTHY.format(0, 1))
    process = watch(tmp_path, "rank0.log", "--output", "out", "--refresh", "1", "--format", "json")
    while not (tmp_path / "out" / "diagnosis.json").exists():
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert (tmp_path / "out" / "timeline.duckdb").is_file()


def test_what_cannot_be_watched_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for arguments, status, said in (
            ((".", "--metrics", port), 1, f"127.0.0.1:{port} cannot be used: Address already in use"),
            (("-",), 2, "a pipe is not followed"),
            ((".", "--webhook", "ftp://x"), 2, "--webhook: a webhook is an http or https URL"),
            ((".", "--format", "yaml"), 2, "--format yaml: choose text or json"),
            ((".", "--refresh", "5"), 2, "together with --output DIR"),
            ((".", "--pid", "4194999"), 2, "--pid 4194999: no such process"),
        ):
            process = watch(tmp_path, *arguments)
            _, err = process.communicate(timeout=60)
            assert (process.returncode, said in err) == (status, True), err


def test_rules_and_dashboard_ask_for_metrics_that_are_there() -> None:
    import re

    there = set(re.findall(r"# TYPE (\w+)", Metrics().text))
    for name in ("prometheus-rules.yml", "grafana-dashboard.json"):
        asked = set(re.findall(r"firstfault_watch_\w+", (ROOT / "docs" / "watch" / name).read_text()))
        assert asked
        assert asked <= there
    json.loads((ROOT / "docs" / "watch" / "grafana-dashboard.json").read_text())
