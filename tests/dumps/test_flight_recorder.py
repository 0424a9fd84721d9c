"""Flight recorder dumps of every version, as pickle and JSON, and pickles that mean harm."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
from typing import Any

import pytest

from firstfault.ingest.dumps import DumpContext, DumpRows, find_reader, read_dump
from firstfault.ingest.dumps.pickle_data import PickleError, load

NS = 1_747_044_672_000_000_123


def entry(seq: int, state: str, **more: Any) -> dict[str, Any]:
    return {
        "record_id": seq, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": seq, "p2p_seq_id": 0,
        "op_id": seq, "profiling_name": "nccl:all_reduce", "time_created_ns": NS + seq, "input_sizes": [[2, 3]],
        "input_dtypes": ["Float"], "output_sizes": [[2, 3]], "output_dtypes": ["Float"], "state": state,
        "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": state == "completed",
        "timeout_ms": 600000, "is_p2p": False,
        "frames": [
            {"name": "all_reduce", "filename": "/venv/site-packages/torch/distributed/c10d.py", "line": 1},
            {"name": "step", "filename": "train.py", "line": 44},
        ],
        **more,
    }  # fmt: skip


def dump(*entries: dict[str, Any], enqueued: int = 2, completed: int = 1) -> dict[str, Any]:
    return {
        "version": "2.4",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
        "pg_status": {
            "0": {
                "last_enqueued_collective": enqueued,
                "last_started_collective": completed,
                "last_completed_collective": completed,
            }
        },
        "entries": list(entries),
    }


def read(path: str, data: bytes, rank: int | None = 3) -> DumpRows:
    reader = find_reader(path, data[:65536])
    assert reader is not None
    assert reader.name == "flight-recorder"
    return read_dump(reader, DumpContext(path, rank=rank), data)


def test_a_pickle_tells_counters_members_and_the_open_entry() -> None:
    rows = read("fr/nccl_trace_rank_3", pickle.dumps(dump(entry(1, "completed"), entry(2, "scheduled")), protocol=2))
    status = next(one for one in rows.signals if one.fact == "fr-status")
    assert status.captures == {
        "pg_name": "0", "pg_desc": "default_pg", "pg_ranks": "[0, 1]", "last_enqueued": "2", "last_started": "1",
        "last_completed": "1", "rank": "3",
    }  # fmt: skip
    opened = next(one for one in rows.signals if one.captures.get("state") == "scheduled")
    assert (opened.line, opened.rank, opened.captures["seq"], opened.captures["op"]) == (2, 3, "2", "ALLREDUCE")
    assert (opened.captures["function"], opened.captures["src_file"], opened.captures["src_line"]) == (
        "step",
        "train.py",
        "44",
    )
    assert opened.captures["numel_in"] == "6"
    assert (opened.stamp_ns, opened.stamp_kind, opened.utc_offset_s) == (NS + 2, "offset", 0)
    assert [(one.rank, one.world_size) for one in rows.identities] == [(3, 2)]
    assert rows.problems == ()


@pytest.mark.parametrize("protocol", range(5))
def test_every_pickle_protocol_reads_alike(protocol: int) -> None:
    data = dump(entry(1, "completed"), entry(2, "started"))
    assert read("nccl_trace_rank_3", pickle.dumps(data, protocol=protocol)) == read(
        "nccl_trace_rank_3", pickle.dumps(data, protocol=2)
    )


def test_json_gives_the_lines_of_entries_and_counters() -> None:
    text = json.dumps(dump(entry(1, "completed"), entry(2, "scheduled")), indent=1)
    rows = read("nccl_trace_rank_3.json", text.encode())
    lines = text.split("\n")
    for one in rows.signals:
        assert ("last_enqueued_collective" if one.fact == "fr-status" else "profiling_name") in lines[one.line - 1]


def test_strings_in_place_of_numbers_are_numbers() -> None:
    value = dump(entry(1, "completed"))
    value["pg_status"]["0"] = {"last_enqueued_collective": "7", "last_completed_collective": "-1"}
    rows = read("x_trace_rank_1.json", json.dumps(value).encode())
    assert rows.signals[0].captures["last_enqueued"] == "7"
    assert rows.signals[0].captures["last_completed"] == "-1"


def test_a_bare_list_of_torch_2_2_has_no_counters_but_entries() -> None:
    old = {
        "pg_id": 1, "seq_id": 5, "profiling_name": "nccl:reduce_scatter", "time_created_us": NS // 1000,
        "input_sizes": ((4,),), "output_sizes": ((4,),), "state": "started", "retired": False, "frames": [],
    }  # fmt: skip
    rows = read("nccl_trace_rank_0", pickle.dumps([old], protocol=2), rank=0)
    assert {(one.fact, one.captures["pg_name"], one.captures["last_enqueued"]) for one in rows.signals} == {
        ("fr-status", "1", "5"), ("fr-entry", "1", "5"),
    }  # fmt: skip
    assert rows.signals[0].stamp_ns == NS // 1000 * 1000


def test_a_dump_without_a_rank_says_so() -> None:
    rows = read("dump.pkl", pickle.dumps(dump(entry(1, "completed")), protocol=2), rank=None)
    assert [one.kind for one in rows.problems] == ["unknown-rank"]


class Harm:
    """A pickle that would run a command."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("exit 1",))


@pytest.mark.parametrize("protocol", range(5))
def test_a_pickle_that_asks_for_a_call_is_refused(protocol: int) -> None:
    value = dump(entry(1, "completed"))
    value["harm"] = Harm()
    rows = read("nccl_trace_rank_3", pickle.dumps(value, protocol=protocol))
    assert rows.signals == ()
    assert [(one.kind, one.severity) for one in rows.problems] == [("unreadable", "data-loss")]


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02}r\xff\xff\xff\xff.",  # a memo index that would reserve gigabytes
        b"\x80\x02X\xff\xff\xff\x7fabc.",  # a string longer than the file
        b"\x80\x02" + b"(" * 1000,  # marks without an end
        b"\x80\x02cos\nsystem\n.",
        b"\x80\x02]q\x00h\x00e.",
        b"",
        b"\x80\x02\x8b\xff\xff\xff\xff.",
    ],
)
def test_broken_pickles_are_errors_and_nothing_more(data: bytes) -> None:
    with contextlib.suppress(PickleError):
        assert load(data) == {}


def test_lists_that_torchscript_wraps_stand_for_themselves() -> None:
    assert load(b"\x80\x02ctorch.jit._pickle\nbuild_intlist\n(]K\x01atR.") == [1]


def test_many_open_entries_are_left_out_with_a_word_about_it() -> None:
    rows = read("nccl_trace_rank_3", pickle.dumps(dump(*(entry(n, "scheduled") for n in range(300))), protocol=2))
    assert len(rows.signals) < 100
    assert [(one.kind, one.count) for one in rows.problems] == [("left-out", 236)]
