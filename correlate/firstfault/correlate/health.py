"""Proof of completion: a run is healthy only where somebody with the right to say so says it ended well.

A launcher speaks for its own node alone, and a rank for itself: success on one node while another failed proves
nothing.
"""

from __future__ import annotations

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import View
from firstfault.correlate.model import Signal

_JOB_WIDE = (
    "complete-scheduler-slurm-state",
    "complete-scheduler-slurm-exit",
    "complete-scheduler-slurm-mail",
    "complete-scheduler-ray",
    "complete-scheduler-kubernetes",
    "complete-scheduler-lsf",
    "complete-scheduler-pbs",
)
"""Facts that speak for a whole job; every other one speaks for a node, a container or a rank."""


def completions(view: View) -> list[Signal]:
    """All lines that state a good end, hints left out."""
    return [
        signal
        for signal in view.signals
        if signal.event is Event.COMPLETION
        and not (signal.fact or "").startswith("complete-hint")
        and signal.number("exitcode") in (None, 0)
    ]


def proof(view: View) -> list[Signal]:
    """Lines that together prove that the job completed; empty where the proof has a gap."""
    found = completions(view)
    wide = [signal for signal in found if not (signal.fact or "").startswith("complete-rank")]
    hosts = {host for rank in view.states if (host := view.names.host_of(rank, view.attempt))}
    by_scheduler = [signal for signal in wide if (signal.fact or "").startswith(_JOB_WIDE)]
    if by_scheduler:
        return by_scheduler
    if wide:
        said = {view.names.canonical(host) for signal in wide if (host := signal.host or signal.source.host)}
        if len(hosts) <= 1 or hosts <= said or len({signal.source.id for signal in wide}) >= max(1, len(hosts)):
            return wide
    world = view.names.world or 0
    logged = view.logged()
    if logged and len(logged) >= world and all(state.completed for state in logged):
        return [state.completed[-1] for state in logged]
    steps = {state.last_step for state in logged if state.last_step is not None}
    if by_all_ranks(view) and len(steps) <= 1 and len(logged) >= world:
        return [signal for state in logged for signal in state.completed[-1:]]
    return []


def by_all_ranks(view: View) -> bool:
    """Whether every logged rank printed a line of completion."""
    logged = view.logged()
    return bool(logged) and all(state.completed for state in logged)


def outlives(view: View, done: list[Signal]) -> bool:
    """Whether the proof stands after every failure line that it shares a log with, and nobody else failed."""
    failed = any(one.code not in (None, 0) for one in view.exits if one.signal.attempt == view.attempt)
    if by_all_ranks(view) and not failed and len(view.logged()) >= (view.names.world or 0):
        return True
    last: dict[int, int] = {}
    for signal in done:
        last[signal.source.id] = max(last.get(signal.source.id, 0), signal.line)
    for state in view.states.values():
        if state.exit_code not in (None, 0) and not state.completed:
            return False
        for signal in (*state.own, *state.derived, *state.secondary):
            end = last.get(signal.source.id)
            if end is not None and end > signal.line:
                continue
            if end is None and (state.completed or not state.own):
                # another log of a rank that is known to have completed: what it prints while it goes is noise
                if (
                    state.completed
                    and state.completed[-1].source is signal.source
                    and state.completed[-1].line < signal.line
                ):
                    continue
                if any(_after(view, one, signal) for one in done):
                    continue
            return False
    return True


def _after(view: View, done: Signal, failure: Signal) -> bool:
    gap = view.times.same_clock_gap(failure, done)
    if gap is not None:
        return gap >= 0
    one, other = view.times.of(failure), view.times.of(done)
    return one is not None and other is not None and one.surely_before(other)
