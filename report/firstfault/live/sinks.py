"""Where alerts go: a terminal, JSON lines, a webhook. A sink that fails never stops the watch."""

from __future__ import annotations

import http.client
import json
import queue
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Protocol

from firstfault.correlate.secrets import masked
from firstfault.live.alarm import Alert

SCHEMA = "firstfault.alert/1"
_WAITS = (1.0, 5.0, 25.0)
_WAITING = 200
_TIMEOUT = 10.0


class Sink(Protocol):
    """Takes alerts."""

    def send(self, alert: Alert) -> None:
        """Take one; raises OSError where it cannot."""

    def close(self) -> None:
        """Take no more."""


def as_json(alert: Alert) -> dict[str, Any]:
    """An alert as a document; secrets in its text and line are masked."""
    sign = alert.sign
    return {
        "schema": SCHEMA,
        "kind": str(alert.kind),
        "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "text": masked(alert.text),
        "sign": None
        if sign is None
        else {
            "path": sign.path,
            "line": sign.line,
            "text": masked(sign.text[:500]),
            "class": sign.cls,
            "entry": sign.entry,
            "role": sign.role,
            "rank": sign.rank,
            "local_rank": sign.local_rank,
            "host": sign.host,
        },
        "ranks": list(alert.ranks),
        "diagnosis": alert.document,
    }


class Terminal:
    """Text for people, with the time of this machine's clock."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stdout

    def send(self, alert: Alert) -> None:
        """Print it."""
        first, *rest = masked(alert.text).splitlines()
        body = "".join(f"         {line}\n" for line in rest)
        self._stream.write(f"{datetime.now():%H:%M:%S} {first}\n{body}")
        self._stream.flush()

    def close(self) -> None:
        """Nothing is held open."""


class JsonLines:
    """One document a line, into a file that is appended to, or to standard output."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("a", encoding="utf-8") if path is not None else None

    def send(self, alert: Alert) -> None:
        """Write it."""
        stream = self._file or sys.stdout
        stream.write(json.dumps(as_json(alert), allow_nan=False) + "\n")
        stream.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """An alert goes where it was sent, nowhere else."""


class Webhook:
    """Posts each alert: `{"text": ...}`, as Slack and those that copied it take it, or the whole document.

    It has a thread of its own; what cannot be delivered is tried again three times and then counted as lost.
    """

    def __init__(self, url: str, whole: bool, complain: Callable[[str], None]) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("a webhook is an http or https URL")
        self.lost = 0
        self._url, self._whole, self._complain = url, whole, complain
        self._shown = f"{parts.scheme}://{parts.hostname}"
        self._opener = urllib.request.build_opener(_NoRedirect())
        self._queue: queue.Queue[Alert | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def send(self, alert: Alert) -> None:
        """Put it into the queue."""
        try:
            self._queue.put_nowait(alert)
        except queue.Full:
            self.lost += 1

    def close(self) -> None:
        """Wait some seconds for what is still in the queue."""
        self._queue.put(None)
        self._thread.join(_TIMEOUT)

    def _work(self) -> None:
        while (alert := self._queue.get()) is not None:
            document = as_json(alert) if self._whole else {"text": slack_text(masked(alert.text))}
            self._deliver(json.dumps(document, allow_nan=False).encode())

    def _deliver(self, body: bytes) -> None:
        request = urllib.request.Request(
            self._url, body, {"Content-Type": "application/json", "User-Agent": "firstfault"}
        )
        reason = ""
        for wait in (0.0, *_WAITS):
            time.sleep(wait)
            try:
                with self._opener.open(request, timeout=_TIMEOUT):
                    return
            except urllib.error.HTTPError as error:
                reason = f"answered {error.code}"
                error.close()
                if error.code < 500 and error.code != 429:
                    break
            except (OSError, http.client.HTTPException) as error:
                reason = str(getattr(error, "reason", error))
        self.lost += 1
        self._complain(f"webhook at {self._shown}: {reason}; an alert was not delivered")


def slack_text(text: str) -> str:
    """Text with the three characters escaped that Slack gives a meaning."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
