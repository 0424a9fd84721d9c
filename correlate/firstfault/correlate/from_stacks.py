"""Candidates from what was asked of a job that hangs: stacks of its processes, and NCCL's RAS report.

Both show a moment, not an order: they name the rank that is not where the others are, never why it is not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_waits import waiting_moment
from firstfault.correlate.model import Signal

_COLLECTIVE = "collective"
_TRUSTED = ("user", "data", "io")
"""What a stack may show a main thread doing instead of a collective; an unknown place proves nothing."""


def _rank_of(view: View, signal: Signal) -> int | None:
    """The rank that a stack or a report is about: it says so, or its process id or communicator rank does."""
    if signal.rank is not None:
        return signal.rank
    host = signal.captures.get("ip") or signal.host or signal.source.host
    pid = signal.number("pid") or signal.pid
    if pid is not None:
        named = view.names.host_of_address(host) if host else None
        found = view.names.rank_of_pid(named or host, pid)
        if found is not None:
            return found
    number, size = signal.number("comm_rank"), signal.number("comm_size")
    return number if number is not None and size == len(view.states) else None


def _candidate(
    view: View, rule: str, ranks: tuple[int, ...], base: float, signals: list[tuple[Signal, str]]
) -> Candidate:
    return Candidate(
        rule=rule,
        cls="collective-rank-absent",
        entry="pgnccl-watchdog-timeout",
        component="rank",
        ranks=ranks,
        hosts=view.names.rank_hosts(ranks, view.attempt),
        base=base,
        signals=signals,
        moment=waiting_moment(view),
    )


def stacks_elsewhere(view: View) -> Iterator[Candidate]:
    """Ranks whose main thread is in the program's own code, in its data or in a file while the others' are in a
    collective.
    """
    last: dict[int, Signal] = {}
    for signal in view.signals:
        if signal.fact != "stack" or signal.captures.get("thread", "MainThread") != "MainThread":
            continue
        rank = _rank_of(view, signal)
        if rank is not None and rank in view.states:
            last[rank] = signal
    inside = sorted(rank for rank, signal in last.items() if signal.captures.get("state") == _COLLECTIVE)
    outside = sorted(rank for rank, signal in last.items() if signal.captures.get("state") in _TRUSTED)
    if len(inside) < 2 or not outside or len(outside) > max(1, len(last) // 4):
        return
    signals = [(last[rank], f"rank {rank} is {_doing(last[rank])}") for rank in outside[:4]]
    signals += [(last[rank], f"rank {rank} is in a collective") for rank in inside[:2]]
    candidate = _candidate(view, "elsewhere", tuple(outside), BASE["elsewhere"], signals)
    candidate.for_.append(
        f"stacks show {len(inside)} ranks in a collective, rank {outside[0]} in {_place(last[outside[0]])}"
    )
    yield candidate


def _doing(signal: Signal) -> str:
    return {"data": "loading data", "io": "in a file operation"}.get(signal.captures.get("state", ""), "in other code")


def _place(signal: Signal) -> str:
    captures = signal.captures
    return f"{captures.get('function', '?')} ({captures.get('src_file', '?')}:{captures.get('src_line', '?')})"


def behind_in_ras(view: View) -> Iterator[Candidate]:
    """Ranks that NCCL's RAS report shows behind the operation that most have launched, or that did not answer it."""
    counts: dict[tuple[int, str, str], list[tuple[int, int, Signal]]] = defaultdict(list)
    listed: list[tuple[Signal, int, int | None]] = []
    current: dict[tuple[int, str, str], int] = {}
    for signal in view.signals:
        if signal.fact not in ("ras-count", "ras-missing", "ras-rank"):
            continue
        key = (signal.source.id, signal.captures.get("comm_id", ""), signal.captures.get("op", ""))
        seq = signal.number("seq")
        if signal.fact == "ras-count":
            if seq is not None:
                counts[key].append((seq, signal.number("count") or 0, signal))
                current[key] = seq
            continue
        rank = _rank_of(view, signal)
        if rank is not None and rank in view.states:
            listed.append((signal, rank, seq if seq is not None else current.get(key)))
            if signal.fact == "ras-rank" and seq is not None and signal.captures.get("op"):
                counts[key].append((seq, 1, signal))
    behind: dict[int, Signal] = {}
    silent: dict[int, Signal] = {}
    for signal, rank, seq in listed:
        key = (signal.source.id, signal.captures.get("comm_id", ""), signal.captures.get("op", ""))
        votes = Counter[int]()
        for number, count, _ in counts.get(key, ()):
            votes[number] += count
        if votes and seq is not None:
            usual, most = votes.most_common(1)[0]
            if seq < usual and 2 * most > sum(votes.values()):
                behind.setdefault(rank, signal)
        elif signal.fact == "ras-missing" and not votes:
            silent.setdefault(rank, signal)
    for found, why in ((behind, "one operation or more behind the others"), (silent, "did not answer")):
        if found and len(found) <= max(1, len(view.states) // 4):
            signals = [
                (signal, f"rank {rank} is {why}" if found is behind else f"rank {rank} {why}")
                for rank, signal in sorted(found.items())[:4]
            ]
            candidate = _candidate(view, "named-absent", tuple(sorted(found)), BASE["named-absent"], signals)
            candidate.entry = None
            candidate.for_.append(f"NCCL's RAS report: rank {sorted(found)[0]} {'is ' if found is behind else ''}{why}")
            yield candidate
