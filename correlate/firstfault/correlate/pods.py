"""Pods of the job that the platform could not start: no line of theirs exists, and the others wait for them.

An image that cannot be pulled or a volume that cannot be mounted is tried again, so by itself it is harmless; where the
pod never ran and no step was ever made, it is what the others' time-outs are about.
"""

from __future__ import annotations

from firstfault.correlate.candidate import View
from firstfault.correlate.model import Signal, short_host

_CANNOT_START = frozenset({"k8s-image", "k8s-container-create", "k8s-unschedulable", "k8s-failed-mount"})
_RUNS = frozenset({"rank", "node", "launcher", "job", "text", "error-file"})


def never_ran(view: View, signal: Signal) -> bool:
    """Whether a platform's line is about a brother of the pods that did run, which never printed a word itself."""
    pod = signal.captures.get("pod")
    if signal.entry not in _CANNOT_START or not pod or view.timeline.progress:
        return False
    ran = {
        short_host(source.host)
        for source in view.timeline.sources.values()
        if source.host and source.kind in _RUNS and source.lines
    }
    name = short_host(pod)
    return name not in ran and any(one != name and _job_of(one) == _job_of(name) for one in ran)


def _job_of(pod: str) -> str:
    """The first word of a pod's name, which all pods of a job share."""
    return pod.split("-", 1)[0]


def ranks_of_pod(view: View, pod: str) -> tuple[int, ...]:
    """Ranks of a pod that printed nothing: by name, or by its node's number where every brother carries as many."""
    if ranks := view.names.ranks_of_host(pod, view.attempt):
        return ranks
    told = [(one.host, one.node_rank) for one in view.timeline.identities]
    told += [(one.host, one.node_rank) for one in view.timeline.sources.values()]
    node = next((number for host, number in told if host == pod and number is not None), None)
    sizes = {len(view.names.ranks_of_host(host, view.attempt)) for host in view.names.all_hosts() if host != pod}
    if node is None or len(sizes) != 1 or not (size := sizes.pop()):
        return ()
    return tuple(range(node * size, (node + 1) * size))
