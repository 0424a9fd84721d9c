"""Processes as witnesses: the same numbers in many pods, dumps of processes, headers that hold half of a name."""

from __future__ import annotations

from typing import Any

from firstfault.ingest.dumps.rows import DumpIdentity
from firstfault.ingest.identify import SourceSeen, identify, summarise


def test_pods_that_count_their_processes_alike_are_told_apart(kit: Any) -> None:
    """Three pods in one file; the launcher of the second says whose process 132 is there."""
    table = kit.Said(
        0, 9, event="agent-report", captures={"rank": "12", "local_rank": "4", "host": "w-0", "child_pid": "132"}
    )
    starts = [
        kit.Said(0, n, captures={"rank": str(rank), "local_rank": "4", "pid": "132"}, host=host, pid=132)
        for n, (host, rank) in enumerate((("m-0", 4), ("w-1", 20)), 1)
    ]
    rows = [{"source_id": 0, "line": n, "host": host, "pid": 132} for n, host in enumerate(("m-0", "w-0", "w-1"), 11)]
    got = kit.run(["all-pods.txt"], [*starts, table], kit.lines(*rows))
    assert got.fill(kit.lines(*rows))["rank"].to_list() == [4, 12, 20]


def test_the_process_of_another_pod_is_nobody(kit: Any) -> None:
    table = kit.Said(
        0, 9, event="agent-report", captures={"rank": "12", "local_rank": "4", "host": "w-0", "child_pid": "132"}
    )
    rows = [{"source_id": 0, "line": 11, "host": "w-3", "pid": 132}]
    assert kit.run(["all-pods.txt"], [table], kit.lines(*rows)).fill(kit.lines(*rows))["rank"].to_list() == [None]


def test_the_dump_of_a_process_belongs_to_its_rank(kit: Any) -> None:
    start = kit.Said(0, 1, captures={"rank": "3", "pid": "4711", "host": "n1"})
    sources = [SourceSeen(0, "rank3.log"), SourceSeen(1, "pyspy/n1_4711.txt", reader_kind="stacks")]
    frame = kit.lines({"source_id": 0, "line": 1}, {"source_id": 1, "line": 1})
    got = identify(sources, [start], summarise(frame), {1: [DumpIdentity(1, "dump", pid=4711)]})
    assert (got.sources[1].rank, got.sources[1].host) == (3, "n1")


def test_a_header_that_holds_the_rank_and_a_message_that_holds_the_rest(kit: Any) -> None:
    said = [
        kit.Said(0, 1, "pid 61840 host n1 ready", fact="identity-pairs-headed", rank=0),
        kit.Said(0, 2, "pid 61842 host n2 ready", fact="identity-pairs-headed", rank=1),
        kit.Said(0, 3, "pid 1 host n9 connected", fact="identity-pairs-headed"),
    ]
    rows = [{"source_id": 0, "line": n, "rank": n - 1} for n in (1, 2)]
    got = kit.run(["job.log"], said, kit.lines(*rows))
    named = {(one.rank, one.host, one.pid) for _, one in got.identities if one.how == "start-line"}
    assert named == {(0, "n1", 61840), (1, "n2", 61842)}


def test_files_that_each_name_one_rank_of_all_are_theirs(kit: Any) -> None:
    """Nothing states how many ranks there are; every file begins with the word of one of them, 0 to 2."""
    paths = [f"job.o123.nid00{n}" for n in range(3)]
    said = [kit.Said(n, 1, captures={"rank": str(n), "local_rank": "0", "host": f"nid00{n}"}) for n in range(3)]
    rows = [{"source_id": n, "line": line} for n in range(3) for line in range(1, 9)]
    got = kit.run(paths, said, kit.lines(*rows))
    assert [(got.sources[n].rank, got.sources[n].host) for n in range(3)] == [(n, f"nid00{n}") for n in range(3)]


def test_files_of_nodes_that_name_some_rank_are_not(kit: Any) -> None:
    said = [kit.Said(n, 1, captures={"rank": str(8 * n), "host": f"n{n}"}) for n in range(2)]
    rows = [{"source_id": n, "line": line} for n in range(2) for line in range(1, 9)]
    got = kit.run(["a.log", "b.log"], said, kit.lines(*rows))
    assert [got.sources[n].rank for n in range(2)] == [None, None]
