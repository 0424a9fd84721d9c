"""On which host a rank is that no line places: only where whole blocks of ranks leave no choice."""

from __future__ import annotations

import pytest

from firstfault.correlate.load import load
from firstfault.correlate.names import Names

from .timeline_builder import Job


def placed(known: dict[int, str], world: int, **local: int) -> dict[int, str | None]:
    """The hosts of all ranks of a job of which only some ranks are placed; `local` as r3=0."""
    job = Job()
    job.world = None
    for rank, host in known.items():
        row: dict[str, object] = {"rank": rank, "host": host, "world_size": world, "how": "start-line"}
        if f"r{rank}" in local:
            row["local_rank"] = local[f"r{rank}"]
        job.identities.append(row)
    con = job.connect()
    names = Names(load(con))
    return {rank: names.host_of(rank) for rank in range(world)}


def test_a_rank_completes_the_block_of_its_host() -> None:
    known = {0: "a", 1: "a", 2: "a", 4: "b", 5: "b", 6: "b", 7: "b"}
    assert placed(known, 8)[3] == "a"


@pytest.mark.parametrize(
    ("known", "local"),
    [
        pytest.param({1: "b", 3: "d"}, {"r1": 0, "r3": 0}, id="one process on each host, as their local ranks say"),
        pytest.param(
            {0: "a", 1: "a", 2: "a", 3: "a", 8: "c", 9: "c", 10: "c", 11: "c"}, {}, id="whole blocks, hosts missing"
        ),
    ],
)
def test_a_rank_of_a_host_that_nothing_names_is_not_placed(known: dict[int, str], local: dict[str, int]) -> None:
    world = 4 if local else 16
    found = placed(known, world, **local)
    assert {rank: host for rank, host in found.items() if rank not in known} == dict.fromkeys(
        set(range(world)) - set(known)
    )


def test_a_world_smaller_than_its_ranks_counts_nodes() -> None:
    """RANK=1 WORLD_SIZE=2 of a pod whose launcher starts ranks 2 and 3: nothing is said of rank 1."""
    job = Job(a=2, b=2)
    for rank in (2, 3):
        job.rank(rank).steps(3)
    con = job.connect()
    con.execute("DELETE FROM identities WHERE rank IS NOT NULL")
    con.execute(
        "INSERT INTO identities (rank, host, world_size, how, source_id, line) VALUES (1, 'b', 2, 'start-line', 0, 1)"
    )
    names = Names(load(con))
    assert names.host_of(1) is None
    assert names.world != 2
