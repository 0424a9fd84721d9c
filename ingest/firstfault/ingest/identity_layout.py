"""How a job is laid out: whether Slurm tasks are ranks, whether one machine carries it, how many ranks a node has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firstfault.ingest.identity_sources import SourceHosts, Witnesses
from firstfault.ingest.identity_statements import Statement

LAUNCHERS = re.compile(
    rb"torch[./]distributed[./](?:run|elastic|launch)|torchrun|accelerate[./ ]launch|deepspeed[./]launcher"
)
NODE_LIMIT = 16
"""More ranks than this are never taken for one machine without a word about it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What holds for the job as a whole. `alone` are rank and local rank of sources that one process wrote."""

    world: int | None
    local_world: int | None
    task_is_rank: bool
    one_node: bool
    alone: Mapping[int, tuple[int, int]]
    local_prefix: frozenset[int]

    def possible(self, rank: int | None) -> bool:
        """Whether a number can be a rank of this job."""
        return rank is not None and (self.world is None or rank < self.world)


def layout_of(seen: Witnesses, hosts: SourceHosts, world: int | None, local_prefix: frozenset[int]) -> Layout:
    """Decide from everything that was said."""
    sizes = {one.local_world for one in seen.statements if one.local_world}
    alone = {s: pair for s in seen.order if (pair := _own_numbers(seen.own.get(s, ()))) is not None}
    return Layout(
        world=world,
        local_world=min(sizes) if len(sizes) == 1 else None,
        task_is_rank=_tasks_are_ranks(seen, world, local_prefix),
        one_node=_on_one_node(seen, hosts, world, alone),
        alone=alone,
        local_prefix=local_prefix,
    )


def _own_numbers(statements: Sequence[Statement]) -> tuple[int, int] | None:
    """Rank and local rank that one process says of itself, maybe in different lines of its log."""
    ranks = {one.rank for one in statements if one.rank is not None}
    locals_ = {one.local_rank for one in statements if one.local_rank is not None}
    return (ranks.pop(), locals_.pop()) if len(ranks) == len(locals_) == 1 else None


def _tasks_are_ranks(seen: Witnesses, world: int | None, local_prefix: frozenset[int]) -> bool:
    """Whether a Slurm task is a rank: lines show it, or nothing starts several ranks inside a task."""
    agree = disagree = 0
    for s in seen.order:
        ranks = {one.rank for one in seen.own.get(s, ()) if one.rank is not None}
        if s not in local_prefix:
            ranks |= {key.rank for key in seen.keys[s] if key.rank is not None}
        if (task := seen.claims[s].task) is not None and ranks:
            agree += ranks == {task} != {0}
            disagree += ranks != {task}
    pairs = {(one.task, one.rank) for one in seen.statements if one.own}
    pairs |= {(key.task, key.rank) for s in seen.order if s not in local_prefix for key in seen.keys[s]}
    for said, rank in pairs:
        if said is not None and rank is not None:
            agree += said == rank != 0
            disagree += said != rank
    if agree or disagree:
        return agree > disagree
    named = {claims.task for claims in seen.claims.values() if claims.task is not None}
    if world is not None and world > 1 and named == set(range(world)):
        return True
    if any(LAUNCHERS.search(one.head) for one in seen.sources.values()):
        return False
    if world is not None:
        tasks = [claims.task for claims in seen.claims.values()] + [one.task for one in seen.statements]
        tasks += [key.task for s in seen.order for key in seen.keys[s]]
        return max((task for task in tasks if task is not None), default=-1) + 1 == world
    return not any((one.local_world or 0) > 1 for one in seen.statements)


def _on_one_node(seen: Witnesses, hosts: SourceHosts, world: int | None, alone: Mapping[int, tuple[int, int]]) -> bool:
    """Whether all ranks can sit on one machine: nothing speaks of a second node."""
    statements = seen.statements
    if any((one.node_rank or 0) > 0 or (one.nodes or 0) > 1 for one in statements):
        return False
    if any(one.how == "coordinator" for one in statements):
        return False  # processes that name the host of the first one need not be on it
    if any(one.rank != one.local_rank for one in statements if one.rank is not None and one.local_rank is not None):
        return False
    if any(rank != local for rank, local in alone.values()):
        return False
    if len(_machines(seen, hosts)) > 1 or hosts.remote:
        return False
    named = hosts.named(node_logs=False)
    named |= {one.host for one in statements if one.host is not None and one.rank is not None}
    named |= {host for s in seen.order if not seen.is_node_log(s) for host in hosts.all_spoken(s)}
    trees = {claims.tree for claims in seen.claims.values() if claims.tree}
    ranks = {one.rank for one in statements} | {key.rank for s in seen.order for key in seen.keys[s]}
    least = world if world is not None else max((rank for rank in ranks if rank is not None), default=-1) + 1
    return len(named) <= 1 and len(trees) <= 1 and least <= NODE_LIMIT


def _machines(seen: Witnesses, hosts: SourceHosts) -> set[str]:
    """Hosts that speak, names of one machine counted once."""
    first: dict[str, str] = {}
    pairs = [(alias.host, alias.alias) for alias in hosts.aliases]
    pairs += [(one.host, one.alias) for one in seen.statements if one.host and one.alias]
    for host, alias in sorted(pairs):
        first.setdefault(alias, first.get(host, host))
    return {first.get(host, host) for host in hosts.named(node_logs=True)}
