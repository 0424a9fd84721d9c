"""Whether a process that ended by SIGABRT began it, or was ended by the watchdog of its own run-time.

torch's watchdog aborts every process that waits to a limit or whose communicator failed, and says so on its standard
error first (ProcessGroupNCCL.cpp); a failed assertion of native code aborts one process and may say nothing at all.
"""

from __future__ import annotations

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import View
from firstfault.correlate.model import Signal
from firstfault.correlate.states import RankState

_SECOND = 1_000_000_000
_LEAST_LIMIT_NS = 60 * _SECOND
"""Nobody sets the limit of a collective lower."""
_MANY_STEPS = 10


def doubt_abort(view: View, state: RankState, end: Signal) -> str:
    """Why a rank's abort without a word may be its watchdog's; empty where it can only be its own."""
    if state.half_read:
        return f"the error stream of rank {state.rank}, which says why, is not among the files"
    others = [one for one in view.states.values() if one is not state]
    if any(_aborted(one) and not (one.derived or one.own or one.secondary) for one in others):
        return "another rank was aborted, too, and said no more"
    when = view.times.of(end)
    for one in others:
        for signal in one.timeouts:
            gap = view.times.same_clock_gap(signal, end)
            said = view.times.of(signal)
            if signal.source is end.source:
                waited_before = signal.line < end.line
            elif gap is not None:
                waited_before = gap >= 0
            else:
                waited_before = said is None or when is None or not when.surely_before(said)
            if waited_before:
                return f"rank {one.rank} had waited to its limit by then, and a watchdog aborts whoever waits"
    if not state.logged:
        if any(signal.event is Event.TEARDOWN for one in others for signal in one.derived):
            return f"rank {state.rank} left no log, and the watchdogs of others took their processes down"
        unread = next((one for one in others if not one.logged and _ended_itself(one)), None)
        if unread is not None:
            return f"rank {unread.rank} ended by itself, too, and left no log"
        if any(not one.logged for one in others):
            return f"rank {state.rank} left no log, nor did others that may have ended before it"
    lost = any(signal.event is Event.PEER_LOSS for one in others for signal in one.derived)
    if not state.logged and not lost:
        return f"rank {state.rank} left no log: its watchdog may have aborted it"
    if not lost and _silent_for_long(view, state, end):
        return "the job had been silent for long before: its watchdog may have aborted it"
    return ""


def _ended_itself(state: RankState) -> bool:
    return any(one.code not in (None, 0) and not one.killed for one in state.exits)


def _aborted(state: RankState) -> bool:
    return any(one.died_by == 6 and not one.killed for one in state.exits)


def _silent_for_long(view: View, state: RankState, end: Signal) -> bool:
    """Whether the rank had printed no step for as long as a watchdog waits; unknown where nothing dates both."""
    last, when = state.last_progress_ns(view.times), view.times.of(end)
    if last is None or when is None:
        return False
    return when.ns - last > max(_LEAST_LIMIT_NS, _MANY_STEPS * view.usual_step_ns)
