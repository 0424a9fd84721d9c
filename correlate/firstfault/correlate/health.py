"""Proof of completion: a run is healthy only where somebody with the right to say so says it ended well.

A launcher speaks for its own node alone, and a rank for itself: success on one node while another failed proves
nothing.
"""

from __future__ import annotations

import re

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import View
from firstfault.correlate.model import Signal
from firstfault.correlate.states import RankState, is_own_error
from firstfault.correlate.survival import ORDERLY

_JOB_WIDE = (
    "slurm-state",
    "complete-scheduler-slurm-state",
    "complete-scheduler-slurm-exit",
    "complete-scheduler-slurm-mail",
    "complete-scheduler-ray",
    "complete-scheduler-kubernetes",
    "complete-scheduler-lsf",
    "complete-scheduler-pbs",
    "complete-scheduler-client",
)
"""Facts that speak for a whole job; every other one speaks for a node, a container or a rank."""


_OF_A_FRAMEWORK = (
    "complete-rank-huggingface",
    "complete-rank-megatron",
    "complete-rank-lightning",
    "complete-rank-nccl-tests",
    "complete-rank-mlperf",
)
"""Last words of loops that all ranks leave together; one rank prints them for all."""

_STARTS_ALL = re.compile(r"\b(?:mpirun|mpiexec(?:\.hydra)?|prterun|horovodrun|srun|jsrun|aprun|ibrun)\b")
"""Launchers that are called once for all hosts: their exit status is that of the job."""


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
    by_scheduler = [signal for signal in wide if (signal.fact or "").startswith(_JOB_WIDE) or _of_all_hosts(signal)]
    if by_scheduler:
        return by_scheduler
    if wide:
        said = {view.names.canonical(host) for signal in wide if (host := signal.host or signal.source.host)}
        if len(hosts) <= 1 or hosts <= said or len({signal.source.id for signal in wide}) >= max(1, len(hosts)):
            return wide
        pods = {pod for signal in wide if (pod := signal.captures.get("pod"))}
        failed = {pod for one in view.signals if one.event is Event.EXIT and (pod := one.captures.get("pod"))}
        if len(pods) >= len(hosts) and not failed - pods:
            return wide
    world = view.names.world or 0
    logged = view.logged()
    if logged and len(logged) >= world and all(state.completed for state in logged):
        return [state.completed[-1] for state in logged]
    ended = [signal for signal in found if (signal.fact or "").startswith(_OF_A_FRAMEWORK)]
    if ended and not any(one.code not in (None, 0) for one in view.exits if one.signal.attempt == view.attempt):
        return ended
    if not view.states and (last := _by_all_logs(view, found)):
        return last
    if first := _by_first_rank(view, found):
        return first
    steps = {state.last_step for state in logged if state.last_step is not None}
    if by_all_ranks(view) and len(steps) <= 1 and len(logged) >= world:
        return [signal for state in logged for signal in state.completed[-1:]]
    return []


_WHOLE = re.compile(r"(?i)train|tun(?:e|ing)|\bjob|\brun\b|\bfit\b|\ball\b|epoch|steps|success")
"""Words without which a bare `done` may be about a part of the work."""


_TAIL = 30
"""Lines that may follow the last word of a log without steps."""


def _by_first_rank(view: View, found: list[Signal]) -> list[Signal]:
    """The last word of the first rank, or of nobody in particular, where no rank stayed behind and nothing failed.

    Most programs let one rank alone say that the training has finished, and many let it alone print steps.
    """
    logged = view.logged()
    numbers = sorted(state.rank for state in logged)
    steps = {state.last_step for state in logged if state.last_step is not None}
    gaps = len(logged) < max(2, view.names.world or 0) or numbers != list(range(len(numbers)))
    if gaps or len(steps) > 1 or any(_failures(state) for state in logged):
        return []
    if any(one.code != 0 for one in view.exits if one.signal.attempt == view.attempt):
        return []
    for signal in found:
        own = signal.rank == 0 or (signal.rank is None and signal.source.rank in (None, 0))
        if (
            not own
            or not (signal.fact or "").startswith("complete-rank-finished")
            or not _WHOLE.search(signal.text[:500])
        ):
            continue
        steps_of_log = [one.line for one in view.timeline.progress if one.source is signal.source]
        at_the_end = bool(view.timeline.progress) or signal.line + _TAIL >= signal.source.lines
        if at_the_end and all(line < signal.line for line in steps_of_log):
            return [signal]
    return []


def last_generation(views: list[View]) -> list[Signal]:
    """Proof that the last generation of a restarted job went well, where launchers count attempts of their own.

    A node that failed once more than the others is one attempt ahead of them: each rank counts by its own last one.
    """
    last = {state.rank: state for view in views for state in view.logged()}
    steps = {state.last_step for state in last.values()}
    if len(views) < 2 or sorted(last) != list(range(len(last))) or len(last) < max(2, views[-1].names.world or 0):
        return []
    if None in steps or len(steps) > 1 or any(_failures(state) for state in last.values()):
        return []
    for view in views:
        for signal in completions(view):
            of_last = signal.rank == 0 and last[0].attempt == view.attempt
            if (
                of_last
                and (signal.fact or "").startswith("complete-rank-finished")
                and _WHOLE.search(signal.text[:500])
            ):
                return [signal]
    return []


def _of_all_hosts(signal: Signal) -> bool:
    """Whether a script states the exit status of a launcher that starts the ranks of all hosts."""
    return (signal.fact or "").startswith("complete-launcher-exit") and bool(_STARTS_ALL.search(signal.text[:500]))


def _by_all_logs(view: View, found: list[Signal]) -> list[Signal]:
    """Of a job whose logs name no rank: the last words of each log that shows steps, if nothing fails behind them."""
    last = {
        one.source.id: max(other.line for other in view.timeline.progress if other.source is one.source)
        for one in view.timeline.progress
    }
    ends = {one.source.id: one for one in found if one.line > last.get(one.source.id, one.line)}
    failed = any(
        is_own_error(signal)
        and (end := ends.get(signal.source.id)) is not None
        and (signal.line > end.line or (end.fact or "").startswith(ORDERLY))
        for signal in view.signals
    )
    return [ends[number] for number in sorted(ends)] if last and set(last) == set(ends) and not failed else []


def by_all_ranks(view: View) -> bool:
    """Whether every logged rank printed a line of completion."""
    logged = view.logged()
    return bool(logged) and all(state.completed for state in logged)


def outlives(view: View, done: list[Signal]) -> bool:
    """Whether the proof stands after every failure line, and nobody else failed."""
    ends = [
        one for one in view.exits if one.signal.attempt == view.attempt and (one.abrupt or one.code not in (None, 0))
    ]
    if by_all_ranks(view) and not ends and len(view.logged()) >= (view.names.world or 0):
        return True
    if not ends and any(_step_completed(signal) for signal in done):
        return True
    if any((signal.fact or "").startswith(_JOB_WIDE) or _of_all_hosts(signal) for signal in done):
        return all(_went_on_after(view, state, done) for state in view.states.values())
    if not ends and _whole_launcher(view, done) and not any(state.own for state in view.states.values()):
        return True
    last: dict[int, int] = {}
    for signal in done:
        last[signal.source.id] = max(last.get(signal.source.id, 0), signal.line)
    for state in view.states.values():
        gone = state.exit_code not in (None, 0) or any(one.abrupt for one in state.exits)
        if gone and not state.completed:
            return False
        if not all(_before_end(view, state, signal, done, last) for signal in _failures(state)):
            return False
    return True


def _step_completed(signal: Signal) -> bool:
    """Whether Slurm's record says that a step, so each of its tasks, ended with 0; a batch script may hide its own."""
    _, dot, step = signal.captures.get("jobid", "").partition(".")
    return bool(dot) and step.isdigit() and signal.captures.get("state") == "COMPLETED"


def _failures(state: RankState) -> list[Signal]:
    return [*state.own, *state.derived, *state.secondary]


def _before_end(view: View, state: RankState, signal: Signal, done: list[Signal], last: dict[int, int]) -> bool:
    """Whether a failure line lies before the end that the proof states, or is noise of a rank that had completed."""
    end = last.get(signal.source.id)
    if end is not None:
        return end > signal.line
    if not state.completed and state.own:
        return False
    own_end = state.completed[-1] if state.completed else None
    if own_end is not None and own_end.source is signal.source and own_end.line < signal.line:
        return True
    return any(_after(view, one, signal) for one in done)


def _went_on_after(view: View, state: RankState, done: list[Signal]) -> bool:
    """Whether the job made progress, or stated its end, after each failure of a rank: a restart that went well."""
    for signal in _failures(state):
        later = view.later_steps.get(signal.id, (0, 0))[1]
        ended = any(one.source is signal.source and one.line > signal.line for one in (*done, *state.completed))
        if later < 3 and not ended and not any(_after(view, one, signal) for one in (*done, *state.completed)):
            return False
    return True


def _whole_launcher(view: View, done: list[Signal]) -> bool:
    """Whether a wrapper states exit status 0 of the only launcher: whatever was printed on the way did not matter."""
    hosts = {host for rank in view.states if (host := view.names.host_of(rank, view.attempt))}
    return len(hosts) <= 1 and any((signal.fact or "").startswith("complete-launcher-exit") for signal in done)


def _after(view: View, done: Signal, failure: Signal) -> bool:
    gap = view.times.same_clock_gap(failure, done)
    if gap is not None:
        return gap >= 0
    one, other = view.times.of(failure), view.times.of(done)
    return one is not None and other is not None and one.surely_before(other)
