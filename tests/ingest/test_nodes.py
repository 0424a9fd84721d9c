"""Files that each node of a cluster has for itself: the union, and what is said of nodes that died with theirs.

The cluster here is a stand-in that runs each call at once; tests/cluster has a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firstfault.ingest import Bounds, Cluster, IngestOptions, OptionError, ingest, nodes
from firstfault.ingest.ray_cluster import Call, ClusterError, Failed, Node
from firstfault.ingest.ray_tasks import OtherVersion
from firstfault.ingest.run import ingest_shard, merge
from firstfault.ingest.shards import Shard
from firstfault.timeline import open_timeline

CUT = Bounds(shard=4 << 10, chunk=2 << 10, unit=3 << 10, file_cost=1)
TABLES = ("sources", "line_rows", "signal_rows", "identities", "progress", "problems")


class Nodes:
    """Nodes with disks of their own, some of which die: `lost` after so many calls, `gone` before the first."""

    def __init__(self, disks: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
        self.disks, self._patch = dict(disks), monkeypatch
        self.lost: dict[str, int] = {}
        self.gone: list[str] = []
        self.again: list[str] = []
        self.asked: list[str] = []
        self.order = -1

    def nodes(self) -> tuple[list[Node], list[str]]:
        living = [name for name in self.disks if self.lost.get(name, 1) > 0 or name in self.again]
        return [Node(name, name, 1) for name in living], self.gone

    def run(self, calls: Sequence[Call]) -> Iterator[tuple[int, Any]]:
        for place in list(range(len(calls)))[:: self.order]:
            call = calls[place]
            name = call.node.name if call.node else next(iter(self.disks))
            self.asked.append(call.function.__name__)
            if name in self.lost and name not in self.again:
                if self.lost[name] <= 0:
                    yield place, Failed("The node died.")
                    continue
                self.lost[name] -= 1
            self._patch.setenv("DISK", str(self.disks[name]))
            yield place, call.function(*call.arguments)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    disks = {}
    for index, count in enumerate((300, 20)):
        folder = tmp_path / f"disk{index}" / "log"
        folder.mkdir(parents=True)
        (folder / "rank.log").write_text(lines(index, count))
        (folder / "other.log").write_text("2025-05-12 10:00:00,000 - root - ERROR - no route to host\n")
        disks[f"n-{index}"] = folder.parent
    made = Nodes(disks, monkeypatch)

    @contextmanager
    def connected(address: str | None, workers: int | None) -> Iterator[Nodes]:
        yield made

    monkeypatch.setattr(nodes, "connected", connected)
    return made


def lines(rank: int, count: int) -> str:
    said = [f"2025-05-12 10:00:00,000 - root - INFO - starting rank {rank} of 2 pid {100 + rank} host n-{rank}"]
    said += [
        f"2025-05-12 10:{step // 60:02d}:{step % 60:02d},000 - root - INFO - step {step} loss 1.5"
        for step in range(count)
    ]
    return "\n".join(said) + "\n"


def options(**more: Any) -> IngestOptions:
    return IngestOptions(bounds=CUT, workers=1, cluster=Cluster(per_node=("$DISK/log",)), **more)


def rows(db: Path, query: str) -> list[Any]:
    with open_timeline(db) as connection:
        return connection.execute(query).fetchall()


def unread(db: Path) -> list[Any]:
    return rows(db, "SELECT path, severity, detail FROM problems WHERE kind = 'unread' ORDER BY path")


def test_the_union_is_that_of_node_local_shares(
    cluster: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest([], tmp_path / "nodes.duckdb", options())
    parts = []
    for index, (name, disk) in enumerate(cluster.disks.items()):
        monkeypatch.setattr("platform.node", lambda name=name: name)
        parts.append(tmp_path / f"{index}.part")
        ingest_shard([disk / "log"], parts[-1], Shard(index, 2, own=True), IngestOptions(bounds=CUT, workers=1))
    merge(parts, tmp_path / "merged.duckdb")
    for table in TABLES:
        query = f"SELECT * FROM {table} ORDER BY ALL"
        assert rows(tmp_path / "nodes.duckdb", query) == rows(tmp_path / "merged.duckdb", query), table


def test_shared_files_go_with_those_of_the_nodes(cluster: Nodes, tmp_path: Path, write: Callable[..., Path]) -> None:
    logs = write({"slurm-1.out": "2025-05-12 10:01:00,000 - root - ERROR - task 1 failed\n"})
    ingest([logs], tmp_path / "x.duckdb", options())
    found = rows(tmp_path / "x.duckdb", "SELECT path, lines FROM sources ORDER BY path")
    assert found == [
        ("n-0/other.log", 1), ("n-0/rank.log", 301), ("n-1/other.log", 1), ("n-1/rank.log", 21), ("slurm-1.out", 1),
    ]  # fmt: skip
    assert cluster.asked.count("read_shared") == 1


def test_nothing_is_read_again_where_nothing_changed(cluster: Nodes, tmp_path: Path) -> None:
    first = ingest([], tmp_path / "x.duckdb", options())
    cluster.asked.clear()
    assert ingest([], tmp_path / "x.duckdb", options()) == first
    assert cluster.asked == ["look", "look"]
    (cluster.disks["n-1"] / "log" / "rank.log").write_text(lines(1, 21))
    assert ingest([], tmp_path / "x.duckdb", options()).lines == first.lines + 1


def test_files_of_a_node_that_dies_while_it_reads_are_named(cluster: Nodes, tmp_path: Path) -> None:
    cluster.lost = {"n-1": 1}
    ingest([], tmp_path / "x.duckdb", options())
    why = "not read: node n-1 was lost meanwhile or failed (it left the cluster)"
    assert unread(tmp_path / "x.duckdb") == [("n-1/other.log", "error", why), ("n-1/rank.log", "error", why)]
    assert rows(tmp_path / "x.duckdb", "SELECT path FROM sources ORDER BY path") == [("other.log",), ("rank.log",)]


def test_of_a_file_in_pieces_stays_what_comes_before_the_missing_one(cluster: Nodes, tmp_path: Path) -> None:
    cluster.disks = {"n-0": cluster.disks["n-0"]}
    cluster.lost, cluster.order = {"n-0": 4}, 1
    ingest([], tmp_path / "x.duckdb", options())
    ((path, severity, detail),) = unread(tmp_path / "x.duckdb")
    assert (path, severity, detail[:22]) == ("n-0/rank.log", "data-loss", "not read from byte 819")
    assert 80 < rows(tmp_path / "x.duckdb", "SELECT lines FROM sources WHERE path = 'rank.log'")[0][0] < 301


def test_a_node_that_was_started_again_is_asked_again(cluster: Nodes, tmp_path: Path) -> None:
    whole = ingest([], tmp_path / "whole.duckdb", options(reuse=False))
    cluster.lost = {"n-1": 1}

    class Back(Nodes):
        def run(self, calls: Sequence[Call]) -> Iterator[tuple[int, Any]]:
            yield from super().run(calls)
            self.again = ["n-1"] if self.lost["n-1"] <= 0 else []

    cluster.__class__ = Back
    assert ingest([], tmp_path / "x.duckdb", options(reuse=False)).lines == whole.lines
    assert unread(tmp_path / "x.duckdb") == []


def test_nodes_that_the_cluster_lost_before_are_named(cluster: Nodes, tmp_path: Path) -> None:
    cluster.gone = ["n-2"]
    ingest([], tmp_path / "x.duckdb", options())
    why = "the cluster lost this node, so that nothing on its disk was read; start it again, or copy its logs"
    assert unread(tmp_path / "x.duckdb") == [("n-2/", "error", why)]


def test_a_node_without_the_path_is_noticed_and_no_node_with_it_refused(cluster: Nodes, tmp_path: Path) -> None:
    (cluster.disks["n-1"] / "log").rename(cluster.disks["n-1"] / "elsewhere")
    ingest([], tmp_path / "x.duckdb", options())
    ((severity, detail),) = rows(
        tmp_path / "x.duckdb", "SELECT severity, detail FROM problems WHERE kind = 'no-such-path'"
    )
    assert (severity, detail[:11]) == ("notice", "node n-1 ha")
    (cluster.disks["n-0"] / "log").rename(cluster.disks["n-0"] / "elsewhere")
    with pytest.raises(ClusterError, match="no node of the cluster has it"):
        ingest([], tmp_path / "x.duckdb", options())


def test_settings_files_of_nodes_have_to_agree(cluster: Nodes, tmp_path: Path) -> None:
    for disk in cluster.disks.values():
        (disk / "log" / ".firstfault.toml").write_text('tz = "Europe/Berlin"\n')
    ingest([], tmp_path / "x.duckdb", options())
    assert rows(tmp_path / "x.duckdb", "SELECT DISTINCT utc_offset_s FROM sources") == [(7200,)]
    (cluster.disks["n-1"] / "log" / ".firstfault.toml").write_text('tz = "UTC"\n')
    with pytest.raises(OptionError, match="n-1 and on n-0 say different things"):
        ingest([], tmp_path / "x.duckdb", options())


def test_files_that_a_node_does_not_share_are_read_here(
    cluster: Nodes, tmp_path: Path, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = write({f"rank{rank}.log": lines(rank, 200) for rank in range(2)})
    local = IngestOptions(bounds=CUT, workers=1)
    ingest([logs], tmp_path / "local.duckdb", local)
    monkeypatch.setattr("firstfault.ingest.ray_tasks._same", lambda found: found.path != "rank1.log")
    ingest([logs], tmp_path / "x.duckdb", IngestOptions(bounds=CUT, workers=1, cluster=Cluster()))
    for table in TABLES[:-1]:
        query = f"SELECT * FROM {table} ORDER BY ALL"
        assert rows(tmp_path / "x.duckdb", query) == rows(tmp_path / "local.duckdb", query), table
    found = rows(tmp_path / "x.duckdb", "SELECT path, kind, severity FROM problems")
    assert found == [("rank1.log", "not-shared", "info")]


def test_a_node_with_another_catalog_is_refused(
    cluster: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(told: object) -> None:
        raise OtherVersion("n-1 has another catalog or version of firstfault")

    monkeypatch.setattr("firstfault.ingest.ray_tasks._tools_for", other)
    with pytest.raises(ClusterError, match=r"n-1 has another catalog .* install the same on every node"):
        ingest([], tmp_path / "x.duckdb", options())
    assert not (tmp_path / "x.duckdb").exists()
