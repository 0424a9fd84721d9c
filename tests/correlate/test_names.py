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


@pytest.mark.parametrize(("folder", "host"), [("n2-logs", None), ("n1-logs", "n1"), ("", "n1")])
def test_a_second_folder_is_that_of_a_second_host(folder: str, host: str | None) -> None:
    """The files of rank 1 lie beside those of the only host that anything names, or in a folder of their own."""
    job = Job()
    job.world = None
    job.identities.append({"rank": 0, "host": "n1", "world_size": 2, "how": "start-line"})
    job.log("n1-logs/rank0.log", "rank", "n1", 0).say("hello", at=1)
    job.log(f"{folder}/rank1.log".lstrip("/"), "rank", None, 1).say("hello", at=1)
    assert Names(load(job.connect())).host_of(1) == host


def test_a_second_run_folder_of_agents_is_that_of_a_second_host() -> None:
    """torchrun makes one folder for each agent; only rank 1, of one of them, is placed."""
    job = Job()
    job.world = None
    job.identities.append({"rank": 1, "host": "n1", "world_size": 3, "how": "launcher-table"})
    for rank, folder in enumerate(("none_a", "none_b", "none_b")):
        job.log(f"runs/{folder}/attempt_0/{rank}/stderr.log", "rank", None, rank).say("hello", at=1)
    names = Names(load(job.connect()))
    assert [names.host_of(rank) for rank in range(3)] == [None, "n1", "n1"]


@pytest.mark.parametrize(("told", "host"), [(10, None), (8, "n1")])
def test_a_rank_that_others_tell_of_far_behind_the_last_runs_elsewhere(told: int, host: str | None) -> None:
    """Eight ranks of one host tell of the failure of another one; the next number may still be its own."""
    job = Job()
    job.world = None
    log = job.log("node0.log", "node", "n1")
    for rank in range(8):
        log.say("hello", at=1, rank=rank)
    log.signal("exception", "disk-quota", "disk-full", "initiating", at=2, rank=told)
    log.lines[-1].rank = None  # it is about that rank, which has not printed it
    assert Names(load(job.connect())).host_of(told) == host
