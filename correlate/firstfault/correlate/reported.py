"""Ranks that only reports name, and the folders that files of ranks lie in: what `Names` falls back on."""

from __future__ import annotations

from collections import defaultdict

from firstfault.catalog.model import Event
from firstfault.correlate.load import Timeline
from firstfault.correlate.model import Signal, parse_ranks


def reported_ranks(timeline: Timeline) -> dict[int, list[str]]:
    """Ranks of a job whose lines name none but in reports of the group of all, and the hosts that printed them: whose
    watchdog fired, and who is missing.
    """
    found: dict[int, list[str]] = defaultdict(list)
    for signal in timeline.signals:
        number = default_group_rank(signal)
        if number is not None and signal.event is Event.COLL_TIMEOUT:
            found[number].extend([signal.host] if signal.host else [])
        elif signal.event is Event.ABSENT and not signal.weak:
            for rank in parse_ranks(signal.captures.get("pg_ranks", "")):
                found[rank].extend([])
    return found or _tasks(timeline)


def _tasks(timeline: Timeline) -> dict[int, list[str]]:
    """Tasks of an srun that starts several on a node and no launchers, where its reports of their ends name all of
    them: such a task is a rank.
    """
    found = hosts_of_tasks(timeline)
    return {task: [host] for task, host in found.items()} if sorted(found) == list(range(len(found))) else {}


def hosts_of_tasks(timeline: Timeline) -> dict[int, str]:
    """The host of each task that srun reports as ended; empty where launchers started the ranks, or where each host ran
    one task, which may have been a launcher.
    """
    found: dict[int, str] = {}
    for signal in timeline.signals:
        if signal.event in (Event.AGENT_REPORT, Event.AGENT_KILL) and (
            "child_pid" in signal.captures or "local_rank" in signal.captures
        ):
            return {}
        if signal.event is Event.EXIT and not signal.weak and (host := signal.captures.get("host")):
            for task in parse_ranks(signal.captures.get("tasks", "")):
                found[task] = host
    return found if len(found) > len(set(found.values())) else {}


_OF_THE_JOB = frozenset({"rank", "node", "job", "launcher"})


def named_hosts(timeline: Timeline) -> set[str]:
    """Hosts that a log of the job names where it tells of an end, of a failure or of the loss of a node."""
    return {
        host
        for signal in timeline.signals
        if signal.event in (Event.EXIT, Event.AGENT_REPORT, Event.NODE_LOST) and signal.source.kind in _OF_THE_JOB
        for host in (signal.captures.get("host") or signal.captures.get("hosts") or "").replace(",", " ").split()
    }


def default_group_rank(signal: Signal) -> int | None:
    """The rank in the group of a line that names no group, which is the world (torch before 2.2: `[Rank N]`)."""
    named = any(signal.captures.get(name) for name in ("pg_id", "pg_name", "pg_guid", "pg_desc"))
    return None if named else signal.number("pg_rank")


def tree_of(path: str) -> str:
    """The folder of one agent's workers: what stands before `attempt_0`, else the folder at the top; empty without."""
    before, found, _ = path.partition("/attempt_")
    return before if found else path.partition("/")[0] if "/" in path else ""
