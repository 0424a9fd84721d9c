"""Whole runs: the same rows whatever the workers and the cuts, and nothing lost in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from firstfault.ingest import Bounds, IngestOptions, ingest
from firstfault.ingest.frame import encoding_of
from firstfault.ingest.opening import is_binary, is_packed
from firstfault.timeline import open_timeline

TABLES = ("sources", "line_rows", "signal_rows", "identities", "progress", "problems")


def dump(db: Path) -> dict[str, list[Any]]:
    """All rows of a timeline, in the order in which they lie."""
    with open_timeline(db) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}


def log(rank: int, lines: int) -> str:
    text = [
        f"2025-05-12 10:00:00,{rank:03d} - root - INFO - starting rank {rank} of 4 pid {100 + rank} host n-{rank // 2}"
    ]
    for line in range(lines):
        text.append(
            f"2025-05-12 10:{line // 60 % 60:02d}:{line % 60:02d},{rank:03d} - root - INFO - step {line} loss 1.5"
        )
        if line % 97 == 5:
            text += [
                "Traceback (most recent call last):",
                *(f'  File "/opt/x{depth}.py", line {depth}, in f{depth}' for depth in range(20)),
                "ValueError: bad sample",
                "",
                "During handling of the above exception, another exception occurred:",
                "",
                "Traceback (most recent call last):",
                '  File "/opt/y.py", line 3, in g',
                "RuntimeError: gave up",
            ]
        if line % 50 == 0:
            text.append("no stamp here")
    return "\n".join(text) + "\n"


def others() -> dict[str, str]:
    """What spans lines in other ways: parts, details below a head, times without a day, a top without a time."""
    cri = "2025-05-12T10:11:12.345678901Z stderr"
    head = "[rank3]:[E512 10:11:12.715298746 ProcessGroupNCCL.cpp:552] [Rank 3] Collective raised: NCCL error: x"
    details = "ncclRemoteError: A call failed.\nLast error:\nsocketProgress: closed\nframe #0: c10 (0x7f in lib)\n"
    return {
        "pod.log": "".join(
            f"{cri} P {'a' * 150}{n}\n{cri} F CUDA out of memory\n{cri} F step {n}\n" for n in range(60)
        ),
        "node.log": f"{head}\n{details}step\n" * 60,
        "clock.log": "".join(f"{n // 60 % 24:02d}:{n % 60:02d}:00.250 step {n}\n" for n in range(1300, 2100)),
        "late.log": "no time yet\n" * 300 + "".join(f"May 12 10:{n:02d}:00 n-1 app[7]: step {n}\n" for n in range(60)),
        "wide.log": "x" * 3000 + "\n2025-05-12 10:00:00,000 INFO step 1\n" + "y" * 5000 + "\nend\n",
    }


@pytest.fixture
def logs(write: Any) -> Path:
    files = {f"rank{rank}.log": log(rank, 40 if rank else 900) for rank in range(4)}
    return write({**files, **others()})  # type: ignore[no-any-return]


TOKENS = [b"\n", b"\r", b"\0", b"[rank0]: ", b"Traceback (most recent call last):\n", b"ValueError: x\n", b"  File"]
SMALL = Bounds(shard=8 << 10, chunk=2 << 10, unit=4 << 10, in_process=1 << 40)


def test_one_worker_and_many_give_the_same_rows(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "one.duckdb", IngestOptions(workers=1, bounds=SMALL))
    many = Bounds(shard=8 << 10, chunk=2 << 10, unit=4 << 10, in_process=0, memory=0)
    ingest([logs], tmp_path / "two.duckdb", IngestOptions(workers=2, bounds=many))
    assert dump(tmp_path / "one.duckdb") == dump(tmp_path / "two.duckdb")


def test_cuts_change_nothing(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "whole.duckdb", IngestOptions(workers=1))
    ingest([logs], tmp_path / "cut.duckdb", IngestOptions(workers=1, bounds=SMALL))
    whole, cut = dump(tmp_path / "whole.duckdb"), dump(tmp_path / "cut.duckdb")
    assert [row[:-1] for row in whole.pop("sources")] == [row[:-1] for row in cut.pop("sources")]
    assert whole == cut


def test_the_order_of_the_given_paths_changes_nothing(logs: Path, tmp_path: Path) -> None:
    files = sorted(logs.iterdir())
    ingest(files, tmp_path / "a.duckdb")
    ingest(files[::-1], tmp_path / "b.duckdb")
    assert dump(tmp_path / "a.duckdb") == dump(tmp_path / "b.duckdb")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.lists(st.one_of(st.binary(max_size=60), st.sampled_from(TOKENS)), max_size=20).map(b"".join))
def test_any_bytes_can_be_read(data: bytes, tmp_path: Path) -> None:
    assume(not is_binary(data) and not is_packed(data) and encoding_of(data) == "utf-8")
    folder = tmp_path / "any"
    folder.mkdir(exist_ok=True)
    (folder / "any.log").write_bytes(data)
    ingest([folder], tmp_path / "any.duckdb")
    with open_timeline(tmp_path / "any.duckdb") as connection:
        spans = connection.execute("SELECT byte_offset, byte_length FROM line_rows ORDER BY line").fetchall()
    assert b"\n".join(data[offset : offset + length] for offset, length in spans) == data.removesuffix(b"\n")


def test_empty_files_and_empty_folders_are_no_failure(read: Any) -> None:
    made = read({"a.log": "", "sub/b.log": ""})
    assert made.rows("SELECT path, lines, bytes FROM sources ORDER BY path") == [("a.log", 0, 0), ("sub/b.log", 0, 0)]
    assert made.rows("SELECT count(*) FROM lines") == [(0,)]


def test_nothing_to_read_gives_an_empty_timeline(read: Any) -> None:
    assert read({}).rows("SELECT count(*) FROM sources") == [(0,)]


def test_a_file_that_still_grows_has_its_last_line(read: Any) -> None:
    made = read({"a.log": "one\ntwo"})
    assert made.rows("SELECT line, byte_offset, byte_length, message FROM lines ORDER BY line") == [
        (1, 0, 3, "one"),
        (2, 4, 3, "two"),
    ]


def test_a_long_line_is_cut_and_says_so(read: Any) -> None:
    made = read({"a.log": "short\n" + "x" * 5000 + "\n"}, options=IngestOptions(bounds=Bounds(line=1000)))
    assert made.rows("SELECT line, byte_length, length(message) FROM lines ORDER BY line") == [
        (1, 5, 5),
        (2, 5000, 1000),
    ]
    assert made.rows("SELECT kind, line, severity FROM problems") == [("cut-line", 2, "data-loss")]


def test_an_error_beyond_the_bound_of_a_line_is_found(read: Any) -> None:
    line = "x" * 5000 + " torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB." + "y" * 5000
    made = read({"a.log": line + "\n"}, options=IngestOptions(bounds=Bounds(line=1000)))
    assert "cuda-oom" in made.column("SELECT class FROM signal_rows")


def test_an_error_glued_onto_a_progress_bar_is_found(read: Any) -> None:
    bar = " 12%|█▏        | 120/1000 [00:12<01:30,  9.70it/s]"
    error = "[rank3]: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB."
    text = f"\r 11%|█▏        | 119/1000 [00:12<01:30,  9.70it/s]\r{bar}{error}\n"
    made = read({"a.log": text})
    assert made.rows("SELECT rank, class FROM lines") == [(3, "cuda-oom")]


def test_an_error_that_a_progress_bar_has_overwritten_is_found(read: Any) -> None:
    text = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\r 12%|#| 120/1000 [00:12<01:30, 9.70it/s]\n"
    made = read({"a.log": text})
    assert "cuda-oom" in made.column("SELECT class FROM signal_rows")
    assert made.column("SELECT message FROM lines") == [" 12%|#| 120/1000 [00:12<01:30, 9.70it/s]"]


def test_damage_is_reported_once_with_its_count(read: Any) -> None:
    made = read({"a.log": b"good\nb\xffad\nb\xffad\n"})
    assert made.rows("SELECT kind, line, count, severity FROM problems") == [("undecodable", 2, 2, "notice")]


def test_the_same_log_met_twice_is_one_witness(read: Any) -> None:
    text = "[rank3]:[E512 10:11:12.715298746 x.cpp:6] CUDA error: an illegal memory access was encountered\n"
    made = read({"a/rank.log": text, "copy/rank.log": text, "other/rank.log": text.replace("rank3", "rank4")})
    assert made.rows("SELECT path, count(*) FROM signals WHERE entry IS NOT NULL GROUP BY path ORDER BY path") == [
        ("a/rank.log", 1),
        ("other/rank.log", 1),
    ]
    assert made.rows("SELECT path, kind, severity FROM problems") == [("copy/rank.log", "duplicate", "info")]


def test_ranks_that_print_the_same_words_are_two_witnesses(read: Any) -> None:
    made = read({"rank0.log": "RuntimeError: CUDA error: x\n", "rank1.log": "RuntimeError: CUDA error: x\n"})
    assert made.rows("SELECT count(*) FROM problems") == [(0,)]


def test_text_may_stay_in_the_logs(read: Any) -> None:
    text = (
        "2025-05-12 10:00:00,000 - root - INFO - fine\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    made = read({"a.log": text}, options=IngestOptions(keep_text=False))
    assert made.rows("SELECT text_stored FROM sources") == [(False,)]
    assert made.rows("SELECT message IS NULL FROM lines ORDER BY line") == [(True,), (False,)]


def test_a_killed_writer_leaves_the_last_good_timeline(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = tmp_path / "t.duckdb"
    ingest([logs], db)
    before = db.read_bytes()

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("firstfault.ingest.run.fill", broken)
    (logs / "rank0.log").write_text("something new\n")  # what has not changed is not read again
    with pytest.raises(KeyboardInterrupt):
        ingest([logs], db)
    assert db.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name != "logs"] == ["t.duckdb"]


def test_the_file_opens_with_any_client_that_reads_its_version(logs: Path, tmp_path: Path) -> None:
    ingest([logs], tmp_path / "t.duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb"), read_only=True) as connection:
        rows = connection.execute(
            "SELECT tags['storage_version'] FROM duckdb_databases() WHERE NOT internal"
        ).fetchall()
    assert [str(row[0])[:6] for row in rows] == ["v1.2.0"]


def test_progress_is_told(logs: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    ingest([logs], tmp_path / "t.duckdb", progress=lambda phase, done, total: told.append((phase, done, total)))
    assert told[-1][0] == "write"
    assert all(done <= total for _, done, total in told)


def test_a_tee_and_a_tree_are_one_witness(read: Any) -> None:
    error = "[rank1]: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    start = "2025-05-12 10:00:00,000 - root - INFO - starting rank 1 of 2 pid 11 host n1\n"
    other = start.replace("rank 1", "rank 0").replace("pid 11", "pid 10")
    made = read(
        {
            "console.log": f"[default0]:{other}[default1]:{start}[default1]:{error}",
            "none_abcdefgh/attempt_0/0/stderr.log": other,
            "none_abcdefgh/attempt_0/1/stderr.log": start + error,
        }
    )
    assert made.rows("SELECT DISTINCT path, rank FROM signals WHERE entry IS NOT NULL") == [
        ("none_abcdefgh/attempt_0/1/stderr.log", 1)
    ]
    assert made.rows("SELECT path, kind FROM problems") == [("console.log", "duplicate")]


def test_parts_of_a_rotated_log_stand_in_the_order_of_time(read: Any) -> None:
    made = read({"x.log": "c\n", "x.log.1": "b\n", "x.log.2": "a\n", "w.log": "w\n"})
    assert made.column("SELECT path FROM sources ORDER BY source_id") == ["w.log", "x.log.2", "x.log.1", "x.log"]


def test_a_log_of_unknown_shape_says_so(read: Any) -> None:
    made = read({"a.log": "no header here\n" * 40})
    assert made.rows("SELECT kind, severity, count FROM problems") == [("unknown-format", "info", 40)]


def test_a_file_that_a_reader_takes_keeps_its_lines_as_they_are(read: Any) -> None:
    text = '{"message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": "x", "timestamp": "1747044672"}}}'
    made = read({"none_abcdefgh/attempt_0/2/error.json": text})
    assert made.rows("SELECT message, format FROM lines") == [(text, None)]
    assert made.rows("SELECT source_kind, local_rank FROM signals") == [("error-file", 2)]


def test_a_storm_says_no_more_than_its_beginning(read: Any) -> None:
    line = "[rank0]:[E512 10:11:12.715298746 x.cpp:6] CUDA error: an illegal memory access was encountered\n"
    made = read({"a.log": line * 10_100})
    assert made.rows("SELECT count(*) FROM signals WHERE class = 'cuda-illegal-memory-access'") == [(10_000,)]
    assert made.rows("SELECT count(*) FROM lines WHERE class = 'cuda-illegal-memory-access'") == [(10_100,)]
    assert made.rows("SELECT severity, count FROM problems WHERE kind = 'folded'") == [("notice", 100)]
