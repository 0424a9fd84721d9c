"""From processes, local ranks and tasks to global ranks, and from ranks to hosts, for one job."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from firstfault.ingest.identity_evidence import Evidence
from firstfault.ingest.identity_layout import layout_of
from firstfault.ingest.identity_nodes import Nodes
from firstfault.ingest.identity_sources import SourceHosts, Witnesses
from firstfault.ingest.identity_writers import STACKS, WholeSources, rank_of_pid

COUNTED = re.compile(r"(?:worker|process|proc|trainer|rank|task)[-_]?0*(\d{1,6})", re.I)


class RankMaps:
    """The maps of one job. Look-ups give None where the statements do not settle the answer."""

    def __init__(
        self,
        seen: Witnesses,
        hosts: SourceHosts,
        world: int | None,
        local_prefix: frozenset[int],
        said_by_user: Mapping[int, int],
    ) -> None:
        self._seen, self._hosts = seen, hosts
        self.layout = layout_of(seen, hosts, world, local_prefix)
        self._alone: dict[str, int] | None = None
        self._all_pods = {one.pod for one in seen.statements} | {claims.pod for claims in seen.claims.values()}
        self._evidence = Evidence(seen, hosts, self.layout)
        self._whole = WholeSources(seen, hosts, self.layout, self._evidence, said_by_user)
        self._rank = {s: self._whole.rank_of(s) for s in seen.order}
        self._correct_guesses()
        self._spread()
        self._nodes = Nodes(seen, hosts, self.layout, self._evidence, self.node_rank_of)
        for s in seen.order:
            if self._rank[s] is None:
                dumped = self._seen.sources[s].reader_kind == STACKS
                self._rank[s] = self._whole.by_process(s) if dumped else self._by_arithmetic(s)
        self._spread()
        self._place_nodes()

    # what a source is

    def rank_of(self, source_id: int) -> int | None:
        """The rank that a whole source belongs to."""
        return self._rank.get(source_id)

    def ranks_in(self, source_id: int) -> frozenset[int]:
        """All ranks that the lines of a source name as their writer."""
        return self._whole.spoken.get(source_id, frozenset())

    def local_of(self, source_id: int) -> int | None:
        """The local rank that a whole source belongs to."""
        claimed = self._seen.claims[source_id].local_rank
        rank = self._rank.get(source_id)
        if claimed is not None or rank is None:
            return claimed
        return self.local_of_rank(rank)

    def node_rank_of(self, source_id: int) -> int | None:
        """The rank of the node that a source belongs to."""
        host, votes = self._hosts.of(source_id), self._evidence.node_rank
        if (found := votes.sure_int(("source", str(source_id)))) is not None:
            return found
        if host is not None and (found := votes.best_int(("host", host))) is not None:
            return found
        claims = self._seen.claims[source_id]
        if claims.task is not None and not self.layout.task_is_rank:
            return claims.task
        if claims.node_rank is not None or claims.role is None or claims.index is None:
            return claims.node_rank
        return claims.index + (1 if claims.role == "worker" and self._has_master(claims.pod or "") else 0)

    def _has_master(self, pod: str) -> bool:
        """Whether the job of a worker pod has a master, which then is node 0."""
        return f"{pod.rpartition('-worker-')[0]}-master-0" in self._all_pods

    # look-ups

    def local_of_rank(self, rank: int) -> int | None:
        """The local rank of a rank; on the one machine of a job the rank itself, else its place in its block."""
        found = self._evidence.rank_local.best_int(rank)
        if found is not None or self.layout.one_node:
            return rank if found is None else found
        size, world = self.layout.local_world, self.layout.world
        return rank % size if size is not None and world is not None and world % size == 0 else None

    def rank_of_pid(self, source_id: int, host: str | None, pid: int) -> int | None:
        """The rank of a process."""
        found = rank_of_pid(self._evidence, source_id, host, pid)
        local = self._evidence.local_of_pid(source_id, host, pid) if found is None else None
        return found if local is None else self.rank_of_local(source_id, host, local)

    def host_of_pid(self, source_id: int, pid: int) -> str | None:
        """The host of a process, as a launcher's table in the same source says."""
        key = (("source", str(source_id)), pid)
        return self._evidence.pid_host.best_str(key) if self._evidence.pid_host.clear(key) else None

    def rank_of_local(self, source_id: int, host: str | None, local_rank: int) -> int | None:
        """The rank with a local rank on the node that a source speaks for."""
        nodes = self._evidence.nodes(source_id, host)
        for node in nodes:
            if (found := self._evidence.node_local.sure_int((node, local_rank))) is not None:
                return found
        for node in nodes:
            if (found := self._nodes.rank_of(node, local_rank)) is not None:
                return found
        return local_rank if self.layout.one_node and self.layout.possible(local_rank) else None

    def host_of_task(self, task: int) -> str | None:
        """The host of a Slurm task, where the scheduler names both, or where tasks are nodes."""
        found = self._evidence.task_host.best_str(task)
        if found is not None or self.layout.task_is_rank:
            return found
        votes = self._evidence.node_rank
        hosts = {
            str(key[1])
            for key in votes.keys()  # noqa: SIM118
            if isinstance(key, tuple) and key[0] == "host" and votes.best_int(key) == task
        }
        return hosts.pop() if len(hosts) == 1 else None

    def ranks_by_pid(self, source_id: int) -> frozenset[int]:
        """Ranks whose processes speak in a source."""
        found = {
            self.rank_of_pid(source_id, self._seen.names.short(key.host) or self._hosts.of(source_id), key.pid)
            for key in self._seen.keys[source_id]
            if key.pid is not None
        }
        return frozenset(rank for rank in found if rank is not None)

    def host_of(self, rank: int) -> str | None:
        """The host of a rank."""
        return self._evidence.rank_host.best_str(rank)

    def rank_alone_on(self, host: str) -> int | None:
        """The rank of a host where each of several hosts carries one."""
        if self._alone is None:
            ranks: dict[str, set[int]] = defaultdict(set)
            for rank, place in self._evidence.hosts_of_ranks().items():
                ranks[place].add(rank)
            world = self.layout.world
            one_each = len(ranks) > 1 and all(len(found) == 1 for found in ranks.values())
            one_each = one_each and (world is None or world == len(ranks))
            self._alone = {place: min(found) for place, found in ranks.items()} if one_each else {}
        return self._alone.get(host)

    def inferred(self) -> list[tuple[int, str, int]]:
        """(rank, host, local rank) of ranks that no line places and that lie in the block of a host."""
        return list(self._nodes.inferred)

    def split_hosts(self) -> list[tuple[int, tuple[str, ...]]]:
        """Ranks that are placed on several hosts with equal right, in one attempt."""
        votes = self._evidence.placed
        found: dict[int, tuple[str, ...]] = {}
        for key in votes.keys():  # noqa: SIM118
            hosts = votes.values(key)
            if isinstance(key, tuple) and len(hosts) > 1 and not votes.clear(key):
                found.setdefault(key[0], tuple(str(host) for host in hosts))
        return sorted(found.items())

    # how

    def _correct_guesses(self) -> None:
        """A host that only the path suggests gives way to the one where lines elsewhere place the rank."""
        found: dict[int, str] = {}
        for s in self._hosts.guessed:
            rank = self._rank[s]
            if rank is not None and (host := self.host_of(rank)) is not None:
                found[s] = host
        self._hosts.correct(found)
        counted = [s for s in self._hosts.guessed if self._counts_ranks(s)]
        if len({self._rank[s] for s in counted}) > 1:
            self._hosts.forget(counted)
            for name in {self._hosts.guessed[s] for s in counted}:
                if not self._seen.names.lines[name]:  # no line calls a host so
                    self._evidence.rank_host.drop(name)
                    self._evidence.placed.drop(name)
        own = [s for s in self._whole.family if s in self._hosts.guessed]
        one_each = len({self._hosts.guessed[s] for s in own}) == self.layout.world
        if (self.layout.local_world or 0) > 1 and one_each:
            self._hosts.forget(own)

    def _counts_ranks(self, s: int) -> bool:
        """Whether what looks like a host in a path is a word for a process and the number of its rank."""
        match = COUNTED.fullmatch(self._hosts.guessed[s])
        return match is not None and self._rank[s] == int(match[1])

    def _by_arithmetic(self, s: int) -> int | None:
        """The rank of a source of which only the local rank is known, from its node."""
        claims = self._seen.claims[s]
        if claims.local_rank is None or self.ranks_in(s) or self._seen.is_node_log(s):
            return None
        return self.rank_of_local(s, self._hosts.of(s), claims.local_rank)

    def _place_nodes(self) -> None:
        """Files of nodes that bear the number of a node only, on the host that has this number."""
        hosts: dict[int, set[str]] = defaultdict(set)
        for host, number in self._nodes.numbers().items():
            hosts[number].add(host)
        for s in self._seen.order:
            own = self.node_rank_of(s)
            if own is not None and self._hosts.of(s) is None and len(hosts.get(own, ())) == 1:
                self._hosts.put(s, next(iter(hosts[own])))

    def _spread(self) -> None:
        """What sources with a rank say about hosts and local ranks, and hosts for sources of known ranks."""
        for s, rank in self._rank.items():
            if rank is not None:
                self._evidence.take_source(s, rank, self._hosts.of(s))
        by_tree: dict[str, set[str]] = defaultdict(set)
        for s, rank in self._rank.items():
            tree = self._seen.claims[s].tree
            host = self._hosts.of(s) or (self.host_of(rank) if rank is not None else None)
            if tree and host:
                by_tree[tree].add(host)
            if rank is not None and host is not None:
                self._hosts.put(s, host)
        for s in self._seen.order:
            found = by_tree.get(self._seen.claims[s].tree or "", set())
            if len(found) == 1:
                self._hosts.put(s, next(iter(found)))
        # a launcher that names the host of one rank says nothing about the others
        alone = {one.host for one in self._seen.statements if one.how == "launcher-table" and not one.speaks_for_node}
        told = {one.host for one in self._seen.statements if one.how != "launcher-table" or one.speaks_for_node}
        carrying = set(self._evidence.hosts_of_ranks().values()) - (alone - told)
        named = self._hosts.named(node_logs=False) | carrying or self._hosts.named(node_logs=True)
        if self.layout.one_node and len(named) == 1:
            for s in self._seen.order:
                if self._seen.claims[s].kind not in ("scheduler", "events"):
                    self._hosts.put(s, next(iter(named)))
