"""The state of a watch for Prometheus, over HTTP on the loopback interface."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from firstfault.live.alarm import Kind, State
from firstfault.live.follow import Counts

_HELP = (
    ("files", "gauge", "Log files that are followed."),
    ("files_unreadable", "gauge", "Log files that could not be read."),
    ("lines_total", "counter", "Log lines read."),
    ("bytes_total", "counter", "Bytes of logs read."),
    ("backlog_bytes", "gauge", "Bytes that were written and not read yet."),
    ("signs_total", "counter", "Lines that look like a failure or its consequence, by catalog entry and class."),
    ("alerts_total", "counter", "Alerts, by kind."),
    ("alerts_lost_total", "counter", "Alerts that the webhook did not take."),
    ("last_line_timestamp_seconds", "gauge", "When the last line was read."),
    ("last_progress_timestamp_seconds", "gauge", "When a rank last reached another step."),
    ("ranks", "gauge", "Ranks, or logs of unknown rank, whose steps are known."),
    ("step_min", "gauge", "The lowest last step."),
    ("step_max", "gauge", "The highest last step."),
    ("ranks_behind", "gauge", "Ranks without progress while others go on."),
    ("hang", "gauge", "1 while nobody makes progress."),
    ("verdict", "gauge", "1 for the verdict and class of the last diagnosis."),
    ("confidence", "gauge", "Confidence of the last diagnosis."),
)


class Metrics:
    """The numbers of a watch; `update` is called by the watch, the text is read by the server."""

    def __init__(self) -> None:
        self._text = self._render(State(), Counts(), 0, 0.0)

    def update(self, state: State, counts: Counts, lost: int, steady: float) -> None:
        """Take the state at a moment of the steady clock that the state's times are of."""
        self._text = self._render(state, counts, lost, steady)

    @property
    def text(self) -> str:
        """The exposition format of Prometheus."""
        return self._text

    def _render(self, state: State, counts: Counts, lost: int, steady: float) -> str:
        values = {name: list(rows) for name, rows in self._values(state, counts, lost, time.time() - steady)}
        lines = []
        for name, kind, text in _HELP:
            lines += [f"# HELP firstfault_watch_{name} {text}", f"# TYPE firstfault_watch_{name} {kind}"]
            lines += [f"firstfault_watch_{name}{labels} {value}" for labels, value in values.get(name, [])]
        return "\n".join(lines) + "\n"

    def _values(
        self, state: State, counts: Counts, lost: int, shift: float
    ) -> Iterator[tuple[str, list[tuple[str, float]]]]:
        yield "files", [("", counts.files)]
        yield "files_unreadable", [("", len(counts.unreadable))]
        yield "lines_total", [("", state.lines)]
        yield "bytes_total", [("", counts.bytes)]
        yield "backlog_bytes", [("", counts.backlog)]
        yield "signs_total", [(_labels(entry=e, **{"class": c}), n) for (e, c), n in sorted(state.signs.items())]
        yield "alerts_total", [(_labels(kind=kind), state.alerts[kind]) for kind in Kind]
        yield "alerts_lost_total", [("", lost)]
        if state.last_line is not None:
            yield "last_line_timestamp_seconds", [("", round(state.last_line + shift, 3))]
        if state.last_advance is not None:
            yield "last_progress_timestamp_seconds", [("", round(state.last_advance + shift, 3))]
        yield "ranks", [("", len(state.steps))]
        if state.steps:
            yield "step_min", [("", min(state.steps.values()))]
            yield "step_max", [("", max(state.steps.values()))]
        yield "ranks_behind", [("", state.behind)]
        yield "hang", [("", int(state.hanging))]
        if state.document is not None:
            failure = state.document["failure"]["class"] or ""
            yield "verdict", [(_labels(verdict=state.document["verdict"], **{"class": failure}), 1)]
            yield "confidence", [("", state.document["confidence"])]


def _labels(**labels: str) -> str:
    escaped = (
        (name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for name, value in labels.items()
    )
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"


def serve_metrics(metrics: Metrics, port: int) -> ThreadingHTTPServer:
    """Answer `GET /metrics` on 127.0.0.1 in the background; raises OSError where the port is taken."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            """The metrics, and nothing else."""
            found = self.path.partition("?")[0] in ("/metrics", "/")
            body = metrics.text.encode() if found else b"/metrics is all there is\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not logged."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
