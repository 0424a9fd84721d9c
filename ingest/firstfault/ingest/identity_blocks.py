"""Ranks in blocks: where each host carries the same number of consecutive ranks, a few known ones place all others.

Nothing is placed where the known ranks do not lie in such blocks (a cyclic distribution, hosts of different size).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SIZE_LIMIT = 1024
"""Ranks that one host can carry."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Ranks of each host, None where they are not in blocks, and the first rank of each host."""

    size: int | None = None
    starts: Mapping[str, int] = field(default_factory=dict)

    def local_rank(self, host: str | None, rank: int) -> int | None:
        """The local rank of a rank on a host."""
        start = self.starts.get(host) if host is not None else None
        if start is None or self.size is None or not start <= rank < start + self.size:
            return None
        return rank - start

    def ranks_of(self, host: str) -> range:
        """All ranks of a host."""
        start = self.starts.get(host)
        return range(0) if start is None or self.size is None else range(start, start + self.size)


def blocks_of(
    ranks: Mapping[str, set[int]],
    node_ranks: Mapping[str, int],
    idle: set[str],
    said_sizes: set[int],
    world: int | None,
    least: int = 1,
) -> Blocks:
    """Blocks from known ranks of hosts, node ranks of others, hosts that carry none yet, and sizes that lines state.

    `least` is what the highest local rank asks for.
    """
    known = {host: found for host, found in ranks.items() if found}
    size = _size(known, len(known.keys() | idle | node_ranks.keys()), said_sizes, world, least, len(node_ranks) > 1)
    if size is None:
        return Blocks()
    starts = {host: min(found) // size * size for host, found in sorted(known.items())}
    taken = set(starts.values())
    top = world if world is not None else max((start + size for start in starts.values()), default=0)
    for host, node_rank in sorted(node_ranks.items()):
        start = node_rank * size
        if host not in starts and start not in taken and (world is None or start < world):
            starts[host] = start
            taken.add(start)
            top = max(top, start + size)
    free = [start for start in range(0, top, size) if start not in taken]
    homeless = sorted(idle - set(starts))
    if len(free) == 1 and len(homeless) == 1:
        starts[homeless[0]] = free[0]
    return Blocks(size, starts)


def _size(
    known: Mapping[str, set[int]], hosts: int, said_sizes: set[int], world: int | None, least: int, numbered: bool
) -> int | None:
    """Ranks of a host: as said, as full hosts show, as the world divides, or the power of two that seats all ranks."""
    span = max((max(found) - min(found) + 1 for found in known.values()), default=1)
    if said_sizes:
        candidates = sorted(said_sizes)
    elif len(known) < 2:
        even = world // hosts if world is not None and hosts and world % hosts == 0 else None
        full = any(len(found) == even for found in known.values()) and hosts > 1
        candidates = [even] if even is not None and (numbered or full) else []
    else:
        candidates = []
        if all(len(found) == span for found in known.values()):
            candidates.append(span)
        if world is not None and world % hosts == 0:
            candidates.append(world // hosts)
        top = max(max(found) for found in known.values())
        candidates.extend(2**n for n in range(8) if 2**n >= span and -(-(top + 1) // 2**n) <= hosts)
    lower = max(span, least)
    return next((size for size in candidates if lower <= size <= SIZE_LIMIT and _fits(known, size, world)), None)


def _fits(known: Mapping[str, set[int]], size: int, world: int | None) -> bool:
    if world is not None and world % size:
        return False
    taken: set[int] = set()
    for found in known.values():
        homes = {rank // size for rank in found}
        if len(homes) != 1 or homes & taken:
            return False
        taken |= homes
    return True
