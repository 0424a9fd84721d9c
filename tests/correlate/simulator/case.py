"""One simulated job on disk: what the logs keep of a run, in files as launchers lay them out, and its truth."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from . import lines as text
from .cascade import Cascade, Line, Style
from .cluster import Cluster, make_cluster
from .faults import FAULTS, NCCL_ONLY, Truth


@dataclass(frozen=True, slots=True)
class Knobs:
    """How much the logs keep, and what else they hold. All shares lie between 0 and 1."""

    culprit_log: float = 0.9
    culprit_tail: float = 0.95
    rank_log: float = 0.98
    agent_log: float = 0.8
    kernel_log: float = 0.6
    scheduler_log: float = 0.6
    skewed: float = 0.6
    decoys: float = 0.3
    survived: float = 0.25
    secondary: float = 0.2
    lost_lines: float = 0.0
    dumps: float = 0.7


NORMAL = Knobs()
POOR = Knobs(
    culprit_log=0.5, culprit_tail=0.7, rank_log=0.9, agent_log=0.3, kernel_log=0.2, scheduler_log=0.3, dumps=0.3
)
NOISY = Knobs(decoys=0.8, survived=0.8, secondary=0.6)
LOSSY = Knobs(lost_lines=0.1)
PRESETS = {"normal": NORMAL, "poor": POOR, "noisy": NOISY, "lossy": LOSSY}


@dataclass(slots=True)
class Case:
    """A job that was written, what is true of it, and whether its logs settle it."""

    truth: Truth
    settled: bool
    shows_first: bool
    layout: str
    cluster: Cluster
    kept: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def make_case(seed: int, fault: str, knobs: Knobs, folder: Path) -> Case:
    """Run one job, drop what the knobs drop, and write the rest below `folder`."""
    chance = random.Random(f"{seed} {fault}")
    backend = "nccl" if fault in NCCL_ONLY or chance.random() < 0.6 else "gloo"
    hosts, per_host = chance.choice(((2, 4), (2, 4), (4, 4), (2, 8), (3, 4)))
    cluster = make_cluster(chance, hosts, per_host, backend, chance.random() < knobs.skewed)
    style = Style(
        app=chance.choice(("bracket", "logging", "plain")),
        kernel=chance.choice(("journal", "dmesg -T", "monotonic")),
        steps_by=chance.choice(("all", "all", "host", "first")),
        secondary=0.5 if chance.random() < knobs.secondary else 0.0,
        handles_term=chance.random() < 0.15,
    )
    if style.app == "plain" and backend == "gloo":
        style.app = "logging"  # otherwise nothing says who wrote a line
    run = Cascade(
        cluster,
        chance,
        style,
        limit_s=600.0 if backend == "nccl" else chance.choice((60.0, 300.0)),
        step_s=chance.choice((0.4, 1.0, 2.5)),
    )
    run.tells_dumps = chance.random() < knobs.dumps
    total = 60 if fault != "healthy" else chance.randrange(15, 30)
    count = chance.randrange(12, 40) if fault != "healthy" else total
    run.start()
    at = run.steps(count, total) + run.step_s * run.after(0.2, 0.7)
    culprit = chance.randrange(cluster.world)
    truth = FAULTS[fault](run, at, culprit, 3 * count + 7, count + 1)
    run.run()
    extras = random.Random(f"{seed} {fault} extras")
    if extras.random() < knobs.survived:
        _survived(run, extras, at)
    if extras.random() < knobs.decoys:
        _decoy(run, extras, at, truth)
    return _write(run, extras, truth, knobs, folder, at)


def _survived(run: Cascade, chance: random.Random, at: float) -> None:
    """Some ranks print a traceback early on, and go on."""
    for rank in range(run.cluster.world):
        if chance.random() < 0.15:
            run.say(chance.uniform(12.0, max(13.0, at - 4)), "err", list(text.SURVIVED), rank)


def _decoy(run: Cascade, chance: random.Random, at: float, truth: Truth) -> None:
    """A record of a machine that has nothing to do with it: old, or of another program."""
    host = chance.choice(run.cluster.hosts)
    style = run.style.kernel
    kind = chance.choice(("old xid", "other oom", "flap", "xid 13 of another"))
    if kind == "old xid":
        when = at - chance.uniform(2, 20) * 86400
        bus = run.cluster.bus(chance.choice(host.ranks))
        run.say(
            when, "kernel", text.xid_lines(host, when, style, bus, 79, "GPU has fallen off the bus.", None), host=host
        )
    elif kind == "other oom":
        when = chance.uniform(20, at)
        run.say(when, "kernel", text.oom_lines(host, when, style, 991, "postgres"), host=host)
    elif kind == "flap":
        when = chance.uniform(15, at - 3)
        run.say(when, "kernel", text.link_flap(host, when, style), host=host)
    else:
        when = chance.uniform(15, at)
        words = "Graphics SM Warp Exception on (GPC 2, TPC 1, SM 0): Out Of Range Address"
        run.say(when, "kernel", text.xid_lines(host, when, style, "f1", 13, words, 4777), host=host)


def _write(run: Cascade, chance: random.Random, truth: Truth, knobs: Knobs, folder: Path, at: float) -> Case:
    cluster = run.cluster
    guilty = {*truth.ranks, *truth.later}
    host_names = {host.number: host.name for host in cluster.hosts}
    layout = chance.choice(("tree", "files", "merged"))
    agents = {host.number: chance.random() < knobs.agent_log for host in cluster.hosts}
    kernels = {host.number: chance.random() < knobs.kernel_log for host in cluster.hosts}
    scheduler = chance.random() < knobs.scheduler_log
    whole_host = truth.fault == "host down"
    ranks: dict[int, bool] = {}
    for rank in range(cluster.world):
        share = knobs.culprit_log if rank in guilty and not whole_host else knobs.rank_log
        ranks[rank] = chance.random() < share
    if whole_host and chance.random() > knobs.culprit_log:
        ranks.update(dict.fromkeys(guilty, False))
    cut = {rank for rank in guilty if chance.random() > knobs.culprit_tail and not whole_host}
    if layout == "merged":  # one file holds the launcher and all ranks of a host
        for host in cluster.hosts:
            agents[host.number] = True
            for rank in host.ranks:
                ranks[rank] = ranks[rank] or rank not in guilty
    channels = {"agent": agents, "kernel": kernels, "scheduler": {0: scheduler}}
    kept = []
    for line in sorted(run.said, key=lambda one: (one.at, one.order)):
        if line.channel in ("out", "err"):
            assert line.rank is not None
            if not ranks[line.rank] or (line.rank in cut and line.at > at - 2.0 * run.step_s):
                continue
        elif not channels[line.channel].get(line.host or 0, True):
            continue
        if knobs.lost_lines and line.channel in ("out", "err") and chance.random() < knobs.lost_lines:
            continue
        kept.append(line)
    culprit_host = cluster.host(truth.ranks[0]).number if truth.ranks else 0
    has = {
        "rank": bool(truth.ranks) and all(ranks[rank] and rank not in cut for rank in truth.ranks),
        "second": all(ranks[rank] and rank not in cut for rank in truth.later),
        "agent": agents[culprit_host],
        "second agent": all(agents[cluster.host(rank).number] for rank in truth.later),
        # a line of the kernel is tied to a rank by what the rank's log says of its process and device
        "kernel": kernels[culprit_host] and all(ranks[rank] for rank in truth.ranks),
        "scheduler": scheduler,
        "host": any(ranks[rank] for rank in truth.ranks),
        "any rank": any(ranks.values()),
        "all ranks": all(ranks.values()),
    }
    settled = any(all(has[name] for name in names) for names in truth.needs)
    # a traceback carries no stamp: only launchers that see the processes end can order two of them
    if truth.gap_s is not None and (run.style.steps_by == "first" or truth.gap_s < 10):
        settled = False
    _files(cluster, kept, layout, folder, chance, cut)
    notes = [f"{name}={'yes' if value else 'no'}" for name, value in has.items()]
    notes += [cluster.backend, layout, run.style.app, run.style.steps_by, "pairs" if cluster.pairs else "one group"]
    notes.append(f"hosts={','.join(host_names.values())}")
    return Case(truth, settled, has["rank"], layout, cluster, kept, notes)


def _files(cluster: Cluster, kept: list[Line], layout: str, folder: Path, chance: random.Random, cut: set[int]) -> None:
    """Write the lines into files, in the order in which they were printed.

    torchrun opens both files of a rank before it starts it, so that one which had nothing to say left an empty one;
    of a rank whose tail was lost that file was not collected.
    """
    files: dict[str, list[str]] = defaultdict(list)
    run_id = f"none_{chance.getrandbits(40):08x}"
    for line in kept:
        host = cluster.hosts[line.host].name if line.host is not None else ""
        if line.channel == "scheduler":
            files["slurm.log"] += line.texts
        elif line.channel == "kernel":
            files[f"{host}/dmesg.log"] += line.texts
        elif layout == "merged":
            tag = f"[default{cluster.local(line.rank)}]:" if line.rank is not None else ""
            files[f"{host}.log"] += [tag + one for one in line.texts]
        elif line.channel == "agent":
            files[f"{host}/agent.log"] += line.texts
        elif layout == "tree":
            assert line.rank is not None
            place = f"{host}/{run_id}/attempt_0/{cluster.local(line.rank)}"
            files[f"{place}/{'stdout' if line.channel == 'out' else 'stderr'}.log"] += line.texts
            for name in ("stdout", "stderr") if line.rank not in cut else ():
                files.setdefault(f"{place}/{name}.log", [])
        else:
            files[f"{host}/rank_{line.rank:02d}.log"] += line.texts
    for name, lines in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(one + "\n" for one in lines), encoding="utf-8")
