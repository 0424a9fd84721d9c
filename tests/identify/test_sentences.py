"""Ranks of a node in free words, by Slurm's list of nodes, by a launcher's table of processes."""

from __future__ import annotations

from typing import Any

import pytest

from firstfault.ingest.identify import Identity
from firstfault.ingest.identity_commands import host_list
from firstfault.ingest.identity_sentences import ranks_here


def placed(got: Identity) -> dict[int, str]:
    return {one.rank: one.host for _, one in got.identities if one.rank is not None and one.host is not None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node 1 ranks 8-15", ((8, 15), None, 1)),
        ("sdc-g040 node_rank 0 ranks 0..7", ((0, 7), "sdc-g040", 0)),
        ("task 1 of 4 on amp-22 (8 local ranks, global 8-15)", ((8, 15), "amp-22", None)),
        ("rank 2,3 num_workers=16 pin_memory=True", ((2, 3), None, None)),
        ("global_ranks=[4, 5, 6, 7]", ((4, 7), None, None)),
        ("Missing ranks: 12, 13", None),
        ("ranks 0-3 are waiting in all_reduce", None),
        ("new group of ranks 0-3", None),
        ("ranks 0, 2, 4", None),
    ],
)
def test_a_range_of_ranks_in_free_words(text: str, expected: Any) -> None:
    got = ranks_here(text)
    shown = ((got.ranks[0], got.ranks[-1]), got.host, got.node_rank) if got else None
    assert shown == expected


def here(kit: Any, *texts: str) -> Identity:
    said = [kit.Said(n, 1, text, fact="identity-ranks-here", captures={"ranks": "x"}) for n, text in enumerate(texts)]
    return kit.run([f"p-{n}.log" for n in range(len(texts))], said)


def test_ranges_that_fit_together_place_all_ranks(kit: Any) -> None:
    got = placed(here(kit, "node a1 ranks 0-1 on a1", "ranks 2-3 on b7"))
    assert got == {0: "a1", 1: "a1", 2: "b7", 3: "b7"}


def test_ranges_that_overlap_place_nobody(kit: Any) -> None:
    assert placed(here(kit, "ranks 0-3 on a1", "ranks 2-5 on b7")) == {}
    assert placed(here(kit, "ranks 0-3 ready")) == {}


def test_slurm_numbers_the_nodes_of_a_job_in_the_order_of_its_list(kit: Any) -> None:
    def run(*jobs: str) -> Identity:
        said = [
            kit.Said(0, n, fact="identity-slurm-allocated", captures={"jobid": job, "hosts": f"{stem}-[21-22]"})
            for n, (job, stem) in enumerate(zip(jobs, ("amp", "oth"), strict=False), 1)
        ]
        said += [
            kit.Said(n + 1, 1, captures={"rank": str(n * 4), "local_rank": "0", "world_size": "8"}) for n in range(2)
        ]
        frame = kit.lines(*({"source_id": n, "line": line, "rank": rank} for n, line, rank in (
            (1, 1, 0), (1, 2, 3), (2, 1, 4), (2, 2, 7))), {"source_id": 0, "line": 1})  # fmt: skip
        return kit.run(["slurmctld.log", "task0.out", "task1.out"], said, frame)

    got = run("77")
    assert [got.sources[n].host for n in (1, 2)] == ["amp-21", "amp-22"]
    assert placed(got)[6] == "amp-22"
    assert [run("77", "78").sources[n].host for n in (1, 2)] == [None, None]


def test_a_child_of_a_launcher_has_the_rank_of_its_local_rank(kit: Any) -> None:
    mapping = "global_rank_mapping=defaultdict(<class 'list'>, {'a1': [0, 1], 'b7': [2, 3]})"
    said = [kit.Said(n, 1, mapping, fact="identity-deepspeed-world") for n in range(2)]
    said += [
        kit.Said(n, 2 + local, event="agent-report", fact="identity-deepspeed-child",
                 captures={"child_pid": str(700 + local), "local_rank": str(local)})
        for n in range(2) for local in range(2)
    ]  # fmt: skip
    frame = kit.lines(*({"source_id": n, "line": 1, "host": host} for n, host in enumerate(("a1", "b7"))))
    got = kit.run(["a1.log", "b7.log"], said, frame)
    processes = {(one.host, one.pid): one.rank for _, one in got.identities if one.pid is not None}
    assert processes == {("a1", 700): 0, ("a1", 701): 1, ("b7", 700): 2, ("b7", 701): 3}


def test_a_number_in_the_names_of_files_of_nodes_is_no_rank(kit: Any) -> None:
    """Each file holds one line of one rank, and the number in its name is not that rank's."""
    frame = kit.lines(*(
        {"source_id": n, "line": line, "rank": rank if line == 9 else None}
        for n, rank in enumerate((5, 13)) for line in range(1, 10)
    ))  # fmt: skip
    got = kit.run(["log/pretrain_88120_0.log", "log/pretrain_88120_1.log"], [], frame)
    assert [(got.sources[n].rank, got.sources[n].node_rank) for n in range(2)] == [(None, 0), (None, 1)]


def test_lines_that_begin_with_the_host_name_the_writer_where_each_file_names_another(kit: Any) -> None:
    def hosts(*names: str) -> list[str | None]:
        said = [kit.Said(n, 1, fact="identity-host-here", captures={"host": name}) for n, name in enumerate(names)]
        got = kit.run([f"worker-{n}.log" for n in range(len(names))], said)
        return [got.sources[n].host for n in range(len(names))]

    assert hosts("t1v-w-0", "t1v-w-1") == ["t1v-w-0", "t1v-w-1"]
    assert "t1v-w-0" not in hosts("t1v-w-0", "t1v-w-0")


def test_a_list_of_nodes_that_a_column_cut_off_names_nobody() -> None:
    """sacct's NodeList is fifteen characters wide unless it is told otherwise."""
    assert host_list("gn[118-119,122+") == ()
    assert host_list("gn[118-119,122]") == ("gn118", "gn119", "gn122")
