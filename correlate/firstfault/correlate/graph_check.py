"""Whether a causal graph is sound: every edge by its rule, every line there, no circle, no root with a cause, no cause
that its own log shows behind its effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstfault.correlate.graph import Edge
from firstfault.correlate.model import Signal

if TYPE_CHECKING:
    import networkx as nx

_BETWEEN_RANKS = ("follows-root", "told-by")


def validate(graph: nx.DiGraph[str]) -> list[str]:
    """What is wrong with a graph, in words; empty where nothing is."""
    import networkx as nx

    wrong = []
    for effect, cause, data in graph.edges(data=True):
        edge = data.get("edge")
        name = f"{effect} -> {cause}"
        if not isinstance(edge, Edge):
            wrong.append(f"{name}: no rule")
            continue
        wrong.extend(f"{name}: {text}" for text in (*_kinds(graph, edge), *_lines(edge), *_order(graph, edge)))
    wrong.extend(
        f"{key}: a root that follows from {cause}"
        for key, root in graph.nodes(data="root")
        if root
        for cause in graph.successors(key)
    )
    if not nx.is_directed_acyclic_graph(graph):
        circle = " -> ".join(effect for effect, *_ in nx.find_cycle(graph))
        wrong.append(f"a circle: {circle}")
    return wrong


def _kinds(graph: nx.DiGraph[str], edge: Edge) -> list[str]:
    """Ids of vertices that do not resolve, and kinds that the rule does not join."""
    unknown = [key for key in (edge.effect, edge.cause) if "kind" not in graph.nodes.get(key, {})]
    if unknown:
        return [f"{', '.join(unknown)} is no vertex"]
    kinds = (graph.nodes[edge.effect]["kind"], graph.nodes[edge.cause]["kind"])
    if kinds == (edge.rule.effect, edge.rule.cause) or edge.rule.id in _BETWEEN_RANKS:
        return []
    return [f"{edge.rule.id} joins {edge.rule.effect} to {edge.rule.cause}, not {kinds[0]} to {kinds[1]}"]


def _lines(edge: Edge) -> list[str]:
    """Lines that their log does not have."""
    return [
        f"{one.source.path} has {one.source.lines} lines, not {one.line}"
        for one in edge.signals
        if not 1 <= one.line <= max(1, one.source.lines)
    ]


def _signals(data: dict[str, object]) -> tuple[Signal, ...]:
    edge = data.get("edge")
    return edge.signals if isinstance(edge, Edge) else ()


def _order(graph: nx.DiGraph[str], edge: Edge) -> list[str]:
    """Lines of ranks that were told before the log shows that the teller's own watchdog had fired."""
    if edge.rule.id != "told-by":
        return []
    fired = [one for _, _, data in graph.out_edges(edge.cause, data=True) for one in _signals(data)]
    return [
        f"{one.source.path}:{one.line} comes before its cause"
        for one in edge.signals
        if (same := [other.line for other in fired if other.source is one.source]) and min(same) > one.line
    ]
