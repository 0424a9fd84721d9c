"""Kills of a whole unit: a service manager, or a control group that is killed as one, ends every process in it.

The kernel names one process and its number; `systemd-oomd`, `memory.oom.group` and a kubelet name the unit or
container, and all that ran in it is gone: launcher and ranks of a host together, so that nobody is left to tell.
"""

from __future__ import annotations

from firstfault.correlate.candidate import BASE, Candidate, View

_PROCESS = frozenset({"victim_pid", "pid", "process"})
"""Captures that name one process; a service manager names a unit, Kubernetes a container."""


def whole_unit_killed(view: View, host: str | None, candidate: Candidate) -> Candidate:
    """Take a kill of a unit for the end of all ranks of its host, where the host fell silent and others lost it."""
    kills = [one for one, _ in candidate.signals if not _PROCESS & set(one.captures)]
    if host is None or candidate.ranks or not kills:
        return candidate
    here = [view.states[rank] for rank in view.names.ranks_of_host(host, view.attempt) if rank in view.states]
    # who waits, raises or is reported by its launcher outlived the kill of the unit
    if any(one.own or one.derived or one.completed or one.exits for one in here):
        if any("cgroup" in one.captures for one in kills):
            candidate.base -= 1.2
            candidate.against.append(f"ranks of {host} went on to speak, so that the unit was another one's")
        return candidate
    if not here or not any(state.derived for state in view.states.values() if state.host != host):
        return candidate
    candidate.ranks = tuple(sorted(state.rank for state in here))
    candidate.component = "host"
    candidate.base = BASE["oom-kill"] - 0.3
    candidate.for_.append(f"every process of that unit was killed, and nothing of the job on {host} follows")
    return candidate
