"""Where fuzzing begins: inputs of each kind that mean something."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator

from .ground import MOST, ROOT, folder, the_catalog, the_formats, the_part, the_timeline


def of_logs() -> Iterator[bytes]:
    for path in sorted((ROOT / "sample_logs").rglob("logs/**/*")):
        if path.is_file() and path.stat().st_size < 20_000:
            yield path.read_bytes()[:6000]


def of_examples() -> Iterator[bytes]:
    lines = [one.line.encode() for entry in the_catalog().entries.values() for one in entry.match]
    lines += [line.encode() for line in the_formats().example_lines().to_list()]
    for at in range(0, len(lines), 5):
        yield b"\n".join(lines[at : at + 5]) + b"\n"


def of_archives() -> Iterator[bytes]:
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


def of_dumps() -> Iterator[bytes]:
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


def of_json() -> Iterator[bytes]:
    yield from (one for one in of_dumps() if one[:1] == b"{")
    yield b'[1, -2.5e3, true, null, "\\ud83d\\ude00 \\u0000", {"a": {}}, []]'


def of_catalog_files() -> Iterator[bytes]:
    for path in sorted((ROOT / "ingest/firstfault/catalog/entries").glob("*.toml"))[::40]:
        yield path.read_bytes()
    for path in sorted((ROOT / "ingest/firstfault/catalog/facts").glob("*.toml"))[::20]:
        yield path.read_bytes()[:3000]


def of_patterns() -> Iterator[bytes]:
    for entry in list(the_catalog().entries.values())[::7]:
        for one in entry.patterns[:1]:
            text = entry.match[0].line if entry.match else ""
            yield f"{one.regex}\n{text}".encode()


def of_own_formats() -> Iterator[bytes]:
    for path in sorted((ROOT / "ingest/firstfault/ingest/formats").glob("*.toml"))[::10]:
        yield path.read_bytes()


def of_queries() -> Iterator[bytes]:
    source = (ROOT / "tests/timeline/test_gate.py").read_text(encoding="utf-8")
    for query in re.findall(r'^        "((?:[^"\\]|\\.)+)",$', source, re.M):
        yield query.encode()
    yield b"SELECT rank, message FROM last_lines ORDER BY rank LIMIT 5"
    yield b"WITH a AS (SELECT * FROM lines) SELECT count(*) FROM a WHERE level IN ('ERROR') AND message LIKE '%x%'"


def of_part_members() -> Iterator[bytes]:
    the_part()
    with zipfile.ZipFile(folder() / "p0") as archive:
        for name in archive.namelist():
            yield name.encode() + b"\n" + archive.read(name)[:MOST]


def of_diagnoses() -> Iterator[bytes]:
    from firstfault.correlate.engine import diagnose
    from firstfault.report.document import to_json

    copy = folder() / "copy.duckdb"  # the other one may be open in the gate
    shutil.copyfile(the_timeline(), copy)
    yield to_json(diagnose(copy, the_catalog())).encode()[:MOST]


def of_secrets() -> Iterator[bytes]:
    source = (ROOT / "tests/correlate/test_secrets.py").read_text(encoding="utf-8")
    yield from (line.strip().encode() for line in source.splitlines() if '"' in line)


def of_jobs() -> Iterator[bytes]:
    for job in sorted((ROOT / "sample_logs").glob("*/logs")):
        files = [path for path in sorted(job.rglob("*")) if path.is_file()]
        yield b"\x1d\n".join(path.read_bytes()[-1500:] for path in files[:8])
    yield from of_examples()
