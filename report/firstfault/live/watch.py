"""The watch itself: looks at files, feeds the alarm, has diagnoses made beside it, hands alerts to the sinks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from firstfault.live.alarm import Alarm, Alert, Kind, Patience
from firstfault.live.follow import Follower, below
from firstfault.live.metrics import Metrics
from firstfault.live.reading import LogReader
from firstfault.live.sinks import Sink, Webhook

TICK = 0.25
"""Seconds between two looks."""


class Diagnosing:
    """`firstfault diagnose` as a process of its own, so that the watch goes on meanwhile."""

    def __init__(self, paths: Sequence[str], output: Path, options: Sequence[str]) -> None:
        self._paths, self._output, self._options = list(paths), output, list(options)
        self._running: subprocess.Popen[str] | None = None

    @property
    def running(self) -> bool:
        """Whether one is being made."""
        return self._running is not None

    def begin(self) -> None:
        """Start it."""
        there = [path for path in self._paths if os.path.lexists(path)]
        command = [sys.executable, "-m", "firstfault", "diagnose", "--quiet", "--output", str(self._output)]
        self._running = subprocess.Popen(
            [*command, *self._options, "--", *there],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def result(self, wait: bool = False) -> dict[str, Any] | str | None:
        """The document, or what went wrong; None while it is being made."""
        process = self._running
        if process is None or (not wait and process.poll() is None):
            return None
        _, said = process.communicate()
        self._running = None
        if process.returncode:
            return said.strip().splitlines()[-1] if said.strip() else f"diagnose ended with {process.returncode}"
        try:
            document: dict[str, Any] = json.loads((self._output / "diagnosis.json").read_bytes())
        except (OSError, ValueError) as error:
            return str(error)
        return document

    def stop(self) -> None:
        """End it where it is still running."""
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None


class Watch:
    """A watch over some paths. `run` goes on until it is told to stop."""

    def __init__(
        self,
        paths: Sequence[str],
        output: Path,
        sinks: Sequence[Sink],
        patience: Patience,
        metrics: Metrics | None = None,
        catalogs: Sequence[Path] = (),
        complain: Callable[[str], None] = lambda text: None,
        refresh: float = 0.0,
    ) -> None:
        """`output` gets the reports, `refresh` says how often in seconds the timeline there is made anew (0: never)."""
        self.follower = Follower(paths, below(output))
        self.reader = LogReader(catalogs)
        self.alarm = Alarm(patience, time.monotonic())
        self._sinks, self._metrics, self._complain = sinks, metrics, complain
        self._diagnosing = Diagnosing(paths, output, [word for one in catalogs for word in ("--catalog", str(one))])
        self._named: set[str] = set()
        self._refresh, self._refreshed, self._lines = refresh, time.monotonic(), 0
        self._quiet = False

    def run(self, go_on: Callable[[Alert | None], bool]) -> None:
        """Look, until `go_on` says no; it is asked after each look, and with each alert once that is sent."""
        try:
            while True:
                began = time.monotonic()
                alerts = self.look(began)
                if not all(go_on(alert) for alert in alerts) or not go_on(None):
                    return
                time.sleep(max(TICK - (time.monotonic() - began), TICK / 10))
        finally:
            self._diagnosing.stop()

    def look(self, now: float) -> list[Alert]:
        """One look: what was written since the last, and what follows from it. The alerts are sent."""
        seen = self.reader.read(self.follower.look(), now)
        counts = self.follower.counts
        alerts = self.alarm.feed(seen, now, catching_up=counts.backlog > 0)
        alerts += self.alarm.tick(now)
        alerts += self._diagnosis(now)
        for alert in alerts:
            self._send(alert)
        for path in sorted(set(counts.unreadable) - self._named):
            self._named.add(path)
            self._complain(f"{path}: cannot be followed: {counts.unreadable[path]}")
        if self._metrics is not None:
            lost = sum(sink.lost for sink in self._sinks if isinstance(sink, Webhook))
            self._metrics.update(self.alarm.state, counts, lost, now)
        return alerts

    def last(self) -> list[Alert]:
        """The job is over: read what is left and make the last diagnosis. The alerts are sent."""
        alerts = []
        for _ in range(3):
            now = time.monotonic()
            alerts += self.look(now)
            time.sleep(TICK)
        while self.follower.counts.backlog:
            alerts += self.look(time.monotonic())
        self._diagnosing.stop()
        self.alarm.end()
        self._begin(time.monotonic(), quiet=False)
        found = self._told(self._diagnosing.result(wait=True), time.monotonic())
        for alert in found:
            self._send(alert)
        return alerts + found

    def _diagnosis(self, now: float) -> list[Alert]:
        alerts = self._told(self._diagnosing.result(), now)
        if not self._diagnosing.running and not alerts:
            if self.alarm.due is not None:
                self._begin(now, quiet=False)
            elif self._refresh and now - self._refreshed >= self._refresh and self.alarm.state.lines > self._lines:
                self._begin(now, quiet=True)
        return alerts

    def _begin(self, now: float, quiet: bool) -> None:
        self._quiet, self._refreshed, self._lines = quiet, now, self.alarm.state.lines
        self._diagnosing.begin()

    def _told(self, result: dict[str, Any] | str | None, now: float) -> list[Alert]:
        if result is None:
            return []
        if self._quiet:
            self._quiet = False
            if isinstance(result, str):
                self._complain(f"the timeline could not be made anew: {result}")
            return []
        if isinstance(result, str):
            return self.alarm.trouble(f"No diagnosis could be made: {result}")
        return self.alarm.diagnosed(result, now)

    def _send(self, alert: Alert) -> None:
        for sink in self._sinks:
            try:
                sink.send(alert)
            except BrokenPipeError:
                raise
            except OSError as error:
                self._complain(f"an alert ({alert.kind}) could not be written: {error.strerror or error}")


def decided(alert: Alert) -> bool:
    """Whether an alert brings the diagnosis of a cascade or of the whole job."""
    return alert.kind in (Kind.SETTLED, Kind.ENDED) and alert.document is not None
