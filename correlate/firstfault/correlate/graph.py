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
from firstfault.correlate.collectives import Collective
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
    straighten(builder.graph)
    return builder.graph


def straighten(graph: nx.DiGraph[str]) -> None:
    """Take out the weakest edge of every circle: ranks that told each other, launchers that saw who they then ended.

    A root follows from nothing, so no edge leaves it.
    """
    import networkx as nx

    roots = [key for key, root in graph.nodes(data="root") if root]
    graph.remove_edges_from([(key, cause) for key in roots for cause in list(graph.successors(key))])
    for knot in sorted(map(sorted, nx.strongly_connected_components(graph))):
        while len(knot) > 1:
            try:
                circle = nx.find_cycle(graph.subgraph(knot))
            except nx.NetworkXNoCycle:
                break
            weakest = min(circle, key=lambda one: (_weight(graph.edges[one]["edge"].rule.strength), one))
            graph.remove_edge(*weakest)


def _root_places(builder: Builder, root: Candidate | None) -> list[str]:
    if root is None:
        return []
    signals = [signal for signal, _ in root.signals[:4]]
    numbers = root.ranks or (_stalled(builder.view, root) if root.rule == "io-stall" else ())
    ranks = [builder.rank(number) for number in numbers]
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


def _stalled(view: View, root: Candidate) -> tuple[int, ...]:
    """Ranks of the hosts whose file system stalled that failed by themselves or fell silent: who waits for others does
    not wait for it.
    """
    return tuple(
        state.rank
        for state in view.states.values()
        if state.host in root.hosts and (state.own or (state.silent and not state.completed and not state.killed))
    )


def _collectives(builder: Builder) -> None:
    view, root = builder.view, builder.root
    blocked = chains(view)
    guilty = set(root.ranks) if root else set()
    labels = {id(one): one.label for one in view.collectives}
    entered = {id(one): _entered(view, one, labels[id(one)]) for one in view.collectives}
    for one in view.collectives:
        label = labels[id(one)]
        node = builder.vertex("collective", label, label)
        stuck = one.waiters if one.passed and len(one.waiters) <= len(one.passed) else {}
        for rank, signal in sorted(one.waiters.items()):
            if rank in stuck:
                builder.edge(node, builder.rank(rank), "waits-in-completed", (signal, *list(one.passed.values())[:1]))
            elif blocked.get(rank) is one and rank not in one.odd:
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
                if entered[id(other)] < entered[id(one)]:
                    label = labels[id(other)]
                    builder.edge(
                        node, builder.vertex("collective", label, label), "member-elsewhere", (other.waiters[rank],)
                    )
            elif other is None and rank in view.states and not view.states[rank].logged:
                builder.edge(node, builder.rank(rank), "member-unlogged", list(one.waiters.values())[:1])


def _entered(view: View, one: Collective, label: str) -> tuple[int, str]:
    """When the first of those that wait in a collective entered it; unknown times last, equal ones by name."""
    starts = [
        moment.ns - waited * 1_000_000
        for signal in one.waiters.values()
        if (moment := view.times.of(signal)) is not None and (waited := signal.number("elapsed_ms")) is not None
    ]
    return (min(starts, default=1 << 62), label)


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
                and not _spoke_later(view, source, signal)
            ):
                builder.edge(builder.rank(state.rank), builder.rank(source), "told-by", (signal,))
            elif signal.event is Event.STORE_LOST:
                host = view.names.host_of(0, view.attempt) or host_of_signal(view, signal) or "unknown"
                builder.edge(builder.rank(state.rank), builder.launcher(host), "lost-store", (signal,))


def _spoke_later(view: View, source: int, told: Signal) -> bool:
    """Whether the log of a signal shows the watchdog of the rank that is said to have sent it only behind it."""
    state = view.states.get(source)
    fired = [one.line for one in (state.timeouts if state else []) if one.source is told.source]
    return bool(fired) and min(fired) > told.line


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
