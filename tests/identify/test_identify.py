"""Who a source and a line belong to, from what paths claim and lines say."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstfault.ingest.dumps import DumpIdentity
from firstfault.ingest.identify import Identity, Owned, SourceSeen, identify, summarise


@dataclass(frozen=True)
class Said:
    """A signal row as the pipeline makes it."""

    source_id: int
    line: int
    text: str = ""
    event: str | None = "identity"
    fact: str | None = "start-line"
    captures: dict[str, str] = field(default_factory=dict)
    host: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    gpu: int | None = None
    stamp_ns: int | None = None
    stamp_kind: str | None = "full"
    owned: Owned | None = None


LINE: dict[str, Any] = {
    "source_id": pl.Int32, "line": pl.Int64, "host": pl.String, "rank": pl.Int32, "local_rank": pl.Int32,
    "pid": pl.Int64, "task": pl.Int32, "attempt": pl.Int32, "stamp_ns": pl.Int64,
}  # fmt: skip


def lines(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([{name: row.get(name) for name in LINE} for row in rows], schema=LINE)


def run(paths: list[str], said: list[Said], frame: pl.DataFrame | None = None, **more: Any) -> Identity:
    sources = [SourceSeen(n, path) for n, path in enumerate(paths)]
    frame = lines(*({"source_id": n, "line": 1} for n in range(len(paths)))) if frame is None else frame
    return identify(sources, said, summarise(frame), **more)


def test_a_rank_file_is_confirmed_by_its_start_line() -> None:
    got = run(["rank3.log"], [Said(0, 1, captures={"rank": "3", "host": "gpu-a01", "world_size": "8"})])
    assert (got.sources[0].rank, got.sources[0].host, got.sources[0].kind) == (3, "gpu-a01", "rank")
    assert got.world_size == 8
    assert not got.problems


def test_lines_win_over_the_name_of_the_file_and_the_contradiction_is_shown() -> None:
    got = run(["rank3.log"], [Said(0, 1, captures={"rank": "5", "world_size": "8"})])
    assert got.sources[0].rank == 5
    assert [problem.kind for _, _, problem in got.problems] == ["identity-conflict"]
    assert {(one.how, one.rank) for _, one in got.identities} >= {("path", 3), ("start-line", 5)}


def test_the_folder_number_of_torchrun_is_a_local_rank() -> None:
    paths = [f"gpu-b02/none_abcdefgh/attempt_0/{n}/stderr.log" for n in range(2)]
    paths += [f"gpu-a01/none_hgfedcba/attempt_0/{n}/stderr.log" for n in range(2)]
    said = [Said(0, 4, captures={"rank": "2", "world_size": "4", "host": "gpu-b02"})]
    got = run(paths, said)
    assert [got.sources[n].local_rank for n in range(4)] == [0, 1, 0, 1]
    assert [got.sources[n].host for n in range(4)] == ["gpu-b02", "gpu-b02", "gpu-a01", "gpu-a01"]
    assert got.sources[0].rank == 2
    assert got.sources[1].rank == 3  # its node begins with rank 2
    assert got.sources[2].rank is None  # nothing says where the other node begins


def test_rendezvous_lines_give_the_ranks_of_a_node() -> None:
    paths = ["n1/agent.log", "n1/none_abcdefgh/attempt_0/1/stderr.log"]
    said = [
        Said(0, 10, "  restart_count=0"),
        Said(0, 13, "  group_rank=1"),
        Said(0, 14, "  group_world_size=2"),
        Said(0, 15, "  local_ranks=[0, 1]"),
        Said(0, 17, "  global_ranks=[2, 3]"),
        Said(0, 18, "  global_world_sizes=[4, 4]"),
    ]
    frame = lines({"source_id": 0, "line": 10, "host": "n1"}, {"source_id": 1, "line": 1})
    got = run(paths, said, frame)
    assert got.sources[1].rank == 3
    assert got.world_size == 4
    assert got.sources[0].node_rank == 1


def test_a_communicator_that_spans_the_job_names_ranks_and_a_smaller_one_does_not() -> None:
    comm = {"comm": "0x1", "comm_rank": "1", "comm_size": "4", "gpu": "1", "bus_id": "4e000", "comm_id": "0xaa"}
    small = {"comm": "0x2", "comm_rank": "0", "comm_size": "2", "gpu": "1", "bus_id": "4e000", "comm_id": "0xbb"}
    said = [Said(0, 1, captures=comm, host="n1", pid=77, gpu=1), Said(0, 2, captures=small, host="n1", pid=77, gpu=1)]
    frame = lines(
        {"source_id": 0, "line": 1, "host": "n1", "pid": 77}, {"source_id": 0, "line": 3, "pid": 77, "host": "n1"}
    )
    got = run(["all.log"], said, frame)
    assert got.world_size == 4
    assert got.fill(frame)["rank"].to_list() == [1, 1]
    row = next(one for _, one in got.identities if one.how == "comm-init" and one.comm_size == 4)
    assert (row.rank, row.host, row.bus_id, row.gpu) == (1, "n1", "0000:4e:00.0", 1)


def test_two_groups_of_the_same_size_are_not_the_world() -> None:
    said = [
        Said(
            0,
            n,
            captures={"comm": "0x1", "comm_rank": str(n % 2), "comm_size": "2", "comm_id": hex(n // 2)},
            host="n1",
            pid=70 + n,
        )
        for n in range(4)
    ]
    got = run(["all.log"], said)
    assert got.world_size is None
    assert all(one.rank is None for _, one in got.identities if one.how == "comm-init")


def test_lines_of_a_merged_file_get_the_rank_of_their_process() -> None:
    said = [Said(0, n + 1, captures={"rank": str(n), "world_size": "2", "pid": str(500 + n)}) for n in range(2)]
    frame = lines(
        {"source_id": 0, "line": 8, "pid": 501}, {"source_id": 0, "line": 9, "pid": 500}, {"source_id": 0, "line": 10}
    )
    got = run(["train.log"], said, frame)
    assert got.fill(frame)["rank"].to_list() == [1, 0, None]
    assert got.sources[0].kind == "node"


def test_ray_actors_are_found_by_process_and_address() -> None:
    said = [Said(0, 1, captures={"rank": "14", "world_size": "16"}, host="10.88.3.27", pid=748, event="start")]
    frame = lines(
        {"source_id": 0, "line": 1, "host": "10.88.3.27", "pid": 748},
        {"source_id": 0, "line": 2, "host": "10.88.3.28", "pid": 748},
    )
    got = run(["driver.log"], said, frame)
    assert got.fill(frame)["rank"].to_list() == [14, None]


def test_a_tee_prefix_called_rank_is_a_local_rank() -> None:
    said = [
        Said(0, n + 1, captures={"rank": str(4 + n), "local_rank": str(n), "world_size": "8", "host": "n2"}, rank=n)
        for n in range(4)
    ]
    frame = lines(*({"source_id": 0, "line": 10 + n, "rank": n} for n in range(4)))
    got = run(["torchrun.log"], said, frame)
    filled = got.fill(frame)
    assert filled["rank"].to_list() == [4, 5, 6, 7]
    assert filled["local_rank"].to_list() == [0, 1, 2, 3]


def test_launcher_tables_place_ranks_on_hosts() -> None:
    table = [
        Said(
            0,
            5,
            captures={"rank": "2", "local_rank": "0", "host": "n2.cluster.local", "child_pid": "90", "exitcode": "-9"},
            event="exit",
        ),
        Said(
            0,
            9,
            captures={"rank": "0", "local_rank": "0", "host": "n1", "child_pid": "91", "exitcode": "1"},
            event="exit",
        ),
    ]
    frame = lines({"source_id": 0, "line": 20, "rank": 2}, {"source_id": 0, "line": 21, "rank": 0})
    got = run(["job.log"], table, frame)
    assert got.fill(frame)["host"].to_list() == ["n2", "n1"]
    assert got.about(table[0]) == (2, 0, "n2")
    by_pid = Said(0, 30, captures={"child_pid": "90"}, event="exit", host="n2")
    assert got.about(by_pid) == (2, 0, "n2")


def test_a_task_is_a_rank_only_if_nothing_speaks_against_it() -> None:
    paths = [f"slurm-77_task{n}.out" for n in range(2)]
    ranks = [Said(n, 1, captures={"rank": str(n), "world_size": "2", "host": "s1"}) for n in range(2)]
    got = run([*paths, "slurm-77.err"], [*ranks, Said(2, 4, captures={"host": "s1", "task": "1"}, event="exit")])
    assert [got.sources[n].rank for n in range(2)] == [0, 1]
    assert got.about(Said(2, 4, captures={"host": "s1", "task": "1"}, event="exit")) == (1, 1, "s1")

    nodes = [Said(n, 1, captures={"rank": str(4 * n), "world_size": "8", "local_rank": "0"}) for n in range(2)]
    got = run(paths, nodes)
    assert got.about(Said(0, 4, captures={"host": "s1", "task": "1"}, event="exit"))[0] is None


def test_a_folder_that_stands_for_a_container_joins_it_with_its_machine() -> None:
    paths = ["job.log", "host-of-worker-1/kern.log"]
    frame = lines(
        {"source_id": 0, "line": 1, "host": "ddp-worker-1"},
        {"source_id": 0, "line": 2, "host": "ddp-worker-0"},
        {"source_id": 1, "line": 1, "host": "rd-gpu-236"},
    )
    got = run(paths, [], frame)
    assert got.sources[1].host == "rd-gpu-236"
    assert got.sources[1].kind == "kernel"
    assert ("ddp-worker-1", "rd-gpu-236") in {(one.host, one.alias) for _, one in got.identities}


def test_an_address_gives_way_to_a_name() -> None:
    dumps = {1: [DumpIdentity(2, "nodes", host="gpu-node-37", address="10.21.4.37")]}
    frame = lines({"source_id": 0, "line": 1, "host": "10.21.4.37"}, {"source_id": 1, "line": 1})
    got = run(["dmesg.log", "nodes.txt"], [], frame, dumps=dumps)
    assert got.sources[0].host == "gpu-node-37"
    assert got.fill(frame)["host"].to_list()[0] == "gpu-node-37"


def test_full_names_become_short_ones() -> None:
    frame = lines({"source_id": 0, "line": 1, "host": "n1.cluster.local"}, {"source_id": 0, "line": 2, "host": "n1"})
    got = run(["a.log"], [], frame)
    assert got.fill(frame)["host"].to_list() == ["n1", "n1"]
    assert got.sources[0].host == "n1"


def test_a_second_start_cuts_a_file_into_attempts() -> None:
    hour = 3600 * 10**9
    first = {"rank": "0", "world_size": "2", "host": "lf-1"}
    said = [
        Said(0, 1, captures=first, event="start", stamp_ns=0),
        Said(0, 50, captures={**first, "host": "lf-2"}, event="start", stamp_ns=9 * hour),
    ]
    frame = lines(
        {"source_id": 0, "line": 2}, {"source_id": 0, "line": 50}, {"source_id": 0, "line": 60},
        {"source_id": 1, "line": 1, "stamp_ns": hour}, {"source_id": 1, "line": 2, "stamp_ns": 10 * hour},
    )  # fmt: skip
    got = run(["77_0_log.out", "77_0_log.err", "77_1_log.err"], said, frame)
    filled = got.fill(frame)
    assert filled["attempt"].to_list() == [0, 1, 1, 0, 1]
    assert filled["host"].to_list() == ["lf-1", "lf-2", "lf-2", "lf-1", "lf-2"]
    assert filled["rank"].to_list() == [0, 0, 0, 0, 0]


def test_a_start_line_that_is_printed_twice_is_no_restart() -> None:
    said = [
        Said(0, 1, captures={"rank": "0", "world_size": "2"}, event="start", stamp_ns=0),
        Said(0, 2, captures={"rank": "0", "world_size": "2"}, event="start", stamp_ns=10**9),
    ]
    assert run(["rank0.log"], said).sources[0].attempt == 0


@pytest.mark.parametrize(("fact", "attempts"), [("identity-megatron-rerun", [0, 0]), ("start-line", [0, 1])])
def test_a_line_that_describes_its_writer_is_no_start(fact: str, attempts: list[int]) -> None:
    """A rank names itself twice, with an error between."""
    who = {"rank": "13", "host": "n1"}
    said = [
        Said(0, 5, "Rank 13: unexpected result", fact=fact, captures=who),
        Said(0, 6, "boom", "exception", None),
        Said(0, 9, "Rank 13: not reproducible", fact=fact, captures=who),
    ]
    frame = lines({"source_id": 0, "line": 5}, {"source_id": 0, "line": 9})
    assert run(["slurm.out"], said, frame).fill(frame)["attempt"].fill_null(0).to_list() == attempts


def test_the_same_words_of_several_processes_are_no_restart() -> None:
    said = [Said(0, n, captures={"ip": "10.0.0.7"}, pid=70 + n, host="n1") for n in range(1, 9)]
    assert run(["train.log"], said).sources[0].attempt == 0


def test_the_agent_that_restarts_its_workers_begins_an_attempt() -> None:
    text = "[default] Worker group FAILED. 3/3 attempts left; will restart worker group"
    frame = lines({"source_id": 0, "line": 5}, {"source_id": 0, "line": 6})
    got = run(["torchrun.log"], [Said(0, 5, text, event="agent-report")], frame)
    assert got.fill(frame)["attempt"].to_list() == [0, 1]
    assert got.sources[0].attempt is None


@pytest.mark.parametrize(
    ("agents", "attempts"), [((9, 9), [0, 1, 1]), ((9, 8), [0, 0, 0])], ids=["one agent twice", "two agents"]
)
def test_an_agent_whose_workers_fail_a_second_time_had_started_them_again(
    agents: tuple[int, int], attempts: list[int]
) -> None:
    """Its workers print no start line; agents of two hosts that share a log each report once."""
    said = [
        Said(0, line, f"failed (exitcode: 1) local_rank: 0 (pid: {line}) of binary: python", "exit", None, pid=agent)
        for line, agent in zip((5, 9), agents, strict=True)
    ]
    frame = lines(*({"source_id": 0, "line": line} for line in (4, 7, 9)))
    assert run(["torchrun.log"], said, frame).fill(frame)["attempt"].fill_null(0).to_list() == attempts


def test_blocks_of_ranks_place_the_silent_ones() -> None:
    paths = [f"pods/ft-{name}_trainer.log" for name in ("master-0", "worker-0", "worker-1", "worker-2")]
    said = [
        Said(source, 1, captures={"rank": str(rank), "local_rank": "0"}, event="exit")
        for source, rank in ((0, 0), (1, 2), (3, 6))
    ]
    frame = lines(*({"source_id": n, "line": 1} for n in range(4)))
    got = run(paths, [*said, Said(0, 9, captures={"world_size": "8", "rank": "1"})], frame)
    inferred = {(one.rank, one.host, one.local_rank) for _, one in got.identities if one.how == "inferred"}
    assert {(4, "ft-worker-1", 0), (5, "ft-worker-1", 1)} <= inferred
    assert [got.sources[n].node_rank for n in range(4)] == [0, 1, 2, 3]
    about = got.about(Said(3, 20, captures={"local_rank": "1", "child_pid": "9"}, event="exit"))
    assert about == (7, 1, "ft-worker-2")


def test_a_number_that_is_also_read_as_node_rank_is_no_rank() -> None:
    text = "MASTER_ADDR=ft-master-0 RANK=1 WORLD_SIZE=4 NPROC_PER_NODE=2"
    said = [
        Said(0, 1, text, fact="rank-world", captures={"rank": "1", "world_size": "4"}),
        Said(0, 1, text, fact="environment", captures={"node_rank": "1"}),
    ]
    got = run(["ft-worker-0.log"], said)
    assert got.sources[0].rank is None
    assert got.sources[0].node_rank == 1
    assert got.world_size == 8  # four nodes of two


def test_ranks_that_are_dealt_in_turn_are_not_taken_for_blocks() -> None:
    said = [Said(0, n + 1, captures={"rank": str(n), "host": f"n{n % 2}"}, event="exit") for n in range(6)]
    got = run(["mpirun.log"], [*said, Said(0, 9, captures={"world_size": "8", "rank": "0"})])
    assert not [one for _, one in got.identities if one.how == "inferred"]


def test_a_label_of_a_launcher_task_is_a_node() -> None:
    sources = [SourceSeen(0, "slurm-88.out", b"0: W torch.distributed.run: x\n1: W torch.distributed.run: x\n")]
    said = [Said(0, 5, captures={"host": "ft-03", "task": "0"}, event="exit")]
    frame = lines({"source_id": 0, "line": 1, "task": 0}, {"source_id": 0, "line": 2, "task": 1})
    got = identify(sources, said, summarise(frame))
    filled = got.fill(frame)
    assert filled["rank"].to_list() == [None, None]
    assert filled["host"].to_list() == ["ft-03", None]


def test_the_user_has_the_last_word() -> None:
    said = [Said(0, 1, captures={"rank": "5", "world_size": "8", "host": "a"})]
    got = run(["x/rank3.log"], said, hosts={"x/*": "b"}, ranks={"x/rank3.log": 7})
    assert (got.sources[0].rank, got.sources[0].host) == (7, "b")


WORDS = (
    "rank ranks local_rank node_rank task tasks world_size host hosts pid child_pid ip pod comm comm_rank comm_size "
    "comm_id bus_id gpu alias process_index"
)
TEXTS = [
    "  group_rank=999999999",
    "  global_ranks=[1, 999999999]",
    "will restart worker group",
    "global_rank_mapping={'a': [0, 1]}",
    "RANK=1 NODE_RANK=1",
    "--nnodes=999999 --nproc_per_node=999999",
]
words = st.sampled_from(WORDS.split())
values = st.one_of(
    st.integers(-5, 40).map(str),
    st.integers(0, 10**18).map(str),
    st.text(max_size=12),
    st.sampled_from(["n1", "n[1-3]", "0-3,9", "x.y.z", "10.0.0.7"]),
)
texts = st.one_of(st.text(max_size=60), st.sampled_from(TEXTS))
said_rows = st.builds(
    Said,
    source_id=st.integers(0, 4),
    line=st.integers(1, 9),
    text=texts,
    event=st.sampled_from(["identity", "start", "exit", "agent-report", "hang", None]),
    captures=st.dictionaries(words, values, max_size=5),
    host=st.one_of(st.none(), st.sampled_from(["n1", "n2.x", "10.0.0.7"])),
    rank=st.one_of(st.none(), st.integers(0, 2**31 - 1)),
    pid=st.one_of(st.none(), st.integers(0, 2**40)),
    stamp_ns=st.one_of(st.none(), st.integers(-(2**60), 2**60)),
)
PATHS = [
    "rank3.log",
    "n1/none_abcdefgh/attempt_1/2/stderr.log",
    "job-worker-1.log",
    "slurm-12_3.log",
    "node-4/kern.log",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(said_rows, max_size=12))
def test_whatever_is_said_there_is_an_answer(said: list[Said]) -> None:
    frame = lines(
        *(
            {"source_id": one.source_id, "line": one.line, "rank": one.rank, "pid": one.pid, "host": one.host}
            for one in said
        )
    )
    got = run(PATHS, said, frame)
    assert len(got.fill(frame)) == len(frame)
    for one in said:
        got.about(one)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_rows_decides_nothing(seed: int) -> None:
    said = [
        Said(n, n + 1, captures={"rank": str(n), "host": f"n{n // 2}", "local_rank": str(n % 2)}, pid=n)
        for n in range(6)
    ]
    said += [Said(6, n, captures={"rank": "9", "host": f"n{n}"}) for n in range(3)]
    frame = lines(*({"source_id": n, "line": n + 1, "pid": n} for n in range(7)))
    paths = [f"f{n}.log" for n in range(7)]
    expected = run(paths, said, frame)
    shuffled = list(said)
    random.Random(seed).shuffle(shuffled)
    got = run(paths, shuffled, frame.sample(fraction=1, shuffle=True, seed=seed))
    assert got.identities == expected.identities
    assert got.sources == expected.sources
    assert got.resolved.equals(expected.resolved)
