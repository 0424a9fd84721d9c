"""The faults that are injected, and what is true of each: who began it, on which host, and which class it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from . import lines as text
from .cascade import Cascade

WAITS_S = 0.25


@dataclass(slots=True)
class Truth:
    """What happened. `needs` lists alternatives: the logs settle it where all channels of one alternative are there;
    `open` says that no log can tell.
    """

    fault: str
    classes: tuple[str, ...]
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    needs: list[tuple[str, ...]] = field(default_factory=list)
    later: tuple[int, ...] = ()
    gap_s: float | None = None
    healthy: bool = False
    open: bool = False


def _others_wait(run: Cascade, at: float, but: set[int], seq: int) -> None:
    """All other ranks enqueue the next collective; a partner of an absent one waits for it in their pair before."""
    cluster = run.cluster
    for rank in range(cluster.world):
        run.counters.setdefault(rank, seq - 1)
        if rank in but:
            continue
        if cluster.pairs and cluster.partner(rank) in but:
            run.block(at + run.after(0.0, 0.05), rank, 4 * seq + 1, pair=True, op="ALLGATHER", numel=65536)
        else:
            run.block(at + 0.05 + run.after(0.0, WAITS_S), rank, seq)


def _one(run: Cascade, fault: str, classes: tuple[str, ...], culprit: int, *needs: tuple[str, ...]) -> Truth:
    return Truth(fault, classes, (culprit,), (run.cluster.host(culprit).name,), list(needs))


def raises(run: Cascade, at: float, culprit: int, seq: int, step: int, cls: str) -> Truth:
    """One rank raises an exception and leaves."""
    words = [line.replace("{step}", str(step)) for line in text.RAISED[cls]]
    run.say(at, "err", text.prefixed(culprit, words), culprit)
    run.derived[culprit] = at  # its main thread has left: it loses and awaits nobody
    code = -6 if cls == "cuda-illegal-memory-access" else 1
    run.plan(at + run.after(0.3, 3.0), lambda now: run.die(now, culprit, code))
    _others_wait(run, at, {culprit}, seq)
    return _one(run, f"raises {cls}", (cls,), culprit, ("rank",))


def killed(run: Cascade, at: float, culprit: int, seq: int, step: int, how: str) -> Truth:
    """One rank is killed: by somebody, by the kernel for its memory, or by its own segmentation fault."""
    host, pid = run.cluster.host(culprit), run.cluster.pids[culprit]
    code = -11 if how == "segfault" else -9
    if how == "oom":
        run.say(at - 0.05, "kernel", text.oom_lines(host, at - 0.05, run.style.kernel, pid, "python"), host=host)
    elif how == "segfault":
        run.say(at, "kernel", text.segfault_lines(host, at, run.style.kernel, pid), host=host)
    run.plan(at, lambda now: run.die(now, culprit, code))
    _others_wait(run, at, {culprit}, seq)
    if how == "oom":
        return _one(run, "oom-killed", ("host-oom-kill", "process-killed"), culprit, ("kernel",), ("agent",))
    if how == "segfault":
        return _one(run, "segfault", ("process-segfault",), culprit, ("agent",), ("kernel",))
    return _one(run, "sigkill", ("process-killed",), culprit, ("agent",))


def hangs(run: Cascade, at: float, culprit: int, seq: int, step: int) -> Truth:
    """One rank stops in its own code and never calls the next collective."""
    run.hung.add(culprit)
    _others_wait(run, at, {culprit}, seq)
    return _one(run, "hang", ("collective-rank-absent",), culprit, ("rank",))


def leaves(run: Cascade, at: float, culprit: int, seq: int, step: int) -> Truth:
    """One rank runs out of data, says that it is done, and waits in its exit."""
    run.app(at, culprit, "training finished")
    run.hung.add(culprit)
    run.plan(at + run.after(0.5, 2), lambda now: run.exits.setdefault(culprit, (now, 0)) and None)
    _others_wait(run, at, {culprit}, seq)
    return _one(run, "early exit", ("collective-rank-absent", "uneven-inputs"), culprit, ("rank",))


def differs(run: Cascade, at: float, culprit: int, seq: int, step: int, alone: bool) -> Truth:
    """One rank calls the collective with another size; all wait, or only it does and the others wait in the next."""
    for rank in range(run.cluster.world):
        moment = at + 0.05 + run.after(0.0, WAITS_S)
        if rank == culprit:
            run.block(moment, rank, seq, numel=16773120)
        else:
            run.block(moment + (0.2 if alone else 0.0), rank, seq + 1 if alone else seq)
    cls = ("collective-desync", "collective-rank-absent") if alone else ("collective-desync",)
    return _one(run, "size differs, only it waits" if alone else "size differs, all wait", cls, culprit, ("rank",))


def host_dies(run: Cascade, at: float, culprit: int, seq: int, step: int, ends: bool) -> Truth:
    """A host loses its power; the scheduler notices minutes later, and ends the job or does not."""
    host = run.cluster.host(culprit)

    def dark(now: float) -> None:
        run.dark.add(host.number)

    run.plan(at, dark)
    seen = at + run.after(240, 330)
    when = run.cluster.hosts[0].shown(seen)
    stamp = f"[{when:%Y-%m-%dT%H:%M:%S}.{when.microsecond // 1000:03d}]"
    run.say(seen, "scheduler", [f"{stamp} error: Nodes {host.name} not responding, setting DOWN"])
    if ends:
        run.say(
            seen + 0.1,
            "scheduler",
            [f"{stamp} Killing JobId=4242 on failed node {host.name}"],
        )
        for other in run.cluster.hosts:
            if other is not host:
                run.plan(seen + 0.2 + run.after(0, 0.2), lambda now, h=other: run.signal(now, h))  # type: ignore[misc]
    _others_wait(run, at, set(host.ranks), seq)
    # where all are ended at once nobody had the time to say whom it waited for
    needs: list[tuple[str, ...]] = [("scheduler",)] if ends else [("scheduler",), ("host",)]
    return Truth("host down", ("host-down",), host.ranks, (host.name,), needs)


def device_lost(run: Cascade, at: float, culprit: int, seq: int, step: int, speaks: bool) -> Truth:
    """A GPU falls off the bus; its rank raises, or hangs in the driver."""
    host, pid = run.cluster.host(culprit), run.cluster.pids[culprit]
    words = "GPU has fallen off the bus."
    run.say(
        at, "kernel", text.xid_lines(host, at, run.style.kernel, run.cluster.bus(culprit), 79, words, pid), host=host
    )
    if speaks:
        raised = text.traceback([text.MAIN, text.LOOP], "RuntimeError: CUDA error: unspecified launch failure")
        run.say(at + 0.4, "err", text.prefixed(culprit, raised), culprit)
        run.derived[culprit] = at
        run.plan(at + 0.4 + run.after(0.3, 2.0), lambda now: run.die(now, culprit, -6))
    else:
        run.hung.add(culprit)
    _others_wait(run, at, {culprit}, seq)
    without = ("cuda-launch-failure",) if speaks else ("collective-rank-absent",)
    return _one(run, "xid 79", ("gpu-fell-off-bus", *without), culprit, ("kernel",), ("rank",))


def preempted(run: Cascade, at: float, culprit: int, seq: int, step: int) -> Truth:
    """The scheduler takes the machines."""
    for host in run.cluster.hosts:
        when = host.shown(at)
        stamp = f"{when:%Y-%m-%dT%H:%M:%S}"
        words = f"slurmstepd: error: *** STEP 4242.0 ON {host.name} CANCELLED AT {stamp} DUE TO PREEMPTION ***"
        if host.number == 0:
            run.say(at, "scheduler", [words])
        run.plan(at + run.after(0.0, 0.3), lambda now, h=host: run.signal(now, h))  # type: ignore[misc]
    _others_wait(run, at, set(), seq)
    return Truth("preempted", ("preempted",), (), (), [("scheduler",)])


def nan_everywhere(run: Cascade, at: float, culprit: int, seq: int, step: int) -> Truth:
    """The loss is not a number on all ranks in the same step."""
    words = [line.replace("{step}", str(step)) for line in text.RAISED["loss-nan-or-diverged"]]
    for rank in range(run.cluster.world):
        moment = at + run.after(0.0, 0.02)
        run.say(moment, "err", text.prefixed(rank, words), rank)
        run.derived[rank] = moment
        run.plan(moment + run.after(0.3, 2.0), lambda now, r=rank: run.die(now, r, 1))  # type: ignore[misc]
    return Truth("nan everywhere", ("loss-nan-or-diverged",), (), (), [("any rank",)])


def two_faults(run: Cascade, at: float, culprit: int, seq: int, step: int) -> Truth:
    """Two ranks of different hosts fail by themselves, one shortly after the other."""
    cluster = run.cluster
    second = (culprit + cluster.per_host + 1) % cluster.world
    gap = run.chance.choice((0.05, 0.25, 5.0, 12.0))
    truth = raises(run, at, culprit, seq, step, "cuda-oom")
    run.hung.add(second)  # busy with its own failure: it notices nothing before

    def fail(now: float) -> None:
        run.hung.discard(second)
        if run.alive(second):
            lines = text.prefixed(second, text.RAISED["data-missing"])
            run.say(now, "err", lines, second)
            run.derived[second] = now
            run.plan(now + run.after(0.3, 2.0), lambda later: run.die(later, second, 1))

    run.plan(at + gap, fail)
    return Truth(
        "two faults",
        ("cuda-oom",),
        (culprit,),
        truth.hosts,
        [("rank", "second", "agent", "second agent")],
        (second,),
        gap,
    )


def fabric_stalls(run: Cascade, at: float, culprit: int, seq: int, step: int) -> Truth:
    """Everybody enters the collective and it never ends: no log of the ranks can tell why."""
    _others_wait(run, at, set(), seq)
    return Truth("fabric stalls", ("collective-slow",), open=True)


def completes(run: Cascade, at: float, culprit: int, seq: int, step: int) -> Truth:
    """Nothing fails."""
    for rank in range(run.cluster.world):
        run.app(at + 0.2 + run.after(0.0, 0.1), rank, "training finished")
    return Truth("healthy", ("none",), healthy=True, needs=[("all ranks",)])


Fault = Callable[[Cascade, float, int, int, int], Truth]

FAULTS: dict[str, Fault] = {
    "exception": lambda run, at, c, seq, step: raises(run, at, c, seq, step, "python-exception"),
    "cuda-oom": lambda run, at, c, seq, step: raises(run, at, c, seq, step, "cuda-oom"),
    "data": lambda run, at, c, seq, step: raises(run, at, c, seq, step, "data-missing"),
    "illegal-access": lambda run, at, c, seq, step: raises(run, at, c, seq, step, "cuda-illegal-memory-access"),
    "oom-kill": lambda run, at, c, seq, step: killed(run, at, c, seq, step, "oom"),
    "sigkill": lambda run, at, c, seq, step: killed(run, at, c, seq, step, "sigkill"),
    "segfault": lambda run, at, c, seq, step: killed(run, at, c, seq, step, "segfault"),
    "hang": hangs,
    "early-exit": leaves,
    "size-all-wait": lambda run, at, c, seq, step: differs(run, at, c, seq, step, False),
    "size-one-waits": lambda run, at, c, seq, step: differs(run, at, c, seq, step, True),
    "host-down": lambda run, at, c, seq, step: host_dies(run, at, c, seq, step, False),
    "host-down-ended": lambda run, at, c, seq, step: host_dies(run, at, c, seq, step, True),
    "xid79-speaks": lambda run, at, c, seq, step: device_lost(run, at, c, seq, step, True),
    "xid79-hangs": lambda run, at, c, seq, step: device_lost(run, at, c, seq, step, False),
    "preempted": preempted,
    "nan-everywhere": nan_everywhere,
    "two-faults": two_faults,
    "fabric-stall": fabric_stalls,
    "healthy": completes,
}
NCCL_ONLY = frozenset(
    {"size-all-wait", "size-one-waits", "illegal-access", "xid79-speaks", "xid79-hangs", "cuda-oom", "fabric-stall"}
)
