"""Which rank drives the device at an index, an address or under a process, from tables that know devices only.

nvidia-smi and its like print index, PCI address and processes, no rank; the ranks of a host say which index they use,
or take the devices in the order of their local ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from firstfault.ingest.dumps.rows import DumpIdentity
from firstfault.ingest.identity_statements import Statement

LookUp = Callable[[int, str | None, int], int | None]


@dataclass(frozen=True, slots=True)
class Devices:
    """What is asked while devices are joined with ranks: host of a source, rank of a process, rank of a local rank."""

    host_of: Callable[[int], str | None]
    rank_of_pid: LookUp
    rank_of_local: LookUp

    def rows(self, statements: Sequence[Statement]) -> Iterator[tuple[int, DumpIdentity]]:
        """One row for each device of a table that belongs to a rank."""
        used = _used(statements)
        for one in statements:
            if one.own or one.rank is not None or one.gpu is None or (one.bus_id is None and one.pid is None):
                continue
            host = one.host or self.host_of(one.source_id)
            rank = self._rank(one, host, used.get(host, {}))
            if rank is not None:
                row = DumpIdentity(
                    one.line, "device", rank=rank, host=host, pid=one.pid, gpu=one.gpu, bus_id=one.bus_id
                )
                yield one.source_id, row

    def _rank(self, one: Statement, host: str | None, used: Mapping[int, set[int]]) -> int | None:
        if one.pid is not None:
            return self.rank_of_pid(one.source_id, host, one.pid)
        if one.gpu is None:
            return None
        if len(used) > 1:
            ranks = used.get(one.gpu, set())
            return next(iter(ranks)) if len(ranks) == 1 else None
        return self.rank_of_local(one.source_id, host, one.gpu)


def _used(statements: Sequence[Statement]) -> dict[str | None, dict[int, set[int]]]:
    """Ranks by host and device index, as they say themselves."""
    found: dict[str | None, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for one in statements:
        if one.rank is not None and one.gpu is not None:
            found[one.host][one.gpu].add(one.rank)
    return found
