"""The causal graph of one attempt: effects point to causes, each edge carries its rule, its strength and its lines.

Vertices are ranks, collectives that somebody waits in, launchers, hosts, machines (a record of a kernel or driver), the
scheduler and the job. There is no edge between every pair of ranks: a rank points to the collective it waits in, the
collective to who is missing, so the graph grows with the members of the collectives that somebody waits in.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.from_machines import host_of_signal
from firstfault.correlate.from_waits import chains
from firstfault.correlate.model import Signal
from firstfault.correlate.ranking import STRUCTURAL

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of edge."""

    id: str
    effect: str
    cause: str
    condition: str
    strength: str
    source: str


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge: what it joins, by which rule, and the lines that show it."""

    effect: str
    cause: str
    rule: Rule
    lines: tuple[tuple[str, int], ...]
    signals: tuple[Signal, ...] = ()


@cache
def rules() -> dict[str, Rule]:
    """The rule table, by id."""
    text = files("firstfault.correlate").joinpath("rules.toml").read_text(encoding="utf-8")
    return {row["id"]: Rule(**row) for row in tomllib.loads(text)["rule"]}


_RECORDS = {
    "killed-by-memory": "an out-of-memory kill",
    "device-failed": "a fault of a device",
    "link-failed": "a fault of a link or adapter",
    "storage-failed": "storage that does not answer",
}


class Builder:
    """Collects vertices and edges of one attempt."""

    def __init__(self, view: View, root: Candidate | None) -> None:
        import networkx as nx

        self.view = view
        self.root = root
        self.graph: nx.DiGraph[str] = nx.DiGraph()

    def vertex(self, kind: str, name: object, label: str | None = None) -> str:
        """A vertex by kind and name, made where it is new."""
        key = f"{kind}:{name}"
        if key not in self.graph:
            self.graph.add_node(key, kind=kind, label=label or f"{kind} {name}", root=False)
        return key

    def edge(self, effect: str, cause: str, rule: str, signals: Iterable[Signal] = ()) -> None:
        """An edge; a second witness of the same one adds its lines."""
        if effect == cause:
            return
        shown = tuple(signals)
        known: Edge | None = self.graph.edges[effect, cause]["edge"] if self.graph.has_edge(effect, cause) else None
        if known is not None and known.rule.id == rule:
            shown = (*known.signals, *(one for one in shown if one not in known.signals))[:6]
        elif known is not None and _weight(known.rule.strength) >= _weight(rules()[rule].strength):
            return
        lines = tuple(signal.place for signal in shown)
        self.graph.add_edge(effect, cause, edge=Edge(effect, cause, rules()[rule], lines, shown))

    def launcher(self, host: str | None) -> str:
        """The vertex of a host's launcher."""
        return self.vertex("launcher", host or "unknown", f"the launcher on {host}" if host else "a launcher")

    def rank(self, number: int) -> str:
        """The vertex of a rank."""
        return self.vertex("rank", number)


def _weight(strength: str) -> int:
    return {"certain": 3, "strong": 2, "weak": 1}[strength]


def build(view: View, root: Candidate | None) -> nx.DiGraph[str]:
    """The graph of one attempt with the root marked."""
    builder = Builder(view, root)
    places = _root_places(builder, root)
    _collectives(builder)
    _launchers(builder)
    _peers(builder)
    _rest(builder, places)
    for place in places:
        builder.graph.nodes[place]["root"] = True
    return builder.graph


def _root_places(builder: Builder, root: Candidate | None) -> list[str]:
    if root is None:
        return []
    signals = [signal for signal, _ in root.signals[:4]]
    ranks = [builder.rank(number) for number in root.ranks]
    machine = {
        "oom-kill": "killed-by-memory",
        "device-fault": "device-failed",
        "link-fault": "link-failed",
        "io-stall": "storage-failed",
    }.get(root.rule)
    if machine:
        where = f" on {', '.join(root.hosts)}" if root.hosts else ""
        cause = builder.vertex("machine", f"{root.cls} {' '.join(root.hosts)}".strip(), f"{_RECORDS[machine]}{where}")
        for rank in ranks:
            builder.edge(rank, cause, machine, signals)
        return [cause]
    if root.rule in ("node-lost", "silent-host"):
        cause = builder.vertex("host", root.hosts[0] if root.hosts else "unknown")
        for rank in ranks:
            builder.edge(rank, cause, "host-lost", signals)
        return [cause]
    if root.rule == "authored-action":
        cause = builder.vertex("scheduler", root.cls, f"the scheduler or platform ({root.cls})")
        for rank in ranks or [builder.rank(state.rank) for state in builder.view.failing()]:
            builder.edge(rank, cause, "ended-by-scheduler", signals)
        return [cause]
    if root.common or not ranks:
        where = f" on {', '.join(root.hosts)}" if root.hosts else " of the whole job"
        cause = builder.vertex("job", root.cls, f"{root.cls}{where}")
        for number in root.scope_ranks:
            builder.edge(builder.rank(number), cause, "same-error-everywhere", signals)
        return [cause]
    return ranks


def _collectives(builder: Builder) -> None:
    view, root = builder.view, builder.root
    blocked = chains(view)
    guilty = set(root.ranks) if root else set()
    labels = {id(one): one.label for one in view.collectives}
    for one in view.collectives:
        label = labels[id(one)]
        node = builder.vertex("collective", label, label)
        for rank, signal in sorted(one.waiters.items()):
            if blocked.get(rank) is one:
                builder.edge(builder.rank(rank), node, "waits-in", (signal,))
        for rank, signal in sorted(one.absent.items()):
            builder.edge(node, builder.rank(rank), "member-absent", (signal,))
        for rank, signal in sorted(one.odd.items()):
            builder.edge(node, builder.rank(rank), "member-odd", (signal,))
        for rank in sorted(guilty & (one.group.members or guilty)):
            if rank not in one.waiters and rank not in one.absent:
                mute = root is not None and root.rule in STRUCTURAL
                builder.edge(
                    node,
                    builder.rank(rank),
                    "member-mute" if mute else "member-failed",
                    [signal for signal, _ in root.signals[:2]] if root else (),
                )
        for rank in sorted(one.group.members - set(one.waiters) - guilty):
            other = blocked.get(rank)
            if other is not None and other is not one:
                label = labels[id(other)]
                builder.edge(
                    node, builder.vertex("collective", label, label), "member-elsewhere", (other.waiters[rank],)
                )


def _launchers(builder: Builder) -> None:
    view = builder.view
    guilty = set(builder.root.ranks) if builder.root else set()
    for one in view.exits:
        if one.signal.attempt != view.attempt:
            continue
        launcher = builder.launcher(one.host)
        for rank in one.ranks:
            if one.killed:
                if rank not in guilty:
                    builder.edge(builder.rank(rank), launcher, "ended-by-launcher", (one.signal,))
            elif rank in guilty or (one.code not in (None, 0) and one.first):
                builder.edge(launcher, builder.rank(rank), "launcher-saw", (one.signal,))


def _peers(builder: Builder) -> None:
    view = builder.view
    guilty = set(builder.root.ranks) if builder.root else set()
    for state in view.states.values():
        for signal in state.derived:
            if signal.event is Event.PEER_LOSS:
                peer = signal.captures.get("peer") or signal.captures.get("peer_host") or signal.captures.get("peer_ip")
                if not peer:
                    continue
                host = view.names.host_of_address(peer) or peer
                node = builder.vertex("host", host)
                builder.edge(builder.rank(state.rank), node, "lost-peer", (signal,))
                for rank in sorted(guilty):
                    if view.names.host_of(rank, view.attempt) == host:
                        builder.edge(node, builder.rank(rank), "peer-is-root", (signal,))
            elif (
                signal.event is Event.DUMP_SIGNAL
                and (source := signal.number("peer_rank")) is not None
                and source != state.rank
            ):
                builder.edge(builder.rank(state.rank), builder.rank(source), "told-by", (signal,))
            elif signal.event is Event.STORE_LOST:
                host = view.names.host_of(0, view.attempt) or host_of_signal(view, signal) or "unknown"
                builder.edge(builder.rank(state.rank), builder.launcher(host), "lost-store", (signal,))


def _rest(builder: Builder, places: list[str]) -> None:
    """Whatever suffers and points nowhere follows from the root, weakly."""
    import networkx as nx

    if not places:
        return
    reaching = set(places)
    for place in places:
        reaching |= nx.ancestors(builder.graph, place)
    for state in builder.view.failing():
        node = builder.rank(state.rank)
        if node not in reaching and node not in places:
            shown = state.derived or state.secondary or state.own
            builder.edge(node, places[0], "follows-root", shown[:1])


def validate(graph: nx.DiGraph[str]) -> list[str]:
    """What is wrong with a graph: edges without a rule, rules between wrong kinds of vertices, roots with a cause."""
    wrong = []
    for effect, cause, data in graph.edges(data=True):
        edge = data.get("edge")
        if not isinstance(edge, Edge):
            wrong.append(f"{effect} -> {cause}: no rule")
            continue
        kinds = (graph.nodes[effect]["kind"], graph.nodes[cause]["kind"])
        if kinds != (edge.rule.effect, edge.rule.cause) and edge.rule.id not in ("follows-root", "told-by"):
            wrong.append(
                f"{effect} -> {cause}: {edge.rule.id} joins {edge.rule.effect} to {edge.rule.cause}, "
                f"not {kinds[0]} to {kinds[1]}"
            )
    return wrong
