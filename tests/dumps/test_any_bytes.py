"""Readers meet anything: they never raise, and ordinary logs are not theirs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstfault.ingest.dumps import READERS, DumpContext, Reader, find_reader, read_dump
from firstfault.ingest.dumps.json_places import line_of, parse
from firstfault.ingest.dumps.text import age_seconds, any_stamp

SEEDS = [
    b"\x80\x02}q\x00(X\x07\x00\x00\x00entriesq\x01]q\x02X\x09\x00\x00\x00pg_configq\x03}q\x04u.",
    b'{"pg_config": {}, "entries": [{"profiling_name": "nccl:all_reduce", "collective_seq_id": 1}], "pg_status": {}}',
    b'{"message": {"message": "x", "extraInfo": {"timestamp": "12"}}}',
    b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "status": {"containerStatuses": [{"state": {}}]}}',
    b'{"InstanceStatuses": [{"InstanceId": "i-012345678", "SystemStatus": {"Status": "impaired", "Details": [1]}}]}',
    b"LAST SEEN   TYPE   REASON   OBJECT   MESSAGE\n4m   Warning   Evicted   pod/x   gone\n",
    b"timestamp, index, clocks.sm [MHz]\na, 0, 1\na, 1, 2\n",
    b"JobID|State|ExitCode|NodeList\n1|FAILED|1:0|n[1-3]\n",
    b'Thread 0x0001 (most recent call first):\n  File "x", line 1 in f\n',
]


@st.composite
def bent(draw: st.DrawFn) -> bytes:
    """A file of some kind with pieces cut out, doubled and overwritten."""
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 6))):
        at, size = draw(st.integers(0, len(data))), draw(st.integers(0, 12))
        data = (
            data[:at] + draw(st.one_of(st.binary(max_size=12), st.just(data[at : at + size] * 2))) + data[at + size :]
        )
    return data


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.binary(max_size=400), bent()),
    st.sampled_from(["x", "nccl_trace_rank_3", "error.json", "nvidia-smi.csv"]),
)
def test_no_bytes_raise(data: bytes, path: str) -> None:
    find_reader(path, data)
    for reader in READERS:
        for one in read_dump(reader, DumpContext(path), data).signals:
            assert one.line >= 1


def test_numbers_and_halves_of_characters_are_kept_out_of_the_columns() -> None:
    text = '{"message": {"message": "E: \\ud800 \\u0000", "extraInfo": {"timestamp": "1747044672"}}}'
    reader = find_reader("error.json", text.encode())
    assert reader is not None
    (one,) = read_dump(reader, DumpContext("error.json", rank=2**40), text.encode()).signals
    assert one.text == "E: ? �"
    assert one.rank is None


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
@pytest.mark.parametrize(
    "piece", [b"(", b" ", b"a ", b"[", b'{"a":', b"GPU 0: ", b"1: ", b"-", b"Rank 1 ", b"| ", b"\\"]
)
def test_long_lines_cost_no_more_than_their_length(reader: Reader, piece: bytes) -> None:
    data = (piece * 40000)[:200000] + b"\n" + piece * 2000
    began = time.perf_counter()
    reader.sniff("x.log", data[:65536])
    read_dump(reader, DumpContext("x.log"), data)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "log",
    [
        b"2025-05-12 10:11:12,345 INFO step 1 loss 2.0\n" * 30,
        b"+ nvidia-smi -L\nGPU 0: NVIDIA A100 (UUID: GPU-fa1f5786-74c9-119a-d708-f1d617f5e837)\n"
        + b"[rank0]: step 1\n" * 40,
        b"[1234.567890] NVRM: Xid (PCI:0000:4e:00): 79, GPU has fallen off the bus.\n" * 5,
        b'Traceback (most recent call last):\n  File "x.py", line 3, in f\nValueError: x\n',
        b"node-07:71:71 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.7<0>\n" * 8,
        b'{"level": "info", "message": "hello"}\n' * 4,
        b"",
        b"\x00" * 5000,
    ],
)
def test_ordinary_logs_are_no_dumps(log: bytes) -> None:
    assert find_reader("train.log", log) is None


def test_json_knows_the_line_of_every_key() -> None:
    value = parse(b'{"a": 1,\n "b": {\n  "c": [true,\n   {"d": null}]\n }\n}')
    assert value == {"a": 1, "b": {"c": [True, {"d": None}]}}
    assert [line_of(value, "a"), line_of(value, "b"), line_of(value["b"], "c"), line_of(value["b"]["c"][1])] == [
        1,
        2,
        3,
        4,
    ]


@pytest.mark.parametrize("text", [b"{", b'{"a" 1}', b"[1,", b'"x', b"{}x", b"[" * 1000])
def test_broken_json_is_an_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"line|Expecting|nested"):
        parse(text)


def test_times_as_status_commands_print_them() -> None:
    assert age_seconds("4m43s") == (283, 1)
    assert age_seconds("3h") == (10800, 3600)
    assert age_seconds("now") is None
    local, utc = any_stamp("Sun May 11 17:46:24 CST 2025"), any_stamp("Sun May 11 09:46:24 UTC 2025")
    assert local is not None
    assert utc is not None
    assert (local.kind, local.utc_offset_s, utc.kind, utc.utc_offset_s) == ("full", None, "offset", 0)
    assert local.ns - utc.ns == 8 * 3600 * 10**9
