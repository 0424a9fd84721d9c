"""One job read in shares: the union is what a single reader makes, and no share is missing in silence."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstfault.ingest import Bounds, IngestOptions, OptionError, ingest
from firstfault.ingest.run import ingest_shard, merge
from firstfault.ingest.shards import PartError, SavedError, Shard, parse_shard
from firstfault.timeline import open_timeline

TABLES = ("sources", "line_rows", "signal_rows", "identities", "progress", "problems")
# small units and cuts, so that a small job is shared out like a big one
CUT = Bounds(shard=4 << 10, chunk=2 << 10, unit=3 << 10, file_cost=1)


def rows(db: Path) -> dict[str, list[Any]]:
    with open_timeline(db) as connection:
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall() for table in TABLES}


def lines(rank: int, count: int) -> str:
    said = [f"2025-05-12 10:00:00,000 - root - INFO - starting rank {rank} of 3 pid {100 + rank} host n-{rank}"]
    for step in range(count):
        said.append(f"2025-05-12 10:{step // 60:02d}:{step % 60:02d},000 - root - INFO - step {step} loss 1.5")
        if step % 60 == 9:
            said += ["Traceback (most recent call last):", '  File "/x/a.py", line 3, in f', "ValueError: bad sample"]
    return "\n".join(said) + "\n"


@pytest.fixture
def logs(write: Callable[..., Path]) -> Path:
    stacks = '{"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "f", "timestamp": "1747044000"}}}'
    return write(
        {
            "n-0/rank0.log": lines(0, 400),
            "n-1/rank1.log": lines(1, 30),
            "n-2/rank2.log": lines(2, 30),
            "n-2/error.json": stacks,
            "n-2/bad.log": b"2025-05-12 10:00:01,000 - root - INFO - caf\xff\n" * 3,
        }
    )


def parts(logs: Path, folder: Path, count: int, options: IngestOptions) -> list[Path]:
    files = [folder / f"{index}.part" for index in range(count)]
    for index, file in enumerate(files):
        ingest_shard([logs], file, Shard(index, count), options)
    return files


@pytest.mark.parametrize("bounds", [CUT, Bounds(), Bounds(shard=4 << 10, chunk=2 << 10, unit=3 << 10, memory=0)])
def test_the_union_of_all_shares_is_what_one_reader_makes(logs: Path, tmp_path: Path, bounds: Bounds) -> None:
    options = IngestOptions(workers=1, bounds=bounds)
    files = parts(logs, tmp_path, 3, options)
    merge(files[::-1], tmp_path / "merged.duckdb")
    ingest([logs], tmp_path / "local.duckdb", options)
    assert rows(tmp_path / "merged.duckdb") == rows(tmp_path / "local.duckdb")


def test_what_the_user_said_of_the_job_holds_for_the_union(logs: Path, tmp_path: Path) -> None:
    options = IngestOptions(workers=1, hosts={"n-1/*": "gpu-b7"}, tz="Europe/Berlin", bounds=CUT)
    merge(parts(logs, tmp_path, 2, options), tmp_path / "merged.duckdb")
    with open_timeline(tmp_path / "merged.duckdb") as connection:
        said = connection.execute("SELECT host, utc_offset_s FROM sources WHERE path = 'n-1/rank1.log'").fetchall()
    assert said == [("gpu-b7", 7200)]


def test_a_missing_share_is_refused(logs: Path, tmp_path: Path) -> None:
    files = parts(logs, tmp_path, 3, IngestOptions(bounds=CUT))
    with pytest.raises(PartError, match="1 of 3 shards are missing: 1/3"):
        merge([files[0], files[2]], tmp_path / "x.duckdb")
    assert not (tmp_path / "x.duckdb").exists()


def test_a_share_that_comes_twice_is_refused(logs: Path, tmp_path: Path) -> None:
    files = parts(logs, tmp_path, 2, IngestOptions(bounds=CUT))
    copy = tmp_path / "again.part"
    copy.write_bytes(files[0].read_bytes())
    with pytest.raises(PartError, match=r"again\.part: shard 0/2 comes twice"):
        merge([*files, copy], tmp_path / "x.duckdb")


def test_shares_of_logs_that_changed_meanwhile_are_refused(logs: Path, tmp_path: Path) -> None:
    ingest_shard([logs], tmp_path / "0.part", Shard(0, 2), IngestOptions(bounds=CUT))
    with (logs / "n-1" / "rank1.log").open("a") as file:
        file.write("one more line\n")
    ingest_shard([logs], tmp_path / "1.part", Shard(1, 2), IngestOptions(bounds=CUT))
    with pytest.raises(PartError, match="files changed meanwhile"):
        merge([tmp_path / "0.part", tmp_path / "1.part"], tmp_path / "x.duckdb")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_a_file_that_is_no_part_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0.part").write_bytes(content)
    with pytest.raises(PartError, match=r"0\.part: no part of a timeline"):
        merge([tmp_path / "0.part"], tmp_path / "x.duckdb")


def test_a_part_that_holds_something_else_is_refused(logs: Path, tmp_path: Path) -> None:
    ingest_shard([logs], tmp_path / "0.part", Shard(0, 1), IngestOptions(bounds=Bounds()))
    with zipfile.ZipFile(tmp_path / "0.part") as good, zipfile.ZipFile(tmp_path / "bad.part", "w") as bad:
        for name in good.namelist():
            content = good.read(name)
            if name.endswith("part.json"):
                said = json.loads(content)
                said["states"][0][0] = "no number"
                content = json.dumps(said).encode()
            bad.writestr(name, content)
    with pytest.raises(ValueError, match="int expected, str found"):
        merge([tmp_path / "bad.part"], tmp_path / "x.duckdb")


@pytest.mark.parametrize("missing", ["catalog", "key", "places", "options", "problems", "roots"])
def test_a_part_without_what_a_part_says_is_refused(logs: Path, tmp_path: Path, missing: str) -> None:
    ingest_shard([logs], tmp_path / "0.part", Shard(0, 1), IngestOptions(bounds=Bounds()))
    with zipfile.ZipFile(tmp_path / "0.part") as good, zipfile.ZipFile(tmp_path / "bad.part", "w") as bad:
        for name in good.namelist():
            content = good.read(name)
            if name == "manifest.json":
                content = json.dumps(
                    {key: value for key, value in json.loads(content).items() if key != missing}
                ).encode()
            bad.writestr(name, content)
    with pytest.raises(PartError, match=r"bad\.part: damaged, or not written by firstfault"):
        merge([tmp_path / "bad.part"], tmp_path / "x.duckdb")


def test_lines_of_a_part_that_are_damaged_are_named(logs: Path, tmp_path: Path) -> None:
    ingest_shard([logs], tmp_path / "0.part", Shard(0, 1), IngestOptions(bounds=Bounds()))
    content = bytearray((tmp_path / "0.part").read_bytes())
    with zipfile.ZipFile(tmp_path / "0.part") as archive:
        at = next(one.header_offset for one in archive.infolist() if "lines-" in one.filename)
    content[at + 100] ^= 0xFF
    (tmp_path / "bad.part").write_bytes(content)
    with pytest.raises(SavedError, match=r"bad\.part: 0/lines-0\.parquet cannot be read"):
        merge([tmp_path / "bad.part"], tmp_path / "x.duckdb")


def test_files_that_each_machine_has_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(2):
        folder = tmp_path / f"disk{index}" / "log"
        folder.mkdir(parents=True)
        (folder / "rank.log").write_text(lines(index, 5))
        monkeypatch.setattr("platform.node", lambda index=index: f"n-{index}")
        ingest_shard([folder], tmp_path / f"{index}.part", Shard(index, 2, own=True))
    merge([tmp_path / "1.part", tmp_path / "0.part"], tmp_path / "all.duckdb")
    with open_timeline(tmp_path / "all.duckdb") as connection:
        found = connection.execute("SELECT path, host, lines FROM sources ORDER BY path").fetchall()
    assert found == [("n-0/rank.log", "n-0", 6), ("n-1/rank.log", "n-1", 6)]


@pytest.mark.parametrize(
    ("text", "env", "expected"),
    [
        ("2/4", {}, Shard(2, 4)),
        ("auto", {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "RANK": "0", "WORLD_SIZE": "2"}, Shard(3, 8)),
        ("auto/5", {"JOB_COMPLETION_INDEX": "4"}, Shard(4, 5)),
        ("auto", {"RANK": "1", "WORLD_SIZE": "2"}, Shard(1, 2)),
    ],
)
def test_which_share(text: str, env: dict[str, str], expected: Shard) -> None:
    assert parse_shard(text, env=env) == expected


@pytest.mark.parametrize("text", ["", "4/4", "-1/4", "1", "auto", "1/0", "x/y"])
def test_a_share_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="shard"):
        parse_shard(text, env={"HOSTNAME": "n-0"})
