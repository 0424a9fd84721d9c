"""Attempts: every start of the workers is judged by itself; nothing explains across a restart but what persists on a
node.

Kernels, schedulers and platforms know nothing of attempts: their lines belong to the attempt that ran at their time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from firstfault.catalog.model import Event
from firstfault.correlate.load import Timeline
from firstfault.correlate.model import Signal
from firstfault.correlate.times import Times

_SECOND = 1_000_000_000
_NOTICED_AFTER_NS = {
    Event.COMPLETION: 0,
    Event.SCHED_ACTION: 0,
    Event.NODE_LOST: 600 * _SECOND,
}
"""How long after the fact a machine may tell of it: a node is declared lost minutes late, a driver may need three."""
_USUALLY_AFTER_NS = 180 * _SECOND


def attempts_of(timeline: Timeline) -> tuple[int, ...]:
    """Numbers of all attempts of which a rank wrote a line, a launcher a report, or somebody that it ended well, in
    order.
    """
    found = {extent.attempt for extent in timeline.extents}
    found.update(
        signal.attempt for signal in timeline.signals if signal.entry is not None or signal.event is Event.COMPLETION
    )
    return tuple(sorted(found)) or (0,)


def in_their_attempts(timeline: Timeline, times: Times) -> Timeline:
    """The same timeline with each line that names no attempt in the one that ran when it was written.

    A line without a moment on the aligned clock stays with the first attempt, but for a scheduler's last word on a job:
    it lists every start of a requeued one, in order.
    """
    starts: dict[int, int] = {}
    for extent in timeline.extents:
        moment = times.of_source(extent.source, extent.first_ns) if extent.first_ns is not None else None
        if moment is not None:
            starts[extent.attempt] = min(moment.ns, starts.get(extent.attempt, moment.ns))
    if len(starts) < 2:
        return timeline
    ordered = sorted((start, number) for number, start in starts.items())

    final = _last_words(timeline)

    def placed(signal: Signal) -> Signal:
        if signal.id in final:
            return replace(signal, attempt=ordered[-1][1])
        moment = times.of(signal) if signal.id in timeline.unplaced and signal.own_stamp else None
        if moment is None or signal.event is None:
            return signal
        noticed = moment.ns - moment.bound_ns - _NOTICED_AFTER_NS.get(signal.event, _USUALLY_AFTER_NS)
        running = [number for start, number in ordered if start <= noticed]
        return replace(signal, attempt=running[-1]) if running else signal

    return replace(timeline, signals=tuple(placed(signal) for signal in timeline.signals))


def _last_words(timeline: Timeline) -> set[int]:
    """The last of several states that a scheduler's record lists for one job."""
    states: dict[tuple[int, str], list[Signal]] = defaultdict(list)
    for signal in timeline.signals:
        if signal.id in timeline.unplaced and "jobid" in signal.captures and "state" in signal.captures:
            states[signal.source.id, signal.captures["jobid"]].append(signal)
    return {listed[-1].id for listed in states.values() if len(listed) > 1}
