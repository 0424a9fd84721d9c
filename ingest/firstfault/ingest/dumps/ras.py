"""Answers of NCCL's RAS subsystem (`ncclras`), as text and as JSON.

Ranks are ranks of communicators, nodes are addresses. The outliers it lists are the smaller set and may be ahead;
`count` says how many ranks stand at each operation, so that the reader can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.json_places import line_of, parse
from firstfault.ingest.dumps.linear import Found, compiled
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import head_lines, iso_stamp, lines_of

HEADS = ("Job summary", "Communicators...", "NCCL RAS", "Errors", "Warnings")
SUMMARY = compiled(r"^ *(?P<nodes>\d+) +(?P<processes>\d+) +(?P<gpus>\d+) +(?P<total>\d+) +(?P<world>\d+) *$")
GROUP = compiled(
    r"^ *(?P<group>\d+) +(?P<comms>\d+) +(?P<nodes>\d+) +(?P<per_node>[\d-]+) +(?P<ranks>[\d-]+) +(?P<total>"
    r"\d+) +(?P<status>[A-Z,]+) +(?P<result>\S.*?) *$"
)
COMM = compiled(r"^#(?P<group>\d+)-(?P<idx>\d+) \((?P<comm>[0-9a-f]{1,16})\) (?P<status>[A-Z]+)")
COUNT = compiled(
    r"^ +(?P<count>\d+) ranks? (?:has|have) (?:launched up to operation (?P<seq>\d+)|(?P<none>not launched any"
    r" operations)|status (?P<state>\w+))"
)
RANK = compiled(
    r"^ +Rank (?P<comm_rank>\d+)(?: has (?:launched up to operation (?P<seq>\d+)|status (?P<state>\w+)|(?P<non"
    r"e>not launched any operations)))?"
    r"(?: -- GPU (?P<gpu>\d+)(?: \(NVML (?P<nvml_dev>\d+)\))? managed by process (?P<pid>\d+) on node (?P<host>\S+))?"
)
PROCESS = compiled(r"^ +Process (?P<pid>\d+) on node (?P<host>\S+) managing GPUs? (?P<gpus>[\d,]+)")
MISMATCH = compiled(r"different (?P<op>\w+) operation counts")
KIND = compiled(r"^(?P<kind>INCOMPLETE|DEAD|TIMEOUT|MISMATCH|ERROR)\b")
MISSING = compiled(r"Missing communicator data from (?P<count>\d+) (?:rank|job process)")


class Ras:
    """Reader of RAS answers."""

    name = "nccl-ras"
    kind = "ras"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        if head.lstrip()[:1] == b"{":
            return b'"communicators' in head and (b'"nccl_version"' in head or b'"collective_counts"' in head)
        if b"ommunicator" not in head:
            return False
        lines = head_lines(head)[:60]
        return sum(any(line.startswith(word) for line in lines) for word in HEADS) >= 2 and any(
            "ommunicator" in x for x in lines
        )

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        if data.lstrip()[:1] == b"{":
            return _json(parse(data))
        signals: list[DumpSignal] = []
        identities: list[DumpIdentity] = []
        state = _State()
        for number, line in enumerate(lines_of(data), 1):
            state.line(number, line, signals, identities)
        return DumpRows(tuple(signals), tuple(identities))


class _State:
    """Where in a text answer the reader stands."""

    def __init__(self) -> None:
        self.comm, self.status, self.op, self.kind, self.size = "", "", "", "", ""

    def line(self, number: int, line: str, signals: list[DumpSignal], identities: list[DumpIdentity]) -> None:
        if match := COMM.match(line):
            self.comm, self.status = match["comm"] or "", match["status"] or ""
            self.op = ""
        elif match := MISMATCH.search(line):
            self.op = match["op"] or ""
        elif match := KIND.match(line):
            self.kind = match["kind"] or ""
        elif match := SUMMARY.match(line):
            identities.append(DumpIdentity(number, "ras", world_size=int(match["world"] or 0) or None))
        elif match := GROUP.match(line):
            self.size = match["ranks"] or ""
            got = {
                "comm_size": self.size,
                "state": match["status"] or "",
                "result": match["result"] or "",
                "count": match["comms"] or "",
            }
            text = f"RAS: group of {got['count']} communicators of {self.size} ranks: {got['state']}, {got['result']}"
            signals.append(DumpSignal(number, Event.COLL_STATE, text, fact="ras-status", captures=got))
        elif match := MISSING.search(line):
            text = line.strip()
            signals.append(
                DumpSignal(
                    number, Event.COLL_STATE, text, fact="ras-missing", captures=self._common(count=match["count"])
                )
            )
        elif match := COUNT.match(line):
            got = self._common(count=match["count"], seq=match["seq"], state=match["state"])
            signals.append(DumpSignal(number, Event.COLL_STATE, line.strip(), fact="ras-count", captures=got))
        elif match := RANK.match(line):
            signals.append(self._rank(number, line, match))
            if match["pid"] is not None:
                identities.append(
                    DumpIdentity(
                        number, "ras", address=match["host"], pid=int(match["pid"] or 0), gpu=int(match["gpu"] or 0),
                        comm=self.comm or None, comm_rank=int(match["comm_rank"] or 0),
                        comm_size=int(self.size) if self.size.isdigit() else None,
                    )
                )  # fmt: skip
        elif match := PROCESS.match(line):
            got = self._common(pid=match["pid"], ip=match["host"], gpu=match["gpus"])
            signals.append(DumpSignal(number, Event.COLL_STATE, line.strip(), fact="ras-missing", captures=got))

    def _common(self, **more: str | None) -> dict[str, str]:
        got = {"comm_id": self.comm, "op": self.op, "comm_size": self.size, "reason": self.status or self.kind, **more}
        return {key: value for key, value in got.items() if value}

    def _rank(self, number: int, line: str, match: Found) -> DumpSignal:
        got = self._common(
            comm_rank=match["comm_rank"], seq=match["seq"], state=match["state"], gpu=match["gpu"],
            nvml_dev=match["nvml_dev"], pid=match["pid"], ip=match["host"],
        )  # fmt: skip
        fact = (
            "ras-missing" if match["seq"] is None and match["state"] is None and match["none"] is None else "ras-rank"
        )
        return DumpSignal(number, Event.COLL_STATE, line.strip(), fact=fact, captures=got)


def _json(value: Any) -> DumpRows:
    if not isinstance(value, dict):
        raise ValueError("no object")
    stamp = iso_stamp(str(value.get("timestamp", "")))
    signals: list[DumpSignal] = []
    identities: list[DumpIdentity] = []
    for comm in _dicts(value.get("communicators")):
        name = str(comm.get("hash", comm.get("comm_hash", "")))[:40]
        size = comm.get("size", comm.get("nranks"))
        for rank in _dicts(comm.get("ranks")):
            number, line = rank.get("rank"), line_of(rank)
            if not isinstance(number, int):
                continue
            host, pid = str(rank.get("host", ""))[:253], rank.get("pid")
            gpu = rank.get("cuda_dev")
            counts = rank.get("collective_counts")
            got = {
                "comm_id": name,
                "comm_rank": str(number),
                "comm_size": str(size or ""),
                "ip": host,
                "pid": str(pid or ""),
            }
            got["gpu"] = str(gpu) if isinstance(gpu, int) else ""
            identities.append(
                DumpIdentity(
                    line, "ras", address=host or None, pid=pid if isinstance(pid, int) else None,
                    gpu=gpu if isinstance(gpu, int) else None, comm=name or None, comm_rank=number,
                    comm_size=size if isinstance(size, int) else None,
                )
            )  # fmt: skip
            for op, count in sorted(counts.items()) if isinstance(counts, dict) else ():
                one = {**got, "op": str(op)[:40], "seq": str(count)[:20]}
                signals.append(_state(line, f"RAS: rank {number} launched {count} {op}", "ras-rank", one, stamp))
        for rank in _dicts(comm.get("missing_ranks")):
            status = rank.get("status")
            words = [str(key) for key, on in status.items() if on] if isinstance(status, dict) else []
            got = {"comm_id": name, "comm_rank": str(rank.get("rank", ""))[:12], "ip": str(rank.get("host", ""))[:253]}
            got["reason"] = ",".join(words)[:200]
            signals.append(
                _state(
                    line_of(rank),
                    f"RAS: rank {got['comm_rank']} is missing ({got['reason']})",
                    "ras-missing",
                    got,
                    stamp,
                )
            )
    return DumpRows(tuple(signals), tuple(identities))


def _state(line: int, text: str, fact: str, captures: dict[str, str], stamp: Any) -> DumpSignal:
    return DumpSignal(
        line, Event.COLL_STATE, text, fact=fact,captures={key: value for key, value in captures.items() if value},
    ).at(stamp)  # fmt: skip


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    for one in value if isinstance(value, Sequence) and not isinstance(value, str) else ():
        if isinstance(one, dict):
            yield one
