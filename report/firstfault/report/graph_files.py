"""The causal graph of a timeline as a file for other programs: GraphML, DOT or JSON.

Edges go from effect to cause, as in the tables `nodes` and `edges`; what is written is what these hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from firstfault.report.safe_json import safe_json

if TYPE_CHECKING:
    import duckdb
    import networkx as nx


@dataclass(frozen=True, slots=True)
class Node:
    """A vertex; its key is unique within its attempt."""

    attempt: int
    node: str
    kind: str
    label: str
    root: bool


@dataclass(frozen=True, slots=True)
class Link:
    """An edge, with the lines that show it as `path:line`."""

    attempt: int
    effect: str
    cause: str
    rule: str
    strength: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """All attempts of a job."""

    nodes: tuple[Node, ...]
    edges: tuple[Link, ...]


def read_graph(con: duckdb.DuckDBPyConnection) -> Graph:
    """The graph that the last diagnosis left in a timeline, sorted."""
    nodes = con.execute("SELECT attempt, node, kind, label, root FROM nodes ORDER BY attempt, node").fetchall()
    edges = con.execute(
        """
        SELECT e.attempt, e.effect, e.cause, e.rule, e.strength,
               list(s.path || ':' || e.line ORDER BY s.path, e.line) FILTER (s.path IS NOT NULL)
        FROM edges e LEFT JOIN sources s USING (source_id)
        GROUP BY ALL ORDER BY ALL
        """
    ).fetchall()
    links = (Link(row[0], row[1], row[2], row[3], row[4], tuple(row[5] or ())) for row in edges)
    return Graph(tuple(Node(*row) for row in nodes), tuple(links))


def as_json(graph: Graph) -> str:
    """One object with `nodes` and `edges`."""
    document = {
        "schema": "firstfault.graph/1",
        "nodes": [asdict(one) for one in graph.nodes],
        "edges": [asdict(one) for one in graph.edges],
    }
    return safe_json(document, indent=1) + "\n"


def _key(attempt: int, node: str) -> str:
    return f"{attempt}/{node}"


def _xml_text(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(one if one in "\t\n\r" or (one >= " " and one not in "\ufffe\uffff") else "\ufffd" for one in text)


def as_graphml(graph: Graph) -> str:
    """GraphML, as networkx, Gephi and yEd read it."""
    import networkx as nx

    whole: nx.DiGraph[str] = nx.DiGraph()
    for node in graph.nodes:
        whole.add_node(
            _xml_text(_key(node.attempt, node.node)),
            attempt=node.attempt,
            kind=node.kind,
            label=_xml_text(node.label),
            root=node.root,
        )
    for edge in graph.edges:
        whole.add_edge(
            _xml_text(_key(edge.attempt, edge.effect)),
            _xml_text(_key(edge.attempt, edge.cause)),
            rule=edge.rule,
            strength=edge.strength,
            lines=_xml_text(" ".join(edge.lines)),
        )
    return "\n".join(nx.generate_graphml(whole)) + "\n"


_SHAPES = {"rank": "ellipse", "collective": "diamond", "host": "box", "launcher": "house", "machine": "octagon"}
_STYLES = {"certain": "bold", "strong": "solid", "weak": "dashed"}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ") + '"'


def as_dot(graph: Graph) -> str:
    """DOT, as Graphviz reads it: causes on top, the root filled."""
    lines = ["digraph firstfault {", "  rankdir=BT;", "  node [fontname=Helvetica];"]
    for node in graph.nodes:
        filled = " style=filled fillcolor=salmon" if node.root else ""
        shape = _SHAPES.get(node.kind, "box")
        lines.append(f"  {_quoted(_key(node.attempt, node.node))} [label={_quoted(node.label)} shape={shape}{filled}];")
    for edge in graph.edges:
        ends = f"{_quoted(_key(edge.attempt, edge.effect))} -> {_quoted(_key(edge.attempt, edge.cause))}"
        lines.append(f"  {ends} [label={_quoted(edge.rule)} style={_STYLES[edge.strength]}];")
    return "\n".join([*lines, "}"]) + "\n"


FORMS: dict[str, Callable[[Graph], str]] = {"graphml": as_graphml, "dot": as_dot, "json": as_json}
"""Writers, by the name of the form."""
