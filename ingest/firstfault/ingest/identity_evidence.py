"""Collects the votes of statements and headers: which rank a process is, where a rank lives, what its local rank is."""

from __future__ import annotations

from firstfault.ingest.identity_layout import Layout
from firstfault.ingest.identity_ranks import Votes
from firstfault.ingest.identity_sources import LineKey, SourceHosts, Witnesses
from firstfault.ingest.identity_statements import Statement

Node = tuple[str, str]


class Evidence:
    """The votes of one job. Look-ups are `identity_maps`."""

    def __init__(self, seen: Witnesses, hosts: SourceHosts, layout: Layout) -> None:
        self._seen, self._hosts, self._layout = seen, hosts, layout
        self.pid_rank, self.pid_host, self.pid_local = Votes(), Votes(), Votes()
        self.rank_host, self.rank_local, self.placed = Votes(), Votes(), Votes()
        self.node_local, self.node_rank, self.task_host = Votes(), Votes(), Votes()
        for one in seen.statements:
            self._take(one)
        for s in seen.order:
            if s not in layout.local_prefix and not seen.is_node_log(s):
                for key in seen.keys[s]:
                    self._take_header(key)
        for rank, local in layout.alone.values():
            self.rank_local.count(rank, local, "start-line")

    def nodes(self, source_id: int, host: str | None) -> list[Node]:
        """Keys under which local ranks are looked up, the narrowest first."""
        keys: list[Node] = []
        if tree := self._seen.claims[source_id].tree:
            keys.append(("tree", tree))
        if host is not None:
            keys.append(("host", host))
        if not tree:
            keys.append(("source", str(source_id)))
        return keys

    def local_of_pid(self, source_id: int, host: str | None, pid: int) -> int | None:
        """The local rank that a launcher gives to a process of its node."""
        where: Node = ("host", host) if host is not None else ("source", str(source_id))
        return self.pid_local.sure_int((where, pid))

    def hosts_of_ranks(self) -> dict[int, str]:
        """The host of every rank that has one."""
        found: dict[int, str] = {}
        for rank in self.rank_host.keys():  # noqa: SIM118
            if isinstance(rank, int) and (host := self.rank_host.best_str(rank)) is not None:
                found[rank] = host
        return found

    def nodes_of_hosts(self) -> dict[str, int]:
        """The node rank of every host of which one is sure."""
        found: dict[str, int] = {}
        for key in self.node_rank.keys():  # noqa: SIM118
            if isinstance(key, tuple) and key[0] == "host" and (number := self.node_rank.sure_int(key)) is not None:
                found[str(key[1])] = number
        return found

    def take_source(self, s: int, rank: int, host: str | None) -> None:
        """A whole source is of one rank: what its path says about host and local rank."""
        self.rank_host.count(rank, host, "path")
        local = self._seen.claims[s].local_rank
        if local is not None:
            self.rank_local.count(rank, local, "path")
            for node in self.nodes(s, host):
                self.node_local.count((node, local), rank, "path")

    def _take(self, one: Statement) -> None:
        source_host = self._hosts.of(one.source_id)
        host = one.host or ((one.said_host or source_host) if one.speaks_for_node else None)
        placed = one.how if one.host or one.said_host or one.source_id not in self._hosts.guessed else "path"
        if one.task is not None:
            self.task_host.count(one.task, one.host, one.how)
            if not self._layout.task_is_rank and one.host is not None and one.local_rank is None:
                self.node_rank.count(("host", one.host), one.task, one.how)
        rank = one.task if one.rank is None and self._layout.task_is_rank else one.rank
        if one.node_rank is not None:
            if host is not None:
                self.node_rank.count(("host", host), one.node_rank, one.how)
            if one.how in ("rendezvous", "command"):
                self.node_rank.count(("source", str(one.source_id)), one.node_rank, one.how)
        if rank is None and one.pid is not None and one.how == "launcher-table":
            where: Node = ("host", host) if host is not None else ("source", str(one.source_id))
            self.pid_local.count((where, one.pid), one.local_rank, one.how)
        if rank is None or not self._layout.possible(rank):
            return
        self.rank_host.count(rank, host, placed)
        self.placed.count((rank, one.attempt), host, one.how)
        self.rank_local.count(rank, one.local_rank, one.how)
        self._take_process(one, rank, host)
        if one.local_rank is not None:
            for node in self.nodes(one.source_id, host):
                if one.speaks_for_node or node[0] == "host":
                    self.node_local.count((node, one.local_rank), rank, one.how)

    def _take_process(self, one: Statement, rank: int, host: str | None) -> None:
        here: Node = ("source", str(one.source_id))
        for pid in sorted({one.pid, one.said_pid if one.own else None} - {None}, key=str):
            self.pid_rank.count((("host", host) if host is not None else here, pid), rank, one.how)
            if one.how == "launcher-table" and one.host is not None:
                self.pid_rank.count((here, pid), rank, one.how)
                self.pid_host.count((here, pid), one.host, one.how)

    def _take_header(self, key: LineKey) -> None:
        """What a header says together: a task and its host; a rank, its host and its process."""
        s, host = key.source_id, self._seen.names.short(key.host)
        if key.task is not None:
            self.task_host.count(key.task, host, "prefix")
        rank = key.task if key.rank is None and self._layout.task_is_rank else key.rank
        if rank is None or not self._layout.possible(rank):
            return
        placed = "prefix" if host is not None or s not in self._hosts.guessed else "path"
        host = host or self._hosts.of(s)
        self.rank_host.count(rank, host, placed)
        self.rank_local.count(rank, key.local_rank, "prefix")
        if key.pid is not None:
            where: Node = ("host", host) if host is not None else ("source", str(s))
            self.pid_rank.count((where, key.pid), rank, "prefix")
