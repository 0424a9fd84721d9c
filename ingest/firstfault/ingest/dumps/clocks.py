"""Facts about a host's clock: `chronyc tracking`, `ntpq -p`, `timedatectl`, boot times from uptime and btime.

`offset_s` is the host's clock minus true time, so that a clock that is fast has a positive one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.linear import compiled, matching
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import Stamp, any_stamp, commands, head_lines, lines_of
from firstfault.ingest.identity_statements import short_host

CHRONY = compiled(
    r"^(?:(?P<host>[A-Za-z][\w.-]*): +)?System time +: (?P<seconds>\d+(?:\.\d+)?) seconds (?P<way>fast|slow) of NTP"
)
LEAP = compiled(r"^Leap status +: (?P<text>Not synchronised)")
NTPQ = compiled(
    r"^(?P<mark>[*+#x. o-])(?P<peer>\S+)\s+\S+\s+\d+\s+\S\s+\S+\s+\d+\s+\d+\s+[\d.]+\s+(?P<offset>-?\d+\.\d+)\s+[\d.]+"
)
TIMEDATE = compiled(r"^\s*(?:System clock synchronized|NTP synchronized): (?P<text>no)\b")
UPTIME = compiled(r"^(?P<up>\d+\.\d\d) (?P<idle>\d+\.\d\d)$")
UP_TEXT = compiled(
    r"^ *(?P<clock>\d\d:\d\d:\d\d) up (?:(?P<days>\d+) days?, +)?(?:(?P<hours>\d+):(?P<minutes>\d\d)|(?P<min>\d+) min)"
)
BTIME = compiled(r"^btime (?P<epoch>\d{9,11})$")
BOOT = compiled(r"^\s*(?:system boot|reboot +system boot\S*) +(?:\S+ +)?(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d)")
HOST_NAME = compiled(r"^(?P<host>[A-Za-z][\w-]*(?:\.[\w-]+)*)$")
MARKS = ("chronyc tracking", "/proc/uptime", "ntpq", "uptime", "who -b", "timedatectl", "last reboot", "/proc/stat")


class Clocks:
    """Reader of clock and boot facts."""

    name = "clock-facts"
    kind = "status"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        lines = head_lines(head)
        if not 0 < len(lines) <= 150:
            return False
        if matching(lines, CHRONY, BTIME, TIMEDATE, BOOT).any():
            return True
        if any(line.lstrip().startswith("remote ") and "offset" in line for line in lines[:4]):
            return True
        said = " ".join(commands(lines))
        return any(mark in said for mark in MARKS) or (
            len(lines) <= 8 and any(UPTIME.match(x) or UP_TEXT.match(x) for x in lines)
        )

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        lines = lines_of(data)
        signals: list[DumpSignal] = []
        host = _host(lines)
        now: Stamp | None = None
        for number, line in enumerate(lines, 1):
            if not line.startswith("$"):
                now = any_stamp(line) or now
            signal = _fact(number, line, now)
            if signal is not None:
                signals.append(signal)
        identities = (DumpIdentity(host[0], "host-name", host=host[1]),) if host else ()
        return DumpRows(tuple(signals), identities)


def _host(lines: Sequence[str]) -> tuple[int, str] | None:
    """The answer of a `hostname` that stands first among the commands."""
    for number, line in enumerate(lines[:-1], 1):
        if line.startswith(("$ hostname", "# hostname", "+ hostname")) and (match := HOST_NAME.match(lines[number])):
            return number + 1, short_host(match["host"] or "")
    return None


def _fact(line: int, text: str, now: Stamp | None) -> DumpSignal | None:
    if match := CHRONY.match(text):
        seconds = float(match["seconds"] or 0) * (1 if match["way"] == "fast" else -1)
        found = _clock(line, text, now, {"offset_s": f"{seconds:.9f}"})
        return replace(found, host=short_host(match["host"])) if match["host"] else found
    if match := NTPQ.match(text):
        return (
            _clock(
                line,
                text,
                now,
                {"offset_s": f"{-float(match['offset'] or 0) / 1000:.6f}", "server": match["peer"] or ""},
            )
            if match["mark"] == "*"
            else None
        )
    if LEAP.match(text) or TIMEDATE.match(text):
        return _clock(line, text, now, {"state": "unsynchronised"})
    if match := BTIME.match(text):
        return _clock(line, text, now, {"boot_epoch": match["epoch"] or ""})
    up: float | None = None
    if match := UPTIME.match(text):
        up = float(match["up"] or 0)
    elif match := UP_TEXT.match(text):
        minutes = int(match["min"] or 0) + int(match["hours"] or 0) * 60 + int(match["minutes"] or 0)
        up = int(match["days"] or 0) * 86400.0 + minutes * 60.0
    elif match := BOOT.match(text):
        return _clock(line, text, any_stamp(f"{match['when']}:00"), {"event": "boot"})
    if up is None or now is None:
        return None
    boot = (now.ns / 1e9 - up) - (now.utc_offset_s or 0)
    # without a zone this is the wall clock of the host, as the stamp says
    captures = {"boot_epoch": f"{boot:.2f}", "elapsed_s": f"{up:.2f}"}
    if now.utc_offset_s is None:
        captures["state"] = "local"
    return _clock(line, text, now, captures)


def _clock(line: int, text: str, stamp: Stamp | None, captures: dict[str, str]) -> DumpSignal:
    return DumpSignal(
        line, Event.CLOCK, text.strip(), fact="clock",captures=captures,
    ).at(stamp)  # fmt: skip
