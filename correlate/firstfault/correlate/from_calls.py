"""Candidates from what ranks called: another operation or size than the rest, or one more or less."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from firstfault.catalog.model import Event, Role
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_waits import absentees, numbers
from firstfault.correlate.model import Signal
from firstfault.correlate.operations import usual_call

_FINGERPRINT = re.compile(
    r"Rank (\d{1,9}) is running collective: CollectiveFingerPrint\((?:SequenceNumber=\d{1,20}(?:, ?)?)?"
    r"(OpType=\w{1,40}(?:, TensorShape=\[[\d, ]{0,300}\])?(?:, TensorDtypes=\w{0,40})?)"
)
"""What ProcessGroupWrapper.cpp prints; of a call without tensors it prints no comma after the number."""


def odd_operations(view: View) -> Iterator[Candidate]:
    """Ranks that called another operation, or the same with another size, than the rest of the group."""
    for one in view.collectives:
        if not one.odd:
            continue
        ranks = tuple(sorted(one.odd))
        candidate = absentees(view, "odd-operation", ranks, BASE["odd-operation"], "collective-desync")
        candidate.entry = None
        usual = usual_call(one.calls)
        candidate.signals = [
            (signal, f"rank {rank} called {one.calls[rank]}, the others {usual}")
            for rank, signal in sorted(one.odd.items())[:4]
        ]
        candidate.for_.append(f"in {one.label} rank {numbers(ranks)} called {one.calls[ranks[0]]}, the others {usual}")
        if _one_a_host(view, ranks):
            candidate.base -= 2.4
            candidate.against.append("they are one rank of each host: a group of their own, as programs make them")
        yield candidate
    yield from _fingerprints(view)
    yield from _raised_desync(view)


def _one_a_host(view: View, ranks: tuple[int, ...]) -> bool:
    """Whether some ranks are the first of each host that left logs."""
    hosts = {state.host for state in view.logged() if state.host}
    firsts = {min(view.names.ranks_of_host(host, view.attempt), default=-1) for host in hosts}
    return len(ranks) > 1 and set(ranks) == firsts


def _raised_desync(view: View) -> Iterator[Candidate]:
    """A library that found two calls of different sizes: it says that they differ, not which of the two is the odd
    one.
    """
    raised = [
        signal
        for signal in view.signals
        if signal.event is Event.DESYNC
        and signal.role is Role.INITIATING
        and not signal.weak
        and signal.rank is not None
        and "CollectiveFingerPrint" not in signal.text
    ]
    if not raised:
        return
    ranks = sorted({signal.rank for signal in raised if signal.rank is not None})
    candidate = absentees(view, "raised-desync", (), BASE["raised-desync"], "collective-desync")
    candidate.entry = raised[0].entry
    candidate.component = "job"
    candidate.moment = min((moment for one in raised if (moment := view.times.of(one)) is not None), default=None)
    candidate.signals = [(signal, "its call does not fit what its peer sent") for signal in raised[:4]]
    candidate.for_.append(f"rank {numbers(tuple(ranks))} received what does not fit its call")
    candidate.missing = (
        f"which collective each rank was in (py-spy stacks or flight-recorder dumps); rank {ranks[0]} and the rank "
        "that sends to it called different ones"
    )
    yield candidate


def _fingerprints(view: View) -> Iterator[Candidate]:
    seen: dict[int, str] = {}
    lines: dict[int, Signal] = {}
    every: list[Signal] = []
    for signal in view.signals:
        if signal.event is not Event.DESYNC or "CollectiveFingerPrint" not in signal.text:
            continue
        every.append(signal)
        for match in _FINGERPRINT.finditer(signal.text):
            seen.setdefault(int(match[1]), match[2])
            lines.setdefault(int(match[1]), signal)
        if signal.rank is not None:
            lines[signal.rank] = signal
    votes = Counter(seen.values())
    if len(votes) < 2:
        return
    (top, most), *others = votes.most_common()
    rest = sum(count for _, count in others)
    if most <= rest:
        ranks: tuple[int, ...] = ()
        base = BASE["own-error-ambiguous"]
    else:
        ranks = tuple(sorted(rank for rank, print_ in seen.items() if print_ != top))
        base = BASE["odd-operation"] + 0.6
    candidate = absentees(view, "odd-operation", ranks, base, "collective-desync")
    candidate.entry = every[0].entry
    evidence = [lines[rank] for rank in ranks if rank in lines] + every
    candidate.signals = [(signal, "compares what two ranks called") for signal in dict.fromkeys(evidence)][:6]
    candidate.moment = min((m for s in every if (m := view.times.of(s)) is not None), default=None)
    if ranks:
        candidate.for_.append(f"{most} ranks called the same, rank {numbers(ranks)} something else")
    else:
        candidate.missing = (
            "which of the two operations the step should have called at that point "
            "(its source, or a flight recorder of a sister group)"
        )
    yield candidate


def ran_out_of_data(view: View) -> Iterator[Candidate]:
    """Ranks that came to the end of their data while others still had batches: their last collectives do not match."""
    ended: dict[int, Signal] = {}
    for state in view.states.values():
        last = max((one for one in state.phases), key=lambda one: (one.stamp_ns or 0, one.line), default=None)
        if last is not None and last.fact == "phase-epoch-end":
            ended[state.rank] = last
    others = [state for state in view.logged() if state.rank not in ended]
    suffering = [state for state in others if state.derived or state.secondary or state.killed]
    if not ended or not suffering or len(ended) >= len(view.logged()):
        return
    if not any(state.progress is not None or state.phases for state in others):
        return  # who prints nothing of its progress would not say that its data ended
    if any(one.fact == "phase-epoch-end" and _later(one, ended) for state in others for one in state.phases):
        return
    # of two unequal parts the smaller one is the odd one: who has a batch more than most, goes on to wait alone
    waiting = tuple(sorted(state.rank for state in others if state.timeouts))
    more = len(ended) > len(others) == len(waiting)
    ranks = waiting if more else tuple(sorted(ended))
    # it says why the operations differ
    candidate = absentees(view, "ran-out", ranks, BASE["odd-operation"] + 0.1, "uneven-inputs")
    candidate.entry = "uneven-inputs-hang"
    candidate.signals = [(signal, f"rank {rank} has no batch left") for rank, signal in sorted(ended.items())[:6]]
    if more:
        candidate.signals[:0] = [
            (state.timeouts[0], f"rank {state.rank} went on to another batch") for state in others[:2]
        ]
    candidate.for_.append(
        f"rank {numbers(tuple(sorted(ended)))} came to the end of the data, {len(suffering)} others had not"
    )
    yield candidate


def _later(signal: Signal, ended: dict[int, Signal]) -> bool:
    return any((signal.stamp_ns or 0) >= (other.stamp_ns or 0) for other in ended.values())


def stuck_in_completed(view: View) -> Iterator[Candidate]:
    """Ranks that wait in what the others completed: their own operation, or their own device, is the odd one."""
    for one in view.collectives:
        if one.passed and one.waiters and len(one.waiters) <= len(one.passed):
            ranks = tuple(sorted(one.waiters))
            candidate = absentees(view, "stuck-in-completed", ranks, BASE["stuck-in-completed"], "collective-desync")
            candidate.signals = [
                (signal, f"rank {rank} waits in #{one.seq}") for rank, signal in sorted(one.waiters.items())[:3]
            ]
            candidate.signals += [
                (signal, f"rank {rank} completed it") for rank, signal in sorted(one.passed.items())[:2]
            ]
            yield candidate
