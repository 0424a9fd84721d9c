"""Places ranks on nodes where lines place only some: blocks of ranks, node numbers, the first rank of each node."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from firstfault.ingest.identity_blocks import Blocks, blocks_of
from firstfault.ingest.identity_evidence import Evidence, Node
from firstfault.ingest.identity_hosts import NUMBERED
from firstfault.ingest.identity_layout import Layout
from firstfault.ingest.identity_ranks import offsets
from firstfault.ingest.identity_sources import SourceHosts, Witnesses

POD_NAME = re.compile(r"^(?P<job>.+)-(?:master|worker)-\d{1,6}$")


class Nodes:
    """The blocks of a job, the first rank of each node, and the ranks that were placed by them."""

    def __init__(
        self,
        seen: Witnesses,
        hosts: SourceHosts,
        layout: Layout,
        evidence: Evidence,
        node_rank_of: Callable[[int], int | None],
    ) -> None:
        self._seen, self._hosts, self._layout, self._evidence = seen, hosts, layout, evidence
        self._node_rank_of = node_rank_of
        self.inferred: list[tuple[int, str, int]] = []
        """(rank, host, local rank) of ranks that no line places and that lie in the block of a host."""
        self._blocks = self._find_blocks()
        self._starts = self._starts_by_pairs()
        self._starts_of_blocks = self._starts_by_blocks()

    def rank_of(self, node: Node, local_rank: int) -> int | None:
        """The rank with a local rank on a node whose first rank is known."""
        size, start = self._blocks.size, self._starts.get(node)
        if start is None and (size is None or local_rank < size):
            start = self._starts_of_blocks.get(node)
        return start + local_rank if start is not None and self._layout.possible(start + local_rank) else None

    def numbers(self) -> dict[str, int]:
        """The node rank of each host, as it is said or as its block of ranks gives it."""
        size = self._blocks.size
        found = {host: start // size for host, start in self._blocks.starts.items()} if size else {}
        return {**found, **self._evidence.nodes_of_hosts()}

    def _find_blocks(self) -> Blocks:
        """Blocks of ranks by host; ranks that nothing places get the host of their block."""
        evidence, layout = self._evidence, self._layout
        ranks: dict[str, set[int]] = defaultdict(set)
        for rank, host in evidence.hosts_of_ranks().items():
            ranks[host].add(rank)
        node_ranks: dict[str, int] = {}
        for s in self._seen.order:
            named, node_rank = self._hosts.of(s), self._node_rank_of(s)
            if named is not None and node_rank is not None:
                node_ranks.setdefault(named, node_rank)
        for host, number in (*evidence.nodes_of_hosts().items(), *self._numbered_hosts().items()):
            node_ranks.setdefault(host, number)
        idle = self._hosts.named(node_logs=False) | set(self._pods(ranks))
        placed = [evidence.rank_local.best_int(rank) for found in ranks.values() for rank in found]
        least = max((local for local in placed if local is not None), default=0) + 1
        said = {layout.local_world} if layout.local_world else set()
        blocks = blocks_of(ranks, node_ranks, idle, said, layout.world, least)
        for host in sorted(blocks.starts):
            for rank in blocks.ranks_of(host):
                local = blocks.local_rank(host, rank)
                if local is None or not layout.possible(rank):
                    continue
                evidence.rank_local.count(rank, local, "inferred")
                if evidence.rank_host.best_str(rank) is None:
                    evidence.rank_host.count(rank, host, "inferred")
                    self.inferred.append((rank, host, local))
        return blocks

    def _numbered_hosts(self) -> dict[str, int]:
        """Hosts that are called by the numbers of all nodes from 0 on (`node0`, `node1`), and only by paths."""
        guesses = {self._hosts.guessed[s] for s in self._hosts.guessed if self._hosts.of(s) is not None}
        found = {match["number"]: match for guess in guesses if (match := NUMBERED.match(guess))}
        numbers = sorted(int(number) for number in found)
        stems = {match["stem"] for match in found.values()}
        whole = len(numbers) > 1 and len(found) == len(guesses) and numbers == list(range(len(numbers)))
        named = self._hosts.named(node_logs=False)
        if not whole or len(stems) > 1 or named - guesses or (self._layout.world or 0) % len(numbers):
            return {}
        return {match[0]: int(number) for number, match in found.items()}

    def _pods(self, known: Mapping[str, set[int]]) -> Iterator[str]:
        """Pods of a job of which some pods are known to carry ranks, told by the beginning of their names."""
        begins = {match["job"] for host in known if (match := POD_NAME.match(host))}
        for one in self._seen.statements:
            match = POD_NAME.match(one.pod or "")
            if match and match["job"] in begins:
                yield match[0]

    def _starts_by_pairs(self) -> dict[Node, int]:
        """The first rank of each node that pairs of rank and local rank give."""
        pairs: list[tuple[Node, int, int]] = []
        for key in self._evidence.node_local.keys():  # noqa: SIM118
            if isinstance(key, tuple) and (rank := self._evidence.node_local.sure_int(key)) is not None:
                pairs.append((key[0], rank, key[1]))
        return offsets(pairs)

    def _starts_by_names(self) -> dict[Node, int]:
        """The first rank of each node, where files are called by node and device, alike on all nodes."""
        grid: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for s in self._seen.order:
            one = self._seen.claims[s]
            if one.node_rank is not None and one.local_rank is not None:
                grid[one.node_rank][one.local_rank].append(s)
        sizes = {tuple(sorted(devices)) for devices in grid.values()}
        if len(sizes) != 1 or len(grid) < 2 or sorted(grid) != list(range(len(grid))):
            return {}
        size = len(next(iter(sizes)))
        if next(iter(sizes)) != tuple(range(size)) or self._layout.world not in (None, size * len(grid)):
            return {}
        files = ((node_rank, s) for node_rank, devices in grid.items() for found in devices.values() for s in found)
        return {("source", str(s)): node_rank * size for node_rank, s in files}

    def _starts_by_blocks(self) -> dict[Node, int]:
        """The first rank of each node that its block or its node rank gives."""
        starts: dict[Node, int] = {("host", host): start for host, start in self._blocks.starts.items()}
        if self._blocks.size is None:
            return {**self._starts_by_names(), **starts}
        for s in self._seen.order:
            if (node_rank := self._node_rank_of(s)) is not None:
                for node in self._evidence.nodes(s, self._hosts.of(s)):
                    starts.setdefault(node, node_rank * self._blocks.size)
        return starts
