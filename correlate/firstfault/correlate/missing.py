"""The missing fact: the one piece of evidence that the two best hypotheses would show differently."""

from __future__ import annotations

from firstfault.catalog.model import Role
from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.model import Signal
from firstfault.correlate.ranking import STRUCTURAL, Ranked


def _ranks(candidate: Candidate) -> str:
    return ", ".join(map(str, candidate.ranks[:8])) + (" ..." if len(candidate.ranks) > 8 else "")


def missing_fact(view: View, ranked: Ranked, failed: bool) -> str:
    """What to fetch, in one sentence."""
    if not failed and not ranked.open:
        return (
            "how the job ended: the launcher's or scheduler's exit status "
            "(sacct, the agent's last lines, the pod's state)"
        )
    world = view.names.world
    logged = {state.rank for state in view.logged()}
    if (
        world
        and len(logged) < world
        and (not ranked.open or ranked.open[0].rule in STRUCTURAL or not ranked.open[0].own_evidence)
    ):
        count = world - len(logged)
        return (
            f"the logs of the {count} ranks that were not among the files "
            "(their tails, or their last enqueued and completed numbers), or flight-recorder dumps of all ranks"
        )
    for one in ranked.open[:3]:
        if one.missing:
            return one.missing
    half = [state.rank for state in view.states.values() if state.half_read]
    if half and not ranked.open:
        return f"the error stream of rank {', '.join(map(str, half[:8]))}, which is not among the files"
    top = ranked.open[:2]
    if len(top) == 2:
        return _between(view, *top)
    if len(top) == 1:
        return _confirm(view, top[0])
    if link := _broken_link(view):
        return link
    return (
        "what the ranks did when they stopped: flight-recorder dumps or py-spy stacks of all ranks, "
        "and the launcher's exit codes"
    )


_OF_A_LINK = frozenset({"ib-completion-error", "nccl-socket-failure", "ib-link-failure"})
_ENDS_OF_A_LINK = (
    "port counters and the kernel log of both ends of the failing connection{}, "
    "and whether the peer's process had ended before"
)


def _broke(signal: Signal) -> bool:
    """Whether a line reports a failing link, and not only that a peer has closed its end."""
    return signal.cls in _OF_A_LINK and signal.role is not Role.COLLATERAL and "peer" in signal.captures


def _broken_link(view: View) -> str:
    """The two ends of the connection that failed first in the log of a rank, where connections are all that failed."""
    for state in sorted(view.states.values(), key=lambda one: one.rank):
        told = next((one for one in state.derived if _broke(one)), None)
        if told is not None and state.host:
            peer = view.names.canonical(told.captures["peer"]) or told.captures["peer"]
            return _ENDS_OF_A_LINK.format(f" ({state.host} and {peer})")
    return ""


def _between(view: View, one: Candidate, other: Candidate) -> str:
    rules = {one.rule, other.rule}
    if rules <= STRUCTURAL:
        waiting = _ranks(one) or _ranks(other) or "each waiting one"
        return f"the stack (py-spy) or flight-recorder dump of rank {waiting} at the moment of the hang"
    if "killed-by-signal" in rules:
        host = ", ".join(one.hosts or other.hosts) or "the host of the killed rank"
        return (
            f"the kernel log (dmesg) or cgroup memory.events of {host}, "
            "which says whether the out-of-memory killer sent the signal"
        )
    if one.hosts != other.hosts:
        here, there = ", ".join(one.hosts) or "one side", ", ".join(other.hosts) or "the other"
        return (
            f"the order of {one.cls} on {here} and {other.cls} on {there}: "
            "a line that both hosts print for the same event near the failure, "
            "or the clock offset of both (chronyc tracking)"
        )
    return f"which came first, {one.cls} or {other.cls}: time-stamped output of both"


def _confirm(view: View, one: Candidate) -> str:
    if one.rule == "unauthored-signal":
        return "who sent the signal: the scheduler's record of the job (sacct, slurmctld or kubelet events)"
    if one.rule == "peer-common-end" or one.cls in _OF_A_LINK:
        return _ENDS_OF_A_LINK.format("")
    if one.rule == "fabric":
        return (
            "whether the operation had started on every GPU: flight-recorder dumps or py-spy of all ranks, "
            "and port counters"
        )
    where = f" on {', '.join(one.hosts)}" if one.hosts else ""
    return f"what confirms {one.cls}{where}: the launcher's exit codes or the kernel log of that host"
