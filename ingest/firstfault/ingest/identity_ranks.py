"""Which global rank a process, a local rank, a task or a member of a communicator is.

Statements vote with the weight of their kind; the map is the same whatever the order of files.
A communicator counts only if it spans the job; a local rank only together with its node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from firstfault.ingest.identity_commands import small
from firstfault.ingest.identity_statements import Statement

K = TypeVar("K", bound=Hashable)

TRUST = {
    "override": 100, "start-line": 6, "rendezvous": 6, "launcher-table": 5, "comm-init": 5, "prefix": 4, "dump": 4,
    "path": 2, "inferred": 1,
}  # fmt: skip


class Votes:
    """Values that are claimed for a key, each with the trust in who claims it."""

    def __init__(self) -> None:
        self._votes: dict[Hashable, Counter[int | str]] = defaultdict(Counter)

    def count(self, key: Hashable, value: int | str | None, how: str) -> None:
        """One more claim; claims add up."""
        if value is not None:
            self._votes[key][value] += TRUST.get(how, 3)

    def drop(self, value: int | str) -> None:
        """Forget a value wherever it was claimed."""
        for key in list(self._votes):
            self._votes[key].pop(value, None)
            if not self._votes[key]:
                del self._votes[key]

    def best(self, key: Hashable) -> int | str | None:
        votes = self._votes.get(key)
        return min(votes, key=lambda value: (-votes[value], str(value).zfill(12))) if votes else None

    def best_int(self, key: Hashable) -> int | None:
        value = self.best(key)
        return value if isinstance(value, int) else None

    def best_str(self, key: Hashable) -> str | None:
        value = self.best(key)
        return value if isinstance(value, str) else None

    def clear(self, key: Hashable) -> bool:
        """Whether no other value has half the weight of the best."""
        ordered = sorted(self._votes.get(key, Counter()).values(), reverse=True)
        return bool(ordered) and (len(ordered) == 1 or ordered[1] * 2 < ordered[0])

    def sure_int(self, key: Hashable) -> int | None:
        """The best value, where it is clear."""
        return self.best_int(key) if self.clear(key) else None

    def keys(self) -> list[Hashable]:
        return sorted(self._votes, key=repr)

    def values(self, key: Hashable) -> tuple[int | str, ...]:
        return tuple(sorted(self._votes.get(key, ()), key=lambda value: str(value).zfill(12)))


def world_size(statements: Sequence[Statement], seen_ranks: Iterable[int], restarts: bool) -> int | None:
    """The number of ranks of the job: what start lines state, else the largest communicator that can be the world."""
    stated, named = Counter[int](), Counter[int]()
    for one in statements:
        if one.world_size and one.world_size > 0:
            (named if one.how == "size-named" else stated)[one.world_size] += 1
    floor = max(seen_ranks, default=-1) + 1
    for votes in (stated, named):
        if fitting := [size for size in votes if size >= floor]:
            return max(fitting, key=lambda size: (votes[size], size))
    sizes = {one.comm_size for one in statements if one.comm_size}
    for size in sorted(sizes, reverse=True):
        members = [one for one in statements if one.comm_size == size]
        if size >= floor and (restarts or _one_process_per_rank(members)):
            return size
    nodes = max((one.nodes or 0 for one in statements), default=0)
    local = max((one.local_world or 0 for one in statements), default=0)
    if nodes and local and nodes * local >= floor:
        return small(nodes * local)
    return None


def _one_process_per_rank(members: Iterable[Statement]) -> bool:
    owner: dict[int, tuple[str | None, int | None, str | None]] = {}
    for one in members:
        if one.comm_rank is None:
            continue
        process = (one.said_host, one.pid, one.comm if one.pid is None else None)
        if owner.setdefault(one.comm_rank, process) != process:
            return False
    return bool(owner)


def with_world_ranks(statements: Sequence[Statement], world: int | None) -> list[Statement]:
    """Statements about members of a communicator that spans the job get their global rank."""
    return [
        replace(one, rank=one.comm_rank)
        if one.rank is None and one.comm_rank is not None and world is not None and one.comm_size == world
        else one
        for one in statements
    ]


def offsets(pairs: Iterable[tuple[K, int, int]]) -> dict[K, int]:
    """The first rank of a node, where all its known (rank, local rank) pairs agree."""
    found: dict[K, set[int]] = defaultdict(set)
    for node, rank, local_rank in pairs:
        found[node].add(rank - local_rank)
    return {node: min(starts) for node, starts in found.items() if len(starts) == 1 and min(starts) >= 0}
