"""Which rank wrote a whole source: what its lines say, its path, its place in a family of files, its processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from firstfault.ingest.identity_evidence import Evidence
from firstfault.ingest.identity_families import ranks_of_files
from firstfault.ingest.identity_layout import Layout
from firstfault.ingest.identity_sources import SourceHosts, Witnesses

STACKS = "stacks"
"""Kind of a dump of processes that were asked for by their numbers."""


class WholeSources:
    """The rank of each source that one rank wrote, asked once for each."""

    def __init__(
        self,
        seen: Witnesses,
        hosts: SourceHosts,
        layout: Layout,
        evidence: Evidence,
        said_by_user: Mapping[int, int],
    ) -> None:
        self._seen, self._hosts, self._layout, self._evidence = seen, hosts, layout, evidence
        self._by_user = said_by_user
        paths = {s: one.path for s, one in seen.sources.items()}
        self.spoken = {s: self._ranks_spoken(s) for s in seen.order}
        jax = frozenset(s for s, one in seen.sources.items() if b"coordination_service" in one.head)
        self.family = ranks_of_files(paths, seen.claims, layout.world, self.spoken, jax)
        alone = {next(iter(spoken)) for spoken in self.spoken.values() if len(spoken) == 1}
        one_each = all(len(spoken) < 2 for spoken in self.spoken.values()) and alone == set(range(len(alone)))
        world = layout.world if layout.world is not None or not one_each else len(alone)
        self._file_for_each = world is not None and 1 < world <= len(alone) and alone >= set(range(world))
        """Whether every rank of the job is the only one that some file names."""

    def rank_of(self, s: int) -> int | None:
        """The rank of a source by what its lines and its path say."""
        if s in self._by_user:
            return self._by_user[s]
        claims, spoken, node_log = self._seen.claims[s], self.spoken[s], self._seen.is_node_log(s)
        if node_log and len(spoken) != 1:
            return None
        if len(spoken) == 1:
            rank = next(iter(spoken))
            return rank if self._speaks_alone(s, rank) else None
        if len(spoken) > 1:
            return claims.rank if claims.rank is not None and self._mostly(s, claims.rank) else None
        if claims.rank is not None:
            return claims.rank
        if claims.task is not None and self._layout.task_is_rank:
            return claims.task
        return self.family[s] if s in self.family else self.by_process(s)

    def _ranks_spoken(self, s: int) -> frozenset[int]:
        found = {one.rank for one in self._seen.own.get(s, ()) if one.rank is not None}
        if s not in self._layout.local_prefix:
            found.update(key.rank for key in self._seen.keys[s] if key.rank is not None)
        if self._layout.task_is_rank:
            found.update(key.task for key in self._seen.keys[s] if key.task is not None)
        return frozenset(found)

    def _mostly(self, s: int, rank: int) -> bool:
        """Whether nine of ten lines that name a rank name this one."""
        votes: Counter[int] = Counter()
        for key in self._seen.keys[s]:
            if key.rank is not None:
                votes[key.rank] += key.count
        return votes[rank] * 10 >= sum(votes.values()) * 9

    def by_process(self, s: int) -> int | None:
        """The rank of the one process that the path names, that a dump is of or that most lines name."""
        claims, keys = self._seen.claims[s], self._seen.keys[s]
        pids = [claims.pid] if claims.pid is not None else []
        if self._seen.sources[s].reader_kind == STACKS:
            pids += [one.pid for one in self._seen.own.get(s, ()) if one.pid is not None]
        if sum(key.count for key in keys if key.pid is not None) * 2 > sum(key.count for key in keys):
            pids += [key.pid for key in keys if key.pid is not None]
        ranks = {rank_of_pid(self._evidence, s, self._hosts.of(s), pid) for pid in pids} - {None}
        return ranks.pop() if len(ranks) == 1 else None

    def _speaks_alone(self, s: int, rank: int) -> bool:
        """Whether the one rank that a file names wrote all of it: other ranks may stand in it without a name."""
        claims, keys = self._seen.claims[s], self._seen.keys[s]
        task = claims.task if self._layout.task_is_rank else None  # else it is a node, of several ranks
        told = any(claim is not None for claim in (claims.rank, task, claims.local_rank, claims.pid))
        if told or claims.index == rank:
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
        return self._layout.world == 1 or named * 2 > sum(key.count for key in keys) or self._file_for_each


def rank_of_pid(evidence: Evidence, source_id: int, host: str | None, pid: int) -> int | None:
    """The rank of a process, as its host knows it, else the source; pods count their processes alike."""
    here = (("source", str(source_id)), pid)
    if host is not None:
        if (found := evidence.pid_rank.sure_int((("host", host), pid))) is not None:
            return found
        if evidence.pid_host.values(here) and host not in evidence.pid_host.values(here):
            return None
    return evidence.pid_rank.sure_int(here)
