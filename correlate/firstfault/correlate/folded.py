"""The causal graph folded to what a picture can hold: ranks that follow from the same causes by the same rules are one.

Vertices that are causes themselves stay single, but for a bound on their number: the nearest to the root are kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from firstfault.correlate.graph import Edge
from firstfault.correlate.picture import CausalGraph, GraphEdge, GraphNode

if TYPE_CHECKING:
    import networkx as nx

_MOST = 24
_IN_LAYER = 8


def folded(graph: nx.DiGraph[str]) -> CausalGraph:
    """The vertices that the root reaches, and the edges between them, from causes to effects."""
    import networkx as nx

    starts = sorted(key for key, data in graph.nodes(data=True) if data["root"])
    if not starts:
        return CausalGraph()
    depth = nx.multi_source_dijkstra_path_length(graph.reverse(copy=False), set(starts))
    causes: dict[str, list[tuple[str, Edge]]] = defaultdict(list)
    for effect, cause, data in graph.edges(data=True):
        if effect in depth and cause in depth and (effect not in starts or cause not in starts):
            causes[effect].append((cause, data["edge"]))
    busy = {cause for edges in causes.values() for cause, _ in edges} | set(starts)
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for key in sorted(depth):
        alone = key in busy or not key.startswith("rank:")
        signature = (key,) if alone else tuple(sorted((cause, edge.rule.id) for cause, edge in causes[key]))
        groups[(depth[key], alone, *signature)].append(key)
    # causes first: a picture that has to leave something out keeps what explains the rest
    ordered = sorted(groups.values(), key=lambda keys: (depth[keys[0]], -len(keys), keys[0] not in busy, keys[0]))
    kept: list[list[str]] = []
    layer: Counter[int] = Counter()
    shown: set[str] = set()
    for keys in ordered:
        joined = keys[0] in starts or any(cause in shown for cause, _ in causes[keys[0]])
        if joined and len(kept) < _MOST and layer[int(depth[keys[0]])] < _IN_LAYER:
            shown.update(keys)
            layer[int(depth[keys[0]])] += 1
            kept.append(keys)
    left = len(depth) - sum(map(len, kept))
    group_of = {key: keys[0] for keys in kept for key in keys}
    nodes = tuple(_node(graph, keys, keys[0] in starts, int(depth[keys[0]])) for keys in kept)
    edges = {}
    for keys in kept:
        direct = any(cause in group_of and depth[cause] < depth[keys[0]] for cause, _ in causes[keys[0]])
        for cause, edge in sorted(causes[keys[0]], key=lambda one: one[0]):
            # edges back up, and sideways where one comes from above, would only tangle the picture
            if cause in group_of and depth[cause] < depth[keys[0]] + (not direct):
                path, line = edge.lines[0] if edge.lines else (None, None)
                edges[group_of[cause], keys[0]] = GraphEdge(
                    group_of[cause], keys[0], edge.rule.id, edge.rule.strength, path, line
                )
    return CausalGraph(nodes, tuple(edges[pair] for pair in sorted(edges)), left)


def _node(graph: nx.DiGraph[str], keys: list[str], root: bool, depth: int) -> GraphNode:
    data = graph.nodes[keys[0]]
    ranks = tuple(sorted(int(key.split(":", 1)[1]) for key in keys if key.startswith("rank:")))
    return GraphNode(keys[0], str(data["kind"]), str(data["label"]), ranks, root, depth)
