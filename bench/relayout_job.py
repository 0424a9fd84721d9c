"""A labelled case as its ranks wrote it: which files are whose, and when each line was written.

Which rank wrote a file is read from its name, never asked of the program that is measured, and a case whose names
leave a doubt is not used. So is the host: its folder, the front of its name, or the one that NCCL prints.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

Origin = tuple[str, int]
"""Path below `logs` and number of a line, from 1."""
Files = dict[str, list[tuple[Origin | None, bytes]]]
"""A rendered job: path to its lines, each with the line that it was made of."""

RANK = re.compile(r"(?:^|(?<!local)(?<!node)[^a-z]|global)rank[-_.=]?0*(\d+)(?!\d)", re.I)
PLAIN = (
    re.compile(r"^(?:out|r)[-_.]?0*(\d+)(?:\.(?:log|txt|out))?$"),
    re.compile(r"^\d{4,}_0*(\d+)_log\.(?:out|err)$"),
    re.compile(r"^slurm-\d{4,}[_.]0*(\d+)\.(?:out|err)$"),
    re.compile(r"^0*(\d+)\.(?:log|txt|out)$"),
)
OTHER = re.compile(
    r"trace|pyspy|py-spy|stack|dump|smi|perf|dmesg|kern|timing|\.(?:csv|json|pkl|pickle|gz|zst|db)$", re.I
)
NCCL_HOST = re.compile(rb"^([A-Za-z][\w.-]{1,60}):\d+:\d+ \[\d+\] NCCL ", re.M)
STAMP = re.compile(
    rb"(?P<day>(?:19|20)\d\d-\d\d-\d\d)[ T](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?"
    rb"(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
GLOG = re.compile(rb"[IWEF](?P<day>\d{4}) (?P<clock>\d\d:\d\d:\d\d)\.(?P<part>\d{1,9})")
WAITED = re.compile(rb"ran for (\d+) milliseconds before timing out")
FRONT = 80
"""Bytes of a line in which its own stamp begins."""


@dataclass(slots=True)
class Log:
    """What one rank wrote into one file; `times`: seconds since 1970 of each line, or of the one above it."""

    path: str
    rank: int
    stream: str | None
    lines: list[bytes]
    host: str | None = None
    local: int | None = None
    times: list[float] | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One case: logs of ranks, the other files as they are, what is true of it."""

    name: str
    folder: Path
    logs: tuple[Log, ...]
    others: dict[str, bytes]
    truth: dict[str, Any]

    @property
    def hosts(self) -> list[str]:
        """Hosts of all ranks in the order of their first ranks; empty where one of them is not known."""
        found: dict[str, None] = {}
        for log in sorted(self.logs, key=lambda log: log.rank):
            if log.host is None:
                return []
            found[log.host] = None
        return list(found)

    @property
    def timed(self) -> bool:
        """Whether all lines of ranks have a time."""
        return all(log.times is not None for log in self.logs)

    @property
    def whole(self) -> bool:
        """Whether no rank's file is missing: in one file of all, who was not collected is one who was silent."""
        ranks = {log.rank for log in self.logs}
        return ranks == set(range(max(ranks) + 1))

    @property
    def roots(self) -> set[Origin]:
        """Lines that name the root."""
        found = set()
        for one in self.truth["root_evidence"]:
            path, _, number = one.removeprefix("logs/").rpartition(":")
            first, _, last = number.partition("-")
            if first.isdigit():
                found |= {(path, line) for line in range(int(first), int(last or first) + 1)}
        return found


def lines_of(data: bytes) -> list[bytes]:
    """The lines of a file without their ends."""
    lines = data.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def read_job(case: Path) -> Job | None:
    """A case whose ranks have files of their own, or None."""
    found: list[Log] = []
    others: dict[str, bytes] = {}
    for file in sorted(path for path in (case / "logs").rglob("*") if path.is_file()):
        path, data = file.relative_to(case / "logs").as_posix(), file.read_bytes()
        rank = None if OTHER.search(path) else _rank(path)
        if rank is None:
            others[path] = data
        else:
            found.append(Log(path, rank, _stream(path), lines_of(data)))
    ranks = {log.rank for log in found}
    keys = [(log.rank, log.stream) for log in found]
    if len(ranks) < 2 or len(set(keys)) != len(keys) or max(ranks) - min(ranks) + 1 > 2 * len(ranks):
        return None
    truth = tomllib.loads((case / "case.toml").read_text(encoding="utf-8"))["truth"]
    if max([*truth["initiating_ranks"], *truth["collateral_ranks"]], default=0) > max(ranks):
        return None  # the numbers count something else
    _place(found, {short(host) for host in truth["initiating_hosts"]})
    job = Job(case.name, case, tuple(sorted(found, key=lambda log: (log.rank, log.path))), others, truth)
    _time(job)
    return job


def _rank(path: str) -> int | None:
    """The one global rank that a path names."""
    name = path.rpartition("/")[2]
    numbers = {int(one) for one in RANK.findall(path)}
    if not numbers:
        numbers = {int(match[1]) for pattern in PLAIN if (match := pattern.match(name))}
    return numbers.pop() if len(numbers) == 1 else None


def _stream(path: str) -> str | None:
    words = re.split(r"[/._-]", path)
    for stream, names in (("stderr", ("stderr", "err")), ("stdout", ("stdout",))):
        if any(name in words for name in names):
            return stream
    return None


def short(host: str) -> str:
    """A host without its domain."""
    return host if host.replace(".", "").isdigit() else host.split(".")[0]


def _place(logs: list[Log], guilty: set[str]) -> None:
    """Fill in hosts and local ranks where names or NCCL's headers leave no doubt."""
    named = {log.path: _host_in_path(log.path) for log in logs}
    if len(set(named.values())) < 2 or None in named.values():
        named = dict.fromkeys(named)
    by_rank: dict[int, set[str]] = {}
    for log in logs:
        printed = {one.decode() for one in NCCL_HOST.findall(b"\n".join(log.lines))}
        own = named[log.path]
        by_rank.setdefault(log.rank, set()).update(printed or ({own} if own else ()))
        if own and printed and printed != {own}:
            by_rank[log.rank].add(own)
    if any(len(hosts) != 1 for hosts in by_rank.values()):
        return
    hosts = {rank: next(iter(one)) for rank, one in by_rank.items()}
    if guilty and not guilty & {short(host) for host in hosts.values()}:
        return
    firsts: dict[str, int] = {}
    for rank in sorted(hosts):
        firsts.setdefault(hosts[rank], rank)
    for log in logs:
        log.host = hosts[log.rank]
        log.local = log.rank - firsts[log.host]


def _host_in_path(path: str) -> str | None:
    folder, _, name = path.rpartition("/")
    if match := re.match(r"^([A-Za-z][\w-]*\d)[-_.]rank", name):
        return match[1]
    return folder.split("/")[0] or None


# times


def seconds_of(match: re.Match[bytes], year: int) -> float:
    """Seconds since 1970 of a stamp; one without a zone is taken for UTC."""
    day = match["day"].decode()
    if len(day) == 4:
        day = f"{year}-{day[:2]}-{day[2:]}"
    moment = datetime.strptime(f"{day} {match['clock'].decode()}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    zone = (match.groupdict().get("zone") or b"Z").decode().replace(":", "")
    if zone != "Z":
        moment -= (1 if zone[0] == "+" else -1) * (int(zone[1:3]) * 3600 + int(zone[3:5]) * 60)
    return moment + float(f"0.{(match['part'] or b'0').decode()}")


def stamp_at(line: bytes) -> re.Match[bytes] | None:
    """The stamp that a line begins with, or that stands soon after its beginning."""
    found = [match for pattern in (STAMP, GLOG) if (match := pattern.search(line)) and match.start() < FRONT]
    return min(found, key=lambda match: match.start(), default=None)


def _time(job: Job) -> None:
    """Give every line a time where each file of a rank holds stamps.

    What a rank prints without stamps after its last one may be any later. Where the rank is none of those that began
    it, it comes after all that those have printed, and a watchdog as much later as it says that it waited: so it was.
    """
    years = [int(match["day"][:4]) for log in job.logs for line in log.lines if (match := STAMP.search(line))]
    year = years[0] if years else datetime.now(UTC).year
    tails: dict[str, int] = {}
    for log in job.logs:
        own = [seconds_of(match, year) if (match := stamp_at(line)) else None for line in log.lines]
        known = [number for number, moment in enumerate(own) if moment is not None]
        if len(known) < 3:
            for one in job.logs:
                one.times = None
            return
        log.times = list(accumulate((one or 0.0 for one in own), max, initial=own[known[0]]))[1:]
        tails[log.path] = known[-1] + 1
    roots = {path for path, _ in job.roots}
    guilty = {log.rank for log in job.logs if log.path in roots} or set(job.truth["initiating_ranks"])
    last = max((log.times[-1] for log in job.logs if log.times and log.rank in guilty), default=0.0)
    for log in job.logs:
        start = tails[log.path]
        if log.times and log.rank not in guilty and start < len(log.lines):
            waited = WAITED.search(b"\n".join(log.lines[start:]))
            moment = max(last, log.times[-1]) + (int(waited[1]) / 1000 if waited else 0.0)
            log.times[start:] = [moment] * (len(log.lines) - start)


def in_order(job: Job, logs: Iterable[Log]) -> list[tuple[Log, int]]:
    """Lines of several ranks as one writer gets them: by time; at one moment by turns, first those that began it."""
    roots = {path for path, _ in job.roots}
    rows: list[tuple[float, bool, int, int, Log, int]] = []
    for log in logs:
        turn, before = 0, None
        for number, moment in enumerate(log.times or ()):
            turn = turn + 1 if moment == before else 0
            before = moment
            rows.append((moment, log.path not in roots, turn, log.rank, log, number))
    rows.sort(key=lambda row: (row[0], row[1], row[2], row[3], row[4].path, row[5]))
    return [(row[4], row[5]) for row in rows]
