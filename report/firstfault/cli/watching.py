"""`firstfault watch`: options, sinks and exit status of a watch."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstfault.cli.messages import CommandError, Status, errors_in_words, say
from firstfault.cli.settings import CatalogDirs, existing

if TYPE_CHECKING:
    from firstfault.live.alarm import Alert
    from firstfault.live.metrics import Metrics
    from firstfault.live.sinks import Sink


def watch(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Directories or files; what is not there yet is waited for.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="DIR", help="Keep the reports and the timeline of the last diagnosis there."),
    ] = None,
    refresh: Annotated[
        float,
        typer.Option(
            "--refresh",
            metavar="SECONDS",
            help="Make the timeline and the reports of --output anew so often; 0: never.",
        ),
    ] = 0.0,
    settle: Annotated[
        float, typer.Option("--settle", metavar="SECONDS", help="Quiet after the last sign before the diagnosis.")
    ] = 15.0,
    hang: Annotated[
        float, typer.Option("--hang", metavar="SECONDS", help="No progress for so long is a hang; 0 for never.")
    ] = 600.0,
    format_: Annotated[str, typer.Option("--format", metavar="text|json", help="Alerts on standard output.")] = "text",
    jsonl: Annotated[
        Path | None, typer.Option("--jsonl", metavar="FILE", help="Append each alert to a file, as JSON.")
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            "--webhook", metavar="URL", envvar="FIRSTFAULT_WEBHOOK", help="Post alerts there, in Slack's way."
        ),
    ] = None,
    webhook_json: Annotated[
        bool, typer.Option("--webhook-json", help="Post the whole alert document instead of Slack's text.")
    ] = False,
    metrics: Annotated[
        int | None, typer.Option("--metrics", metavar="PORT", help="Metrics for Prometheus on 127.0.0.1:PORT.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="End with the first diagnosis: 3 where its verdict is not no-failure.")
    ] = False,
    pid: Annotated[
        int | None, typer.Option("--pid", metavar="PID", help="End with this process, after a last diagnosis.")
    ] = None,
    catalog_dirs: CatalogDirs = None,
) -> None:
    """Follow a running job's logs; say what the first failure looks like, and the diagnosis once it settles."""
    with errors_in_words():
        catalogs = existing(catalog_dirs)
        _check(paths, format_, settle, hang, pid)
        if refresh and (output is None or not 1 <= refresh <= 86400):
            raise CommandError("--refresh: seconds from 1 to a day, together with --output DIR", Status.USAGE)
        ending = _Ending(once, pid)
        from firstfault.live.alarm import Patience
        from firstfault.live.watch import Watch

        with (
            _sinks(format_, jsonl, webhook, webhook_json) as sinks,
            _folder(output) as folder,
            _served(metrics) as told,
        ):
            patience = Patience(settle=settle, longest=max(120.0, 2 * settle), hang=hang)
            complain = partial(_complain, "firstfault watch: ")
            watching = Watch(paths, folder, sinks, patience, told, catalogs, complain, refresh)
            say(f"firstfault watch: following {', '.join(paths)}; nothing leaves this machine{_but(webhook)}")
            watching.run(ending.go_on)
            if ending.gone:
                for alert in watching.last():
                    ending.go_on(alert)
            raise typer.Exit(ending.status)


def _check(paths: list[str], format_: str, settle: float, hang: float, pid: int | None) -> None:
    if format_ not in ("text", "json"):
        raise CommandError(f"--format {format_}: choose text or json", Status.USAGE)
    if not 0 < settle <= 3600 or not 0 <= hang <= 7 * 86400:
        raise CommandError("--settle and --hang are seconds: up to an hour, up to a week", Status.USAGE)
    if "-" in paths:
        raise CommandError("'-': a pipe is not followed; `firstfault run -- COMMAND` keeps its output", Status.USAGE)
    if pid is not None and not os.path.exists(f"/proc/{pid}"):
        raise CommandError(f"--pid {pid}: no such process", Status.USAGE)
    for path in paths:
        if not os.path.lexists(path):
            say(f"firstfault watch: {path}: not there yet; waiting for it")
        elif not os.access(path, os.R_OK):
            raise CommandError(f"{path}: no permission to read it")


def _complain(who: str, text: str) -> None:
    say(who + text)


def _but(webhook: str | None) -> str:
    return " but the alerts to the webhook" if webhook else ""


@contextlib.contextmanager
def _sinks(format_: str, jsonl: Path | None, webhook: str | None, whole: bool) -> Iterator[list[Sink]]:
    from firstfault.live.sinks import JsonLines, Terminal, Webhook

    made: list[Sink] = [JsonLines(None) if format_ == "json" else Terminal()]
    try:
        if jsonl is not None:
            made.append(JsonLines(jsonl))
        if webhook is not None:
            try:
                made.append(Webhook(webhook, whole, lambda text: say(f"firstfault watch: {text}")))
            except ValueError as error:
                raise CommandError(f"--webhook: {error}", Status.USAGE) from error
        yield made
    finally:
        for sink in made:
            sink.close()


@contextlib.contextmanager
def _folder(output: Path | None) -> Iterator[Path]:
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        yield output
        return
    with tempfile.TemporaryDirectory(prefix="firstfault-watch-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def _served(port: int | None) -> Iterator[Metrics | None]:
    if port is None:
        yield None
        return
    from firstfault.live.metrics import Metrics, serve_metrics

    told = Metrics()
    try:
        server = serve_metrics(told, port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(f"--metrics {port}: 127.0.0.1:{port} cannot be used: {reason}; give another port") from error
    say(f"firstfault watch: metrics at http://127.0.0.1:{server.server_address[1]}/metrics")
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()


class _Ending:
    """When a watch ends, and with which status."""

    def __init__(self, once: bool, pid: int | None) -> None:
        self.status, self.gone = int(Status.OK), False
        self._once, self._pid = once, pid
        self._begun = _began(pid)
        self._told = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop())

    def _stop(self) -> Callable[[int, object], None]:
        def stop(number: int, frame: object) -> None:
            self._told = True

        return stop

    def go_on(self, alert: Alert | None) -> bool:
        """Whether to look again."""
        from firstfault.live.watch import decided

        if alert is not None and decided(alert) and alert.document is not None:
            failed = alert.document["verdict"] != "no-failure"
            if self._once or self._pid is not None:
                self.status = int(Status.NOT_HEALTHY if failed else Status.OK)
            if self._once:
                return False
        self.gone = self._pid is not None and (self._begun is None or _began(self._pid) != self._begun)
        return not self._told and not self.gone


def _began(pid: int | None) -> str | None:
    """When a process began, in the kernel's ticks; None where it is no more, or a zombie."""
    if pid is None:
        return None
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
