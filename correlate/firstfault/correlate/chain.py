"""The chain from the root to the collateral, in the few links that a reader can follow: which edges carry it, and their
lines.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from firstfault.correlate.candidate import View
from firstfault.correlate.diagnosis import ChainLink, Evidence
from firstfault.correlate.graph import Edge
from firstfault.correlate.model import rank_ranges

if TYPE_CHECKING:
    import networkx as nx

_MOST = 12


def _names(keys: list[str], labels: dict[str, str]) -> str:
    ranks = sorted(int(key.split(":", 1)[1]) for key in keys if key.startswith("rank:"))
    others = sorted(labels[key] for key in keys if not key.startswith("rank:"))
    parts = []
    if ranks:
        shown = rank_ranges(ranks) + (f" ({len(ranks)} ranks)" if len(ranks) > 8 else "")
        parts.append(f"rank{'s' if len(ranks) > 1 else ''} {shown}")
    return ", ".join(parts + others[:4])


def chain_of(view: View, graph: nx.DiGraph[str]) -> tuple[ChainLink, ...]:
    """Edges of an attempt's graph grouped by rule and cause, ordered by their distance from the root."""
    import networkx as nx

    labels = {key: str(data["label"]) for key, data in graph.nodes(data=True)}
    starts = [key for key, data in graph.nodes(data=True) if data["root"]]
    if not starts:
        return ()
    distance = nx.multi_source_dijkstra_path_length(graph.reverse(copy=False), set(starts))
    groups: dict[tuple[int, str, str], list[Edge]] = defaultdict(list)
    for effect, cause, data in graph.edges(data=True):
        if cause in distance and effect not in starts:
            groups[(int(distance[cause]), cause, data["edge"].rule.id)].append(data["edge"])
        elif cause in distance and effect in starts and cause in starts:
            continue
    links = []
    for (_, cause, _), edges in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1:])):
        edges = sorted(edges, key=lambda one: one.effect)
        rule = edges[0].rule
        shown = [signal for edge in edges for signal in edge.signals[:1]][:2]
        links.append(
            ChainLink(
                cause=_names([cause], labels),
                effect=_names([edge.effect for edge in edges], labels),
                rule=rule.id,
                why=rule.condition,
                strength=rule.strength,
                evidence=tuple(
                    Evidence(
                        signal.source.path,
                        signal.line,
                        signal.text[:500],
                        rule.condition,
                        view.times.text(view.times.of(signal)),
                        signal.rank,
                        signal.host,
                    )
                    for signal in shown
                ),
            )
        )
    return tuple(links[:_MOST])
