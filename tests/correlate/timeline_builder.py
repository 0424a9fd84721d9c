"""Small timelines written by hand: hosts, ranks, and a few lines each, as the ingest stage would have left them.

    job = Job(a=2, b=2)                     two hosts with two ranks each: ranks 0, 1 on a, 2, 3 on b
    job.rank(3).steps(5).error("cuda-oom", at=10)
    job.rank(0).lost("b", at=11)
    job.launcher("b").exit(3, 1, at=12)
    found = job.judge()

`at` is in seconds of true time; a host's clock shows it with its `skew`. Lines of one log keep the order in which they
are written here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from firstfault.correlate.candidate import Candidate
from firstfault.correlate.diagnosis import Diagnosis
from firstfault.correlate.engine import AttemptResult, Correlation, correlate, diagnose
from firstfault.correlate.graph import build
from firstfault.correlate.graph_check import validate
from firstfault.timeline import create_schema, write_timeline

from .timeline_rows import ERRORS, XIDS, Row, insert

BASE_NS = 1_780_000_000 * 10**9
SECOND = 10**9

Accused = tuple[str, tuple[int, ...], tuple[str, ...]]


@dataclass(slots=True)
class _Line:
    at: float | None
    rank: int | None
    attempt: int | None
    text: str
    own: bool
    format: str | None = None


@dataclass(slots=True)
class Log:
    """One log file; each method adds a line and gives the log back."""

    job: Job
    path: str
    kind: str
    host: str | None
    rank: int | None = None
    clock: str | None = None
    attempt: int | None = 0
    resolution: float = 0.001
    stream: str | None = None
    lines: list[_Line] = field(default_factory=list)

    def say(self, text: str = "", at: float | None = None, rank: int | None = None) -> Log:
        """A line that means nothing; without `at` it carries no stamp."""
        self.lines.append(_Line(at, self.rank if rank is None else rank, self.attempt, text, at is not None))
        return self

    def signal(
        self,
        event: str,
        entry: str | None = None,
        cls: str | None = None,
        role: str | None = None,
        at: float | None = None,
        rank: int | None = None,
        weak: bool = False,
        fact: str | None = None,
        writer: int | None = None,
        text: str = "",
        res_s: float | None = None,
        **captures: Any,
    ) -> Log:
        """A line that says something; `writer` is the process that wrote it."""
        self.say(text or entry or fact or event, at, rank)
        near = next((line.at for line in reversed(self.lines) if line.at is not None), None)
        self.job.signals.append(
            {
                "log": self,
                "line": len(self.lines),
                "event": event,
                "entry": entry,
                "cls": cls,
                "role": role,
                "weak": weak,
                "fact": fact,
                "rank": self.rank if rank is None else rank,
                "attempt": self.attempt,
                "pid": writer,
                "near": near,
                "own": at is not None,
                "res": self.resolution if res_s is None else res_s,
                "text": text or entry or fact or event,
                "captures": {key: str(value) for key, value in captures.items()},
            }
        )
        return self

    # what a rank prints

    def step(self, number: int, at: float | None, rank: int | None = None, text: str = "") -> Log:
        """A line of progress."""
        self.say(text or f"step {number}", at, rank)
        who = self.rank if rank is None else rank
        self.job.progress.append((self, len(self.lines), who, self.attempt, number, at))
        return self

    def steps(self, count: int, first: int = 1, each: float = 1.0, rank: int | None = None) -> Log:
        """Steps `first` to `count`; step n ends at n times `each` seconds."""
        for number in range(first, count + 1):
            self.step(number, number * each, rank)
        return self

    def error(
        self, cls: str, at: float | None = None, rank: int | None = None, uncaught: bool = False, **captures: Any
    ) -> Log:
        """An error of the rank's own: the first entry of its class; torch's hook marks those that nothing caught."""
        entry, event, role = ERRORS[cls]
        self.signal(event, entry, cls, role, at, rank, **captures)
        self.lines[-1].format = "torch-rank-prefix" if uncaught else None
        return self

    def timeout(
        self,
        seq: int | None,
        at: float,
        waited: float = 600.0,
        enqueued: int | None = None,
        completed: int | None = None,
        op: str = "ALLREDUCE",
        numel: int = 1024,
        group: str | None = None,
        rank: int | None = None,
        **captures: Any,
    ) -> Log:
        """The watchdog gives up on a collective."""
        given: dict[str, Any] = {"op": op, "numel_in": numel, "elapsed_ms": round(waited * 1000), **captures}
        if seq is not None:
            given["seq"] = seq
        if enqueued is not None:
            given["last_enqueued"] = enqueued
        if completed is not None:
            given["last_completed"] = completed
        if group is not None:
            given |= {"pg_guid": group, "pg_desc": group}
        return self.signal(
            "coll-timeout", "pgnccl-watchdog-timeout", "collective-rank-absent", "collateral", at, rank, **given
        )

    def counters(
        self, enqueued: int, completed: int, at: float, group: str | None = None, rank: int | None = None
    ) -> Log:
        """The rank's own counters, without a verdict."""
        given: dict[str, Any] = {"last_enqueued": enqueued, "last_completed": completed}
        if group is not None:
            given |= {"pg_guid": group, "pg_desc": group}
        return self.signal("coll-state", at=at, rank=rank, fact="coll-state-counters", **given)

    def lost(self, peer: str | None, at: float | None, rank: int | None = None) -> Log:
        """A connection to a peer broke; `peer` is a host of the job or an address."""
        given: dict[str, Any] = {"peer": self.job.address(peer)} if peer else {}
        return self.signal(
            "peer-loss", "gloo-closed-by-peer", "collective-rank-absent", "collateral", at, rank, **given
        )

    def store_lost(self, at: float | None, rank: int | None = None) -> Log:
        """The key-value store no longer answers."""
        return self.signal("store-lost", "tcpstore-broken-pipe", "store-lost", "collateral", at, rank)

    def dump_signal(self, source: int | None, at: float, rank: int | None = None) -> Log:
        """Another rank's time-out made this rank dump its state."""
        given: dict[str, Any] = {"peer_rank": source} if source is not None else {}
        return self.signal(
            "dump-signal", "pgnccl-dump-signal", "collective-rank-absent", "collateral", at, rank, **given
        )

    def teardown(self, at: float | None, rank: int | None = None) -> Log:
        """The process is ended because of an earlier error."""
        return self.signal("teardown", "cxx-terminate", "teardown-echo", "collateral", at, rank)

    def done(self, at: float | None = None, rank: int | None = None) -> Log:
        """The rank says that it has finished."""
        return self.signal("completion", at=at, rank=rank, fact="complete-rank-finished")

    def phase(self, what: str, at: float | None = None, rank: int | None = None, **captures: Any) -> Log:
        """The rank says what it begins."""
        return self.signal("phase", at=at, rank=rank, fact="phase-begin", text=what, **captures)

    # what a launcher prints

    def exit(self, rank: int, code: int, at: float | None, first: bool = True) -> Log:
        """A child ended: torchrun's line, then its table."""
        local = self.job.local(rank)
        self.signal(
            "exit",
            "elastic-worker-failed",
            "teardown-echo",
            "collateral",
            at,
            local_rank=local,
            exitcode=code,
            child_pid=self.job.pid(rank),
        )
        return self.listed(rank, code, first)

    def listed(self, rank: int, code: int, first: bool = False) -> Log:
        """An item of the launcher's table of failures."""
        return self.signal(
            "agent-report",
            "elastic-child-failed",
            "teardown-echo",
            "collateral",
            None,
            rank,
            exitcode=code,
            child_pid=self.job.pid(rank),
            local_rank=self.job.local(rank),
            reported="first" if first else "other",
        )

    def kill(self, *ranks: int, at: float | None, by: str = "SIGTERM") -> Log:
        """The launcher ends its other children."""
        for rank in ranks:
            self.signal(
                "agent-kill",
                "elastic-sigterm-closing",
                "teardown-echo",
                "collateral",
                at,
                child_pid=self.job.pid(rank),
                signal=by,
            )
        return self

    def success(self, at: float | None) -> Log:
        """The launcher says that all its workers finished."""
        return self.signal("completion", at=at, fact="complete-launcher-elastic")

    # what machines and schedulers print

    def oom_kill(self, pid: int | None, at: float, process: str = "python", **captures: Any) -> Log:
        """The kernel killed a process for its memory."""
        given: dict[str, Any] = {"process": process, **captures}
        if pid is not None:
            given["victim_pid"] = pid
        return self.signal(
            "oom-kill", "host-oom-kernel", "host-oom-kill", "initiating", at, text="Killed process", **given
        )

    def xid(self, code: int, at: float, **captures: Any) -> Log:
        """The NVIDIA driver reports a fault."""
        cls, role = XIDS[code]
        return self.signal("node-fault", f"xid-{code}", cls, role, at, xid=code, **captures)


class Job:
    """A job of some hosts with some ranks each, and the logs that are written about it."""

    def __init__(self, *, skew: dict[str, float] | None = None, **ranks: int) -> None:
        self.hosts = [(host, number) for host, count in ranks.items() for number in range(count)]
        self.skew = skew or {}
        self.logs: dict[str, Log] = {}
        self.signals: list[dict[str, Any]] = []
        self.progress: list[tuple[Log, int, int | None, int | None, int, float | None]] = []
        self.identities: list[dict[str, object]] = []
        self.names = list(ranks)
        self.world: int | None = len(self.hosts)

    # who is who

    def host(self, rank: int) -> str:
        return self.hosts[rank][0]

    def local(self, rank: int) -> int:
        return self.hosts[rank][1]

    def pid(self, rank: int) -> int:
        return 1000 + rank

    def bus(self, rank: int) -> str:
        return f"0000:{0x10 + self.local(rank):02x}:00.0"

    def address(self, host: str) -> str:
        return f"10.0.0.{self.names.index(host) + 1}" if host in self.names else host

    # logs

    def log(self, path: str, kind: str, host: str | None, rank: int | None = None, **more: Any) -> Log:
        """A log by its path, made where it is new."""
        if path not in self.logs:
            clock = more.pop("clock", f"wall:{host}" if host else None)
            self.logs[path] = Log(self, path, kind, host, rank, clock, **more)
        return self.logs[path]

    def rank(self, number: int, attempt: int = 0) -> Log:
        """The log of one rank (in one attempt)."""
        host = self.host(number)
        more = f"attempt_{attempt}/" if attempt else ""
        log = self.log(f"{host}/{more}rank{number}.log", "rank", host, number)
        log.attempt = attempt
        return log

    def ranks(self, *but: int) -> list[Log]:
        """Logs of all ranks but some."""
        return [self.rank(number) for number in range(len(self.hosts)) if number not in but]

    def launcher(self, host: str, attempt: int = 0) -> Log:
        """The log of a host's launcher."""
        log = self.log(f"{host}/agent.log", "launcher", host)
        log.attempt = attempt
        return log

    def kernel(self, host: str) -> Log:
        """A host's kernel log."""
        return self.log(f"{host}/dmesg.log", "kernel", host, attempt=None)

    def scheduler(self) -> Log:
        """The scheduler's log."""
        return self.log("slurmctld.log", "scheduler", None, clock="wall:ctl", attempt=None)

    def merged(self, host: str) -> Log:
        """One log of all ranks of a host."""
        return self.log(f"{host}.log", "node", host)

    # rows

    def fill(self, con: duckdb.DuckDBPyConnection) -> None:
        """Insert everything into the tables of an empty timeline."""
        order = {path: number for number, path in enumerate(sorted(self.logs))}
        logs = [(number, self.logs[path]) for path, number in order.items()]
        insert(con, "sources", [self._source(log, number) for number, log in logs])
        insert(con, "line_rows", [row for number, log in logs for row in self._lines(log, number)])
        insert(
            con,
            "progress",
            [
                {
                    "rank": rank,
                    "host": log.host,
                    "attempt": attempt,
                    "source_id": order[log.path],
                    "line": line,
                    "step": step,
                    "stamp_ns": self._ns(log, at),
                    "stamp_own": at is not None,
                }
                for log, line, rank, attempt, step, at in self.progress
            ],
        )
        made = sorted(self.signals, key=lambda one: (order[one["log"].path], one["line"]))
        insert(con, "signal_rows", [self._signal(one, number, order) for number, one in enumerate(made)])
        insert(con, "identities", self._identities())

    def _ns(self, log: Log, at: float | None) -> int | None:
        if at is None:
            return None
        shown = at + self.skew.get(log.host or "", 0.0)
        unit = round(log.resolution * SECOND)
        return BASE_NS + round(shown * SECOND) // unit * unit

    def _source(self, log: Log, number: int) -> Row:
        return {
            "source_id": number,
            "path": log.path,
            "kind": log.kind,
            "format": "plain",
            "host": log.host,
            "rank": log.rank,
            "clock": log.clock,
            "stream": log.stream,
            "bytes": 100 * len(log.lines),
            "lines": len(log.lines),
            "understood": len(log.lines),
            "text_stored": True,
        }

    def _lines(self, log: Log, number: int) -> Iterator[Row]:
        near: int | None = None
        for line, one in enumerate(log.lines, start=1):
            stamp = self._ns(log, one.at)
            near = stamp if stamp is not None else near
            yield {
                "source_id": number,
                "line": line,
                "byte_offset": 100 * line,
                "byte_length": 99,
                "stamp_ns": stamp,
                "stamp_kind": "full" if stamp is not None else None,
                "stamp_res_ns": round(log.resolution * SECOND),
                "near_ns": near,
                "host": log.host,
                "rank": one.rank,
                "attempt": one.attempt,
                "message": one.text,
                "format": one.format,
            }

    def _signal(self, one: Row, number: int, order: dict[str, int]) -> Row:
        log: Log = one["log"]
        near = self._ns(log, one["near"])
        return {
            "signal_id": number,
            "source_id": order[log.path],
            "line": one["line"],
            "first_line": one["line"],
            "last_line": one["line"],
            **{
                name: one[name] for name in ("entry", "fact", "event", "role", "weak", "rank", "attempt", "pid", "text")
            },
            "class": one["cls"],
            "level": one.get("level"),
            "host": log.host,
            "stamp_ns": near,
            "stamp_kind": one.get("kind", "full") if near is not None else None,
            "stamp_res_ns": round(one["res"] * SECOND),
            "stamp_own": one["own"],
            "captures": list(one["captures"].items()),
        }

    def _identities(self) -> list[Row]:
        rows: list[Row] = [{"host": host, "address": self.address(host), "how": "rendezvous"} for host in self.names]
        for rank, (host, local) in enumerate(self.hosts):
            rows.append(
                {
                    "rank": rank,
                    "host": host,
                    "local_rank": local,
                    "pid": self.pid(rank),
                    "bus_id": self.bus(rank),
                    "gpu": local,
                    "world_size": self.world,
                    "how": "start-line",
                }
            )
        return [{"source_id": 0, "line": 1, **one} for one in (*rows, *self.identities)]

    # answers

    def connect(self) -> duckdb.DuckDBPyConnection:
        """The timeline in memory."""
        con = duckdb.connect()
        con.execute("SET TimeZone = 'UTC'")
        create_schema(con)
        self.fill(con)
        return con

    def correlate(self) -> Correlation:
        """What the stage works out."""
        con = self.connect()
        try:
            return correlate(con)
        finally:
            con.close()

    def judge(self, attempt: int = 0) -> AttemptResult:
        """One attempt, judged."""
        return next(one for one in self.correlate().attempts if one.attempt == attempt)

    def best(self, attempt: int = 0) -> Candidate | None:
        """The answer for one attempt, None where every candidate is a guess."""
        return self.judge(attempt).ranked.best

    def accused(self, attempt: int = 0) -> Accused | None:
        """Class, ranks and hosts of the answer, None where there is none."""
        one = self.best(attempt)
        return (one.cls, one.ranks, one.hosts) if one else None

    def edges(self, attempt: int = 0) -> set[tuple[str, str, str]]:
        """All edges of the causal graph as (effect, rule, cause); the graph is sound."""
        found = self.judge(attempt)
        graph = build(found.view, found.ranked.best)
        assert validate(graph) == []
        return {(effect, data["edge"].rule.id, cause) for effect, cause, data in graph.edges(data=True)}

    def write(self, path: Path) -> Path:
        """The timeline as a file."""
        write_timeline(path, self.fill, {"firstfault_version": "test"})
        return path

    def diagnose(self, folder: Path) -> Diagnosis:
        """The whole answer."""
        return diagnose(self.write(folder / "timeline.duckdb"))
