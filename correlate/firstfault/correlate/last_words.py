"""What a rank said last, where only its exit code tells that it failed.

Some lines mean little by themselves (the catalog calls their patterns weak: a store that could not bind and tried
again, a hint that follows an error): a process may print them and go on. As the last that a process printed before it
ended by itself they are what there is, so they name the failure, less surely than an exception would.
"""

from __future__ import annotations

from firstfault.catalog.model import FALLBACK_ENTRIES, Role
from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.from_ranks import spread
from firstfault.correlate.model import PRIMARY_EVENTS, Signal
from firstfault.correlate.states import RankState

_LAST = 12
"""Lines from the end of a log within which a line is among the last words; a hint's own explanation fits in."""


def named_by_last_words(view: View, candidates: list[Candidate]) -> list[Candidate]:
    """Give failures that only an exit code tells of the class of their ranks' last words, where those say one thing.

    Failures of several hosts with the same last words are one failure: whoever said them shares it, also those whom a
    launcher ended before they could leave by themselves.
    """
    named: dict[str, Candidate] = {}
    kept = []
    for candidate in candidates:
        words = _words_of(view, candidate.ranks) if candidate.rule == "exit-code" and not candidate.entry else []
        if not words or len({one.entry for one in words}) > 1:
            kept.append(candidate)
            continue
        entry = words[0].entry or ""
        if entry in named:
            for signal, why in candidate.signals:
                named[entry].support(signal, why)
            continue
        candidate.cls, candidate.entry = words[0].cls or candidate.cls, entry
        named[entry] = candidate
        kept.append(candidate)
    for entry, candidate in named.items():
        words = [one for one in _words_of(view, tuple(view.states)) if one.entry == entry]
        candidate.ranks = tuple(sorted({one.rank for one in words if one.rank is not None}))
        candidate.hosts = view.names.rank_hosts(candidate.ranks, view.attempt)
        for one in words[:4]:
            candidate.support(one, f"the last that rank {one.rank} printed before it ended")
        if len(candidate.ranks) > 1:
            spread(view, candidate)
    return kept


def _words_of(view: View, ranks: tuple[int, ...]) -> list[Signal]:
    states = [view.states[rank] for rank in ranks if rank in view.states]
    return [words for state in states if not state.derived and (words := _last_words(view, state)) is not None]


def _last_words(view: View, state: RankState) -> Signal | None:
    ends = {extent.source.id: extent.last_line for extent in state.extents if extent.source.kind == "rank"}
    spoken = [
        signal
        for signal in view.signals
        if signal.rank == state.rank
        and signal.weak
        and signal.event in PRIMARY_EVENTS
        and signal.role in (Role.INITIATING, Role.AMBIGUOUS)
        and signal.entry not in FALLBACK_ENTRIES
        and ends.get(signal.source.id, 1 << 62) - signal.last_line < _LAST
    ]
    after = state.progress
    spoken = [one for one in spoken if after is None or after.source is not one.source or after.line < one.line]
    return max(spoken, key=lambda one: one.place) if spoken else None
