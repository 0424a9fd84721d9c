"""Gives a rank to signals whose line names none: through a process id, a device ordinal, or the one exit that fits.

In a file that all ranks of a node share, an old-style traceback has no prefix; the launcher's exit codes then say whose
it was.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from firstfault.catalog.model import Event
from firstfault.correlate.exits import Exit
from firstfault.correlate.model import FACT_EVENTS, MACHINE_EVENTS, Signal
from firstfault.correlate.names import Names
from firstfault.correlate.reported import default_group_rank
from firstfault.correlate.states import is_echo, is_own_error

_NAMES_ITSELF = frozenset({"identity-megatron-rerun"})
"""Facts of lines in which a rank says its own number (megatron/core/rerun_state_machine.py)."""
_STACK = "stack"
_ABOUT_OTHERS = frozenset({Event.EXIT, Event.AGENT_KILL, Event.AGENT_REPORT})
_NOT_A_PROCESS = frozenset({"kernel", "scheduler", "kubelet", "events", "status", "gpu-state", "raylet", "launcher"})


def owned(signals: tuple[Signal, ...], names: Names, exits: list[Exit]) -> tuple[Signal, ...]:
    """The same signals, with the rank filled in where it can be known."""
    direct = _by_line(tuple(_by_identity(signal, names) for signal in signals))
    return _by_exit(direct, names, exits)


def _by_line(signals: tuple[Signal, ...]) -> tuple[Signal, ...]:
    """What one line says in several ways has one writer: the rank that one of its readings tells is that of all."""
    told: dict[tuple[int, int], set[int]] = defaultdict(set)
    for signal in signals:
        if signal.rank is not None and signal.event not in _ABOUT_OTHERS:
            told[signal.source.id, signal.line].add(signal.rank)
        elif signal.fact in _NAMES_ITSELF and (number := signal.number("rank")) is not None:
            told[signal.source.id, signal.line].add(number)
    found = {place: next(iter(ranks)) for place, ranks in told.items() if len(ranks) == 1}
    return tuple(
        replace(signal, rank=found[signal.source.id, signal.line])
        if signal.rank is None
        and signal.event not in _ABOUT_OTHERS
        and signal.event not in MACHINE_EVENTS
        and (signal.source.id, signal.line) in found
        else signal
        for signal in signals
    )


def _by_identity(signal: Signal, names: Names) -> Signal:
    shared = signal.source.kind != "rank"
    if shared and signal.event is Event.SIGNAL_RECEIVED and (signal.entry or "").startswith("elastic-"):
        return replace(signal, rank=None)  # the launcher's own word, also where it stands among a rank's lines
    if signal.rank is not None or signal.event in _ABOUT_OTHERS or signal.event in MACHINE_EVENTS:
        return signal
    if signal.event in FACT_EVENTS and signal.event not in (Event.PHASE, Event.COMPLETION, Event.CHECKPOINT):
        return signal
    if signal.source.kind in _NOT_A_PROCESS and signal.source.kind != "launcher":
        return signal
    rank = _default_group_rank(signal, names)
    if rank is None and signal.pid is not None:
        rank = names.rank_of_pid(signal.host, signal.pid)
    if rank is None and signal.fact == _STACK and (pid := signal.number("pid")) is not None:
        # a file of a dump bears no host, or a name of its own
        rank = names.rank_of_pid(signal.host, pid)
        rank = names.rank_of_pid(None, pid) if rank is None else rank
    if rank is None and signal.local_rank is not None and signal.host is not None:
        rank = names.rank_of_local(signal.host, signal.local_rank, signal.attempt)
    if rank is None and (signal.event is Event.CUDA_ERROR or signal.cls == "cuda-oom"):
        gpu = signal.number("gpu")
        host = signal.host or _only(names.all_hosts())
        if gpu is not None and host is not None:
            rank = names.rank_of_gpu(host, gpu)
    return replace(signal, rank=rank) if rank is not None else signal


def _default_group_rank(signal: Signal, names: Names) -> int | None:
    """The rank of whoever prints its rank in the group of all."""
    number = default_group_rank(signal)
    if number is None:
        return None
    if signal.source.rank is not None:
        return signal.source.rank
    return number if names.world is None or number < names.world else None


def _only(names: tuple[str, ...]) -> str | None:
    return names[0] if len(names) == 1 else None


def _by_exit(signals: tuple[Signal, ...], names: Names, exits: list[Exit]) -> tuple[Signal, ...]:
    """Own errors of unknown rank belong to the one rank of that host and attempt that exited by itself and raised
    nothing else.
    """
    raised = {(signal.rank, signal.attempt) for signal in signals if signal.rank is not None and is_own_error(signal)}
    echoing = {(signal.rank, signal.attempt) for signal in signals if signal.rank is not None and is_echo(signal)}
    open_exits: dict[tuple[str | None, int], set[int]] = defaultdict(set)
    aborted: dict[tuple[str | None, int], set[int]] = defaultdict(set)
    for one in exits:
        if one.code is None or one.killed or one.code in (0, -15, -9):
            continue
        for rank in one.ranks:
            if (rank, one.signal.attempt) not in raised and (rank, one.signal.attempt) not in echoing:
                into = aborted if one.code == -6 else open_exits
                into[(names.host_of(rank, one.signal.attempt), one.signal.attempt)].add(rank)
    only_host = _only(names.all_hosts())
    reporting: dict[int, set[str | None]] = defaultdict(set)
    for one in exits:
        reporting[one.signal.source.id].update(names.host_of(rank, one.signal.attempt) for rank in one.ranks)
    orphans: dict[tuple[str | None, int], list[Signal]] = defaultdict(list)
    for signal in signals:
        if signal.rank is None and is_own_error(signal) and signal.source.kind not in _NOT_A_PROCESS - {"launcher"}:
            # a log whose launcher reports the ranks of one host is that host's
            there = tuple(one for one in reporting.get(signal.source.id, ()) if one)
            host = names.canonical(signal.host) if signal.host else only_host or _only(there)
            orphans[(host, signal.attempt)].append(signal)
    given: dict[int, int] = {}
    for key, lost in orphans.items():
        ranks = sorted(open_exits.get(key, ()))
        tracebacks = [signal for signal in lost if signal.event is not Event.INIT_FAILURE]
        device = [signal for signal in tracebacks if signal.event in (Event.CUDA_ERROR, Event.NATIVE_CRASH)]
        if len(ranks) == 1:
            given.update({signal.id: ranks[0] for signal in tracebacks})
        elif not ranks and device and len(aborted.get(key, ())) == 1:
            # a run-time that meets a fault of its device prints a line without a rank and aborts
            given.update({signal.id: next(iter(aborted[key])) for signal in device})
        elif ranks and len(tracebacks) % len(ranks) == 0 and len({signal.cls for signal in tracebacks}) == 1:
            each = len(tracebacks) // len(ranks)
            given.update({signal.id: ranks[number // each] for number, signal in enumerate(tracebacks)} if each else {})
    for signal in signals:
        if signal.rank is None and is_echo(signal) and signal.source.kind not in _NOT_A_PROCESS - {"launcher"}:
            key = (names.canonical(signal.host) if signal.host else only_host, signal.attempt)
            ended = (open_exits.get(key, set()) | aborted.get(key, set())) - set(given.values())
            if len(ended) == 1:
                given[signal.id] = next(iter(ended))
    return tuple(replace(signal, rank=given[signal.id]) if signal.id in given else signal for signal in signals)
