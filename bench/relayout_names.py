"""Layouts of files: other names and folders, other bytes in the same lines, other names of the hosts."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from relayout_job import STAMP, Files, Job, Log, seconds_of, short, stamp_at
from relayout_layout import BOTH, HOST, RANK, Make, others, pod_of, same, stream_of, texts

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
            ending = "out" if stream_of(log, line) == "stdout" else "err"
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


def known_as(layout: str, job: Job, host: str) -> set[str]:
    """By which names a layout may call a host: its new name, its number, the pods of its ranks."""
    if layout in NAMES:
        return {short(NAMES[layout](job.hosts.index(host), host)[0])} if host in job.hosts else {host}
    number = job.hosts.index(host) if host in job.hosts else None
    numbers = {f"node{number}", f"worker-{number}", f"llm-pre-worker-{number}"} if "node" in layout else set()
    ranks = {log.rank for log in job.logs if log.host in (host, None)}
    guilty = set(job.truth["initiating_ranks"])
    return {host, *numbers, *(pod_of(rank) for rank in (ranks & guilty or ranks if job.hosts else guilty))}


ENDS = ("x2k4q", "z8wpl", "m5tdv", "c9r7j", "h4bnn", "t6vzs", "k2mfd", "q8gxw")
NAMES: dict[str, Callable[[int, str], tuple[str, str]]] = {
    "host gpu-a03-17": lambda n, _: (f"gpu-a{3 + n // 8:02d}-{17 + n % 8}",) * 2,
    "host ip-10-0-3-7": lambda n, _: (f"ip-10-0-3-{7 + 11 * n}",) * 2,
    "host 0117": lambda n, _: (f"{117 + 3 * n:04d}",) * 2,
    "host with domain, other files": lambda _, host: (host, f"{host}.cluster.internal"),
    "host with domain, ranks": lambda _, host: (f"{host}.cluster.internal", host),
    "host pod hash": lambda n, _: (f"sft-7b-7c9f8d6b5-{ENDS[n % 8]}",) * 2,
}


FILES: list[tuple[str, str, Make]] = [
    ("rank_3.log", BOTH, _by_rank("rank_{rank}.log", "rank_{rank}.err")),
    ("train.3.out", BOTH, _by_rank("train.{rank}.out", "train.{rank}.err")),
    ("slurm-812345_3.out", BOTH, _by_rank("slurm-812345_{rank}.out", "slurm-812345_{rank}.err")),
    ("job.o123.3", BOTH, _by_rank("pretrain.o81234.{rank}", "pretrain.e81234.{rank}")),
    ("std_log_process_3.txt", BOTH, _by_rank("std_log_process_{rank}.txt", "err_log_process_{rank}.txt")),
    ("host/3/stderr.log", HOST, _by_node("{host}/{local}/{stream}.log")),
    ("host/run_id/attempt_0/3/stdout.log", HOST, _by_node("{host}/none_k3x9_a1b/attempt_0/{local}/{stream}.log")),
    ("node1-gpu3.log", RANK, _by_node("node{node}-gpu{local}.{stream}.log")),
    ("host-gpu3.log", HOST, _by_node("{host}-gpu{local}.{stream}.log")),
    ("gz", BOTH, named(lambda g, _: f"{g.path}.gz")),
    ("rotated into .1", BOTH, rotated),
    ("stdout and stderr apart", BOTH, split),
    ("one folder, names joined", BOTH, flat),
    ("below 2024-11-03/10.0.3.7/job_812345/run-3", BOTH, below("2024-11-03/10.0.3.7/job_812345/run-3")),
    ("below rank0_tuning/node-99", BOTH, below("rank0_tuning/node-99")),
]  # fmt: skip
BYTES: list[tuple[str, str, Make]] = [
    ("CRLF", BOTH, each_line(lambda line: line + b"\r", ranks_only=False)),
    ("colours", BOTH, each_line(_coloured)),
    ("byte order mark", BOTH, bom),
    ("no stamps in front", BOTH, each_line(_bare)),
    ("stamps of another zone", BOTH, each_line(_restamped(_elsewhere))),
    ("stamps in epoch ms", BOTH, each_line(_restamped(_millis))),
]
HOSTS: list[tuple[str, str, Make]] = [(name, BOTH, renamed(new)) for name, new in NAMES.items()]
