"""Folds what many ranks suffered into a few sentences, and gives every rank its fate in a word or two."""

from __future__ import annotations

from collections import defaultdict

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.diagnosis import CollateralGroup, Evidence
from firstfault.correlate.model import Signal
from firstfault.correlate.states import RankState

_WORDS = {
    Event.COLL_TIMEOUT: "waited in a collective that timed out",
    Event.PEER_LOSS: "lost the connection to a peer",
    Event.STORE_LOST: "lost the key-value store",
    Event.TEARDOWN: "was torn down by its own watchdog or runtime",
    Event.DUMP_SIGNAL: "was told by another rank to dump its state",
    Event.SIGNAL_RECEIVED: "was asked to end by a signal",
}


def fate_words(state: RankState) -> str:
    """How a rank that only suffered ended."""
    if state.derived:
        first = state.derived[0]
        return (
            _WORDS.get(first.event, "printed an error that follows from a failure elsewhere")
            if first.event
            else "failed after others"
        )
    if state.secondary:
        return "raised an error after it had lost its peers"
    if state.own:
        return "raised an error of its own that follows from the root"
    if state.killed:
        return "was ended by its launcher"
    code = state.exit_code
    if code not in (None, 0):
        return f"ended with {'signal ' + str(-code) if code and code < 0 else 'exit code ' + str(code)}"
    if state.completed:
        return "completed"
    return "shows no error" if state.logged else "left no log"


def fate_of(state: RankState, best: Candidate | None) -> str:
    """The fate of any rank, the root included."""
    if best is not None and state.rank in best.ranks:
        return f"initiating: {best.cls}"
    return fate_words(state)


def _example(state: RankState) -> Signal | None:
    for signals in (state.derived, state.secondary, state.own):
        if signals:
            return signals[0]
    return state.exits[0].signal if state.exits else None


def fold(view: View, states: list[RankState]) -> tuple[CollateralGroup, ...]:
    """Groups of ranks with the same fate, the largest first, each with one line as an example."""
    groups: dict[str, list[RankState]] = defaultdict(list)
    for state in states:
        groups[fate_words(state)].append(state)
    found = []
    for what, members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        signal = next((one for state in members if (one := _example(state)) is not None), None)
        example = (
            Evidence(
                signal.source.path,
                signal.line,
                signal.text[:500],
                what,
                view.times.text(view.times.of(signal)),
                signal.rank,
                signal.host,
            )
            if signal
            else None
        )
        found.append(
            CollateralGroup(
                what,
                tuple(sorted(state.rank for state in members)),
                tuple(sorted({state.host for state in members if state.host})),
                example,
            )
        )
    return tuple(found)
