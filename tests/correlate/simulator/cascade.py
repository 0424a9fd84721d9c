"""What happens after a fault: who blocks, who dies, who is ended by whom, who notices what and when, in true time.

Rules are those of the causal model: timers start when an operation is enqueued; a launcher looks every 0.1 s, ends its
other children with SIGTERM and after 30 s with SIGKILL; a process that ends closes its sockets at once, a host that
loses power does not; the store lives in the first host's launcher.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from . import lines as text
from .cluster import Cluster, Host

Action = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Line:
    """What one process prints at one moment: some lines of one channel."""

    at: float
    order: int
    channel: str  # out, err, agent, kernel, scheduler
    host: int | None
    rank: int | None
    texts: tuple[str, ...]


@dataclass(slots=True)
class Style:
    """How the program and the machines print."""

    app: str = "bracket"
    kernel: str = "journal"
    steps_by: str = "all"
    secondary: float = 0.0
    slow_abort: float = 0.3
    handles_term: bool = False


@dataclass(slots=True)
class Cascade:
    """One run of a job, from its start to the end of its last process."""

    cluster: Cluster
    chance: random.Random
    style: Style
    limit_s: float
    step_s: float
    said: list[Line] = field(default_factory=list)
    exits: dict[int, tuple[float, int]] = field(default_factory=dict)
    hung: set[int] = field(default_factory=set)
    derived: dict[int, float] = field(default_factory=dict)
    dark: set[int] = field(default_factory=set)
    ending: dict[int, float] = field(default_factory=dict)
    dumped: bool = False
    blocked: dict[int, tuple[bool, int]] = field(default_factory=dict)
    counters: dict[int, int] = field(default_factory=dict)
    _queue: list[tuple[float, int, Action]] = field(default_factory=list)
    _count: int = 0

    # saying and scheduling

    def say(
        self,
        at: float,
        channel: str,
        texts: list[str],
        rank: int | None = None,
        host: Host | None = None,
    ) -> None:
        """Print some lines, unless the host has lost its power."""
        where = self.cluster.host(rank) if rank is not None else host
        if where is not None and where.number in self.dark:
            return
        self._count += 1
        number = where.number if where is not None else None
        self.said.append(Line(at, self._count, channel, number, rank, tuple(texts)))

    def plan(self, at: float, action: Action) -> None:
        """Do something at a time."""
        self._count += 1
        heapq.heappush(self._queue, (at, self._count, action))

    def run(self) -> None:
        """Until nothing more happens."""
        while self._queue:
            at, _, action = heapq.heappop(self._queue)
            action(at)

    def after(self, low: float, high: float) -> float:
        """A random delay."""
        return self.chance.uniform(low, high)

    def alive(self, rank: int) -> bool:
        return rank not in self.exits and self.cluster.host(rank).number not in self.dark

    # the program

    def app(self, at: float, rank: int, words: str, level: str = "INFO") -> None:
        """A line of the training program."""
        host = self.cluster.host(rank)
        stamp = host.iso(at)
        line = {
            "bracket": f"[{stamp[:19]}] [rank {rank}] [{level}] {words}",
            "logging": f"{stamp} [rank {rank}] {level} {words}",
            "plain": f"{stamp} {level} train: {words}",
        }[self.style.app]
        self.say(at, "out", [line], rank)

    def start(self) -> None:
        """Launchers, ranks and communicators begin."""
        cluster = self.cluster
        for host in cluster.hosts:
            self.say(self.after(0, 0.5), "agent", text.agent_start(host, 0.2), host=host)
        comm = f"0x{self.chance.getrandbits(60):x}"
        for rank in range(cluster.world):
            host, pid, local = cluster.host(rank), cluster.pids[rank], cluster.local(rank)
            self.app(
                4 + self.after(0, 1),
                rank,
                f"rank {rank} of {cluster.world} on {host.name}, pid {pid}, local rank {local}",
            )
            if cluster.backend == "nccl":
                head = f"{host.name}:{pid}:{pid + 120} [{local}] NCCL INFO"
                self.say(
                    6 + self.after(0, 0.2),
                    "err",
                    [
                        f"{head} Bootstrap : Using eth0:{host.address}<0>",
                        f"{head} ncclCommInitRank comm 0x{self.chance.getrandbits(44):x} rank {rank} nranks "
                        f"{cluster.world} cudaDev {local} nvmlDev {local} busId {cluster.bus(rank)}000 commId {comm} "
                        "- Init START",
                    ],
                    rank,
                )
            self.app(8 + self.after(0, 0.05), rank, f"process group ready, world size {cluster.world}")

    def steps(self, count: int, total: int) -> float:
        """All ranks pass some steps; gives the time of the last."""
        at = 10.0
        for step in range(1, count + 1):
            at += self.step_s * self.after(0.95, 1.05)
            for rank in range(self.cluster.world):
                by = self.style.steps_by
                if by == "all" or rank == 0 or (by == "host" and self.cluster.local(rank) == 0):
                    loss = 2.4 - 0.9 * step / total + self.after(-0.02, 0.02)
                    self.app(at + self.chance.expovariate(200), rank, f"step {step}/{total} loss {loss:.4f}")
        return at

    # what happens to a rank

    def die(self, at: float, rank: int, code: int) -> None:
        """A process ends; its sockets close, its launcher will see it."""
        if not self.alive(rank):
            return
        self.exits[rank] = (at, code)
        cluster = self.cluster
        if code != 0:
            poll = at + self.after(0.0, 0.1)
            self.plan(poll, lambda now: self.look(now, cluster.host(rank)))
        if cluster.backend == "gloo":
            for other in range(cluster.world):
                if other != rank and self.alive(other) and other not in self.hung:
                    self.plan(at + self.after(0.01, 0.8), lambda now, r=other: self.lose(now, r, rank))  # type: ignore[misc]
        else:
            for other in cluster.neighbours(rank):
                if self.alive(other) and other not in self.hung:
                    self.plan(at + self.after(0.03, 0.9), lambda now, r=other: self.lose(now, r, rank))  # type: ignore[misc]

    def lose(self, at: float, rank: int, peer: int) -> None:
        """A rank notices that a peer is gone."""
        if not self.alive(rank) or rank in self.derived or rank in self.hung:
            return
        self.derived[rank] = at
        if self.cluster.backend == "gloo":
            self.say(at, "err", text.gloo_lost(self.cluster, rank, peer), rank)
            self._unwind(at, rank, 1)
            return
        lost, why = text.nccl_lost(self.cluster, rank, at, peer)
        self.say(at, "err", lost, rank)
        self._abort(at, rank, why, False)

    def _abort(self, at: float, rank: int, why: str, pair: bool) -> None:
        """The watchdog takes the process down, at once or after it waited for dumps."""
        wait = 60.0 + self.after(0, 2) if self.chance.random() < self.style.slow_abort else self.after(0.3, 2.0)

        def end(now: float) -> None:
            if self.alive(rank):
                self.say(now, "err", text.abort_lines(self.cluster, rank, now, pair, why), rank)
                self.plan(now + self.after(0.05, 0.5), lambda later: self.die(later, rank, -6))

        self.plan(at + wait, end)

    def _unwind(self, at: float, rank: int, code: int) -> None:
        """A rank leaves after an exception, and may stumble over more on its way out."""
        if self.chance.random() < self.style.secondary:
            more = text.prefixed(rank, self.chance.choice(text.SECONDARY))
            self.say(at + 0.05, "err", more, rank)
        self.plan(at + self.after(0.3, 2.0), lambda now: self.die(now, rank, code))

    def block(
        self, at: float, rank: int, seq: int, pair: bool = False, numel: int = 16777216, op: str = "ALLREDUCE"
    ) -> None:
        """A rank waits in a collective; at its limit it gives up."""
        if not self.alive(rank) or rank in self.hung:
            return
        self.blocked[rank] = (pair, seq)
        if not pair:
            self.counters[rank] = seq
        fire = at + self.limit_s + self.after(0.0, 0.12)
        self.plan(fire, lambda now: self.give_up(now, rank, seq, pair, numel, op, at))

    def give_up(self, at: float, rank: int, seq: int, pair: bool, numel: int, op: str, since: float) -> None:
        """The limit of a wait."""
        if not self.alive(rank) or rank in self.derived:
            return
        limit = round(self.limit_s * 1000)
        self.derived[rank] = at
        if self.cluster.backend == "gloo":
            self.say(at, "err", text.gloo_timeout(rank, limit), rank)
            self._unwind(at, rank, 1)
            return
        waited = round((at - since) * 1000)
        told = text.timeout_lines(self.cluster, rank, at, pair, seq, op, numel, waited, limit)
        self.say(at, "err", told, rank)
        if not self.dumped:
            self.dumped = True
            for other in range(self.cluster.world):
                if other != rank:
                    self.plan(at + self.after(0.05, 1.2), lambda now, r=other: self.dump(now, r, rank))  # type: ignore[misc]
        inside = rank % 2 if pair else rank
        why = (
            f"[Rank {inside}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, "
            f"NumelIn={numel}, NumelOut={numel}, Timeout(ms)={limit}) ran for {waited} milliseconds before timing out."
        )
        self._abort(at, rank, why, pair)

    def dump(self, at: float, rank: int, source: int) -> None:
        """The monitor thread of a rank is told to dump; a rank that hangs in Python still has it."""
        if not self.alive(rank) or not self.tells_dumps:
            return
        enqueued = self.counters.get(rank, 0)
        completed = enqueued - 1 if rank in self.blocked and not self.blocked[rank][0] else enqueued
        self.say(at, "err", text.dump_lines(self.cluster, rank, at, source, enqueued, completed), rank)

    tells_dumps: bool = True

    # launchers

    def look(self, at: float, host: Host) -> None:
        """A launcher finds children that failed, and ends the others."""
        if host.number in self.ending or host.number in self.dark:
            return
        failed = [r for r in host.ranks if r in self.exits and self.exits[r][1] != 0]
        if failed:
            self.end_children(at, host, failed)

    def signal(self, at: float, host: Host) -> None:
        """A launcher is asked to end itself."""
        if host.number in self.ending or host.number in self.dark:
            return
        words = "Received 15 death signal, shutting down workers"
        self.say(at, "agent", [text.agent_line(host, at, "W", "agent/server/api.py:719", words)], host=host)
        self.end_children(at, host, [])

    def end_children(self, at: float, host: Host, failed: list[int]) -> None:
        self.ending[host.number] = at
        left = [rank for rank in host.ranks if self.alive(rank)]
        where = "multiprocessing/api.py:897"
        self.say(
            at,
            "agent",
            [
                text.agent_line(host, at, "W", where, f"Sending process {self.cluster.pids[r]} closing signal SIGTERM")
                for r in left
            ],
            host=host,
        )
        for rank in left:
            self.plan(at, lambda now, r=rank: self.terminate(now, r, host))  # type: ignore[misc]
        stubborn = any(rank in self.hung for rank in left)
        gone = at + (30.5 if stubborn else self.after(1.6, 2.4))
        self.plan(gone, lambda now: self.close(now, host, failed))

    def terminate(self, at: float, rank: int, host: Host) -> None:
        """SIGTERM to a child; one that hangs in a driver or in C needs SIGKILL."""
        if not self.alive(rank):
            return
        if rank in self.hung:
            words = (
                f"Unable to shutdown process {self.cluster.pids[rank]} via Signals.SIGTERM, forcefully exiting via "
                "Signals.SIGKILL"
            )

            def kill(now: float) -> None:
                line = text.agent_line(host, now, "W", "multiprocessing/api.py:916", words)
                self.say(now, "agent", [line], host=host)
                self.die(now, rank, -9)

            self.plan(at + 30.0, kill)
            return
        if self.style.handles_term:  # as Lightning does; otherwise SIGTERM ends Python without a word
            self.say(at, "out", [f"[rank: {self.cluster.local(rank)}] Received SIGTERM: 15"], rank)
            if self.chance.random() < self.style.secondary:
                more = text.prefixed(rank, self.chance.choice(text.SECONDARY))
                self.say(at + 0.02, "err", more, rank)
        self.plan(at + self.after(0.05, 1.4), lambda now: self.die(now, rank, -15))

    def close(self, at: float, host: Host, failed: list[int]) -> None:
        """A launcher ends with its table; the first host's takes the store along."""
        if failed:
            first = min(failed, key=lambda rank: (round(self.exits[rank][0]), rank))
            ordered = [first, *(rank for rank in failed if rank != first)]
            code = self.exits[first][1]
            words = (
                f"failed (exitcode: {code}) local_rank: {self.cluster.local(first)} (pid: {self.cluster.pids[first]}) "
                "of binary: /opt/venv/bin/python"
            )
            head = text.agent_line(host, at, "E", "multiprocessing/api.py:869", words)
            table = text.agent_table(
                self.cluster, host, [(rank, self.exits[rank][1], self.exits[rank][0]) for rank in ordered]
            )
            self.say(at, "agent", [head, *table], host=host)
        else:
            self.say(
                at,
                "agent",
                text.traceback(
                    [("/opt/venv/bin/torchrun", 8, "<module>", "sys.exit(main())")],
                    "torch.distributed.elastic.multiprocessing.api.SignalException: Process "
                    f"{host.agent_pid} got signal: 15",
                ),
                host=host,
            )
        if host.number == 0:
            for rank in range(self.cluster.world):
                if self.cluster.host(rank) is not host and self.chance.random() < 0.8:
                    self.plan(at + self.after(0.1, 2.0), lambda now, r=rank: self.no_store(now, r))  # type: ignore[misc]

    def no_store(self, at: float, rank: int) -> None:
        """A rank that still lives cannot reach the store."""
        if self.alive(rank) and rank not in self.hung and self.cluster.backend == "nccl":
            self.say(at, "err", text.store_lost(self.cluster, rank, at), rank)
