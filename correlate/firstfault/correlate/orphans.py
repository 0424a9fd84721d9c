"""Gives an error that no line ties to a rank to the only rank that says nothing, where all others wait for that one."""

from __future__ import annotations

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import BASE, Candidate, View

_OF_A_PROCESS = frozenset({Event.EXCEPTION, Event.CUDA_ERROR, Event.NATIVE_CRASH})


def adopt(view: View, candidates: list[Candidate]) -> None:
    """Place the one ownerless error of a log that all ranks share on the one rank that is mute.

    The others lost or awaited it, and have no error of their own; the error stands before all of that.
    """
    mute = [one for one in candidates if one.rule == "mute" and len(one.ranks) == 1]
    if len(mute) != 1 or len(view.states) < 3:
        return
    rank = mute[0].ranks[0]
    others = [state for state in view.states.values() if state.rank != rank]
    if not all(state.derived and not state.own for state in others):
        return
    first: dict[int, int] = {}
    for state in others:
        for echo in state.derived:
            first[echo.source.id] = min(echo.first_line, first.get(echo.source.id, echo.first_line))
    fitting = [
        one
        for one in candidates
        if one.rule in ("own-error", "own-error-ambiguous")
        and not one.ranks
        and not one.common
        and set(one.hosts) <= set(mute[0].hosts)
        and all(
            signal.event in _OF_A_PROCESS and signal.last_line < first.get(signal.source.id, 0)
            for signal, _ in one.signals
        )
    ]
    if len(fitting) != 1:
        return
    found = fitting[0]
    found.ranks, found.hosts, found.component = (rank,), mute[0].hosts, "rank"
    found.rule = "own-error-witnessed"  # the others wait for it
    found.base = BASE["killed-by-signal"]
    found.for_.append(f"all other ranks lost or awaited rank {rank}, which alone says nothing, and raised nothing")
