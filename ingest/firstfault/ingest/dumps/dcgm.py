"""Log of DCGM's host engine: health violations name the GPU of this host by its physical index."""

from __future__ import annotations

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import TEXT_LIMIT, DumpContext, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import head_lines, iso_stamp, lines_of, share

LINE = compiled(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [A-Z]+ +\[\d+:\d+\] (?P<message>.*)$")
HEALTH = compiled(
    r"Detected a (?P<severity>WARNING|FAILURE|ERROR)\w* in health system (?P<system>[\w /-]+): '(?P<text>.*?)'?$"
)
VIOLATION = compiled(r"(?i)(?P<what>thermal|power|clocks event)[ \w]* violations?\b.*?(?:for|in|on) GPU (?P<gpu>\d+)")
GPU = compiled(r"(?i)\bGPU (?P<gpu>\d+)\b")


class Dcgm:
    """Reader of nv-hostengine logs."""

    name = "nv-hostengine"
    kind = "gpu-state"
    whole = False

    def sniff(self, path: str, head: bytes) -> bool:
        lines = head_lines(head)
        named = "hostengine" in path.lower() or "dcgm" in path.lower() or b"health system" in head
        return named and share(lines, LINE) > 0.5

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        signals = []
        for number, line in enumerate(lines_of(data), 1):
            head = LINE.match(line)
            message = (head["message"] or "") if head else ""
            health, violation = HEALTH.search(message), VIOLATION.search(message)
            if health is None and violation is None:
                continue
            text = (health["text"] or "") if health else message
            gpu = GPU.search(text)
            thermal = violation is not None or (
                health is not None and (health["system"] or "").strip() in ("Thermal", "Power")
            )
            stamp = iso_stamp(line[:40])
            captures = {
                "text": text,
                "gpu": (gpu["gpu"] or "") if gpu else "",
                "reason": (health["system"] or "") if health else "",
            }
            captures["status_name"] = (health["severity"] or "") if health else ""
            signals.append(
                DumpSignal(
                    number, Event.NODE_FAULT, message[:TEXT_LIMIT], fact="dcgm-health",
                    cls="gpu-thermal-or-power" if thermal else None, role="ambiguous",
                    level="WARN" if captures["status_name"] == "WARNING" else "ERROR",
                    gpu=int(captures["gpu"]) if captures["gpu"] else None,
captures={key: value for key, value in captures.items() if value},
                ).at(stamp)
            )  # fmt: skip
        return DumpRows(tuple(signals))
