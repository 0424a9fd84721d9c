"""Layouts of collectors: all lines of a job or of a node in one file behind labels, and lines in the wrappers of what
gathers and exports logs.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime

from relayout_job import Files, Job, Log, Origin, in_order
from relayout_layout import BOTH, HOST, NONE, RANK, Make, others, pod_of, stream_of


def _iso(seconds: float, digits: int = 9) -> str:
    moment = datetime.fromtimestamp(int(seconds), UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{int(seconds % 1 * 10**digits):0{digits}d}Z"


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


def _cri_path(log: Log, job: Job) -> str | None:
    uid = f"{log.rank:08x}-5d1e-4c0b-9f3a-0c7be81f22a4"
    return f"{f'{log.host}/' if job.hosts else ''}pods/ml_{pod_of(log.rank)}_{uid}/pytorch/0.log"


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
    stream = f"{log.host}-application.var.log.containers.{pod_of(log.rank)}_ml_pytorch-{'0c7be81f' * 8}.log"
    return _dump({"logStreamName": stream, "timestamp": at, "message": _text(line), "ingestionTime": at + 812})


def _elastic(log: Log, line: bytes, moment: float) -> str:
    place = {"pod": {"name": pod_of(log.rank)}, "node": {"name": log.host}, "container": {"name": "pytorch"}}
    return _dump({"@timestamp": _iso(moment, 3), "message": _text(line), "kubernetes": place, "stream": "stderr"})


def _jsonl(log: Log, line: bytes, moment: float) -> str:
    return _dump({"time": _iso(moment, 6), "host": log.host, "pod": pod_of(log.rank), "message": _text(line)})


def _csv(log: Log, line: bytes, moment: float) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([_iso(moment, 6), log.host, pod_of(log.rank), _text(line)])
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


ONE_FILE: list[tuple[str, str, Make]] = [
    ("[rank3]: ", RANK, merged("train.log", lambda log, _job, _line: f"[rank{log.rank}]: ")),
    ("3:  (srun --label)", RANK, merged("slurm-812345.out", _srun)),
    ("[1,3]<stdout>: (mpirun)", RANK, merged("mpirun.log", lambda g, _, x: f"[1,{g.rank}]<{stream_of(g, x)}>:")),
    ("[trainer-3-1]  (torchrun)", RANK, merged("train.log", _template)),
    ("[default3]: (torchrun --tee), a file a host", HOST, merged("torchrun-{host}.log", _tee, by_host=True)),
    ("host:  (pdsh)", HOST, merged("pdsh.log", _pdsh)),
    ("[pod/w-3/pytorch]  (kubectl)", RANK, merged("kubectl.log", lambda g, _, x: f"[pod/{pod_of(g.rank)}/pytorch] ")),
    ("trainer-4  |  (compose)", NONE, merged("compose.log", lambda g, _, x: f"trainer-{g.rank + 1}  | ")),
    ("no label, a file a host", HOST, merged("{host}.log", lambda _g, _j, _x: "", by_host=True)),
    ("1:  (srun --label, a task a node)", NONE, merged("slurm-812345.out", _task_of_node)),
    ("[pod/w-1/pytorch]  (kubectl, a pod a node)", NONE, merged("kubectl.log", _pod_of_node)),
    ("slurm-812345_1.out, a file a node", NONE, by_node("slurm-812345_{node}.out")),
    ("worker-1.log, a file a node", NONE, by_node("worker-{node}.log")),
    ("train.1.log, a file a node", NONE, by_node("train.{node}.log")),
    ("no label", NONE, merged("train.log", lambda _g, _j, _x: "")),
]  # fmt: skip
COLLECTED: list[tuple[str, str, Make]] = [
    ("CRI", RANK, wrapped(_cri_path, lambda g, x, t: f"{_iso(t)} {stream_of(g, x)} F {_text(x)}")),
    ("docker json-file", BOTH, wrapped(_beside("-json.log"), lambda g, x, t: _dump(
        {"log": _text(x) + "\n", "stream": stream_of(g, x), "time": _iso(t)}))),
    ("journal short-iso, a file a rank", BOTH, wrapped(_on_hosts("{path}.journal"), _journal)),
    ("journal short-iso, a file a host", HOST, wrapped(_on_hosts("{host}/journal.txt"), _journal)),
    ("journal json, a file a host", HOST, wrapped(_on_hosts("{host}/journal.json"), _journal_json)),
    ("Loki, one file", BOTH, wrapped(_one("logcli.jsonl"), _loki)),
    ("Loki, newest line first", BOTH, newest_first),
    ("CloudWatch, aws logs filter-log-events", BOTH, events),
    ("CloudWatch, one file", BOTH, wrapped(_one("events.jsonl"), _cloudwatch)),
    ("Elastic, one file", BOTH, wrapped(_one("elastic.jsonl"), _elastic)),
    ("JSON lines export", BOTH, wrapped(_one("export.jsonl"), _jsonl)),
    ("CSV export", BOTH, csv_export),
]  # fmt: skip
