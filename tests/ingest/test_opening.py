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
