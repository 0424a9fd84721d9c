"""Pods of the job that the platform could not start: no line of theirs exists, and the others wait for them.

An image that cannot be pulled or a volume that cannot be mounted is tried again, so by itself it is harmless; where the
pod never ran and no step was ever made, it is what the others' time-outs are about.
"""

from __future__ import annotations

import re

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


_REPLICA = re.compile(r"^(?P<stem>[a-z0-9][a-z0-9.-]{0,200}?)-(?P<index>\d{1,5})(?:-[a-z0-9]{5})?$")
"""Names of the pods of a set: `<set>-<index>`, and five random characters behind that where a job made them."""


def replica_of(view: View, pod: str) -> tuple[int, ...] | None:
    """Ranks of a pod without any line, by its index among the pods of its set that carry ranks; None where it is not of
    such a set, empty where they do not carry as many each, in the order of their indexes.
    """
    mine = _REPLICA.match(short_host(pod))
    carrying = {host for rank in view.states if (host := view.names.host_of(rank, view.attempt)) is not None}
    brothers = {host: found for host in carrying if (found := _REPLICA.match(host)) is not None}
    if mine is None or short_host(pod) in carrying or not brothers:
        return None
    if any(found["stem"] != mine["stem"] or found["index"] == mine["index"] for found in brothers.values()):
        return None
    ranks = {int(found["index"]): view.names.ranks_of_host(host, view.attempt) for host, found in brothers.items()}
    size = max(map(len, ranks.values()))
    if any(own != tuple(range(index * size, (index + 1) * size)) for index, own in ranks.items()):
        return ()
    index = int(mine["index"])
    return tuple(range(index * size, (index + 1) * size))
