"""State of a machine: `df`, `free`, cgroup `memory.events`, and status commands that are only recognised.

A full file system or a counted kill is evidence of a cause, not proof that it struck this job.
"""

from __future__ import annotations

from collections.abc import Sequence

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import DumpContext, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import COMMAND, head_lines, lines_of, share

DF_HEAD = compiled(r"^Filesystem +.*(?:Use%|IUse%|Capacity).* Mounted on")
DF_ROW = compiled(r"^(?P<device>\S+) +(?P<total>\S+) +(?P<used>\S+) +(?P<free>\S+) +(?P<percent>\d+)% +(?P<path>/.*)$")
MEMORY_EVENT = compiled(r"^(?:(?P<path>/?[\w./-]+):)?(?P<name>oom_kill|oom_group_kill) (?P<count>\d+)$")
EVENTS_ROW = compiled(r"^(?:low|high|max|oom|oom_kill|oom_group_kill) \d+$")
FREE_HEAD = compiled(r"^ +total +used +free +shared")
KNOWN = compiled(
    r"^(?:sudo )?(?:lscpu|lspci|lsmod|lsblk|ulimit|env|printenv|nvidia-smi topo|numactl|free|df|mount|ip (?:a|"
    r"addr|link|route)|ifconfig|"
    r"cat /proc|cat /sys|uname|ps |top|sinfo|squeue|rpm|dpkg|pip|conda|ethtool|ss |netstat|sysctl|systemctl|nv"
    r"cc|hostname)"
)


class Machine:
    """Reader of status commands about a machine."""

    name = "machine-state"
    kind = "status"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        lines = head_lines(head)
        if not 0 < len(lines) < 200:
            return False
        if any(DF_HEAD.match(line) for line in lines[:3]) or any(FREE_HEAD.match(line) for line in lines[:3]):
            return True
        if share(lines, EVENTS_ROW) > 0.6 or any(line.startswith("Architecture: ") for line in lines[:3]):
            return True
        first = COMMAND.match(lines[0])
        return first is not None and KNOWN.match(first["command"] or "") is not None

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        return DumpRows(tuple(_findings(lines_of(data))))


def _findings(lines: Sequence[str]) -> list[DumpSignal]:
    found = []
    inodes = False
    for number, line in enumerate(lines, 1):
        if DF_HEAD.match(line):
            inodes = "IUse%" in line
        elif (match := DF_ROW.match(line)) and int((match["percent"] or "0")[:4]) >= 99:
            path = (match["path"] or "").strip()
            cls = "shm-exhausted" if path == "/dev/shm" else "disk-full"
            text = f"{path} is {match['percent']}% full" + (" (inodes)" if inodes else "")
            captures = {
                "path": path,
                "used": match["used"] or "",
                "total": match["total"] or "",
                "free": match["free"] or "",
            }
            found.append(
                DumpSignal(
                    number,
                    Event.IO_ERROR,
                    text,
                    fact="disk-state",
                    cls=cls,
                    role="ambiguous",
                    weak=True,
                    captures=captures,
                )
            )
        elif (match := MEMORY_EVENT.match(line)) and (match["count"] or "0").strip("0"):
            text = f"the cgroup counts {match['count']} {match['name']}"
            captures = {"count": match["count"] or "", "cgroup": match["path"] or ""}
            captures = {key: value for key, value in captures.items() if value}
            found.append(
                DumpSignal(
                    number,
                    Event.OOM_KILL,
                    text,
                    fact="cgroup-events",
                    cls="host-oom-kill",
                    role="ambiguous",
                    weak=True,
                    captures=captures,
                )
            )
    return found
