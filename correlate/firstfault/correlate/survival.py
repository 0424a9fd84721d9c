"""Whether a process lived on after an error: an exception that a program caught is not what ended it.

Proofs are later steps in the same log, or later by the rank's own clock, a wait that the rank began afterwards, its own
word of completion, and the steps of the whole job: synchronous training goes on only with all its ranks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from firstfault.catalog.model import Event
from firstfault.correlate.load import Timeline
from firstfault.correlate.model import Progress, Signal
from firstfault.correlate.times import Times

_SECOND = 1_000_000_000
ORDERLY = "complete-rank-orderly"
"""Facts of an orderly end, which a process that raised an exception comes to as well."""
_STEPS = 3
"""A dead rank lets the others finish the steps that are under way, not three more."""


def step_times(timeline: Timeline, times: Times, attempt: int) -> list[int]:
    """When the job, by whichever rank came first, reached each of its steps: aligned nanoseconds, in order."""
    first: dict[str, int] = {}
    for mark in timeline.marks:
        placed = times.of_mark(mark) if mark.attempt == attempt else None
        if placed is not None:
            first[mark.key] = min(first.get(mark.key, placed), placed)
    return sorted(first.values())


class Survival:
    """What shows, in one attempt, that a rank went on."""

    def __init__(self, timeline: Timeline, times: Times, attempt: int, later_steps: dict[int, tuple[int, int]]) -> None:
        self._times = times
        self._ends = timeline.ends
        self._later_steps = later_steps
        self._by_source: dict[tuple[int, int | None], Progress] = {}
        self._by_rank: dict[int, list[Progress]] = defaultdict(list)
        for one in timeline.progress:
            self._by_source[(one.source.id, one.rank)] = one
            if one.rank is not None and one.attempt == attempt:
                self._by_rank[one.rank].append(one)
        self._done: dict[tuple[int, int], int] = {}
        self._waits: dict[int, list[Signal]] = defaultdict(list)
        for signal in timeline.signals:
            if signal.attempt != attempt or signal.rank is None:
                continue
            if signal.event is Event.COMPLETION and not (signal.fact or "").startswith(ORDERLY):
                key = (signal.source.id, signal.rank)
                self._done[key] = max(self._done.get(key, 0), signal.line)
            elif signal.event is Event.COLL_TIMEOUT and signal.own_stamp and "elapsed_ms" in signal.captures:
                self._waits[signal.rank].append(signal)
        self._steps = step_times(timeline, times, attempt)

    def of(self, signal: Signal, rank: int) -> bool:
        """Whether the rank lived on after an error.

        In a log that several ranks or both streams share, lines of one rank may change places by a step or two.
        """
        own, every = self._later_steps.get(signal.id, (0, 0))
        if own >= (1 if signal.source.kind == "rank" else _STEPS):
            return True
        if self._done.get((signal.source.id, rank), 0) > signal.last_line or self._waited_later(signal, rank):
            return True
        if self._other_logs(signal, rank) or self._job_went_on(signal):
            return True
        if (signal.source.id, rank) in self._by_source:
            return False
        return every >= _STEPS

    def _other_logs(self, signal: Signal, rank: int) -> bool:
        when = self._times.of(signal) if signal.own_stamp else None
        if when is None:
            return False
        for other in self._by_rank.get(rank, ()):
            if other.stamp_ns is None or other.source is signal.source:
                continue
            moment = self._times.of_source(other.source, other.stamp_ns)
            if moment is not None and moment.ns > when.ns + 5 * _SECOND:
                return True
        return False

    def _waited_later(self, signal: Signal, rank: int) -> bool:
        """Whether the rank entered, after its error, the collective in which it then waited to the limit."""
        for wait in self._waits.get(rank, ()):
            since = (wait.number("elapsed_ms") or 0) * 1_000_000
            gap = self._times.same_clock_gap(signal, wait) if signal.own_stamp else None
            if gap is not None and gap > since + _SECOND:
                return True
            if signal.source is wait.source and signal.stamp_ns is not None and wait.stamp_ns is not None:
                # the next stamped line behind the error, at the latest, came before the wait began
                end = signal.stamp_ns + (0 if signal.own_stamp else signal.res_ns)
                if (
                    signal.last_line < wait.line
                    and signal.res_ns < 3600 * _SECOND
                    and end < wait.stamp_ns - since - _SECOND
                ):
                    return True
        return False

    def _undated(self, signal: Signal) -> bool:
        """Whether a line has only the time of an earlier one, and none with a time follows: it may be much later."""
        end = self._ends.get(signal.source.id)
        return not signal.own_stamp and end is not None and end[1] == signal.stamp_ns

    def _job_went_on(self, signal: Signal) -> bool:
        """Whether the whole job passed several steps after the error."""
        when = self._times.of(signal)
        if when is None or not self._steps or self._undated(signal):
            return False
        later = len(self._steps) - bisect_right(self._steps, when.end_ns + _SECOND)
        return later >= _STEPS and self._steps[-1] > when.end_ns + 3 * _SECOND
