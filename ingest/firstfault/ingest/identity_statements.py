"""Turns lines that carry an identity into statements: who says, about whom, and what.

A statement is about its writer (`own`: a start line, a communicator header) or about others (a launcher's table).
Numbers keep their own names: only `rank` is global; `comm_rank` and `task` become ranks in `identity_ranks`, if at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.rows import DumpIdentity
from firstfault.ingest.identity_commands import host_list, numbers, of_text, small
from firstfault.ingest.identity_pairs import pairs_of
from firstfault.ingest.identity_places import MAP_FACTS, PLACES, RANKS_ON, place_of_row, placed_by_maps, ranks_on
from firstfault.ingest.identity_sentences import HOST_HERE, RANKS_HERE, Here, fitting, hosts_here, ranks_here

OWN_EVENTS = frozenset({Event.IDENTITY, Event.START, Event.SYNC, Event.PHASE, Event.COMPLETION, Event.PROGRESS})
INTEL_MPI = "identity-intel-mpi"
OTHERS_EVENTS = frozenset({Event.EXIT, Event.AGENT_REPORT, Event.AGENT_KILL})
TABLES = frozenset({"identity-ps", "identity-ray-train", INTEL_MPI})
"""Facts in which one process lists others."""
PAIRS = frozenset({"identity-pairs", "identity-pairs-headed"})
DEVICE = "identity-device-index"
RESTARTS = "start-restart-count"
LOCAL_WORLDS = frozenset({"identity-elastic-config", "identity-deepspeed-nodes"})
"""Facts whose `count` is the number of processes of a node."""
HOSTFILE = "identity-hostfile"
ALLOCATED = "identity-slurm-allocated"
"""The controller's word about the nodes of a job; it names those of other jobs alike."""
JAX_COORDINATOR = "identity-jax-coordinator"
"""It names the host of process 0."""
WORLD_NAMED = "identity-world-named"
"""Its size counts only where nothing else states one: other groups have a `world_size`, too."""
ELASTIC_RESULT = "identity-elastic-result"
HF_PROCESS = "identity-hf-process"
"""Its number is the local rank where it is that of the device, too; other trainers print the rank in the same words."""
TOGETHER = frozenset({ELASTIC_RESULT, ALLOCATED, RANKS_HERE, HOST_HERE, *MAP_FACTS})
"""Facts whose lines mean something together only."""
TEXT_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Owned:
    """Lines of a record, and who a line beside them says that they are of."""

    first_line: int
    last_line: int
    host: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    task: int | None = None


class Spoken(Protocol):
    """A row of `signal_rows` as far as identities need it."""

    @property
    def source_id(self) -> int: ...
    @property
    def line(self) -> int: ...
    @property
    def event(self) -> str | None: ...
    @property
    def fact(self) -> str | None: ...
    @property
    def text(self) -> str | None: ...
    @property
    def captures(self) -> Mapping[str, str]: ...
    @property
    def host(self) -> str | None: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def local_rank(self) -> int | None: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def gpu(self) -> int | None: ...
    @property
    def stamp_ns(self) -> int | None: ...
    @property
    def stamp_kind(self) -> str | None: ...
    @property
    def owned(self) -> Owned | None: ...


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; `said_*` is what the header of its line says about the writer."""

    source_id: int
    line: int
    how: str
    own: bool
    fact: str | None = None
    rank: int | None = None
    host: str | None = None
    local_rank: int | None = None
    node_rank: int | None = None
    task: int | None = None
    pid: int | None = None
    gpu: int | None = None
    bus_id: str | None = None
    address: str | None = None
    pod: str | None = None
    alias: str | None = None
    comm: str | None = None
    comm_rank: int | None = None
    comm_size: int | None = None
    world_size: int | None = None
    local_world: int | None = None
    nodes: int | None = None
    attempt: int | None = None
    said_rank: int | None = None
    said_local: int | None = None
    said_pid: int | None = None
    said_host: str | None = None
    stamp_ns: int | None = None
    stamp_kind: str | None = None

    @property
    def speaks_for_node(self) -> bool:
        """Whether what it says holds for the writer's host: the process itself and an agent speak of their own host, a
        launcher that gives nothing but a global rank (`mpirun`) speaks of any.
        """
        if self.own or self.how == "rendezvous":
            return True
        alone = self.rank is not None and self.local_rank is None and self.node_rank is None
        alone = alone and (self.pid is None or (self.host is not None and self.fact not in TABLES))
        return self.how == "launcher-table" and not alone


def short_host(name: str) -> str:
    """A host name cut at its first dot; an address stays whole."""
    name = name.strip().strip("'\"").rstrip(".")
    head = name.split(".", 1)[0]
    return name if is_address(name) or not head else head


def is_address(name: str) -> bool:
    """Whether a name is an IPv4 or IPv6 address."""
    return bool(re.fullmatch(r"\d{1,3}(?:\.\d{1,3}){3}", name)) or name.count(":") >= 2


def pci(text: str) -> str | None:
    """A PCI address as 'dddd:bb:dd.f', from the written form or from the packed digits that NCCL prints."""
    text = text.strip().lower()
    if match := re.fullmatch(r"(?:0x)?(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?", text):
        domain = int(match[1] or "0", 16)
        return f"{domain:04x}:{int(match[2], 16):02x}:{int(match[3], 16):02x}.{match[4] or '0'}"
    if re.fullmatch(r"(?:0x)?[0-9a-f]{1,12}", text):
        value = int(text, 16)
        domain, bus, device, function = value >> 20, value >> 12 & 0xFF, value >> 4 & 0xFF, value & 0xF
        return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"
    return None


def _int(captures: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        text = _word(captures, name)
        if text is not None and re.fullmatch(r"\s*\d{1,15}\s*", text):
            return int(text)
    return None


def _small(captures: Mapping[str, str], *names: str) -> int | None:
    return small(_int(captures, *names))


def _word(captures: Mapping[str, str], *names: str) -> str | None:
    for name in names:
        for key in (name, f"{name}2", f"{name}3", f"{name}4"):
            if value := captures.get(key):
                return value
    return None


RANK_KEYS = (
    "rank", "ranks", "local_rank", "node_rank", "task", "tasks", "comm_rank", "process_index", "world_size", "tp_rank",
    "host", "hosts", "pod", "instance", "alias", "ip",
)  # fmt: skip
BLOCK = re.compile(
    r"\b(restart_count|group_rank|group_world_size)=(\d{1,9})"
    r"|\b(local_ranks|global_ranks|role_ranks|global_world_sizes)=\[([\d, ]*)\]"
)


def statements_of(spoken: Iterable[Spoken], dumps: Mapping[int, Sequence[DumpIdentity]]) -> list[Statement]:
    """All statements, in the order of source and line."""
    found: list[Statement] = []
    blocks = _Blocks()
    rows = sorted(spoken, key=lambda row: (row.source_id, row.line))
    tables = {(row.source_id, row.line) for row in rows if row.fact in TABLES}
    for row in rows:
        if row.fact in PAIRS and (row.source_id, row.line) in tables:
            continue
        text = (row.text or "")[:TEXT_LIMIT]
        found.extend(blocks.feed(row, text))
        found.extend(_of_row(row, text))
    found.extend(blocks.close())
    found = _alone(found)
    for row, host, rank, local_rank, node_rank in placed_by_maps(rows):
        found.append(
            Statement(
                row.source_id, row.line, "launcher-table", own=False, fact=row.fact, rank=rank, host=host,
                local_rank=local_rank, node_rank=node_rank,
            )
        )  # fmt: skip
    found.extend(_allocated(rows))
    found.extend(_ranks_here(rows))
    told = ((row.source_id, row.line, (row.captures or {}).get("host", "")) for row in rows if row.fact == HOST_HERE)
    for source_id, line, host in hosts_here(told):
        found.append(Statement(source_id, line, "start-line", own=True, fact=HOST_HERE, host=host.rstrip(".-")))
    for source_id in sorted(dumps):
        found.extend(_of_dump(source_id, one) for one in dumps[source_id])
    found = _in_hostfiles(_without_node_numbers(found))
    return sorted(found, key=lambda one: (one.source_id, one.line, one.how, -1 if one.rank is None else one.rank))


def _allocated(rows: Sequence[Spoken]) -> Iterator[Statement]:
    """The nodes of the job, numbered in the order in which its controller lists them."""
    told = [(row, row.captures or {}) for row in rows if row.fact == ALLOCATED]
    jobs = {captures.get("jobid", "") for _, captures in told}
    if len(jobs) > 1:
        jobs &= {(row.captures or {}).get("jobid", "") for row in rows if row.fact != ALLOCATED}
    for row, captures in told if len(jobs) == 1 else ():
        if captures.get("jobid", "") in jobs:
            for node_rank, host in enumerate(host_list(captures.get("hosts", ""))):
                yield Statement(
                    row.source_id, row.line, "host-list", own=False, fact=row.fact, host=host, node_rank=node_rank
                )


def _ranks_here(rows: Sequence[Spoken]) -> Iterator[Statement]:
    """The ranks of the nodes whose sources say in free words which ranks they carry."""
    by_place = {(row.source_id, row.line): row for row in rows if row.fact == RANKS_HERE}
    placed = {(row.source_id, row.line) for row in rows if row.fact == RANKS_ON}
    said: list[tuple[int, int, Here]] = []
    for (source_id, line), row in by_place.items():
        here = ranks_here((row.text or "")[:TEXT_LIMIT]) if (source_id, line) not in placed else None
        if here is not None:
            said.append((source_id, line, here))
    for source_id, line, here in fitting(said):
        row = by_place[source_id, line]
        base = Statement(
            source_id, line, "rendezvous", own=False, fact=RANKS_HERE, host=here.host, node_rank=here.node_rank,
            local_world=len(here.ranks), said_host=row.host, said_pid=row.pid,
        )  # fmt: skip
        if here.host is not None:
            yield replace(base, how="start-line", own=True, local_world=None)
        for local_rank, rank in enumerate(here.ranks):
            yield replace(base, rank=rank, local_rank=local_rank)


def _alone(statements: Sequence[Statement]) -> list[Statement]:
    """A file in which sentences place one rank alone is taken for that rank's own words."""
    placed: dict[int, set[int | None]] = {}
    reported = {(one.source_id, one.line) for one in statements if not one.own and one.fact not in PLACES}
    for one in statements:
        if one.rank is not None and (one.own or one.fact in PLACES):
            placed.setdefault(one.source_id, set()).add(one.rank)
    return [
        replace(one, how="start-line", own=True)
        if one.fact in PLACES
        and len(placed[one.source_id]) == 1
        and one.said_rank in (None, one.rank)
        and (one.source_id, one.line) not in reported
        else one
        for one in statements
    ]


def _in_hostfiles(statements: Sequence[Statement]) -> list[Statement]:
    """The hosts of a hostfile are numbered in the order of its lines."""
    hosts: dict[int, list[str]] = {}
    found = []
    for one in statements:
        if one.fact == HOSTFILE and one.host is not None:
            listed = hosts.setdefault(one.source_id, [])
            if one.host not in listed:
                listed.append(one.host)
            one = replace(one, node_rank=listed.index(one.host))
        found.append(one)
    return found


def _without_node_numbers(statements: Sequence[Statement]) -> list[Statement]:
    """Where one reading of a line has its number for a rank and another for a node rank, it is the node's.

    `RANK=1 WORLD_SIZE=4` in the environment of a launcher counts nodes.
    """
    nodes = {(one.source_id, one.line, one.node_rank) for one in statements if one.node_rank is not None}
    return [
        replace(one, rank=None, world_size=None, node_rank=one.rank, nodes=one.world_size)
        if one.own
        and one.rank is not None
        and one.local_rank is None
        and one.how == "start-line"
        and (one.source_id, one.line, one.rank) in nodes
        else one
        for one in statements
    ]


def _of_dump(source_id: int, one: DumpIdentity) -> Statement:
    return Statement(
        source_id, one.line, one.how, own=one.how in ("host-name", "dump"), rank=one.rank, host=one.host,
        local_rank=one.local_rank, node_rank=one.node_rank, pid=one.pid, gpu=one.gpu, bus_id=one.bus_id,
        address=one.address, pod=one.pod, alias=one.alias, comm=one.comm,
        comm_rank=one.comm_rank, comm_size=one.comm_size, world_size=one.world_size, attempt=one.attempt,
    )  # fmt: skip


def _of_row(row: Spoken, text: str) -> Iterator[Statement]:
    if row.event in OTHERS_EVENTS or row.fact in TABLES:
        own = False
    elif row.event in OWN_EVENTS:
        own = True
    else:
        return
    if row.fact in TOGETHER:
        return
    captures = row.captures or {}
    if row.fact is None and own and row.event != Event.IDENTITY:
        captures = {name: text for name, text in captures.items() if not name.startswith(("host", "ip", "instance"))}
    if row.fact in PLACES:
        own = False
        captures = place_of_row(captures)
        if not captures:
            return
    base = Statement(
        row.source_id, row.line, "start-line" if own else "launcher-table", own, row.fact,
        said_rank=row.rank, said_local=row.local_rank, said_pid=row.pid, said_host=row.host,
        stamp_ns=row.stamp_ns, stamp_kind=row.stamp_kind,
    )  # fmt: skip
    if row.fact == JAX_COORDINATOR:
        yield replace(base, how="coordinator", own=False, rank=0, host=_word(captures, "host"))
        return
    if own:
        yield from (replace(base, own=False, **said) for said in of_text(text))
    if row.fact in PAIRS:
        captures = {name: str(value) for name, value in pairs_of(text).items()}
        if row.rank is not None:
            captures.setdefault("rank", str(row.rank))
        if "rank" not in captures:
            return
    elif row.fact == RANKS_ON:
        for listed, name in ranks_on(captures, text):
            for local_rank, rank in enumerate(numbers(listed.replace(" to ", "-"))):
                yield replace(base, own=False, rank=rank, local_rank=local_rank, host=name)
        return
    elif row.fact == DEVICE:
        yield replace(
            base, how="device", own=False, gpu=_small(captures, "gpu"), bus_id=pci(_word(captures, "bus_id") or "")
        )
        return
    elif row.fact == WORLD_NAMED:
        yield replace(base, how="size-named", own=False, world_size=_small(captures, "world_size"))
        return
    if row.fact == HF_PROCESS and captures.get("local_rank") != captures.get("gpu"):
        captures = {**captures, "rank": captures.get("rank") or captures.get("local_rank") or "", "local_rank": ""}
    if row.fact in LOCAL_WORLDS:
        base = replace(base, local_world=_small(captures, "count"))
        if "node_rank" not in captures:
            yield replace(base, own=False)
            return
    if row.fact != RESTARTS and not any(_word(captures, key) for key in RANK_KEYS):
        return
    comm_rank = _small(captures, "comm_rank")
    one = replace(
        base,
        how="comm-init" if comm_rank is not None else base.how,
        rank=_small(captures, "rank", "process_index"),
        local_rank=_small(captures, "local_rank"),
        node_rank=_small(captures, "node_rank"),
        task=_small(captures, "task"),
        host=_word(captures, "host"),
        pid=_int(captures, "pid", "child_pid") if own or row.fact in TABLES else _int(captures, "child_pid"),
        gpu=_small(captures, "gpu") if own else None,
        bus_id=pci(_word(captures, "bus_id") or "") if _word(captures, "bus_id") else None,
        address=_word(captures, "ip"),
        pod=_word(captures, "pod"),
        alias=_word(captures, "alias", "instance", "node"),
        comm=_word(captures, "comm_id") or _word(captures, "comm"),
        comm_rank=comm_rank,
        comm_size=_small(captures, "comm_size"),
        world_size=_small(captures, "world_size"),
    )
    if row.fact == HOSTFILE:
        yield replace(one, how="host-list", own=False, local_world=_small(captures, "count"))
        return
    if row.fact in TABLES and one.host is None:
        one = replace(one, host=one.address)
    if own and one.pid is None:
        one = replace(one, pid=row.pid)
    if own and one.gpu is None:
        one = replace(one, gpu=row.gpu)
    hosts = host_list(_word(captures, "hosts") or (one.host if one.host and "[" in one.host else ""))
    if hosts and (one.host is None or "[" in one.host):
        one = replace(one, host=hosts[0] if len(hosts) == 1 else None)
    many = _word(captures, "ranks")
    tasks = numbers(_word(captures, "tasks") or "")
    if many and one.rank is None and own:
        for index, rank in enumerate(numbers(many)):
            local = index if one.host is not None and one.local_rank is None else one.local_rank
            yield replace(one, rank=rank, local_rank=local, own=False, pid=None, gpu=None)
    elif tasks and not own:
        # a host for each task: Slurm folds both lists in the same order
        places = hosts if len(hosts) == len(tasks) else (one.host,) * len(tasks)
        for task, host in zip(tasks, places, strict=True):
            yield replace(one, task=task, host=host)
    elif len(hosts) > 1 and own:
        for node_rank, host in enumerate(hosts):
            yield replace(one, host=host, node_rank=node_rank, own=False, how="host-list", pid=None, gpu=None)
    elif row.fact == RESTARTS:
        yield replace(one, how="restart", own=False, attempt=_small(captures, "count"))
    else:
        yield one


class _Blocks:
    """Joins the lines of 'Rendezvous complete for workers. Result:' blocks, agent by agent."""

    SPAN = 16

    def __init__(self) -> None:
        self._open: dict[tuple[int, str | None, int | None], tuple[Spoken, dict[str, str]]] = {}

    def feed(self, row: Spoken, text: str) -> Iterator[Statement]:
        pairs = [(a or c, b or d) for a, b, c, d in BLOCK.findall(text)] if "=" in text else []
        if not pairs:
            return
        key = (row.source_id, row.host, row.pid)
        first, got = self._open.get(key, (row, {}))
        if row.line - first.line > self.SPAN or any(name in got for name, _ in pairs):
            yield from _of_block(first, got)
            first, got = row, {}
        got.update(pairs)
        self._open[key] = first, got

    def close(self) -> Iterator[Statement]:
        for first, got in self._open.values():
            yield from _of_block(first, got)


def _of_block(row: Spoken, got: Mapping[str, str]) -> Iterator[Statement]:
    base = Statement(
        row.source_id, row.line, "rendezvous", own=False,
        node_rank=small(int(got["group_rank"])) if "group_rank" in got else None,
        attempt=small(int(got["restart_count"])) if "restart_count" in got else None,
        nodes=small(int(got["group_world_size"])) if "group_world_size" in got else None,
        said_host=row.host, said_pid=row.pid, stamp_ns=row.stamp_ns, stamp_kind=row.stamp_kind,
    )  # fmt: skip
    ranks = numbers(got.get("global_ranks", ""))
    locals_ = numbers(got.get("local_ranks", ""))
    sizes = numbers(got.get("global_world_sizes", ""))
    base = replace(base, world_size=sizes[0] if sizes else None, local_world=len(ranks) or None)
    if not ranks:
        yield base
    for index, rank in enumerate(ranks):
        yield replace(base, rank=rank, local_rank=locals_[index] if index < len(locals_) else index)
