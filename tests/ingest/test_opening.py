"""Compressed files and archives: their lines, their paths, and what happens where they are damaged or hostile."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from firstfault.ingest import Bounds, IngestOptions

LINES = "".join(f"line {number}\n" for number in range(2000))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
}


def tar(members: dict[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize("ending", sorted(PACKERS))
def test_lines_of_compressed_files_are_those_of_the_text(read: Any, ending: str) -> None:
    made = read({f"rank0.log.{ending}": PACKERS[ending](LINES.encode())})
    assert made.rows("SELECT path, lines, bytes FROM sources") == [(f"rank0.log.{ending}", 2000, len(LINES))]
    assert made.rows("SELECT message FROM lines WHERE line = 1500") == [("line 1499",)]


def test_members_behind_one_another_are_one_text(read: Any) -> None:
    made = read({"x.gz": gzip.compress(b"one\n") + gzip.compress(b"two\n"), "x.zst": PACKERS["zst"](b"a\n") * 2})
    assert made.column("SELECT message FROM lines ORDER BY path, line") == ["one", "two", "a", "a"]


@pytest.mark.parametrize("ending", sorted(PACKERS))
def test_a_compressed_file_that_breaks_off_gives_what_it_has(read: Any, ending: str) -> None:
    import random

    noise = "".join(f"{random.Random(number).random()}\n" for number in range(150_000))
    packed = PACKERS[ending](noise.encode())
    made = read({f"a.log.{ending}": packed[: len(packed) // 2]})
    [(lines,)] = made.rows("SELECT lines FROM sources")
    assert 0 < lines < 150_000
    assert ("truncated", "data-loss") in made.rows("SELECT kind, severity FROM problems")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_members_of_an_archive_given_alone_have_their_own_names(read: Any, write: Any, mode: str) -> None:
    logs = write({"job.tar": tar({"./n1/rank0.log": b"a\n", "n2/rank1.log": b"b\n"}, mode)})
    assert read({}, logs / "job.tar").rows("SELECT path, message FROM lines ORDER BY path") == [
        ("n1/rank0.log", "a"),
        ("n2/rank1.log", "b"),
    ]


def test_members_of_an_archive_in_a_folder_stand_behind_it(read: Any) -> None:
    packed = PACKERS["zst"](tar({"rank0.log": b"a\n", "more/rank1.log.gz": gzip.compress(b"b\n")}))
    made = read({"sub/job.tar.zst": packed})
    assert made.rows("SELECT path, message FROM lines ORDER BY path") == [
        ("sub/job.tar.zst!/more/rank1.log.gz", "b"),
        ("sub/job.tar.zst!/rank0.log", "a"),
    ]


def test_zip_archives_and_archives_inside_archives(read: Any) -> None:
    inner = tar({"rank0.log": b"deep\n"})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b/inner.tar", inner)
        archive.writestr("a.log", "flat\n")
    made = read({"all.zip": out.getvalue()})
    assert made.rows("SELECT path, message FROM lines ORDER BY path") == [
        ("all.zip!/a.log", "flat"),
        ("all.zip!/b/inner.tar!/rank0.log", "deep"),
    ]


def test_nesting_is_bounded(read: Any) -> None:
    packed = b"deep\n"
    for _ in range(5):
        packed = tar({"x.tar": packed})
    made = read({"x.tar": packed})
    assert made.rows("SELECT count(*) FROM sources") == [(0,)]
    assert made.rows("SELECT kind, severity FROM problems") == [("bomb", "data-loss")]


def test_a_bomb_is_left_early(read: Any) -> None:
    bomb = PACKERS["zst"](b"a" * (200 << 20))
    made = read({"bomb.log.zst": bomb}, options=IngestOptions(bounds=Bounds(ratio=100)))
    [(size,)] = made.rows("SELECT bytes FROM sources")
    assert size < 100 << 20
    assert "bomb" in made.column("SELECT kind FROM problems")


def test_names_never_lead_out_of_the_archive(read: Any, tmp_path: Path) -> None:
    made = read({"evil.tar": tar({"../../../etc/evil.log": b"x\n", "/abs.log": b"y\n"})})
    assert made.column("SELECT path FROM sources ORDER BY path") == ["evil.tar!/abs.log", "evil.tar!/etc/evil.log"]
    assert not list(tmp_path.rglob("evil.log"))


def test_links_and_devices_in_an_archive_are_not_followed(read: Any) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (("passwd.log", tarfile.SYMTYPE), ("null", tarfile.CHRTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
    made = read({"x.tar": out.getvalue()})
    assert made.rows("SELECT path, kind FROM problems ORDER BY path") == [
        ("x.tar!/null", "not-a-file"),
        ("x.tar!/passwd.log", "link"),
    ]


def test_an_archive_that_breaks_off_gives_what_it_has(read: Any) -> None:
    packed = tar({f"rank{number}.log": LINES.encode() for number in range(4)})
    made = read({"x.tar": packed[: len(packed) // 2]})
    assert made.rows("SELECT count(*) >= 1 FROM sources") == [(True,)]
    assert "data-loss" in made.column("SELECT severity FROM problems")


def test_a_damaged_zip_is_a_problem(read: Any) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.log", LINES)
    made = read({"x.zip": out.getvalue()[:-30]})
    assert made.rows("SELECT path, kind FROM problems") == [("x.zip", "truncated-archive")]


def test_a_damaged_member_of_a_zip_gives_what_it_has_and_the_others_are_read(read: Any) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.log", LINES)
        archive.writestr("b.log", "step 1\n")
    made = read({"x.zip": out.getvalue().replace(b"line 1500\n", b"line XXXX\n")})
    assert made.rows("SELECT path, kind FROM problems WHERE severity = 'data-loss'") == [("x.zip!/a.log", "truncated")]
    assert made.column("SELECT message FROM lines WHERE path = 'x.zip!/b.log'") == ["step 1"]


def test_binary_files_are_named_and_not_read(read: Any) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\0.")
    made = read({"model.pt": out.getvalue(), "core": b"\x7fELF" + bytes(600), "a.log": "x\n"})
    assert made.rows("SELECT path, kind, lines FROM sources ORDER BY path") == [
        ("a.log", "text", 1),
        ("core", "binary", 0),
        ("model.pt", "binary", 0),
    ]
    assert made.column("SELECT path FROM problems WHERE kind = 'binary' ORDER BY path") == ["core", "model.pt"]


def test_standard_input_is_cited_as_a_dash(tmp_path: Path) -> None:
    program = "import sys; from firstfault.ingest import ingest; ingest(['-'], sys.argv[1])"
    paths = [path for path in sys.path if path]
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}; {program}", str(tmp_path / "t.duckdb")],
        input=gzip.compress(b"from a pipe\n"),
        check=True,
    )
    from firstfault.timeline import open_timeline

    with open_timeline(tmp_path / "t.duckdb") as connection:
        assert connection.execute("SELECT path, line, message FROM lines").fetchall() == [("-", 1, "from a pipe")]


def test_damage_inside_a_compressed_file_is_a_problem_and_the_other_files_are_read(read: Any) -> None:
    made = read({"bad.log.zst": PACKERS["zst"](LINES.encode())[:20] + b"\xff" * 600, "good.log": "step 1\n"})
    assert made.rows("SELECT path, kind, severity FROM problems WHERE severity = 'data-loss'") == [
        ("bad.log.zst", "truncated", "data-loss")
    ]
    assert made.column("SELECT message FROM lines WHERE path = 'good.log'") == ["step 1"]


@pytest.mark.parametrize("ending", ["zst", "xz"])
def test_a_compressed_file_that_wants_gigabytes_of_memory_is_refused(read: Any, ending: str) -> None:
    if ending == "zst":
        parameters = zstandard.ZstdCompressionParameters(window_log=30, compression_level=1)
        packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        packed = packer.compress(LINES.encode()) + packer.flush()
    else:
        packer_ = lzma.LZMACompressor(filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 16}])
        packed = packer_.compress(LINES.encode()) + packer_.flush()
        head = bytearray(packed)
        at = head.index(b"\x21\x01", 12) + 2
        head[at] = 36  # a dictionary of a gigabyte, in the words of the format
        header = slice(12, 12 + (head[12] + 1) * 4)
        head[header.stop - 4 : header.stop] = zlib.crc32(bytes(head[header.start : header.stop - 4])).to_bytes(
            4, "little"
        )
        packed = bytes(head)
    made = read({f"rank0.log.{ending}": packed})
    assert made.column("SELECT kind FROM problems") == ["truncated"]


def test_a_zip_with_odd_names_and_no_dates_is_read(read: Any) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in ("x", "rank0.log"):
            member = zipfile.ZipInfo(name)
            member.date_time = (1980, 0, 0, 0, 0, 0)
            archive.writestr(member, "step 1\n")
    # a name of no length, in both places that say it
    made = read({"x.zip": out.getvalue().replace(b"\x01\x00\x00\x00x", b"\x01\x00\x00\x00\x00")})
    assert "x.zip!/rank0.log" in made.column("SELECT path FROM sources")


def test_times_of_archives_that_are_no_times_are_left_out(read: Any) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, mtime in (("a.log", "inf"), ("b.log", "9" * 30), ("c.log", "-9e99")):
            member = tarfile.TarInfo(name)
            member.size, member.pax_headers = 2, {"mtime": mtime}
            archive.addfile(member, io.BytesIO(b"x\n"))
    made = read({"x.tar": out.getvalue()})
    assert made.rows("SELECT count(*) FROM lines") == [(3,)]
    assert made.rows("SELECT count(*) FROM problems WHERE severity <> 'notice'") == [(0,)]


def test_a_hole_in_an_archive_is_no_way_around_the_bounds(read: Any) -> None:
    member = tarfile.TarInfo("hole.log")
    member.size = 0
    member.pax_headers = {
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "hole.log",
        "GNU.sparse.realsize": str(1 << 40),
    }  # fmt: skip
    content = b"1\n0\n2\n".ljust(512, b"\0") + b"x\n"
    member.size = len(content)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member, io.BytesIO(content))
    made = read({"x.tar": out.getvalue()})
    assert made.rows("SELECT path, kind FROM problems") == [("x.tar!/hole.log", "bomb")]


def test_a_file_that_is_nothing_but_a_hole_is_not_read(read: Any, write: Any) -> None:
    logs = write({"a.log": "x\n"})
    with (logs / "hole.log").open("wb") as file:
        file.truncate(1 << 40)
    made = read()
    assert made.rows("SELECT path, kind, severity FROM problems") == [("hole.log", "bomb", "data-loss")]


def test_a_log_with_a_hole_before_its_end_is_read(read: Any, write: Any) -> None:
    logs = write({})
    with (logs / "rank0.log").open("wb") as file:  # as it is left where a log is cut while its writer goes on
        file.seek(200 << 20)
        file.write(b"step 9\n[rank0]: RuntimeError: x\n")
    made = read()
    assert made.rows("SELECT line, message FROM lines ORDER BY line")[1][0] == 2
    assert made.column("SELECT event FROM signal_rows") == ["exception"]
