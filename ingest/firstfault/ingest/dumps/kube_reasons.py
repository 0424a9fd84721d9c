"""What Kubernetes' reasons mean, of events, ended containers and nodes: shared by the readers of tables and of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import TEXT_LIMIT, DumpSignal
from firstfault.ingest.dumps.text import Stamp


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a reason means to a diagnosis."""

    event: Event
    cls: str | None = None
    role: str | None = "ambiguous"
    weak: bool = False


MEANINGS: Mapping[str, Meaning] = {
    "Evicted": Meaning(Event.SCHED_ACTION, "pod-evicted", "initiating"),
    "EvictionThresholdMet": Meaning(Event.SCHED_ACTION, "pod-evicted", "ambiguous", weak=True),
    "Preempted": Meaning(Event.SCHED_ACTION, "preempted", "initiating"),
    "Preempting": Meaning(Event.SCHED_ACTION, "preempted", "initiating"),
    "Evict": Meaning(Event.SCHED_ACTION, "pod-evicted", "ambiguous"),  # Volcano, for preemption and for reclaiming
    "EvictedDueToPreempted": Meaning(Event.SCHED_ACTION, "preempted", "initiating"),  # Kueue
    "SpotInterruption": Meaning(Event.SCHED_ACTION, "preempted", "initiating"),  # aws-node-termination-handler
    "SpotInterrupted": Meaning(Event.SCHED_ACTION, "preempted", "initiating"),  # Karpenter
    "TerminatingOnInterruption": Meaning(Event.SCHED_ACTION, "preempted", "initiating"),
    "ScaleDown": Meaning(Event.SCHED_ACTION, "pod-evicted", "ambiguous"),  # cluster-autoscaler
    "TaintManagerEviction": Meaning(Event.SCHED_ACTION, "pod-evicted", "ambiguous"),
    "NodeShutdown": Meaning(Event.SCHED_ACTION, "pod-evicted", "initiating"),
    "Terminated": Meaning(Event.SCHED_ACTION, "pod-evicted", "ambiguous", weak=True),
    "DeadlineExceeded": Meaning(Event.SCHED_ACTION, "time-limit", "initiating"),
    "OOMKilled": Meaning(Event.OOM_KILL, "host-oom-kill", "initiating"),
    "OOMKilling": Meaning(Event.OOM_KILL, "host-oom-kill", "initiating"),
    "SystemOOM": Meaning(Event.OOM_KILL, "host-oom-kill", "initiating"),
    "NodeNotReady": Meaning(Event.NODE_LOST, "host-down"),
    "NodeLost": Meaning(Event.NODE_LOST, "host-down"),
    "Rebooted": Meaning(Event.NODE_LOST, "host-down"),
    "NodeHasInsufficientMemory": Meaning(Event.NODE_FAULT, None, "ambiguous", weak=True),
    "NodeHasDiskPressure": Meaning(Event.NODE_FAULT, None, "ambiguous", weak=True),
    "FailedScheduling": Meaning(Event.SCHED_ACTION, "pod-evicted", "ambiguous", weak=True),
    "Failed": Meaning(Event.EXIT, None, "ambiguous", weak=True),
    "Error": Meaning(Event.EXIT, None, "ambiguous", weak=True),
    "ContainerCannotRun": Meaning(Event.EXIT, None, "ambiguous"),
    "StartError": Meaning(Event.EXIT, None, "ambiguous"),
    "BackOff": Meaning(Event.AGENT_REPORT, None, "collateral", weak=True),
    "CrashLoopBackOff": Meaning(Event.AGENT_REPORT, None, "collateral", weak=True),
    "ImagePullBackOff": Meaning(Event.INIT_FAILURE, "pod-evicted", "initiating"),
    "ErrImagePull": Meaning(Event.INIT_FAILURE, "pod-evicted", "initiating"),
    "FailedMount": Meaning(Event.INIT_FAILURE, None, "ambiguous"),
    "FailedAttachVolume": Meaning(Event.INIT_FAILURE, None, "ambiguous"),
    "FailedCreatePodSandBox": Meaning(Event.INIT_FAILURE, None, "ambiguous"),
    "Unhealthy": Meaning(Event.SLOW, None, "ambiguous", weak=True),
    "Killing": Meaning(Event.SIGNAL_RECEIVED, None, "collateral"),
    "Completed": Meaning(Event.COMPLETION, None, None),
    "Succeeded": Meaning(Event.COMPLETION, None, None),
    "PyTorchJobSucceeded": Meaning(Event.COMPLETION, None, None),
    "PyTorchJobFailed": Meaning(Event.AGENT_REPORT, None, "collateral"),
    "JobFailed": Meaning(Event.AGENT_REPORT, None, "collateral"),
    "ContainerDied": Meaning(Event.EXIT, None, "ambiguous", weak=True),
}


TAKEN = compiled(
    r"(?i)\binstance/preempted: ?TRUE|\bspot (?:instance |vm )?(?:interruption|termination|reclaim)"
    r"|\b(?:interrupted|reclaimed|terminated)/spot\b"
)
"""What the reporters of clouds say about a node that is taken, whatever reason they call it by."""


def event_signal(
    line: int, reason: str, kind: str, name: str, message: str, stamp: Stamp | None, count: str = ""
) -> DumpSignal | None:
    """An event, a state of a pod or of a node as a signal; None where it says nothing about a failure or an end."""
    meaning = MEANINGS.get(reason)
    if kind.lower() in ("node", "no") and TAKEN.search(message):
        meaning = MEANINGS["Preempted"]
    if meaning is None:
        return None
    if reason == "Evict" and ("preempt" in message or "reclaim" in message):
        meaning = MEANINGS["Preempted"]
    kind = kind.lower()
    captures = {"reason": reason, "text": message, "count": count}
    host = name.rsplit("/", 1)[-1]
    if kind in ("pod", "po"):
        captures["pod"] = host
    elif kind in ("node", "no"):
        captures["node"] = host
    else:
        captures["name"], host = f"{kind}/{host}", ""
    return DumpSignal(
        line, meaning.event, f"{reason} {kind}/{captures.get('pod') or host or name}: {message}"[:TEXT_LIMIT],
        cls=meaning.cls, role=meaning.role, weak=meaning.weak, host=host or None,
        captures={key: value for key, value in captures.items() if value},
    ).at(stamp)  # fmt: skip


def exit_signal(line: int, reason: str, code: int | None, pod: str, container: str, stamp: Stamp | None) -> DumpSignal:
    """How a container of a pod ended, as its status says."""
    event, cls = Event.EXIT, None
    if reason == "OOMKilled":
        event, cls = Event.OOM_KILL, "host-oom-kill"
    elif code == 0:
        event = Event.COMPLETION
    captures = {"pod": pod, "container": container, "reason": reason, "exitcode": "" if code is None else str(code)}
    return DumpSignal(
        line, event, f"container {container} of pod {pod} ended: {reason or 'no reason'}, exit code {code}",
        fact="kube-exit",
        cls=cls, role="initiating" if cls else "ambiguous", host=pod or None,
        captures={key: value for key, value in captures.items() if value},
    ).at(stamp)  # fmt: skip
