"""The causal graph as GraphML, DOT and JSON: all three hold the same vertices and edges."""

from __future__ import annotations

import io
import json

import networkx as nx
import pytest

from firstfault.report.graph_files import FORMS, Graph, Link, Node, as_dot, as_graphml, as_json

GRAPH = Graph(
    nodes=(
        Node(0, "collective:ALLREDUCE #7 of world", "collective", "ALLREDUCE #7 of world", False),
        Node(0, "rank:0", "rank", "rank 0", False),
        Node(0, "rank:3", "rank", 'rank 3 "odd\x01name"', True),
    ),
    edges=(
        Link(0, "collective:ALLREDUCE #7 of world", "rank:3", "member-failed", "certain", ("b/rank3.log:12",)),
        Link(0, "rank:0", "collective:ALLREDUCE #7 of world", "waits-in", "certain", ("a/r.log:9", "a/r.log:11")),
    ),
)


def test_json_holds_all() -> None:
    document = json.loads(as_json(GRAPH))
    assert document["schema"] == "firstfault.graph/1"
    assert [node["node"] for node in document["nodes"] if node["root"]] == ["rank:3"]
    assert document["edges"][1]["lines"] == ["a/r.log:9", "a/r.log:11"]


def test_graphml_can_be_read_again() -> None:
    read = nx.read_graphml(io.BytesIO(as_graphml(GRAPH).encode()))
    assert sorted(read) == ["0/collective:ALLREDUCE #7 of world", "0/rank:0", "0/rank:3"]
    assert read.nodes["0/rank:3"]["root"] is True
    assert read.edges["0/rank:0", "0/collective:ALLREDUCE #7 of world"]["rule"] == "waits-in"


def test_dot_quotes_what_would_break_it() -> None:
    text = as_dot(GRAPH)
    assert '"0/rank:0" -> "0/collective:ALLREDUCE #7 of world" [label="waits-in" style=bold];' in text
    assert '\\"odd' in text
    assert text.count("fillcolor") == 1


@pytest.mark.parametrize("form", sorted(FORMS))
def test_an_empty_graph_is_a_graph(form: str) -> None:
    assert FORMS[form](Graph((), ()))
