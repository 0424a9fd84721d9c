"""Tables and lists of log lines: what begins one, and what becomes of its lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firstfault.ingest import ingest
from firstfault.ingest.exports import Export, Table, export_of, table_of
from firstfault.ingest.frame import Chunk, frame
from firstfault.timeline import open_timeline

HEAD = "timestamp,host,pod,message\n"
BODY = (
    '2025-05-12T10:11:12Z,node-07,w-0,"[rank0]: Traceback (most recent call last):\n'
    '[rank0]:   File ""train.py"", line 3, in <module>\n'
    '[rank0]: ValueError: a, b"\n'
    "2025-05-12T10:11:13Z,node-08,w-1,[rank1]: step 3\n"
)


@pytest.mark.parametrize(
    ("head", "columns"),
    [
        ("timestamp,host,pod,message", ("timestamp", "host", "pod", "message")),
        ('"_time","_raw","index","host"', ("timestamp", "message", None, "host")),
        ("TimeGenerated [UTC];Computer;LogMessage", ("timestamp", "host", "message")),
        ("@timestamp,@message", ("timestamp", "message")),
        ("Date\tHost\tService\tMessage", ("timestamp", "host", None, "message")),
        ("step,time,loss", None),
        ("timestamp, name, utilization.gpu [%]", None),
        ("2025-05-12,message", None),
        ("loading a message, at a host, in time", None),
        ("RuntimeError: out of memory, tried 2 GiB.\r 12%|#| 120/1000 [00:12<01:30, 9.70it/s]", None),
        ("timestamp,host,\rmessage", None),
    ],
)
def test_first_lines_that_begin_a_table(head: str, columns: tuple[str | None, ...] | None) -> None:
    table = table_of(head.encode() + b"\n")
    assert (table and table.columns) == columns


def test_records_keep_their_lines_and_places(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "export.csv").write_text(HEAD + BODY)
    ingest([tmp_path / "logs"], tmp_path / "t.duckdb")
    with open_timeline(tmp_path / "t.duckdb") as con:
        assert con.execute("select line, host, rank, message from lines order by line").fetchall() == [
            (1, None, None, ""),
            (2, "node-07", 0, "Traceback (most recent call last):"),
            (3, "node-07", 0, '  File "train.py", line 3, in <module>'),
            (4, "node-07", 0, "ValueError: a, b"),
            (5, "node-08", 1, "step 3"),
        ]
        assert con.execute("select line, ranks from exceptions").fetchall() == [(4, 1)]


@pytest.mark.parametrize("cut", range(1, 4))
def test_a_table_is_read_from_any_line_and_in_pieces(cut: int) -> None:
    table = Table(("timestamp", "host", "pod", "message"), ",")
    whole = Export(table, begins=True).lines(frame(Chunk((HEAD + BODY * 3).encode(), 0))).text.split(b"\n")
    lines = (BODY * 3).splitlines(keepends=True)
    export = Export(table, begins=False)
    pieces = ["".join(lines[cut:6]), "".join(lines[6:])]
    found = b"".join(export.lines(frame(Chunk(piece.encode(), 1))).text for piece in pieces).split(b"\n")
    started = 4 - cut if cut < 3 else 0  # the record that was cut has no place
    assert found[started:] == whole[1 + cut + started :]


EVENTS = [
    {"logStreamName": f"run/algo-{host}-1747040000", "timestamp": 1747044672345 + host, "message": f'say "{host}"'}
    for host in range(1, 5)
]
DOCUMENT = json.dumps({"events": EVENTS, "searchedLogStreams": []}, indent=4) + "\n"


def test_objects_of_a_list_stand_in_the_lines_of_their_messages(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "events.json").write_text(DOCUMENT)
    ingest([tmp_path / "logs"], tmp_path / "t.duckdb")
    with open_timeline(tmp_path / "t.duckdb") as con:
        found = con.execute("select line, host, message from lines where host is not null order by line").fetchall()
    assert found == [(6 + 5 * n, f"algo-{n + 1}", f'say "{n + 1}"') for n in range(4)]
    assert [DOCUMENT.split("\n")[line - 1].strip().startswith('"message"') for line, _, _ in found] == [True] * 4


@pytest.mark.parametrize("cut", range(1, 25, 3))
def test_a_list_of_objects_is_read_in_pieces(cut: int) -> None:
    lines = DOCUMENT.splitlines(keepends=True)
    export = export_of(DOCUMENT.encode())
    assert export is not None
    pieces = ["".join(lines[:cut]), "".join(lines[cut:])]
    found = b"".join(export.lines(frame(Chunk(piece.encode(), 0))).text for piece in pieces).split(b"\n")
    assert [json.loads(line) for line in found if line.startswith(b'{"')] == EVENTS
    assert len(found) == len(lines) + 1


@pytest.mark.parametrize("text", ['{"message": "one line"}\n', '[\n  {\n    "step": 3\n  }\n]\n', "[\n  {\n", ""])
def test_other_documents_stay_as_they_are(text: str) -> None:
    assert export_of(text.encode()) is None
