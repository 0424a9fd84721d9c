"""What is fuzzed: for each way in a function that takes any bytes and raises where firstfault breaks a promise.

An error that a caller turns into words (a bad catalog file, a damaged part, a refused query) is no finding. Anything
else that is raised is, as is an answer that breaks an invariant stated here.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).resolve().parent / "corpus"
MOST = 1 << 16
"""Bytes of an input; what grows with size is the business of the tests of bounds."""


@dataclass(frozen=True, slots=True)
class Target:
    """One way in. `seeds` are inputs to begin with beside those of the corpus."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]


@cache
def folder() -> Path:
    """A folder of this process, in memory where there is such a place."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    made = Path(tempfile.mkdtemp(prefix="firstfault-fuzz-", dir=base))
    import atexit

    atexit.register(shutil.rmtree, made, True)
    return made


def corpus(name: str) -> list[bytes]:
    """The kept inputs of a target, findings among them."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


# framing


def frame_(data: bytes) -> None:
    """Every byte belongs to a line, whatever the size of chunks; numbers and offsets are those of the line ends."""
    import io

    from firstfault.ingest.frame import chunks, encoding_of, fold, frame, in_pieces, series

    known: list[tuple[int, int]] | None = None
    for size in (16, 4096):
        spans: list[tuple[int, int]] = []
        for chunk in chunks(io.BytesIO(data), size, 64, 0, 256):
            lines = frame(chunk)
            assert len(lines.ends) == len(lines) == len(lines.lengths), "as many ends as lines"
            assert lines.text.decode("utf-8").count("\n") == len(lines), "one line end for each line"
            spans += zip(lines.offsets.tolist(), lines.lengths.tolist(), strict=True)
            texts = series(lines.text, lines.ends)
            marked = in_pieces(lines.text, lines.ends, 64)
            if marked is not None:
                fold(texts)
        if encoding_of(data) == "utf-8":
            wanted = data.split(b"\n")
            wanted = wanted[:-1] if not wanted[-1] else wanted
            at, expected = 0, []
            for line in wanted:
                expected.append((at, len(line)))
                at += len(line) + 1
            assert spans == expected, "lines lie where their ends are"
        assert known is None or known == spans, "the size of chunks changes nothing"
        known = spans


# formats


@cache
def _formats() -> Any:
    from firstfault.ingest.formats import Formats

    return Formats()


def formats(data: bytes) -> None:
    """One line alone and many lines together are peeled alike, and no text is lost."""
    import polars as pl

    lines = data.decode("utf-8", "replace").replace("\r", " ").split("\n")[:40]
    lines = [line.replace("\0", "")[:4096] for line in lines]
    form = _formats().sniff(lines, "rank0.log")
    many = _formats().peel_many(pl.Series(lines, dtype=pl.String), form)
    assert len(many) == len(lines), "a row for each line"
    for line, message in zip(lines, many["message"].to_list(), strict=True):
        one = _formats().peel(line, form).flat()
        assert message == one["message"], "alone as among others"


# archives and compressed files


def archives(data: bytes) -> None:
    """What is damaged ends early with a problem; nothing is written, no name leads outside."""
    from firstfault.ingest.discover import Found
    from firstfault.ingest.opening import open_found
    from firstfault.ingest.options import Bounds
    from firstfault.ingest.problems import Problem

    place = folder() / "in"
    place.write_bytes(data)
    before = sorted(os.listdir(folder()))
    problems: list[Problem] = []
    total = 0
    bounds = Bounds(dump=1 << 20, archive_members=200, archive_bytes=1 << 24)
    for alone in (True, False):
        for opened in open_found(Found(0, "x.tar", str(place), len(data), 0, alone), bounds, problems):
            assert not opened.path.startswith("/"), "a name inside"
            assert ".." not in opened.path.replace("!", "").split("/"), "a name inside"
            opened.path.encode()
            while total < 1 << 22 and (piece := opened.stream.read(1 << 16)):
                total += len(piece)
    for one in problems:
        one.path.encode()
    assert sorted(os.listdir(folder())) == before, "nothing is written"


# dumps


_NAMES = ("x", "nccl_trace_rank_3", "error.json", "nvidia-smi.csv", "pods.json", "py-spy-rank-3.txt", "squeue.txt")


def dumps(data: bytes) -> None:
    """No reader raises, whatever it is given, and its rows fit into their columns."""
    from firstfault.ingest.dumps import READERS, DumpContext, find_reader, read_dump

    for path in _NAMES:
        find_reader(path, data[:65536])
    for reader in READERS:
        rows = read_dump(reader, DumpContext("node-1/error.json"), data)
        for one in rows.signals:
            assert 1 <= one.line < 2**62, "lines count from one"
            one.text.encode()
            assert all(isinstance(text, str) and text.encode() is not None for text in one.captures.values())


def flight_recorder(data: bytes) -> None:
    """A pickle is data: nothing of it is ever called."""
    from firstfault.ingest.dumps import DumpContext, read_dump
    from firstfault.ingest.dumps.flight_recorder import FlightRecorder
    from firstfault.ingest.dumps.pickle_data import load

    mark = folder() / "called"
    with contextlib.suppress(ValueError, ArithmeticError, LookupError, TypeError, RecursionError, MemoryError):
        load(data)
    for one in read_dump(FlightRecorder(), DumpContext("nccl_trace_rank_3"), data).signals:
        assert one.line >= 1
    assert not mark.exists(), "nothing was called"


def json_(data: bytes) -> None:
    """The JSON reader that knows lines agrees with that of the standard library."""
    from firstfault.ingest.dumps.json_places import parse

    try:
        ours: Any = parse(data)
    except (ValueError, RecursionError):
        ours = ValueError
    try:
        theirs: Any = json.loads(data.decode("utf-8"), strict=False, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return
    if ours is ValueError:
        assert len(data) > 400 or _deep(data) or _lenient(data), "what the standard library reads is read"
        return
    assert _same(ours, theirs), "the same value"


def _deep(data: bytes) -> bool:
    return data.count(b"[") + data.count(b"{") > 60 or re.search(rb"\d{300}", data) is not None


def _lenient(data: bytes) -> bool:
    """Whether only a lenient reader takes it: a text that goes on in the next line."""
    try:
        json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return True
    return False


def _same(a: Any, b: Any) -> bool:
    from firstfault.ingest.dumps.text import clean

    if isinstance(a, dict) and isinstance(b, dict):
        b = {clean(key): value for key, value in b.items()}
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, str) and isinstance(b, str):
        return a == clean(b)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and bool(a == b)


# catalog and formats of a user


def catalog(data: bytes) -> None:
    """A file of entries that cannot be used becomes problems, one that can compiles and matches in linear time."""
    from firstfault.catalog import loader
    from firstfault.catalog.matcher import Matcher
    from firstfault.catalog.problem import CatalogError

    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return
    found = loader._build([("mine.toml", document)], [], "x", lambda _: data.decode(), frozenset(), False)
    for problem in found.problems:
        str(problem)
    try:
        matcher = Matcher.load(found, folder() / "cache")
    except CatalogError:
        return
    finally:
        shutil.rmtree(folder() / "cache", ignore_errors=True)
    for line in (data.decode("utf-8", "replace")[:2000], "RuntimeError: CUDA error 719"):
        matcher.matches(line)


def patterns(data: bytes) -> None:
    """What the trigger parser takes both engines take; a match of the exact pattern is never missed by the trigger."""
    import polars as pl

    from firstfault.catalog.columns import for_polars, loose
    from firstfault.catalog.exact import ExactPattern
    from firstfault.catalog.regex import PatternError
    from firstfault.catalog.triggers import derive

    head, _, text = data.decode("utf-8", "replace").partition("\n")
    try:
        derive(head)
        exact = ExactPattern(head)
    except (PatternError, ValueError):
        return
    text = text[:4000].replace("\r", " ").replace("\n", " ")
    alone = exact.search(text) is not None
    try:
        columns = pl.Series([text]).str.contains(for_polars(head))[0]
        wide = pl.Series([text]).str.contains(loose(head))[0]
    except pl.exceptions.ComputeError:
        return
    assert alone == columns, "both engines agree"
    assert wide or not alone, "the loose pattern finds whatever the exact one does"


def own_formats(data: bytes) -> None:
    """A format file of a user is used or refused in words."""
    from firstfault.ingest.format_load import FormatError, in_order, parse, usable

    with contextlib.suppress(FormatError):
        in_order(usable(parse([("mine.toml", data)])))


def settings(data: bytes) -> None:
    """A settings file beside the logs is used or refused in words."""
    from firstfault.ingest.options import SETTINGS_NAME, IngestOptions, OptionError, check, with_settings

    place = folder() / "settings"
    place.mkdir(exist_ok=True)
    (place / SETTINGS_NAME).write_bytes(data)
    with contextlib.suppress(OptionError):
        check(with_settings(IngestOptions(), place))


# the gate


@cache
def _timeline() -> Path:
    from firstfault.ingest import IngestOptions, ingest

    place = folder() / "gate"
    place.mkdir()
    ingest([ROOT / "sample_logs" / "mute-rank6" / "logs"], place / "t.duckdb", IngestOptions(workers=1))
    (place / "secret.csv").write_text("the,secret\n4711,4712\n", encoding="utf-8")
    return place / "t.duckdb"


@cache
def _gate() -> Any:
    from firstfault.timeline.gate import open_gate

    return open_gate(_timeline(), seconds=2, memory="200MB")


@cache
def _opened() -> Any:
    return _gate().__enter__()


def gate(data: bytes) -> None:
    """A query is answered or refused; whatever it says, no other file is read and none is written."""
    from firstfault.timeline.gate import QueryError

    place, query = _timeline().parent, data.decode("utf-8", "replace")[:4000]
    one = _opened()
    state = _state(place)
    here = os.getcwd()
    os.chdir(place)
    try:
        said = ""
        for answer in one.ask_all(query):
            for number, row in enumerate(answer.rows):
                said += str(row)[:2000] if number < 100 else ""
                if number > 2000:
                    break
        assert "4711" not in said or "4711" in query, "no other file is read"
        assert "root:x:0" not in said or "root:x:0" in query, "no other file is read"
    except QueryError:
        pass
    finally:
        os.chdir(here)
    assert _state(place) == state, "no file is written"


def _state(place: Path) -> list[tuple[str, int, int]]:
    return sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in place.iterdir())


# what firstfault itself wrote and somebody else hands in


@cache
def _part() -> bytes:
    from firstfault.ingest import IngestOptions
    from firstfault.ingest.run import ingest_shard
    from firstfault.ingest.shards import Shard

    ingest_shard(
        [ROOT / "sample_logs" / "healthy-pair" / "logs"], folder() / "p0", Shard(0, 1), IngestOptions(workers=1)
    )
    return (folder() / "p0").read_bytes()


def parts(data: bytes) -> None:
    """A part of a timeline from elsewhere is used or refused; what is in it can call nothing."""
    from firstfault.ingest import IngestOptions
    from firstfault.ingest.saved import SavedError
    from firstfault.ingest.shards import PartError, unite

    name, _, content = data.partition(b"\n")
    place = folder() / "part"
    _part()
    with zipfile.ZipFile(folder() / "p0") as old, zipfile.ZipFile(place, "w") as new:
        version = json.loads(old.read("manifest.json"))["catalog"]
        for member in old.namelist():
            new.writestr(member, content if member.encode() == name else old.read(member))
    try:
        united = unite([place], IngestOptions(), version)
        for part in united.parts:
            for rows in (part.lines, part.progress, part.folded):
                for frame in rows.frames(0):
                    len(frame)
    except (PartError, SavedError):
        pass


def saved_diagnosis(data: bytes) -> None:
    """A diagnosis that was saved is read or refused in words."""
    from firstfault.followup.saved import SavedError, read_saved

    place = folder() / "diagnosis.json"
    place.write_bytes(data)
    with contextlib.suppress(SavedError):
        read_saved(place)


# secrets


def secrets(data: bytes) -> None:
    """Masking what is masked changes nothing."""
    from firstfault.correlate.secrets import masked

    text = data.decode("utf-8", "replace")[:8000]
    once = masked(text)
    assert masked(once) == once, "masking is done at once"


# everything


_FILES = ("rank0.log", "node-1/rank1.log", "agent.log", "dmesg.txt", "error.json", "events.json", "slurm-1.out", "x.gz")
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")


def whole(data: bytes) -> None:
    """Any files at all are read and judged, and no report lets their text act."""
    from firstfault.correlate.engine import diagnose
    from firstfault.ingest import IngestOptions, ingest
    from firstfault.report.document import to_json
    from firstfault.report.html import to_html
    from firstfault.report.markdown import to_markdown
    from firstfault.report.text import to_text

    logs, db = folder() / "logs", folder() / "whole.duckdb"
    shutil.rmtree(logs, ignore_errors=True)
    for name, content in zip(_FILES, data.split(b"\x1d\n"), strict=False):
        (logs / name).parent.mkdir(parents=True, exist_ok=True)
        (logs / name).write_bytes(content)
    logs.mkdir(exist_ok=True)
    result = ingest([logs], db, IngestOptions(workers=1, reuse=False))
    answer = diagnose(db, _catalog())
    document = json.loads(to_json(answer), parse_constant=_no_constant)
    assert document["job"]["lines"] == result.lines, "every line is counted"
    for rendered in (to_text(answer), to_markdown(answer)):
        found = _UNSAFE.search(rendered)
        assert found is None, f"{found!r} in a report"
        rendered.encode()
    page = to_html(answer)
    page.encode()
    assert _UNSAFE.search(page) is None, "control characters in a page"
    assert _scripts(page) <= 3, "no script beside our own"


def _scripts(page: str) -> int:
    return page.lower().count("<script")


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} in a document")


@cache
def _catalog() -> Any:
    from firstfault.catalog import load_catalog

    return load_catalog()


# where to begin


def _logs() -> Iterator[bytes]:
    for path in sorted((ROOT / "sample_logs").rglob("logs/**/*")):
        if path.is_file() and path.stat().st_size < 20_000:
            yield path.read_bytes()[:6000]


def _examples() -> Iterator[bytes]:
    lines = [one.line.encode() for entry in _catalog().entries.values() for one in entry.match]
    lines += [line.encode() for line in _formats().example_lines().to_list()]
    for at in range(0, len(lines), 5):
        yield b"\n".join(lines[at : at + 5]) + b"\n"


def _archives() -> Iterator[bytes]:
    import bz2
    import gzip
    import io
    import lzma
    import tarfile

    import zstandard

    text = b"step 1 loss 2.0\n" * 40
    packers: tuple[Callable[[bytes], bytes], ...] = (
        gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress,
    )  # fmt: skip
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("a/rank0.log", "../rank1.log", "b.gz"):
            member = tarfile.TarInfo(name)
            content = gzip.compress(text) if name.endswith("gz") else text
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        member = tarfile.TarInfo("link")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("rank0.log", text)
        packed.writestr("../inner.tar", out.getvalue())
    for whole_ in (text, out.getvalue(), zipped.getvalue()):
        yield whole_
        for pack in packers:
            yield pack(whole_)


def _dumps() -> Iterator[bytes]:
    import pickle

    entry = {
        "process_group": ("0", "default_pg"), "collective_seq_id": 3, "profiling_name": "nccl:all_reduce",
        "state": "started", "input_sizes": ((3, 4),), "time_created_ns": 1, "is_p2p": False, "p2p_seq_id": 0,
        "frames": [{"name": "f", "filename": "x.py", "line": 3}],
    }  # fmt: skip
    dump = {
        "version": "2.5", "rank": 3, "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
        "pg_status": {"0": {"last_enqueued_collective": 3, "last_completed_collective": 2}}, "entries": [entry] * 3,
    }  # fmt: skip
    for protocol in range(6):
        yield pickle.dumps(dump, protocol)
    yield json.dumps(dump).encode()
    yield b'{"message": {"message": "E: x", "extraInfo": {"py_callstack": "a\\nb", "timestamp": "1747044672"}}}'
    yield (
        b'{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "x-0"}, "spec": {"nodeName": "n1"},'
        b' "status": {"phase": "Failed", "reason": "Evicted", "containerStatuses": [{"name": "c",'
        b' "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2025-05-12T10:11:12Z"}}'
        b"}]}}]}"
    )
    yield b'{"kind": "EventList", "items": [{"reason": "Evicted", "message": "x", "count": 2, "lastTimestamp": null}]}'
    yield b'{"__REALTIME_TIMESTAMP": "1747044672000000", "_HOSTNAME": "n1", "MESSAGE": "NVRM: Xid 79"}\n'
    yield b'{"InstanceStatuses": [{"InstanceId": "i-012345678", "SystemStatus": {"Status": "impaired"}}]}'
    yield b"LAST SEEN   TYPE   REASON   OBJECT   MESSAGE\n4m   Warning   Evicted   pod/x   gone\n"
    yield b"timestamp, index, clocks.sm [MHz]\na, 0, 1\na, 1, 2\n"
    yield b"JobID|State|ExitCode|NodeList\n1|FAILED|1:0|n[1-3]\n"
    yield b'Thread 0x0001 (most recent call first):\n  File "x", line 1 in f\n'


def _json() -> Iterator[bytes]:
    yield from (one for one in _dumps() if one[:1] == b"{")
    yield b'[1, -2.5e3, true, null, "\\ud83d\\ude00 \\u0000", {"a": {}}, []]'


def _catalog_files() -> Iterator[bytes]:
    for path in sorted((ROOT / "ingest/firstfault/catalog/entries").glob("*.toml"))[::40]:
        yield path.read_bytes()
    for path in sorted((ROOT / "ingest/firstfault/catalog/facts").glob("*.toml"))[::20]:
        yield path.read_bytes()[:3000]


def _patterns() -> Iterator[bytes]:
    for entry in list(_catalog().entries.values())[::7]:
        for one in entry.patterns[:1]:
            text = entry.match[0].line if entry.match else ""
            yield f"{one.regex}\n{text}".encode()


def _own_formats() -> Iterator[bytes]:
    for path in sorted((ROOT / "ingest/firstfault/ingest/formats").glob("*.toml"))[::10]:
        yield path.read_bytes()


def _queries() -> Iterator[bytes]:
    source = (ROOT / "tests/timeline/test_gate.py").read_text(encoding="utf-8")
    for query in re.findall(r'^        "((?:[^"\\]|\\.)+)",$', source, re.M):
        yield query.encode()
    yield b"SELECT rank, message FROM last_lines ORDER BY rank LIMIT 5"
    yield b"WITH a AS (SELECT * FROM lines) SELECT count(*) FROM a WHERE level IN ('ERROR') AND message LIKE '%x%'"


def _part_members() -> Iterator[bytes]:
    _part()
    with zipfile.ZipFile(folder() / "p0") as archive:
        for name in archive.namelist():
            yield name.encode() + b"\n" + archive.read(name)[:MOST]


def _diagnoses() -> Iterator[bytes]:
    from firstfault.correlate.engine import diagnose
    from firstfault.report.document import to_json

    copy = folder() / "copy.duckdb"  # the other one may be open in the gate
    shutil.copyfile(_timeline(), copy)
    yield to_json(diagnose(copy, _catalog())).encode()[:MOST]


def _secrets() -> Iterator[bytes]:
    source = (ROOT / "tests/correlate/test_secrets.py").read_text(encoding="utf-8")
    yield from (line.strip().encode() for line in source.splitlines() if '"' in line)


def _jobs() -> Iterator[bytes]:
    for job in sorted((ROOT / "sample_logs").glob("*/logs")):
        files = [path for path in sorted(job.rglob("*")) if path.is_file()]
        yield b"\x1d\n".join(path.read_bytes()[-1500:] for path in files[:8])
    yield from _examples()


TARGETS = {
    one.name: one
    for one in (
        Target("frame", frame_, _logs),
        Target("formats", formats, _examples),
        Target("archives", archives, _archives),
        Target("dumps", dumps, _dumps),
        Target("flight-recorder", flight_recorder, _dumps),
        Target("json", json_, _json),
        Target("catalog", catalog, _catalog_files),
        Target("patterns", patterns, _patterns),
        Target("own-formats", own_formats, _own_formats),
        Target("settings", settings, lambda: [b'tz = "UTC"\nyear = 2025\n[hosts]\n"a*" = "n1"\n[ranks]\n"b*" = 3\n']),
        Target("gate", gate, _queries),
        Target("parts", parts, _part_members),
        Target("saved-diagnosis", saved_diagnosis, _diagnoses),
        Target("secrets", secrets, _secrets),
        Target("whole", whole, _jobs),
    )
}
