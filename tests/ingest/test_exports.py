"""Tables of log lines: which first lines begin one, and what becomes of their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.ingest import ingest
from firstfault.ingest.exports import Export, Table, table_of
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
