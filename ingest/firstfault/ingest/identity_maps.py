"""From processes, local ranks and tasks to global ranks, and from ranks to hosts, for one job."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from firstfault.ingest.identity_blocks import Blocks, blocks_of
from firstfault.ingest.identity_commands import small
from firstfault.ingest.identity_families import ranks_of_files
from firstfault.ingest.identity_hosts import NUMBERED
from firstfault.ingest.identity_ranks import Votes, offsets
from firstfault.ingest.identity_sources import SourceHosts, Witnesses
from firstfault.ingest.identity_statements import Statement

Node = tuple[str, str]
POD_NAME = re.compile(r"^(?P<job>.+)-(?:master|worker)-\d{1,6}$")
LAUNCHERS = re.compile(
    rb"torch[./]distributed[./](?:run|elastic|launch)|torchrun|accelerate[./ ]launch|deepspeed[./]launcher"
)
NODE_LIMIT = 16
"""More ranks than this are never taken for one machine without a word about it."""


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
        self._seen, self._hosts, self.world, self._local_prefix = seen, hosts, world, local_prefix
        self._by_user = said_by_user
        self._family = ranks_of_files({s: one.path for s, one in seen.sources.items()}, seen.claims, world)
        self.pid_rank, self.rank_host, self.rank_local = Votes(), Votes(), Votes()
        self.node_local, self.node_rank, self.task_host = Votes(), Votes(), Votes()
        self._placed, self.pid_host = Votes(), Votes()
        self._all_pods = {one.pod for one in seen.statements} | {claims.pod for claims in seen.claims.values()}
        sizes = {one.local_world for one in seen.statements if one.local_world}
        self.local_world = min(sizes) if len(sizes) == 1 else None
        self._alone = {s: pair for s in seen.order if (pair := _own_numbers(seen.own.get(s, ()))) is not None}
        self.task_is_rank = self._tasks()
        self.one_node = self._one_node()
        for one in seen.statements:
            self._take(one)
        self._take_headers()
        for rank, local in self._alone.values():
            self.rank_local.count(rank, local, "start-line")
        self._spoken = {s: self._ranks_spoken(s) for s in seen.order}
        alone = {next(iter(spoken)) for spoken in self._spoken.values() if len(spoken) == 1}
        self._file_for_each = world is not None and 1 < world <= len(alone) and alone >= set(range(world))
        """Whether every rank of the job is the only one that some file names."""
        self._rank = {s: self._by_evidence(s) for s in seen.order}
        self._correct_guesses()
        self._spread()
        self._inferred: list[tuple[int, str, int]] = []
        self.blocks = self._find_blocks()
        self._starts = self._node_starts()
        for s in seen.order:
            if self._rank[s] is None:
                self._rank[s] = self._by_arithmetic(s)
        self._spread()

    # what a source is

    def rank_of(self, source_id: int) -> int | None:
        """The rank that a whole source belongs to."""
        return self._rank.get(source_id)

    def ranks_in(self, source_id: int) -> frozenset[int]:
        """All ranks that the lines of a source name as their writer."""
        return self._spoken.get(source_id, frozenset())

    def local_of(self, source_id: int) -> int | None:
        """The local rank that a whole source belongs to."""
        claimed = self._seen.claims[source_id].local_rank
        rank = self._rank.get(source_id)
        if claimed is not None or rank is None:
            return claimed
        return self.local_of_rank(rank)

    def node_rank_of(self, source_id: int) -> int | None:
        """The rank of the node that a source belongs to."""
        host = self._hosts.of(source_id)
        if (found := self.node_rank.sure_int(("source", str(source_id)))) is not None:
            return found
        if host is not None and (found := self.node_rank.best_int(("host", host))) is not None:
            return found
        claims = self._seen.claims[source_id]
        if claims.task is not None and not self.task_is_rank:
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
        found = self.rank_local.best_int(rank)
        if found is not None or self.one_node:
            return rank if found is None else found
        even = self.local_world is not None and self.world is not None and self.world % self.local_world == 0
        return rank % self.local_world if even and self.local_world else None

    def rank_of_pid(self, source_id: int, host: str | None, pid: int) -> int | None:
        """The rank of a process."""
        for key in ((("source", str(source_id)), pid), (("host", host), pid)):
            if (found := self.pid_rank.sure_int(key)) is not None:
                return found
        return None

    def host_of_pid(self, source_id: int, pid: int) -> str | None:
        """The host of a process, as a launcher's table in the same source says."""
        key = (("source", str(source_id)), pid)
        return self.pid_host.best_str(key) if self.pid_host.clear(key) else None

    def rank_of_local(self, source_id: int, host: str | None, local_rank: int) -> int | None:
        """The rank with a local rank on the node that a source speaks for."""
        for node in self._nodes(source_id, host):
            if (found := self.node_local.sure_int((node, local_rank))) is not None:
                return found
        for node in self._nodes(source_id, host):
            if (start := self._starts.get(node)) is not None:
                return small(start + local_rank)
        return local_rank if self.one_node and (self.world is None or local_rank < self.world) else None

    def host_of_task(self, task: int) -> str | None:
        """The host of a Slurm task, where the scheduler names both, or where tasks are nodes."""
        found = self.task_host.best_str(task)
        if found is not None or self.task_is_rank:
            return found
        hosts = {
            str(key[1])
            for key in self.node_rank.keys()  # noqa: SIM118
            if isinstance(key, tuple) and key[0] == "host" and self.node_rank.best_int(key) == task
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
        return self.rank_host.best_str(rank)

    def inferred(self) -> list[tuple[int, str, int]]:
        """(rank, host, local rank) of ranks that no line places and that lie in the block of a host."""
        return list(self._inferred)

    def split_hosts(self) -> list[tuple[int, tuple[str, ...]]]:
        """Ranks that are placed on several hosts with equal right, in one attempt."""
        found: dict[int, tuple[str, ...]] = {}
        for key in self._placed.keys():  # noqa: SIM118
            hosts = self._placed.values(key)
            if isinstance(key, tuple) and len(hosts) > 1 and not self._placed.clear(key):
                found.setdefault(key[0], tuple(str(host) for host in hosts))
        return sorted(found.items())

    # how

    def _tasks(self) -> bool:
        """Whether a Slurm task is a rank: lines show it, or nothing starts several ranks inside a task."""
        seen = self._seen
        agree = disagree = 0
        for s in seen.order:
            ranks = {one.rank for one in seen.own.get(s, ()) if one.rank is not None}
            if (task := seen.claims[s].task) is not None and ranks:
                agree += ranks == {task} != {0}
                disagree += ranks != {task}
        pairs = {(one.task, one.rank) for one in seen.statements if one.own}
        pairs |= {(key.task, key.rank) for s in seen.order if s not in self._local_prefix for key in seen.keys[s]}
        for said, rank in pairs:
            if said is not None and rank is not None:
                agree += said == rank != 0
                disagree += said != rank
        if agree or disagree:
            return agree > disagree
        named = {claims.task for claims in seen.claims.values() if claims.task is not None}
        if self.world is not None and self.world > 1 and named == set(range(self.world)):
            return True
        if any(LAUNCHERS.search(one.head) for one in seen.sources.values()):
            return False
        if self.world is not None:
            tasks = [claims.task for claims in seen.claims.values()] + [one.task for one in seen.statements]
            tasks += [key.task for s in seen.order for key in seen.keys[s]]
            return max((task for task in tasks if task is not None), default=-1) + 1 == self.world
        return not any((one.local_world or 0) > 1 for one in seen.statements)

    def _one_node(self) -> bool:
        """Whether all ranks can sit on one machine: nothing speaks of a second node."""
        statements = self._seen.statements
        if any((one.node_rank or 0) > 0 or (one.nodes or 0) > 1 for one in statements):
            return False
        if any(one.rank != one.local_rank for one in statements if one.rank is not None and one.local_rank is not None):
            return False
        if any(rank != local for rank, local in self._alone.values()):
            return False
        if len(self._machines()) > 1 or self._hosts.remote:
            return False
        hosts = self._hosts.named(node_logs=False) | {
            one.host for one in statements if one.host is not None and one.rank is not None
        }
        hosts |= {host for s in self._seen.order if not self._seen.is_node_log(s) for host in self._hosts.all_spoken(s)}
        trees = {claims.tree for claims in self._seen.claims.values() if claims.tree}
        return len(hosts) <= 1 and len(trees) <= 1 and (self.world is None or self.world <= NODE_LIMIT)

    def _machines(self) -> set[str]:
        """Hosts that speak, names of one machine counted once."""
        first: dict[str, str] = {}
        pairs = [(alias.host, alias.alias) for alias in self._hosts.aliases]
        pairs += [(one.host, one.alias) for one in self._seen.statements if one.host and one.alias]
        for host, alias in sorted(pairs):
            first.setdefault(alias, first.get(host, host))
        return {first.get(host, host) for host in self._hosts.named(node_logs=True)}

    def _nodes(self, source_id: int, host: str | None) -> list[Node]:
        """Keys under which local ranks are looked up, the narrowest first."""
        keys: list[Node] = []
        if tree := self._seen.claims[source_id].tree:
            keys.append(("tree", tree))
        if host is not None:
            keys.append(("host", host))
        if not tree:
            keys.append(("source", str(source_id)))
        return keys

    def _take(self, one: Statement) -> None:
        source_host = self._hosts.of(one.source_id)
        speaks_for_node = one.speaks_for_node
        host = one.host or ((one.said_host or source_host) if speaks_for_node else None)
        placed = one.how if one.host or one.said_host or one.source_id not in self._hosts.guessed else "path"
        if one.task is not None:
            self.task_host.count(one.task, one.host, one.how)
            if not self.task_is_rank and one.host is not None and one.local_rank is None:
                self.node_rank.count(("host", one.host), one.task, one.how)
        rank = one.rank
        if rank is None and one.task is not None and self.task_is_rank:
            rank = one.task
        if one.node_rank is not None:
            if host is not None:
                self.node_rank.count(("host", host), one.node_rank, one.how)
            if one.how in ("rendezvous", "command"):
                self.node_rank.count(("source", str(one.source_id)), one.node_rank, one.how)
        if rank is None or (self.world is not None and rank >= self.world):
            return
        self.rank_host.count(rank, host, placed)
        self._placed.count((rank, one.attempt), host, one.how)
        self.rank_local.count(rank, one.local_rank, one.how)
        for pid in sorted({one.pid, one.said_pid if one.own else None} - {None}, key=str):
            where = ("host", host) if host is not None else ("source", str(one.source_id))
            self.pid_rank.count((where, pid), rank, one.how)
            if one.how == "launcher-table" and one.host is not None:
                here = (("source", str(one.source_id)), pid)
                self.pid_rank.count(here, rank, one.how)
                self.pid_host.count(here, one.host, one.how)
        if one.local_rank is not None:
            for node in self._nodes(one.source_id, host):
                if speaks_for_node or node[0] == "host":
                    self.node_local.count((node, one.local_rank), rank, one.how)

    def _take_headers(self) -> None:
        """What the headers of lines say together: a task and its host, a rank, its host and its process."""
        for s in self._seen.order:
            if s in self._local_prefix or self._seen.is_node_log(s):
                continue
            for key in self._seen.keys[s]:
                host = self._seen.names.short(key.host)
                if key.task is not None:
                    self.task_host.count(key.task, host, "prefix")
                rank = key.task if key.rank is None and self.task_is_rank else key.rank
                if rank is None or (self.world is not None and rank >= self.world):
                    continue
                placed = "prefix" if host is not None or s not in self._hosts.guessed else "path"
                host = host or self._hosts.of(s)
                self.rank_host.count(rank, host, placed)
                self.rank_local.count(rank, key.local_rank, "prefix")
                if key.pid is not None:
                    where = ("host", host) if host is not None else ("source", str(s))
                    self.pid_rank.count((where, key.pid), rank, "prefix")

    def _correct_guesses(self) -> None:
        """A host that only the path suggests gives way to the one where lines elsewhere place the rank."""
        found: dict[int, str] = {}
        for s in self._hosts.guessed:
            rank = self._rank[s]
            if rank is not None and (host := self.rank_host.best_str(rank)) is not None:
                found[s] = host
        self._hosts.correct(found)
        own = [s for s in self._family if s in self._hosts.guessed]
        if (self.local_world or 0) > 1 and len({self._hosts.guessed[s] for s in own}) == self.world:
            self._hosts.forget(own)

    def _ranks_spoken(self, s: int) -> frozenset[int]:
        found = {one.rank for one in self._seen.own.get(s, ()) if one.rank is not None}
        if s not in self._local_prefix:
            found.update(key.rank for key in self._seen.keys[s] if key.rank is not None)
        if self.task_is_rank:
            found.update(key.task for key in self._seen.keys[s] if key.task is not None)
        return frozenset(found)

    def _by_evidence(self, s: int) -> int | None:
        """The rank of a source by what its lines and its path say."""
        if s in self._by_user:
            return self._by_user[s]
        claims, spoken = self._seen.claims[s], self._spoken[s]
        if self._seen.is_node_log(s) and len(spoken) != 1:
            return None
        if len(spoken) == 1:
            rank = next(iter(spoken))
            return rank if self._speaks_alone(s, rank) else None
        if len(spoken) > 1:
            votes: Counter[int] = Counter()
            for key in self._seen.keys[s]:
                if key.rank is not None:
                    votes[key.rank] += key.count
            return (
                claims.rank if claims.rank is not None and votes[claims.rank] * 10 >= sum(votes.values()) * 9 else None
            )
        if claims.rank is not None:
            return claims.rank
        if claims.task is not None and self.task_is_rank:
            return claims.task
        if s in self._family and not self._seen.is_node_log(s):
            return self._family[s]
        pids = [claims.pid] if claims.pid is not None else []
        keys = self._seen.keys[s]
        if sum(key.count for key in keys if key.pid is not None) * 2 > sum(key.count for key in keys):
            pids += [key.pid for key in keys if key.pid is not None]
        ranks = {self.rank_of_pid(s, self._hosts.of(s), pid) for pid in pids} - {None}
        return ranks.pop() if len(ranks) == 1 else None

    def _speaks_alone(self, s: int, rank: int) -> bool:
        """Whether the one rank that a file names wrote all of it: other ranks may stand in it without a name."""
        claims, keys = self._seen.claims[s], self._seen.keys[s]
        if (
            any(claim is not None for claim in (claims.rank, claims.task, claims.local_rank, claims.pid))
            or claims.index == rank
        ):
            return True
        if self._seen.is_node_log(s):
            return False
        if self._seen.sources[s].reader_kind == "flight-recorder":
            return True
        mine = [one for one in self._seen.own.get(s, ()) if one.rank == rank]
        writers = {(one.said_host, pid) for one in mine for pid in (one.pid, one.said_pid) if pid is not None}
        named = sum(
            key.count for key in keys if key.rank == rank or (self._seen.names.short(key.host), key.pid) in writers
        )
        return self.world == 1 or named * 2 > sum(key.count for key in keys) or self._file_for_each

    def _by_arithmetic(self, s: int) -> int | None:
        """The rank of a source of which only the local rank is known, from its node."""
        claims = self._seen.claims[s]
        if claims.local_rank is None or self._spoken[s] or self._seen.is_node_log(s):
            return None
        return self.rank_of_local(s, self._hosts.of(s), claims.local_rank)

    def _spread(self) -> None:
        """What sources with a rank say about hosts and local ranks, and hosts for sources of known ranks."""
        for s in self._seen.order:
            rank, host = self._rank[s], self._hosts.of(s)
            if rank is None:
                continue
            self.rank_host.count(rank, host, "path")
            local = self._seen.claims[s].local_rank
            if local is not None:
                self.rank_local.count(rank, local, "path")
                for node in self._nodes(s, host):
                    self.node_local.count((node, local), rank, "path")
        by_tree: dict[str, set[str]] = defaultdict(set)
        for s in self._seen.order:
            rank, tree = self._rank[s], self._seen.claims[s].tree
            host = self._hosts.of(s) or (self.host_of(rank) if rank is not None else None)
            if tree and host:
                by_tree[tree].add(host)
            if rank is not None and host is not None:
                self._hosts.put(s, host)
        for s in self._seen.order:
            found = by_tree.get(self._seen.claims[s].tree or "", set())
            if len(found) == 1:
                self._hosts.put(s, next(iter(found)))
        named = self._hosts.named(node_logs=False) | set(self._rank_hosts()) or self._hosts.named(node_logs=True)
        if self.one_node and len(named) == 1:
            for s in self._seen.order:
                if self._seen.claims[s].kind not in ("scheduler", "events"):
                    self._hosts.put(s, next(iter(named)))

    def _rank_hosts(self) -> Iterator[str]:
        for rank in self.rank_host.keys():  # noqa: SIM118
            if (host := self.rank_host.best_str(rank)) is not None:
                yield host

    def _node_starts(self) -> dict[Node, int]:
        """The first rank of each node, from known pairs of rank and local rank, else from its node rank."""
        pairs: list[tuple[Node, int, int]] = []
        for node, local_rank in self._node_keys():
            rank = self.node_local.sure_int((node, local_rank))
            if rank is not None:
                pairs.append((node, rank, local_rank))
        starts = offsets(pairs)
        for host, start in self.blocks.starts.items():
            starts.setdefault(("host", host), start)
        if self.blocks.size is not None:
            for s in self._seen.order:
                node_rank = self.node_rank_of(s)
                for node in self._nodes(s, self._hosts.of(s)):
                    if node_rank is not None and node not in starts:
                        starts[node] = node_rank * self.blocks.size
        return starts

    def _find_blocks(self) -> Blocks:
        """Blocks of ranks by host; ranks that nothing places get the host of their block."""
        ranks: dict[str, set[int]] = defaultdict(set)
        for rank in self.rank_host.keys():  # noqa: SIM118
            host = self.rank_host.best_str(rank)
            if isinstance(rank, int) and host is not None:
                ranks[host].add(rank)
        node_ranks: dict[str, int] = {}
        for s in self._seen.order:
            host, node_rank = self._hosts.of(s), self.node_rank_of(s)
            if host is not None and node_rank is not None:
                node_ranks.setdefault(host, node_rank)
        for key in self.node_rank.keys():  # noqa: SIM118
            if isinstance(key, tuple) and key[0] == "host" and (found := self.node_rank.sure_int(key)) is not None:
                node_ranks.setdefault(str(key[1]), found)
        for host, number in self._numbered_hosts().items():
            node_ranks.setdefault(host, number)
        idle = self._hosts.named(node_logs=False) | set(self._pods(ranks))
        placed = [self.rank_local.best_int(rank) for found in ranks.values() for rank in found]
        least = max((local for local in placed if local is not None), default=0) + 1
        blocks = blocks_of(
            ranks, node_ranks, idle, {self.local_world} if self.local_world else set(), self.world, least
        )
        for host in sorted(blocks.starts):
            for rank in blocks.ranks_of(host):
                local = blocks.local_rank(host, rank)
                if local is None or (self.world is not None and rank >= self.world):
                    continue
                self.rank_local.count(rank, local, "inferred")
                if self.host_of(rank) is None:
                    self.rank_host.count(rank, host, "inferred")
                    self._inferred.append((rank, host, local))
        return blocks

    def _numbered_hosts(self) -> dict[str, int]:
        """Hosts that are called by the numbers of all nodes from 0 on (`node0`, `node1`), and only by paths."""
        guesses = {self._hosts.guessed[s] for s in self._hosts.guessed if self._hosts.of(s) is not None}
        found = {match["number"]: match for guess in guesses if (match := NUMBERED.match(guess))}
        numbers = sorted(int(number) for number in found)
        stems = {match["stem"] for match in found.values()}
        whole = len(numbers) > 1 and len(found) == len(guesses) and numbers == list(range(len(numbers)))
        named = self._hosts.named(node_logs=False)
        if not whole or len(stems) > 1 or named - guesses or (self.world or 0) % len(numbers):
            return {}
        return {match[0]: int(number) for number, match in found.items()}

    def _pods(self, known: Mapping[str, set[int]]) -> Iterator[str]:
        """Pods of a job of which some pods are known to carry ranks, told by the beginning of their names."""
        begins = {match["job"] for host in known if (match := POD_NAME.match(host))}
        for one in self._seen.statements:
            match = POD_NAME.match(one.pod or "")
            if match and match["job"] in begins:
                yield match[0]

    def _node_keys(self) -> Sequence[tuple[Node, int]]:
        return [key for key in self.node_local.keys() if isinstance(key, tuple)]  # noqa: SIM118


def _own_numbers(statements: Sequence[Statement]) -> tuple[int, int] | None:
    """Rank and local rank that one process says of itself, maybe in different lines of its log."""
    ranks = {one.rank for one in statements if one.rank is not None}
    locals_ = {one.local_rank for one in statements if one.local_rank is not None}
    return (ranks.pop(), locals_.pop()) if len(ranks) == len(locals_) == 1 else None
