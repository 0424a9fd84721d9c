"""What Slurm says about a job afterwards: `sacct`, `scontrol show job`, `scontrol show node`, `sinfo`.

Times are local to the cluster. A state is Slurm's word about how a step or a node ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import cells, columns_of, head_lines, iso_stamp, lines_of
from firstfault.ingest.identity_commands import host_list
from firstfault.ingest.identity_statements import short_host

HEADER_WORDS = frozenset(
    {"JobID", "JobIDRaw", "JobName", "State", "ExitCode", "NodeList", "Start", "End", "Elapsed", "MaxRSS", "Reason"}
)
PAIR = compiled(r"(?:^|\s)(?P<key>[A-Z][A-Za-z:/_]*)=(?P<value>\S*)")
RECORD = compiled(r"^(?P<what>JobId|NodeName)=(?P<name>\S+)")
REASON = compiled(r"^ *Reason=(?P<reason>.*?)(?: \[(?P<who>[^@\]]*)@(?P<when>[^\]]*)\])?$")

# state: (event, class, role)
STATES: Mapping[str, tuple[Event, str | None, str | None]] = {
    "NODE_FAIL": (Event.NODE_LOST, "host-down", "initiating"),
    "BOOT_FAIL": (Event.NODE_LOST, "host-down", "initiating"),
    "OUT_OF_MEMORY": (Event.OOM_KILL, "host-oom-kill", "initiating"),
    "TIMEOUT": (Event.SCHED_ACTION, "time-limit", "initiating"),
    "DEADLINE": (Event.SCHED_ACTION, "time-limit", "initiating"),
    "PREEMPTED": (Event.SCHED_ACTION, "preempted", "initiating"),
    "CANCELLED": (Event.SCHED_ACTION, "cancelled-by-user", "ambiguous"),
    "FAILED": (Event.EXIT, None, "ambiguous"),
    "COMPLETED": (Event.COMPLETION, None, None),
    "REQUEUED": (Event.SCHED_ACTION, None, "ambiguous"),
}
DEAD_NODE = ("DOWN", "FAIL", "NOT_RESPONDING", "DRAIN")


class Slurm:
    """Reader of Slurm's reports."""

    name = "slurm-report"
    kind = "scheduler"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        lines = [line for line in head_lines(head, 60) if not line.startswith(("$", "#"))]
        if not lines:
            return False
        return _is_header(lines[0]) or (
            RECORD.match(lines[0]) is not None and sum("=" in line for line in lines) > len(lines) // 2
        )

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        lines = lines_of(data)
        signals: list[DumpSignal] = []
        identities: list[DumpIdentity] = []
        for number, row in _table(lines):
            signals.extend(_step(number, row))
            identities.extend(_nodes(number, row.get("NodeList", "")))
        for number, block in _records(lines):
            if "NodeName" in block:
                signals.extend(_node(number, block))
            else:
                row = {
                    "JobID": block.get("JobId", ""), "State": block.get("JobState", ""),
                    "Reason": block.get("Reason", ""), "ExitCode": block.get("ExitCode", ""),
                    "NodeList": block.get("NodeList", ""),
                    "End": block.get("EndTime", ""),
                }  # fmt: skip
                signals.extend(_step(number, row))
                identities.extend(_nodes(number, row["NodeList"]))
        return DumpRows(tuple(signals), tuple(identities))


def _is_header(line: str) -> bool:
    words = line.replace("|", " ").split()
    return len(set(words) & HEADER_WORDS) >= 3 and "State" in words and any(word.startswith("JobID") for word in words)


def _table(lines: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of sacct tables, by fixed width or with bars between the cells."""
    names: list[str] = []
    columns: list[tuple[str, int]] = []
    piped = False
    for number, line in enumerate(lines, 1):
        if _is_header(line):
            piped = "|" in line
            names = line.strip("|").split("|") if piped else line.split()
            columns = [] if piped else columns_of(line)
        elif names and piped and line.count("|") >= len(names) - 1:
            yield number, dict(zip(names, line.split("|"), strict=False))
        elif names and not piped and set(line.strip()) <= {"-", " "} and line.strip():
            # the row of dashes gives the true widths; sacct right-aligns some columns
            starts, at = [], 0
            for piece in line.split(" "):
                if piece:
                    starts.append(at)
                at += len(piece) + 1
            columns = list(zip(names, starts, strict=False))
        elif names and not piped and line.strip() and not line.startswith("$"):
            yield number, cells(line, columns)


def _records(lines: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Blocks of `scontrol show`, with the line of the state."""
    block: dict[str, str] = {}
    at = 0
    for number, line in enumerate(lines, 1):
        if RECORD.match(line):
            if block:
                yield at, block
            block, at = {}, number
        if not block and not RECORD.match(line):
            continue
        for match in PAIR.finditer(line):
            block.setdefault(match["key"] or "", match["value"] or "")
            if match["key"] in ("State", "JobState"):
                at = number
        if why := REASON.match(line):
            block["Reason"] = why["reason"] or ""
            block["ReasonTime"] = why["when"] or ""
        if len(block) > 500:
            block.clear()
    if block:
        yield at, block


def _step(line: int, row: Mapping[str, str]) -> Iterator[DumpSignal]:
    state = row.get("State", "").strip()
    word = state.split(" ")[0].rstrip("+")
    known = STATES.get(word) or next(
        (value for key, value in STATES.items() if len(word) > 5 and key.startswith(word)), None
    )
    if known is None:
        return
    event, cls, role = known
    end = iso_stamp(row.get("End", ""))
    hosts = host_list(row.get("NodeList", "").strip())
    code, _, signal = row.get("ExitCode", "").strip().partition(":")
    captures = {"jobid": row.get("JobID", "").strip(), "state": word, "hosts": ",".join(hosts)[:4000], "exitcode": code}
    captures["signal_no"] = signal if signal.isdigit() and signal != "0" else ""
    captures["reason"] = row.get("Reason", "").strip()
    if match := state.removeprefix("CANCELLED by ") if state.startswith("CANCELLED by ") else "":
        captures["user"] = match
    text = f"Slurm: {captures['jobid']} {state}" + (f", exit code {code}:{signal}" if code else "")
    single = short_host(hosts[0]) if len(hosts) == 1 and event in (Event.NODE_LOST, Event.OOM_KILL) else None
    yield DumpSignal(
        line, event, text, fact="slurm-state", cls=cls, role=role, host=single,
        captures={key: value for key, value in captures.items() if value},
    ).at(end)  # fmt: skip


def _nodes(line: int, text: str) -> Iterator[DumpIdentity]:
    if text.strip() in ("", "None", "(null)", "None assigned"):
        return
    for node_rank, host in enumerate(host_list(text.strip())):
        yield DumpIdentity(line, "host-list", host=short_host(host), node_rank=node_rank)


def _node(line: int, block: Mapping[str, str]) -> Iterator[DumpSignal]:
    host, state = short_host(block["NodeName"]), block.get("State", "")
    boot = iso_stamp(block.get("BootTime", ""))
    if boot is not None:
        yield DumpSignal(
            line, Event.CLOCK, f"{host} booted at {block['BootTime']}", fact="boot-time", host=host, stamp_ns=boot.ns,
            stamp_kind=boot.kind, stamp_res_ns=boot.res_ns, captures={"node": host},
        )  # fmt: skip
    if not any(word in state.upper() for word in DEAD_NODE):
        return
    lost = any(word in state.upper() for word in ("DOWN", "NOT_RESPONDING")) or state.endswith("*")
    when = iso_stamp(block.get("ReasonTime", ""))
    captures = {"node": host, "state": state, "reason": block.get("Reason", "")}
    yield DumpSignal(
        line, Event.NODE_LOST if lost else Event.NODE_FAULT,
        f"Slurm: node {host} is {state}: {captures['reason'] or 'no reason'}", fact="slurm-node",
        cls="host-down" if lost else None, role="ambiguous", weak=not lost, host=host,
        captures={key: value for key, value in captures.items() if value},
    ).at(when)  # fmt: skip
