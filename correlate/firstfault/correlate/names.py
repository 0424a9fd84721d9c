"""Who is who: ranks, hosts and their other names, processes, devices, addresses; every look-up that joins two
witnesses.

Statements come from `identities`. They vote; a tie goes to the lower name, so the order of files decides nothing. A
name that belongs to several hosts (a node that carries two pods) stays an alias and never merges them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from firstfault.correlate.load import Identity, Timeline
from firstfault.correlate.model import short_host
from firstfault.correlate.reported import hosts_of_tasks, named_hosts, reported_ranks, tree_of

_TRUST = {"override": 50, "comm-init": 6, "start-line": 6, "rendezvous": 5, "launcher-table": 5, "prefix": 3, "path": 1}


def bus_key(bus_id: str) -> str:
    """A PCI address without its function, lower case, domain of four digits: '0000:4e:00'."""
    text = bus_id.strip().lower().split(".", 1)[0]
    parts = text.split(":")
    if len(parts) == 2:
        parts.insert(0, "0000")
    if len(parts) != 3:
        return text
    return f"{parts[0][-4:].rjust(4, '0')}:{parts[1]}:{parts[2]}"


def _winner(votes: Counter[str]) -> str | None:
    return min(votes, key=lambda name: (-votes[name], name)) if votes else None


def _counts_nodes(one: Identity, furthest: int) -> bool:
    """Whether a statement of rank and world size counts nodes: lines of the job are by ranks beyond that size.

    Job controllers set RANK and WORLD_SIZE to the pod's number and the number of pods where a launcher in each pod
    starts several processes (Kubeflow's PyTorchJob with nprocPerNode).
    """
    return (
        one.rank is not None and one.how == "start-line" and one.world_size is not None and one.world_size <= furthest
    )


class Names:
    """Look-ups between ranks, hosts, processes, devices and addresses of one job."""

    def __init__(self, timeline: Timeline) -> None:
        self._lines = Counter({short_host(host): 0 for host in timeline.host_lines})
        for host, count in timeline.host_lines.items():
            self._lines[short_host(host)] += count
        self.aliases: dict[str, set[str]] = defaultdict(set)
        self._owners: dict[str, set[str]] = defaultdict(set)
        rank_host: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
        rank_local: dict[int, Counter[int]] = defaultdict(Counter)
        self._pid_ranks: dict[tuple[str, int], set[int]] = defaultdict(set)
        self._bus_ranks: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._gpu_ranks: dict[tuple[str, int], set[int]] = defaultdict(set)
        self._rank_gpu: dict[int, Counter[int]] = defaultdict(Counter)
        self._pod_nodes: dict[str, set[str]] = defaultdict(set)
        worlds: Counter[int] = Counter()
        furthest = max((extent.rank for extent in timeline.extents), default=-1)
        stated = [one for one in timeline.identities if not _counts_nodes(one, furthest)]
        for one in timeline.identities:
            self._take_names(one)
        for one in stated:
            if one.world_size:
                worlds[one.world_size] += 1
        for one in stated:
            if one.rank is None:
                continue
            weight = _TRUST.get(one.how, 2)
            if one.host and (named := self.canonical(one.host)):
                rank_host[(one.rank, one.attempt if one.attempt is not None else -1)][named] += weight
            if one.local_rank is not None:
                rank_local[one.rank][one.local_rank] += weight
            if one.gpu is not None:
                self._rank_gpu[one.rank][one.gpu] += weight
        for extent in timeline.extents:
            if extent.source.host:
                rank_host[(extent.rank, extent.attempt)][self.canonical(extent.source.host)] += 1
        self.ranks: set[int] = {one.rank for one in stated if one.rank is not None}
        self.ranks.update(extent.rank for extent in timeline.extents)
        self.ranks.update(signal.rank for signal in timeline.signals if signal.rank is not None)
        if not self.ranks:
            for rank, hosts in reported_ranks(timeline).items():
                self.ranks.add(rank)
                rank_host[(rank, -1)].update(self.canonical(host) for host in hosts)
            if self.ranks == set(range(len(self.ranks))) and self.ranks:
                worlds[len(self.ranks)] += 1
        for rank, host in hosts_of_tasks(timeline).items():
            if rank in self.ranks and not any(number == rank for number, _ in rank_host):
                rank_host[(rank, -1)][self.canonical(host)] += 1
        self._rank_host: dict[tuple[int, int], str] = {}
        total: dict[int, Counter[str]] = defaultdict(Counter)
        for (rank, attempt), votes in rank_host.items():
            # a log that many ranks share bears the name of one host; what lines say counts in every attempt
            everywhere = rank_host.get((rank, -1), Counter()) if attempt != -1 else Counter()
            won = _winner(votes + everywhere)
            if won:
                self._rank_host[(rank, attempt)] = won
            total[rank].update(votes)
        for rank, votes in total.items():
            if won := _winner(votes):
                self._rank_host.setdefault((rank, -1), won)
        self._rank_local = {rank: min(votes, key=lambda n: (-votes[n], n)) for rank, votes in rank_local.items()}
        self.world = self._world(worlds)
        if self.world:
            self.ranks = {rank for rank in self.ranks if rank < self.world}
        elif len(self.ranks) > 2:
            # global ranks have no gaps: who is missing among them is a rank that printed nothing
            gaps = set(range(max(self.ranks))) - self.ranks if max(self.ranks) < 2 * len(self.ranks) else set()
            if len(gaps) <= max(1, len(self.ranks) // 4):
                self.ranks |= gaps
        apart = any(one.how == "coordinator" for one in timeline.identities)  # it tells the host of one rank alone
        only = None if apart else self._only_host(named_hosts(timeline))
        elsewhere = self._of_another_tree(timeline) | self._beyond(timeline)
        if only:
            for rank in self.ranks - elsewhere:
                self._rank_host.setdefault((rank, -1), only)
        self._number_by_position()
        if elsewhere:  # on hosts that nothing names, so that blocks cannot be counted
            self.ranks.update(range(min(self.world or 0, 1 << 17)))
        else:
            self._place_missing()
        for one in stated:
            if one.rank is None or one.rank not in self.ranks:
                continue
            where = self.canonical(one.host) if one.host else self.host_of(one.rank)
            if where is None:
                if one.pid is not None:
                    self._pid_ranks[("", one.pid)].add(one.rank)
                continue
            if one.pid is not None:
                self._pid_ranks[(where, one.pid)].add(one.rank)
            if one.bus_id:
                self._bus_ranks[(where, bus_key(one.bus_id))].add(one.rank)
            if one.gpu is not None:
                self._gpu_ranks[(where, one.gpu)].add(one.rank)

    def _of_another_tree(self, timeline: Timeline) -> set[int]:
        """Ranks all of whose own files lie in folders without a file of a rank that something places, where others do:
        a second folder of the same shape is that of a second host.
        """
        trees: dict[int, set[str]] = defaultdict(set)
        for source in timeline.sources.values():
            if source.rank is not None:
                trees[source.rank].add(tree_of(source.path))
        placed = {rank for rank, _ in self._rank_host}
        named = set().union(*(tops for rank, tops in trees.items() if rank in placed)) - {""}
        return {rank for rank, tops in trees.items() if named and "" not in tops and not tops & named}

    def _beyond(self, timeline: Timeline) -> set[int]:
        """Ranks behind all that have a line of their own, where others tell of one with a gap before it: they run on a
        host that nothing names.
        """
        own = {extent.rank for extent in timeline.extents}
        first = max(own, default=-1) + 1
        told = max((one.rank for one in timeline.signals if one.rank is not None), default=-1)
        return {rank for rank in self.ranks if rank >= first} if own and told > first else set()

    def _take_names(self, one: Identity) -> None:
        if not one.host:
            return
        host = short_host(one.host)
        for other in (one.alias, one.pod, one.address, one.host):
            if other and short_host(other) != host:
                self.aliases[host].add(other)
                self._owners[short_host(other)].add(host)
            elif other and other != host:
                self.aliases[host].add(other)

    def _world(self, worlds: Counter[int]) -> int | None:
        if worlds:
            best = max(worlds, key=lambda n: (worlds[n], n))
            return best if not self.ranks or best > max(self.ranks) else max(self.ranks) + 1
        return None

    def _only_host(self, named: set[str]) -> str | None:
        known = set(self._rank_host.values())
        if len({self.canonical(host) for host in named} | known) > 1:
            return None
        if len(known) == 1 and self.world is not None and len(self.ranks) <= 16:
            return next(iter(known))
        candidates = {self.canonical(host) for host in self._lines}
        # no machine has more devices: a host that only its own records name carries some of the ranks, if any
        if len(candidates) == 1 and known <= candidates and (known or max(self.ranks, default=0) < 16):
            return next(iter(candidates))
        return None

    def _place_missing(self) -> None:
        """Ranks of the world that no line names, on the host whose block of consecutive ranks they complete."""
        if not self.world or self.world > 1 << 17:
            return
        if len(self.ranks) == self.world and all(self.host_of(rank) for rank in self.ranks):
            return
        blocks: dict[str, list[int]] = defaultdict(list)
        for rank in sorted(self.ranks):
            if host := self.host_of(rank):
                blocks[host].append(rank)
        hosts = len(blocks)
        size = self.world // hosts if hosts and self.world % hosts == 0 else 0
        if size and self._fits(list(blocks.values()), size):
            owner = {block[0] // size: host for host, block in blocks.items()}
            if len(owner) == hosts:
                for rank in range(self.world):
                    if not self.host_of(rank):
                        self._rank_host.setdefault((rank, -1), owner[rank // size])
                        self._rank_local.setdefault(rank, rank % size)
        self.ranks.update(range(self.world))

    def _fits(self, blocks: list[list[int]], size: int) -> bool:
        """Whether hosts carry blocks of a size: no rank outside its block, no local rank that says otherwise, and not
        whole smaller blocks, beside which there are hosts that nothing names.
        """
        if any(block[0] // size != block[-1] // size for block in blocks):
            return False
        if any(self._rank_local.get(rank, rank % size) != rank % size for block in blocks for rank in block):
            return False
        lengths = {len(block) for block in blocks}
        length = min(lengths)
        whole = all(block[-1] - block[0] == length - 1 and block[0] % length == 0 for block in blocks)
        return len(lengths) > 1 or length == size or not whole

    def _number_by_position(self) -> None:
        """Local ranks that nothing states, where each host carries one whole block of consecutive ranks."""
        blocks: dict[str, list[int]] = defaultdict(list)
        for rank in sorted(self.ranks):
            if host := self.host_of(rank):
                blocks[host].append(rank)
        sizes = {len(block) for block in blocks.values()}
        if len(sizes) != 1:
            return
        size = sizes.pop()
        for block in blocks.values():
            if block[0] % size == 0 and block[-1] - block[0] == size - 1:
                for rank in block:
                    self._rank_local.setdefault(rank, rank - block[0])

    def canonical(self, name: str) -> str:
        """The host's own name for any of its names; the short name itself where nothing else is known."""
        short = short_host(name)
        if self._lines.get(short):
            return short
        owners = self._owners.get(short)
        if owners and len(owners) == 1:
            return next(iter(owners))
        return short

    def hosts_named(self, name: str) -> tuple[str, ...]:
        """All hosts that carry a name or address: a node may carry several pods."""
        short = short_host(name)
        found = {short} if self._lines.get(short) else set()
        found.update(self._owners.get(short, ()))
        return tuple(sorted(found))

    def host_of(self, rank: int, attempt: int = -1) -> str | None:
        """The host that carries a rank (in an attempt, where it moved)."""
        return self._rank_host.get((rank, attempt)) or self._rank_host.get((rank, -1))

    def local_rank(self, rank: int) -> int | None:
        """Local rank of a global rank."""
        return self._rank_local.get(rank)

    def gpu_of(self, rank: int) -> int | None:
        """CUDA ordinal of a rank as its process sees it."""
        votes = self._rank_gpu.get(rank)
        return min(votes, key=lambda n: (-votes[n], n)) if votes else None

    def ranks_of_host(self, host: str, attempt: int = -1) -> tuple[int, ...]:
        """All ranks that a host carries; of every pod that the host, as a node, carries."""
        names = {self.canonical(host), *self.hosts_named(host)}
        # lines of a pod may stand under the name of its node; one that carries several pods tells them not apart
        alone = {
            short_host(other)
            for name in names
            for other in self.aliases.get(name, ())
            if self._owners.get(short_host(other)) == {name}
        }
        names |= alone
        return tuple(sorted(rank for rank in self.ranks if self.host_of(rank, attempt) in names))

    def rank_of_pid(self, host: str | None, pid: int) -> int | None:
        """The one rank that a process id on a host belongs to; without a host, where only one rank has it."""
        if host is not None:
            found: set[int] = set()
            for name in {self.canonical(host), *self.hosts_named(host)}:
                found |= self._pid_ranks.get((name, pid), set())
            if not found and not any(self.host_of(rank) for rank in self.ranks):
                found = self._pid_ranks.get(("", pid), set())  # a job whose lines name no host
        else:
            found = set().union(*(ranks for (_, p), ranks in self._pid_ranks.items() if p == pid))
        return next(iter(found)) if len(found) == 1 else None

    def rank_of_local(self, host: str, local_rank: int, attempt: int = -1) -> int | None:
        """The rank with a local rank on a host."""
        found = [rank for rank in self.ranks_of_host(host, attempt) if self._rank_local.get(rank) == local_rank]
        return found[0] if len(found) == 1 else None

    def rank_of_bus(self, host: str | None, bus_id: str) -> int | None:
        """The rank that drives a PCI device; without a host (or with an unknown one) where only one rank has that
        address.
        """
        key = bus_key(bus_id)
        if host is not None:
            found: set[int] = set()
            names = {self.canonical(host), *self.hosts_named(host)}
            for name in names:
                found |= self._bus_ranks.get((name, key), set())
            if len(found) == 1:
                return next(iter(found))
            if found or any(name in names for name, _ in self._bus_ranks):
                return None
        every = set().union(*(ranks for (_, bus), ranks in self._bus_ranks.items() if bus == key))
        hosts = {self.host_of(rank) for rank in self.ranks}
        return next(iter(every)) if len(every) == 1 and (host is None or len(hosts) <= 1) else None

    def ranks_of_bus(self, bus_id: str) -> tuple[int, ...]:
        """All ranks of the job whose device has a PCI address, on whatever host."""
        key = bus_key(bus_id)
        return tuple(sorted(set().union(*(ranks for (_, bus), ranks in self._bus_ranks.items() if bus == key))))

    def rank_of_gpu(self, host: str, gpu: int) -> int | None:
        """The rank that sees a device under an ordinal; the local rank stands in where no line says it."""
        found: set[int] = set()
        for name in {self.canonical(host), *self.hosts_named(host)}:
            found |= self._gpu_ranks.get((name, gpu), set())
        if len(found) == 1:
            return next(iter(found))
        return self.rank_of_local(host, gpu) if not found else None

    def host_of_address(self, address: str) -> str | None:
        """The one host with an address or name, None where none or several have it."""
        found = self.hosts_named(address)
        return found[0] if len(found) == 1 else None

    def rank_hosts(self, ranks: Iterable[int], attempt: int = -1) -> tuple[str, ...]:
        """Hosts of some ranks, sorted, unknown ones left out."""
        return tuple(sorted({host for rank in ranks if (host := self.host_of(rank, attempt))}))

    def other_names(self, hosts: Iterable[str]) -> tuple[str, ...]:
        """Aliases of some hosts, sorted."""
        return tuple(sorted(set().union(*(self.aliases.get(host, set()) for host in hosts))))

    def all_hosts(self) -> tuple[str, ...]:
        """Hosts that carry ranks, sorted; where no rank has one, all hosts that wrote lines."""
        carrying = {host for rank in self.ranks if (host := self.host_of(rank))}
        return tuple(sorted(carrying or {self.canonical(host) for host in self._lines}))
