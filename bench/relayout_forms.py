"""The layouts in which the logs of a job may reach us: each makes one set of files out of a case.

A layout holds only what the real one would give. `keeps` says whether it still tells ranks and hosts apart by itself;
where it does not, the lines may, and else no answer is the right one. A layout gives None for a case that lacks what
it takes (times of lines, hosts of ranks).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from relayout_job import STAMP, Files, Job, Log, Origin, in_order, seconds_of, short, stamp_at

Make = Callable[[Job], Files | None]


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout: its group, what it still tells of `rank` and `host`, and how it is made."""

    name: str
    group: str
    keeps: str
    make: Make


def others(job: Job) -> Files:
    """The files that belong to no rank, as they are."""
    pieces = {path: data.split(b"\n") for path, data in job.others.items()}
    return {path: [((path, n), line) for n, line in enumerate(lines, 1)] for path, lines in pieces.items()}


def texts(job: Job) -> Files:
    """All files without those that are no text."""
    return {path: rows for path, rows in same(job).items() if b"\0" not in job.others.get(path, b"")}


def _iso(seconds: float, digits: int = 9) -> str:
    moment = datetime.fromtimestamp(int(seconds), UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{int(seconds % 1 * 10**digits):0{digits}d}Z"


def _stream(log: Log, line: bytes) -> str:
    """Where a line went: prints to standard output, tracebacks and the loggers of C++ to standard error."""
    if log.stream:
        return log.stream
    printed = re.search(rb"\b(?:step|iter|iteration|epoch|loss)\b", line) and not re.match(rb"[\[ ]*(?:File|E|W)", line)
    return "stdout" if printed else "stderr"


# all lines of a job, or of a host, in one file


def merged(name: str, label: Callable[[Log, Job, bytes], str | None], by_host: bool = False) -> Make:
    """Lines in the order of their times, each behind a label; `name` may hold `{host}`."""

    def make(job: Job) -> Files | None:
        if not job.timed or not job.whole or (by_host and not job.hosts):
            return None
        files = others(job)
        for host in job.hosts if by_host else [""]:
            rows = files.setdefault(name.format(host=host), [])
            for log, number in in_order(job, [log for log in job.logs if not by_host or log.host == host]):
                line = log.lines[number]
                front = label(log, job, line)
                if front is None:
                    return None
                rows.append(((log.path, number + 1), front.encode() + line))
        return files

    return make


def _node(log: Log, job: Job) -> int:
    return job.hosts.index(str(log.host))


def _task_of_node(log: Log, job: Job, _line: bytes) -> str | None:
    """The label of srun where each node runs one task, which starts the ranks."""
    return f"{_node(log, job)}: " if len(job.hosts) > 1 else None


def _pod_of_node(log: Log, job: Job, _line: bytes) -> str | None:
    return f"[pod/llm-pre-worker-{_node(log, job)}/pytorch] " if len(job.hosts) > 1 else None


def by_node(name: str) -> Make:
    """All lines of a node in a file that has the number of the node, as jobs with one task or pod a node leave them."""
    plain = merged("{host}", lambda _log, _job, _line: "", by_host=True)

    def make(job: Job) -> Files | None:
        files = plain(job) if len(job.hosts) > 1 else None
        if files is None or any(host in job.others for host in job.hosts):
            return None
        names = {host: name.format(node=number) for number, host in enumerate(job.hosts)}
        return {names.get(path, path): rows for path, rows in files.items()}

    return make


def _srun(log: Log, job: Job, _line: bytes) -> str:
    return f"{log.rank:>{len(str(max(one.rank for one in job.logs)))}}: "


def _tee(log: Log, _job: Job, _line: bytes) -> str | None:
    return None if log.local is None else f"[default{log.local}]:"


def _template(log: Log, _job: Job, _line: bytes) -> str | None:
    return None if log.local is None else f"[trainer-{log.rank}-{log.local}] "


def _pdsh(log: Log, _job: Job, _line: bytes) -> str | None:
    return f"{log.host}: " if log.host and any(one.isdigit() for one in log.host) else None


# each file in the wrapper of a collector


def wrapped(path: Callable[[Log, Job], str | None], line: Callable[[Log, bytes, float], str]) -> Make:
    """Each line of a rank in a wrapper with its time; files by `path`, lines of one file in the order of time."""

    def make(job: Job) -> Files | None:
        if not job.timed:
            return None
        files = others(job)
        by_path: dict[str, list[Log]] = {}
        for log in job.logs:
            target = path(log, job)
            if target is None:
                return None
            by_path.setdefault(target, []).append(log)
        if len(by_path) < len(job.logs) and not job.whole:
            return None
        for target, logs in by_path.items():
            files[target] = [
                ((log.path, number + 1), line(log, log.lines[number], (log.times or [])[number]).encode())
                for log, number in in_order(job, logs)
            ]
        return files

    return make


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


def _pod(rank: int) -> str:
    return f"llm-pre-worker-{rank}"


def _cri_path(log: Log, job: Job) -> str | None:
    uid = f"{log.rank:08x}-5d1e-4c0b-9f3a-0c7be81f22a4"
    return f"{f'{log.host}/' if job.hosts else ''}pods/ml_{_pod(log.rank)}_{uid}/pytorch/0.log"


def _beside(ending: str) -> Callable[[Log, Job], str | None]:
    return lambda log, _job: f"{log.path}{ending}"


def _one(name: str) -> Callable[[Log, Job], str | None]:
    return lambda _log, job: name if job.hosts else None


def _dump(row: dict[str, object]) -> str:
    return json.dumps(row, separators=(",", ":"))


def _on_hosts(form: str) -> Callable[[Log, Job], str | None]:
    return lambda log, job: form.format(path=log.path, host=log.host) if job.hosts else None


def _journal(log: Log, line: bytes, moment: float) -> str:
    stamp = datetime.fromtimestamp(int(moment), UTC)
    return f"{stamp:%Y-%m-%dT%H:%M:%S}+0000 {log.host} train[{40000 + log.rank * 7}]: {_text(line)}"


def _journal_json(log: Log, line: bytes, moment: float) -> str:
    stamp, unit = str(int(moment * 1e6)), f"train-rank@{log.rank}.service"
    row = {"__REALTIME_TIMESTAMP": stamp, "__MONOTONIC_TIMESTAMP": str(int(moment * 1e6) - 1_600_000_000_000_000)}
    row |= {"_HOSTNAME": str(log.host), "_PID": str(40000 + log.rank * 7), "SYSLOG_IDENTIFIER": "python3"}
    return _dump({**row, "_SYSTEMD_UNIT": unit, "PRIORITY": "6", "MESSAGE": _text(line)})


def _loki(log: Log, line: bytes, moment: float) -> str:
    labels = {"filename": f"/var/log/train/{log.path}", "host": log.host, "job": "train"}
    return _dump({"labels": labels, "line": _text(line), "timestamp": _iso(moment)})


def _cloudwatch(log: Log, line: bytes, moment: float) -> str:
    at = int(moment * 1000)
    stream = f"{log.host}-application.var.log.containers.{_pod(log.rank)}_ml_pytorch-{'0c7be81f' * 8}.log"
    return _dump({"logStreamName": stream, "timestamp": at, "message": _text(line), "ingestionTime": at + 812})


def _elastic(log: Log, line: bytes, moment: float) -> str:
    place = {"pod": {"name": _pod(log.rank)}, "node": {"name": log.host}, "container": {"name": "pytorch"}}
    return _dump({"@timestamp": _iso(moment, 3), "message": _text(line), "kubernetes": place, "stream": "stderr"})


def _jsonl(log: Log, line: bytes, moment: float) -> str:
    return _dump({"time": _iso(moment, 6), "host": log.host, "pod": _pod(log.rank), "message": _text(line)})


def _csv(log: Log, line: bytes, moment: float) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([_iso(moment, 6), log.host, _pod(log.rank), _text(line)])
    return out.getvalue()


def newest_first(job: Job) -> Files | None:
    """What a search shows by default: the latest line on top."""
    files = wrapped(_one("logcli.jsonl"), _loki)(job)
    if files:
        files["logcli.jsonl"].reverse()
    return files


def events(job: Job) -> Files | None:
    """The events of `aws logs filter-log-events`, as the command prints them."""
    if not job.timed or not job.whole or not job.hosts:
        return None
    rows: list[tuple[Origin | None, bytes]] = [(None, b"{"), (None, b'    "events": [')]
    lines = in_order(job, job.logs)
    for at, (log, number) in enumerate(lines):
        event = json.loads(_cloudwatch(log, log.lines[number], (log.times or [])[number]))
        text = json.dumps(event, indent=4).replace("\n", "\n" + " " * 8)
        for line in (" " * 8 + text + ("," if at < len(lines) - 1 else "")).split("\n"):
            told = '"message": ' in line
            rows.append(((log.path, number + 1) if told else None, line.encode()))
    return {**others(job), "events.json": [*rows, (None, b"    ]"), (None, b"}")]}


def csv_export(job: Job) -> Files | None:
    """One table with a head."""
    files = wrapped(_one("export.csv"), _csv)(job)
    if files:
        files["export.csv"].insert(0, (None, b"timestamp,host,pod,message"))
    return files


# other names


def named(path: Callable[[Log, Job], str | None]) -> Make:
    """The logs of ranks under other names, the other files where they are."""

    def make(job: Job) -> Files | None:
        files = others(job)
        for log in job.logs:
            target = path(log, job)
            if target is None or target in files:
                return None
            files[target] = [((log.path, n), line) for n, line in enumerate(log.lines, 1)]
        return files

    return make


def _by_rank(out: str, err: str) -> Make:
    """Names made of the rank, in the folder that was; standard error under a name of its own."""

    def path(log: Log, _job: Job) -> str:
        folder, slash, _ = log.path.rpartition("/")
        return folder + slash + (err if log.stream == "stderr" else out).format(rank=log.rank)

    return named(path)


def _by_node(form: str) -> Make:
    """Names made of the host's name or number and the local rank."""

    def path(log: Log, job: Job) -> str | None:
        if not job.hosts or log.host is None:
            return None
        node = job.hosts.index(log.host)
        return form.format(host=log.host, node=node, local=log.local, stream=log.stream or "stdout")

    return named(path)


def flat(job: Job) -> Files:
    """All files in one folder, names joined."""
    return {path.replace("/", "_"): rows for path, rows in same(job).items()}


def same(job: Job) -> Files:
    """As it was."""
    return {
        **others(job),
        **{log.path: [((log.path, n), one) for n, one in enumerate(log.lines, 1)] for log in job.logs},
    }


def rotated(job: Job) -> Files:
    """The older half of each log of a rank in `.1`."""
    files = same(job)
    for log in job.logs:
        half = len(log.lines) // 2
        files[f"{log.path}.1"], files[log.path] = files[log.path][:half], files[log.path][half:]
    return files


def split(job: Job) -> Files | None:
    """Standard output and standard error of each rank apart."""
    if any(log.stream for log in job.logs):
        return None
    files = others(job)
    for log in job.logs:
        for number, line in enumerate(log.lines, 1):
            ending = "out" if _stream(log, line) == "stdout" else "err"
            files.setdefault(f"{re.sub(r'[.](?:log|txt|out)$', '', log.path)}.{ending}", []).append(
                ((log.path, number), line)
            )
    return files


def below(folder: str) -> Make:
    """All files below a folder whose name means nothing."""
    return lambda job: {f"{folder}/{path}": rows for path, rows in same(job).items()}


# other bytes


def each_line(change: Callable[[bytes], bytes], ranks_only: bool = True) -> Make:
    """Each line changed."""

    def make(job: Job) -> Files | None:
        if not ranks_only:
            changed = {path: [(o, change(line)) for o, line in rows] for path, rows in texts(job).items()}
            return {**same(job), **changed}
        files = others(job)
        for log in job.logs:
            files[log.path] = [((log.path, number), change(line)) for number, line in enumerate(log.lines, 1)]
        return files

    return make


def bom(job: Job) -> Files:
    """A byte order mark in front of each file."""
    marked = {
        path: [(rows[0][0], b"\xef\xbb\xbf" + rows[0][1]), *rows[1:]] for path, rows in texts(job).items() if rows
    }
    return {**same(job), **marked}


def _coloured(line: bytes) -> bytes:
    line = re.sub(rb"\b(INFO|DEBUG)\b", b"\x1b[32m\\1\x1b[0m", line, count=1)
    line = re.sub(rb"\b(WARNING|WARN)\b", b"\x1b[33m\\1\x1b[0m", line, count=1)
    return re.sub(rb"\b(ERROR|CRITICAL|[A-Z]\w+Error)\b", b"\x1b[1;31m\\1\x1b[0m", line, count=1)


def _bare(line: bytes) -> bytes:
    """A line without the stamp at its beginning."""
    match = stamp_at(line)
    if not match or match.re is not STAMP or match.start() > 1:
        return line
    return (
        line[: match.start()] + line[match.end() :].lstrip(b" ")
        if match.start() == 0
        else line[match.end() + 1 :].lstrip()
    )


def _restamped(change: Callable[[float, re.Match[bytes]], bytes]) -> Callable[[bytes], bytes]:
    def one(line: bytes) -> bytes:
        match = stamp_at(line)
        if not match or match.re is not STAMP:
            return line
        return line[: match.start()] + change(seconds_of(match, 0), match) + line[match.end() :]

    return one


def _elsewhere(seconds: float, match: re.Match[bytes]) -> bytes:
    """The same moment as a clock in Kolkata shows it, printed as before."""
    moment = datetime.fromtimestamp(int(seconds) + 19800, UTC)
    text = f"{moment:%Y-%m-%d}{match[0][10:11].decode()}{moment:%H:%M:%S}".encode()
    rest = match[0][19 : len(match[0]) - len(match["zone"] or b"")]
    return text + rest + (b"+05:30" if match["zone"] else b"")


def _millis(seconds: float, _match: re.Match[bytes]) -> bytes:
    return str(round(seconds * 1000)).encode()


# other hosts


def renamed(names: Callable[[int, str], tuple[str, str]]) -> Make:
    """Hosts under other names; `names` gives the name in the logs of ranks and the one in other files."""

    def make(job: Job) -> Files | None:
        if not job.hosts or any(len(host) < 4 for host in job.hosts) or any(b"\0" in x for x in job.others.values()):
            return None
        files = same(job)
        everything = b"\n".join(line for rows in files.values() for _, line in rows)
        for host in job.hosts:
            if re.search(re.escape(re.sub(r"\d+$", "", host)).encode() + rb"\d*\[\d", everything):
                return None
        new = {host: names(number, host) for number, host in enumerate(job.hosts)}
        ranks = {log.path for log in job.logs}
        edge = r"(?<![A-Za-z0-9])({})(?![A-Za-z0-9])".format(
            "|".join(sorted(map(re.escape, new), key=len, reverse=True))
        )
        if re.search(rf"{edge}\.[a-z]".encode(), everything):
            return None  # they have domains
        text, raw = re.compile(edge), re.compile(edge.encode())
        result: Files = {}
        for path, rows in files.items():
            which = 0 if path in ranks else 1
            result[text.sub(lambda match: new[match[1]][0], path.replace("_", "\0")).replace("\0", "_")] = [
                (origin, raw.sub(lambda match, which=which: new[match[1].decode()][which].encode(), line))
                for origin, line in rows
            ]
        return result

    return make


def known_as(layout: Layout, job: Job, host: str) -> set[str]:
    """By which names a layout may call a host: its new name, its number, the pods of its ranks."""
    if layout.name in NAMES:
        return {short(NAMES[layout.name](job.hosts.index(host), host)[0])} if host in job.hosts else {host}
    number = job.hosts.index(host) if host in job.hosts else None
    numbers = {f"node{number}", f"worker-{number}", f"llm-pre-worker-{number}"} if "node" in layout.name else set()
    ranks = {log.rank for log in job.logs if log.host in (host, None)}
    guilty = set(job.truth["initiating_ranks"])
    return {host, *numbers, *(_pod(rank) for rank in (ranks & guilty or ranks if job.hosts else guilty))}


ENDS = ("x2k4q", "z8wpl", "m5tdv", "c9r7j", "h4bnn", "t6vzs", "k2mfd", "q8gxw")
NAMES: dict[str, Callable[[int, str], tuple[str, str]]] = {
    "host gpu-a03-17": lambda n, _: (f"gpu-a{3 + n // 8:02d}-{17 + n % 8}",) * 2,
    "host ip-10-0-3-7": lambda n, _: (f"ip-10-0-3-{7 + 11 * n}",) * 2,
    "host 0117": lambda n, _: (f"{117 + 3 * n:04d}",) * 2,
    "host with domain, other files": lambda _, host: (host, f"{host}.cluster.internal"),
    "host with domain, ranks": lambda _, host: (f"{host}.cluster.internal", host),
    "host pod hash": lambda n, _: (f"sft-7b-7c9f8d6b5-{ENDS[n % 8]}",) * 2,
}


def _layouts() -> Iterable[Layout]:
    both, rank, host, none = "rank, host", "rank", "host", "-"
    yield Layout("as it was", "", both, same)
    one_file: list[tuple[str, str, Make]] = [
        ("[rank3]: ", rank, merged("train.log", lambda log, _job, _line: f"[rank{log.rank}]: ")),
        ("3:  (srun --label)", rank, merged("slurm-812345.out", _srun)),
        ("[1,3]<stdout>: (mpirun)", rank, merged("mpirun.log", lambda g, _, x: f"[1,{g.rank}]<{_stream(g, x)}>:")),
        ("[trainer-3-1]  (torchrun)", rank, merged("train.log", _template)),
        ("[default3]: (torchrun --tee), a file a host", host, merged("torchrun-{host}.log", _tee, by_host=True)),
        ("host:  (pdsh)", host, merged("pdsh.log", _pdsh)),
        ("[pod/w-3/pytorch]  (kubectl)", rank, merged("kubectl.log", lambda g, _, x: f"[pod/{_pod(g.rank)}/pytorch] ")),
        ("trainer-4  |  (compose)", none, merged("compose.log", lambda g, _, x: f"trainer-{g.rank + 1}  | ")),
        ("no label, a file a host", host, merged("{host}.log", lambda _g, _j, _x: "", by_host=True)),
        ("1:  (srun --label, a task a node)", none, merged("slurm-812345.out", _task_of_node)),
        ("[pod/w-1/pytorch]  (kubectl, a pod a node)", none, merged("kubectl.log", _pod_of_node)),
        ("slurm-812345_1.out, a file a node", none, by_node("slurm-812345_{node}.out")),
        ("worker-1.log, a file a node", none, by_node("worker-{node}.log")),
        ("train.1.log, a file a node", none, by_node("train.{node}.log")),
        ("no label", none, merged("train.log", lambda _g, _j, _x: "")),
    ]  # fmt: skip
    collected: list[tuple[str, str, Make]] = [
        ("CRI", rank, wrapped(_cri_path, lambda g, x, t: f"{_iso(t)} {_stream(g, x)} F {_text(x)}")),
        ("docker json-file", both, wrapped(_beside("-json.log"), lambda g, x, t: _dump(
            {"log": _text(x) + "\n", "stream": _stream(g, x), "time": _iso(t)}))),
        ("journal short-iso, a file a rank", both, wrapped(_on_hosts("{path}.journal"), _journal)),
        ("journal short-iso, a file a host", host, wrapped(_on_hosts("{host}/journal.txt"), _journal)),
        ("journal json, a file a host", host, wrapped(_on_hosts("{host}/journal.json"), _journal_json)),
        ("Loki, one file", both, wrapped(_one("logcli.jsonl"), _loki)),
        ("Loki, newest line first", both, newest_first),
        ("CloudWatch, aws logs filter-log-events", both, events),
        ("CloudWatch, one file", both, wrapped(_one("events.jsonl"), _cloudwatch)),
        ("Elastic, one file", both, wrapped(_one("elastic.jsonl"), _elastic)),
        ("JSON lines export", both, wrapped(_one("export.jsonl"), _jsonl)),
        ("CSV export", both, csv_export),
    ]  # fmt: skip
    names: list[tuple[str, str, Make]] = [
        ("rank_3.log", both, _by_rank("rank_{rank}.log", "rank_{rank}.err")),
        ("train.3.out", both, _by_rank("train.{rank}.out", "train.{rank}.err")),
        ("slurm-812345_3.out", both, _by_rank("slurm-812345_{rank}.out", "slurm-812345_{rank}.err")),
        ("job.o123.3", both, _by_rank("pretrain.o81234.{rank}", "pretrain.e81234.{rank}")),
        ("std_log_process_3.txt", both, _by_rank("std_log_process_{rank}.txt", "err_log_process_{rank}.txt")),
        ("host/3/stderr.log", host, _by_node("{host}/{local}/{stream}.log")),
        ("host/run_id/attempt_0/3/stdout.log", host, _by_node("{host}/none_k3x9_a1b/attempt_0/{local}/{stream}.log")),
        ("node1-gpu3.log", rank, _by_node("node{node}-gpu{local}.{stream}.log")),
        ("host-gpu3.log", host, _by_node("{host}-gpu{local}.{stream}.log")),
        ("gz", both, named(lambda g, _: f"{g.path}.gz")),
        ("rotated into .1", both, rotated),
        ("stdout and stderr apart", both, split),
        ("one folder, names joined", both, flat),
        ("below 2024-11-03/10.0.3.7/job_812345/run-3", both, below("2024-11-03/10.0.3.7/job_812345/run-3")),
        ("below rank0_tuning/node-99", both, below("rank0_tuning/node-99")),
    ]  # fmt: skip
    bytes_: list[tuple[str, str, Make]] = [
        ("CRLF", both, each_line(lambda line: line + b"\r", ranks_only=False)),
        ("colours", both, each_line(_coloured)),
        ("byte order mark", both, bom),
        ("no stamps in front", both, each_line(_bare)),
        ("stamps of another zone", both, each_line(_restamped(_elsewhere))),
        ("stamps in epoch ms", both, each_line(_restamped(_millis))),
    ]
    for group, layouts in (("one file", one_file), ("collected", collected), ("names", names), ("bytes", bytes_)):
        for name, keeps, make in layouts:
            yield Layout(name, group, keeps, make)
    for name, new in NAMES.items():
        yield Layout(name, "hosts", both, renamed(new))


LAYOUTS: tuple[Layout, ...] = tuple(_layouts())
