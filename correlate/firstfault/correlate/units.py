"""Kills of a whole unit: a service manager, or a control group that is killed as one, ends every process in it at once.

The kernel names one process and its number; `systemd-oomd` and `memory.oom.group` name the unit, and all that ran in it
is gone: the launcher of a host and its ranks together, so that nobody on that host is left to tell.
"""

from __future__ import annotations

from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.model import Signal


def whole_unit_killed(view: View, host: str | None, candidate: Candidate) -> Candidate:
    """Take a kill of a unit for the end of all ranks of its host, where the host fell silent and others lost it."""
    if host is None or candidate.ranks or not any(_of_a_unit(one) for one, _ in candidate.signals):
        return candidate
    here = [view.states[rank] for rank in view.names.ranks_of_host(host, view.attempt) if rank in view.states]
    # who waits, raises or is reported by its launcher outlived the kill of the unit
    if any(one.own or one.derived or one.completed or one.exits for one in here):
        candidate.base -= 1.2
        candidate.against.append(f"ranks of {host} went on to speak, so that the unit was another one's")
        return candidate
    if not any(state.derived for state in view.states.values() if state.host != host):
        return candidate
    candidate.ranks = tuple(sorted(state.rank for state in here))
    candidate.component = "host"
    candidate.base = BASE["oom-kill"] - 0.3
    candidate.for_.append(f"every process of that unit was killed, and nothing of the job on {host} follows")
    return candidate


def _of_a_unit(signal: Signal) -> bool:
    return "cgroup" in signal.captures and not {"victim_pid", "pid", "process"} & set(signal.captures)
