"""The decisions about one job, asked source by source, line by line and signal by signal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from firstfault.ingest.dumps.rows import DumpIdentity, DumpProblem
from firstfault.ingest.identity_attempts import Boundary, by_jobs, by_stamps
from firstfault.ingest.identity_commands import host_list, numbers
from firstfault.ingest.identity_devices import Devices
from firstfault.ingest.identity_families import with_local_ranks
from firstfault.ingest.identity_hosts import HostNames
from firstfault.ingest.identity_kinds import Writers, clock_of, kind_of
from firstfault.ingest.identity_links import by_process
from firstfault.ingest.identity_maps import RankMaps
from firstfault.ingest.identity_marks import MarkReading
from firstfault.ingest.identity_ranks import with_world_ranks, world_size
from firstfault.ingest.identity_sources import (
    LineKey,
    SourceHosts,
    SourceIdentity,
    SourceSeen,
    Witnesses,
    grouped_statements,
    line_keys,
    path_claims,
)
from firstfault.ingest.identity_statements import Spoken, Statement

MACHINE_KINDS = frozenset({"kernel", "kubelet", "scheduler", "events", "gpu-state", "status", "raylet", "ras"})
"""Kinds of sources whose lines belong to no rank and no attempt."""

CONTAINER = re.compile(r"[0-9a-f]{12}")
"""What Docker calls a container where nobody named it."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What is decided for all lines with one key."""

    host: str | None
    rank: int | None
    local_rank: int | None
    attempt: int | None
    local_prefix: bool


class Job:
    """Everything that was decided."""

    def __init__(
        self,
        sources: Sequence[SourceSeen],
        statements: Sequence[Statement],
        summary: pl.DataFrame,
        attempts: Mapping[int, Sequence[Boundary]],
        hosts_by_user: Mapping[int, str],
        ranks_by_user: Mapping[int, int],
        spoken: Sequence[Spoken] = (),
    ) -> None:
        by_id = {one.source_id: one for one in sources}
        claims = path_claims(by_id)
        jobs = {s: one.jobid for s, one in claims.items() if one.jobid is not None and s not in attempts}
        for s, attempt in by_jobs(jobs, spoken).items():
            if claims[s].attempt is None:
                claims[s] = replace(claims[s], attempt=attempt)
        keys = line_keys(summary, sorted(by_id))
        self.marks = MarkReading(by_id, claims, keys)
        claims = self.marks.claims()
        statements = [one for one in statements if one.source_id in by_id]
        statements = [*statements, *self.marks.statements(), *by_process(keys, statements)]
        counts: dict[str, int] = {}
        for key in (key for group in keys.values() for key in group if key.host):
            counts[str(key.host)] = counts.get(str(key.host), 0) + key.count
        alone = any(one.host == "localhost" and one.how == "launcher-table" for one in statements)
        candidates = (name for one in claims.values() for name in one.hosts)
        folders = {word for one in claims.values() for word in one.words}
        names = HostNames(counts, statements, candidates, _mentioned(spoken), folders)
        statements = [
            replace(
                one,
                host=names.short(one.host),
                said_host=names.short(one.said_host),
                attempt=_attempt_at(one, claims[one.source_id].attempt, attempts.get(one.source_id, ())),
            )
            for one in statements
        ]
        self._local_prefix = _local_prefixes(statements) | self.marks.local
        statements = [
            replace(one, rank=one.said_rank)
            if one.own
            and one.host is not None
            and one.rank is None
            and one.comm_rank is None
            and one.source_id not in self._local_prefix
            else one
            for one in statements
        ]
        ranks = {one.rank for one in statements} | {one.rank for one in claims.values()}
        ranks |= {key.rank for s, group in keys.items() if s not in self._local_prefix for key in group}
        self.world = world_size(statements, {rank for rank in ranks if rank is not None}, bool(attempts))
        statements = with_world_ranks(statements, self.world)
        claims = with_local_ranks(claims, {s: one.path for s, one in by_id.items()}, self.world)
        self._seen = Witnesses(by_id, claims, keys, grouped_statements(statements), tuple(statements), names)
        self._hosts = SourceHosts(self._seen, hosts_by_user)
        self._maps = RankMaps(self._seen, self._hosts, self.world, self._local_prefix, ranks_by_user)
        if alone and self._maps.layout.one_node and not self._hosts.named(node_logs=True):
            for s in self._seen.order:  # the machine's own name for itself, where nothing has another one
                self._hosts.put(s, "localhost")
        self._by_user = set(hosts_by_user) | set(ranks_by_user)
        self.order = self._seen.order
        self.sources = {s: self._source(s) for s in self.order}
        self.dated = self._dated(attempts)
        cut = set(attempts) | {one.source_id for one in self.dated}
        self._attempts = {s: self._attempt(s, cut) for s in self.order}
        self.sources = {s: replace(one, attempt=self._attempts[s]) for s, one in self.sources.items()}

    def _source(self, s: int) -> SourceIdentity:
        seen, claims = self._seen.sources[s], self._seen.claims[s]
        rank, host = self._maps.rank_of(s), self._hosts.of(s)
        speaking = self._maps.ranks_in(s) | self._maps.ranks_by_pid(s)
        places = {self._maps.host_of(one) for one in speaking} - {None}
        who = Writers(rank, host, len(speaking), max(self._hosts.spoken(s), len(places)))
        kind, why = kind_of(claims, seen.reader_kind, seen.head, who)
        if kind in MACHINE_KINDS:
            rank = None
        return SourceIdentity(
            kind, why, host, self._maps.node_rank_of(s), rank,
            self._maps.local_of(s) if kind not in MACHINE_KINDS else None, None, claims.stream,
            clock_of(kind, seen.head, host, seen.path),
        )  # fmt: skip

    def _dated(self, attempts: Mapping[int, Sequence[Boundary]]) -> list[Boundary]:
        silent = [
            (s, one.rank, one.host)
            for s, one in self.sources.items()
            if s not in attempts and one.kind not in MACHINE_KINDS and self._seen.claims[s].attempt is None
        ]
        return by_stamps(
            silent, {s: (self.sources[s].rank, self.sources[s].host) for s in attempts if s in self.sources}, attempts
        )

    def _attempt(self, s: int, cut: set[int]) -> int | None:
        if s in cut or self.sources[s].kind in MACHINE_KINDS:
            return None
        return self._seen.claims[s].attempt or 0

    def resolve(self, key: LineKey) -> Resolved:
        """The writer of all lines of a source whose headers say the same."""
        s = key.source_id
        source = self.sources[s]
        host = self._seen.names.short(key.host)
        if host is None and key.pid is not None:
            host = self._maps.host_of_pid(s, key.pid)
        host = host or source.host
        local_prefix = s in self._local_prefix and key.rank is not None
        rank, local = (None, key.rank) if local_prefix else (key.rank, key.local_rank)
        if source.kind in MACHINE_KINDS:
            return Resolved(host, rank, local, None, local_prefix)
        if rank is None and key.pid is not None:
            rank = self._maps.rank_of_pid(s, host, key.pid)
        if rank is None and local is not None:
            rank = self._maps.rank_of_local(s, host, local)
        if rank is None and key.task is not None and self._maps.layout.task_is_rank:
            rank = key.task
        if rank is None:
            rank = source.rank
        if rank is not None and local is None:
            local = source.local_rank if rank == source.rank else self._maps.local_of_rank(rank)
        if host is None and key.task is not None:
            host = self._maps.host_of_task(key.task)
        if rank is not None and host is None and len(self._hosts_in_attempts(s, rank)) < 2:
            host = self._maps.host_of(rank)
        return Resolved(host, rank, local, self._attempts[s], local_prefix)

    def rank_alone_on(self, source_id: int, host: str | None) -> int | None:
        """The rank of a host, in a log that several hosts share, where each host of the job carries one."""
        named = self._seen.names.short(host)
        shared = named is not None and self._hosts.of(source_id) is None
        if not shared or self.sources[source_id].kind in MACHINE_KINDS:
            return None
        return self._maps.rank_alone_on(str(named))

    def _hosts_in_attempts(self, s: int, rank: int) -> set[str]:
        """The hosts on which a rank says in a source that it runs; an attempt may move it."""
        alone = self.sources[s].rank is not None
        return {one.host for one in self._seen.own.get(s, ()) if one.host and (alone or one.rank == rank)}

    def about(self, signal: Spoken) -> tuple[int | None, int | None, str | None]:
        """Rank, local rank and host of the process that a launcher's or scheduler's line is about."""
        captures = signal.captures or {}
        source = self.sources.get(signal.source_id)
        host = self._seen.names.short(captures.get("host")) or self._seen.names.short(signal.host)
        named = host_list(captures.get("hosts", ""))
        if len(named) == 1:
            host = self._seen.names.short(named[0])
        if host is None and source is not None:
            host = source.host
        local = _number(captures.get("local_rank"))
        rank = _number(captures.get("rank"))
        pid = _number(captures.get("child_pid"))
        tasks = numbers(captures.get("task", "") or captures.get("tasks", ""))
        if rank is None and local is not None and source is not None:
            rank = self._maps.rank_of_local(signal.source_id, host, local)
        if rank is None and pid is not None:
            rank = self._maps.rank_of_pid(signal.source_id, host, pid)
        if rank is None and len(tasks) == 1 and self._maps.layout.task_is_rank:
            rank = tasks[0]
        if rank is not None:
            local = local if local is not None else self._maps.local_of_rank(rank)
            host = self._maps.host_of(rank) or host
        return rank, local, host

    def rows(self) -> Iterator[tuple[int, DumpIdentity]]:
        """Rows of `identities`: statements, claims of paths, what headers show, second names, what was inferred."""
        said = [one for one in self._seen.statements if one.how != "size-named"]
        if self.world is not None and not any(one.world_size == self.world for one in said):
            yield self.order[0], DumpIdentity(1, "inferred", world_size=self.world)
        for one in said:
            rank = one.rank
            if rank is None and one.task is not None and self._maps.layout.task_is_rank:
                rank = one.task
            child = one.how == "launcher-table" and one.pid is not None
            if rank is None and (one.own or child) and one.local_rank is not None:
                host = one.host or one.said_host or (self._hosts.of(one.source_id) if child else None)
                rank = self._maps.rank_of_local(one.source_id, host, one.local_rank)
            host, local = one.host, one.local_rank
            if host is None and one.speaks_for_node:
                host = one.said_host or self._hosts.of(one.source_id)
            if local is None and rank is not None:
                local = self._maps.local_of_rank(rank)
            row = DumpIdentity(
                one.line, one.how, rank, one.attempt, host, local, one.node_rank, one.pid, one.gpu, one.bus_id,
                one.address, one.pod, one.alias, one.comm, one.comm_rank, one.comm_size, one.world_size,
            )  # fmt: skip
            if any(
                value is not None for value in (rank, one.alias, one.pod, one.address, one.world_size, one.comm_rank)
            ) or (host is not None and one.node_rank is not None):
                yield one.source_id, row
        for s in self.order:
            source, claims = self.sources[s], self._seen.claims[s]
            if source.kind in MACHINE_KINDS:
                continue
            if claims.rank is not None or claims.local_rank is not None:
                yield (
                    s,
                    DumpIdentity(
                        1,
                        "path",
                        rank=claims.rank,
                        local_rank=claims.local_rank,
                        attempt=claims.attempt,
                        host=source.host,
                    ),
                )
            yield from ((s, row) for row in self._header_rows(s))
            if source.rank is not None:
                how = "override" if s in self._by_user else "source"
                yield s, DumpIdentity(
                    1, how, rank=source.rank, attempt=source.attempt, host=source.host, local_rank=source.local_rank,
                    node_rank=source.node_rank,
                )  # fmt: skip
        for alias in self._hosts.aliases:
            yield alias.source_id, DumpIdentity(alias.line, alias.how, host=alias.host, alias=alias.alias)
        yield from self._inferred()
        yield from self._machine_of_container()
        devices = Devices(self._hosts.of, self._maps.rank_of_pid, self._maps.rank_of_local)
        yield from devices.rows(self._seen.statements)

    def _header_rows(self, s: int) -> Iterator[DumpIdentity]:
        """Ranks, hosts and processes that the headers of a source's lines name together."""
        if s in self._local_prefix:
            return
        for key in self._seen.keys[s]:
            found = self.resolve(key)
            rank = key.rank if key.rank is not None else found.rank if key.task is not None else None
            if rank is not None:
                local = found.local_rank
                yield DumpIdentity(key.first, "prefix", rank=rank, host=found.host, local_rank=local, pid=key.pid)

    def _inferred(self) -> Iterator[tuple[int, DumpIdentity]]:
        """Ranks that nothing names, on hosts whose first rank and size are known."""
        for rank, host, local in self._maps.inferred():
            yield self.order[0], DumpIdentity(1, "inferred", rank=rank, host=host, local_rank=local)

    def _machine_of_container(self) -> Iterator[tuple[int, DumpIdentity]]:
        """The machine under the one container of a job: the only one whose kernel speaks."""
        carrying = self._hosts.named(node_logs=False)
        kernels = {one.host: s for s, one in sorted(self.sources.items()) if one.kind == "kernel" and one.host}
        known = {alias.alias for alias in self._hosts.aliases} | carrying
        machines = sorted(set(kernels) - known)
        if len(carrying) == 1 and len(machines) == 1 and all(CONTAINER.fullmatch(name) for name in carrying):
            yield kernels[machines[0]], DumpIdentity(1, "container", host=min(carrying), alias=machines[0])

    def problems(self) -> Iterator[tuple[int | None, str | None, DumpProblem]]:
        """Contradictions."""
        for s, problem in self._hosts.problems:
            yield s, self._seen.sources[s].path, problem
        for s in self.order:
            claims, source = self._seen.claims[s], self.sources[s]
            spoken = self._maps.ranks_in(s)
            path = self._seen.sources[s].path
            if (
                claims.rank is not None
                and len(spoken) == 1
                and claims.rank not in spoken
                and source.kind not in MACHINE_KINDS
            ):
                detail = (
                    f"the path claims rank {claims.rank}, the lines speak as rank {min(spoken)}; they were believed"
                )
                yield s, path, DumpProblem("identity-conflict", "notice", detail)
            elif claims.rank is not None and len(spoken) > 1 and source.kind not in MACHINE_KINDS:
                detail = f"the path claims rank {claims.rank}, the lines speak as ranks {_some(spoken)}"
                yield s, path, DumpProblem("identity-conflict", "notice", detail)
        for key, values in self._maps.split_hosts():
            yield (
                None,
                None,
                DumpProblem(
                    "identity-conflict", "notice", f"rank {key} is placed on several hosts: {', '.join(values)}"
                ),
            )


def _mentioned(spoken: Sequence[Spoken]) -> set[str]:
    """Hosts that schedulers and launchers speak of."""
    found: set[str] = set()
    for row in spoken:
        if row.event in ("node-lost", "exit", "sched-action", "agent-kill", "agent-report"):
            found.update(host_list((row.captures or {}).get("hosts", "")[:4096]))
            found.add((row.captures or {}).get("host", ""))
    return {name for name in found if name and any(letter.isdigit() for letter in name)}


def _attempt_at(one: Statement, claimed: int | None, cuts: Sequence[Boundary]) -> int | None:
    """The attempt that a statement belongs to, None where it may hold for all."""
    if one.attempt is not None or claimed is not None:
        return one.attempt if one.attempt is not None else claimed
    return (
        max((cut for cut in cuts if cut.line <= max(one.line, 1)), key=lambda cut: cut.line).attempt if cuts else None
    )


def _local_prefixes(statements: Sequence[Statement]) -> frozenset[int]:
    """Sources whose `[rankN]:` is torchrun's tee with a role called rank, so that N is the local rank."""
    found = set()
    for one in statements:
        rank = one.rank if one.rank is not None else one.comm_rank
        if one.own and rank is not None and one.said_rank is not None and rank != one.said_rank == one.local_rank:
            found.add(one.source_id)
    return frozenset(found)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 16 else None


def _some(ranks: frozenset[int]) -> str:
    shown = sorted(ranks)[:8]
    return ", ".join(map(str, shown)) + (", ..." if len(ranks) > len(shown) else "")
