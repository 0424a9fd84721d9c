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
import tomllib
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from . import seeds
from .ground import folder, the_catalog, the_formats, the_part, the_timeline


@dataclass(frozen=True, slots=True)
class Target:
    """One way in. `seeds` are inputs to begin with beside those of the corpus."""

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]


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


def formats(data: bytes) -> None:
    """One line alone and many lines together are peeled alike, and no text is lost."""
    import polars as pl

    lines = data.decode("utf-8", "replace").replace("\r", " ").split("\n")[:40]
    lines = [line.replace("\0", "")[:4096] for line in lines]
    form = the_formats().sniff(lines, "rank0.log")
    many = the_formats().peel_many(pl.Series(lines, dtype=pl.String), form)
    assert len(many) == len(lines), "a row for each line"
    for line, message in zip(lines, many["message"].to_list(), strict=True):
        one = the_formats().peel(line, form).flat()
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
def _gate() -> Any:
    from firstfault.timeline.gate import open_gate

    return open_gate(the_timeline(), seconds=2, memory="200MB")


@cache
def _opened() -> Any:
    return _gate().__enter__()


def gate(data: bytes) -> None:
    """A query is answered or refused; whatever it says, no other file is read and none is written."""
    from firstfault.timeline.gate import QueryError

    place, query = the_timeline().parent, data.decode("utf-8", "replace")[:4000]
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


def parts(data: bytes) -> None:
    """A part of a timeline from elsewhere is used or refused; what is in it can call nothing."""
    from firstfault.ingest import IngestOptions
    from firstfault.ingest.saved import SavedError
    from firstfault.ingest.shards import PartError, unite

    name, _, content = data.partition(b"\n")
    place = folder() / "part"
    the_part()
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
    answer = diagnose(db, the_catalog())
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


TARGETS = {
    one.name: one
    for one in (
        Target("frame", frame_, seeds.of_logs),
        Target("formats", formats, seeds.of_examples),
        Target("archives", archives, seeds.of_archives),
        Target("dumps", dumps, seeds.of_dumps),
        Target("flight-recorder", flight_recorder, seeds.of_dumps),
        Target("json", json_, seeds.of_json),
        Target("catalog", catalog, seeds.of_catalog_files),
        Target("patterns", patterns, seeds.of_patterns),
        Target("own-formats", own_formats, seeds.of_own_formats),
        Target("settings", settings, lambda: [b'tz = "UTC"\nyear = 2025\n[hosts]\n"a*" = "n1"\n[ranks]\n"b*" = 3\n']),
        Target("gate", gate, seeds.of_queries),
        Target("parts", parts, seeds.of_part_members),
        Target("saved-diagnosis", saved_diagnosis, seeds.of_diagnoses),
        Target("secrets", secrets, seeds.of_secrets),
        Target("whole", whole, seeds.of_jobs),
    )
}
