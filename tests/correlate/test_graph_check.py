"""The validator names what is wrong with a graph, and finds nothing in one that is sound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstfault.correlate.graph import Edge, build, rules, straighten
from firstfault.correlate.graph_check import validate

from .timeline_builder import Job

if TYPE_CHECKING:
    import networkx as nx


def sound() -> nx.DiGraph[str]:
    """Rank 3 runs out of memory, the others wait in a collective and are told by rank 0."""
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    job.rank(3).error("cuda-oom", at=9)
    for rank in (0, 1, 2):
        job.rank(rank).timeout(7, at=610, enqueued=7, completed=6)
    job.rank(1).dump_signal(0, at=610.5)
    found = job.judge()
    return build(found.view, found.ranked.best)


def test_nothing_is_wrong_with_a_sound_graph() -> None:
    assert validate(sound()) == []


def test_an_edge_needs_a_rule() -> None:
    graph = sound()
    graph.add_edge("rank:0", "rank:3")
    assert "rank:0 -> rank:3: no rule" in validate(graph)


def test_a_rule_joins_its_own_kinds() -> None:
    graph = sound()
    graph.add_edge("rank:0", "rank:2", edge=Edge("rank:0", "rank:2", rules()["lost-peer"], ()))
    assert "rank:0 -> rank:2: lost-peer joins rank to host, not rank to rank" in validate(graph)


def test_vertices_have_to_be_there() -> None:
    graph = sound()
    graph.add_edge("rank:0", "host:z", edge=Edge("rank:0", "host:z", rules()["lost-peer"], ()))
    assert "rank:0 -> host:z: host:z is no vertex" in validate(graph)


def test_lines_have_to_be_there() -> None:
    graph = sound()
    edge: Edge = (
        graph.edges["rank:1", "rank:0"]["edge"]
        if graph.has_edge("rank:1", "rank:0")
        else next(data["edge"] for _, _, data in graph.edges(data=True) if data["edge"].signals)
    )
    signal = edge.signals[0]
    object.__setattr__(signal, "line", 10_000)
    assert any("not 10000" in text for text in validate(graph))


def test_a_circle_is_named_and_straightened() -> None:
    graph = sound()
    for effect, cause in (("rank:0", "rank:1"), ("rank:1", "rank:0")):
        graph.add_edge(effect, cause, edge=Edge(effect, cause, rules()["told-by"], ()))
    assert any(text.startswith("a circle: ") for text in validate(graph))
    straighten(graph)
    assert validate(graph) == []
    assert graph.has_edge("rank:0", "rank:1") != graph.has_edge("rank:1", "rank:0")


def test_a_root_follows_from_nothing() -> None:
    graph = sound()
    graph.add_edge("rank:3", "rank:0", edge=Edge("rank:3", "rank:0", rules()["told-by"], ()))
    assert "rank:3: a root that follows from rank:0" in validate(graph)
    straighten(graph)
    assert validate(graph) == []


def test_nobody_is_told_before_the_teller_knows() -> None:
    """
    all ranks in one log
    4  r1  told to dump by r0
    5  r0  its watchdog fires
    """
    job = Job(a=2)
    log = job.log("a.log", "node", "a")
    for rank in (0, 1):
        log.step(1, 1, rank=rank)
    log.signal("dump-signal", "pgnccl-dump-signal", "collective-rank-absent", "collateral", 610, rank=1, peer_rank=0)
    log.timeout(7, at=610.5, rank=0)
    assert not any(rule == "told-by" for _, rule, _ in job.edges())
