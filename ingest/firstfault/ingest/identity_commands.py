"""Reads what launchers say about hosts and ranks: options, environment, slots of hosts, folded lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypedDict

from firstfault.ingest.dumps.bounds import RANK_LIMIT

RANGE_LIMIT = 1 << 14
"""More numbers or hosts than any printed list is worth reading."""
OPTIONS = {
    "nproc_per_node": "local_world", "ntasks_per_node": "local_world", "num_gpus": "local_world",
    "nnodes": "nodes", "num_nodes": "nodes", "nodes": "nodes", "num_machines": "nodes",
    "node_rank": "node_rank", "machine_rank": "node_rank", "num_processes": "world_size",
    "NPROC_PER_NODE": "local_world", "LOCAL_WORLD_SIZE": "local_world", "PET_NPROC_PER_NODE": "local_world",
    "NNODES": "nodes", "PET_NNODES": "nodes", "SLURM_NNODES": "nodes", "NODE_RANK": "node_rank",
    "PET_NODE_RANK": "node_rank", "SLURM_NTASKS_PER_NODE": "local_world", "SLURM_NTASKS": "tasks",
    "SLURM_NPROCS": "tasks", "SLURM_TASKS_PER_NODE": "local_world", "SLURM_JOB_NUM_NODES": "nodes",
}  # fmt: skip
"""Options and variables, and what they count."""
TORCHRUN = frozenset({"nproc_per_node"})
"""Options with which the number of nodes makes the number of ranks."""
_NAMES = "|".join(sorted(re.escape(name).replace("_", "[-_]") for name in OPTIONS if name.islower()))
_COMMAND = re.compile(rf"--({_NAMES})[= ](\d{{1,6}})\b(?!:\d)")
_ENVIRONMENT = re.compile(
    r"\b("
    + "|".join(sorted(name for name in OPTIONS if name.isupper()))
    + r")=(\d{1,6})(?:\(x\d{1,5}\))?(?:[\s,;\x27\x22]|$)"
)
_PAIRS = re.compile(rf"(?<![\w-])({_NAMES})[=:] ?(\d{{1,6}})\b(?!:\d)")
"""The same names as a script prints them: `nnodes=4 nproc_per_node=1 node_rank=0`; only beside each other."""
_MPI = re.compile(r"(?:^|[\s`/+])(?:mpirun|mpiexec|horovodrun)\s")
_NP = re.compile(r"\s-(?:-np|np|n)[= ](\d{1,7})\b")
_PER_NODE = re.compile(r"\bppr:(\d{1,5}):node\b|\s-(?:-npernode|npernode|ppn)[= ](\d{1,5})\b")
_HOSTS = re.compile(
    r"\s-(?:H|-hosts?|host)[= ]([A-Za-z][\w.-]{0,200}:\d{1,4}(?:,[A-Za-z][\w.-]{0,200}:\d{1,4}){0,4096})"
)
_ROUND_ROBIN = re.compile(r"-by[ =-]?node\b|:node:span\b|\bbynode\b|\bspan\b")
_MAPPING = re.compile(r"'([\w.-]{1,253})': \[([\d, ]{0,4000})\]")


class Said(TypedDict, total=False):
    """What a text says, by the names of a statement's fields."""

    how: str
    host: str | None
    rank: int
    local_rank: int
    node_rank: int | None
    local_world: int | None
    nodes: int | None
    world_size: int | None


def of_text(text: str) -> Iterator[Said]:
    """Everything that a command line or a launcher's dictionary says."""
    if "--" in text or "=" in text or ":" in text:
        yield from _options(text)
    if _MPI.search(text):
        yield from _mpi(text)
    if "global_rank_mapping=" in text:
        lists = [(host, numbers(ranks)) for host, ranks in _MAPPING.findall(text)]
        yield from _slots("launcher-table", lists)
    elif "WORLD INFO DICT:" in text:
        first, blocks = 0, []
        for host, gpus in _MAPPING.findall(text):
            size = len(numbers(gpus))
            blocks.append((host, tuple(range(first, first + size))))
            first += size
        yield from _slots("launcher-table", blocks)


def _options(text: str) -> Iterator[Said]:
    found: dict[str, int] = {}
    torchrun = False
    pairs = _PAIRS.findall(text)
    if len({name for name, _ in pairs}) < 2:
        pairs = []
    for name, value in (*_COMMAND.findall(text), *_ENVIRONMENT.findall(text), *pairs):
        key = name.replace("-", "_")
        found[OPTIONS[key]] = int(value)
        torchrun = torchrun or key in TORCHRUN
    if not found:
        return
    world, local, nodes = found.get("world_size"), found.get("local_world"), found.get("nodes")
    if world is None and local and nodes and torchrun:
        world = small(local * nodes)
    tasks = found.get("tasks")
    if world is None and tasks and ((local or 1) > 1 or (nodes and tasks > nodes)):
        world = small(tasks)  # several tasks a node: what each starts is one rank
    elif world is None and tasks:
        yield Said(how="size-named", world_size=small(tasks))
    yield Said(how="command", local_world=local, nodes=nodes, world_size=world, node_rank=found.get("node_rank"))


def _mpi(text: str) -> Iterator[Said]:
    """The number of processes, and where the hosts and their slots put them: block by block, unless told otherwise."""
    several = "torchrun" in text or "torch.distributed" in text
    count = _NP.search(text)
    per_node = _PER_NODE.search(text)
    if count and not several:
        local = int(per_node[1] or per_node[2]) if per_node else None
        yield Said(how="command", world_size=small(int(count[1])), local_world=local)
    hosts = _HOSTS.search(text)
    if hosts is None or several or _ROUND_ROBIN.search(text):
        return
    first, blocks = 0, []
    for host, _, slots in (piece.rpartition(":") for piece in hosts[1].split(",")):
        blocks.append((host, tuple(range(first, min(first + int(slots), RANK_LIMIT)))))
        first += int(slots)
    if count is None or int(count[1]) == first:
        yield from _slots("command", blocks)


def _slots(how: str, lists: list[tuple[str, tuple[int, ...]]]) -> Iterator[Said]:
    for node_rank, (host, ranks) in enumerate(lists):
        for local_rank, rank in enumerate(ranks):
            yield Said(
                how=how, host=None if host == "localhost" else host, rank=rank, local_rank=local_rank,
                node_rank=node_rank, local_world=len(ranks),
            )  # fmt: skip


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of a list as printed: '[0, 1, 2]', '0-6,8', '1, 3', '0..3'."""
    found: list[int] = []
    for first, last in re.findall(r"(\d{1,9})(?:\s*(?:-|\.\.)\s*(\d{1,9}))?", text[:65536]):
        start, end = int(first), int(last or first)
        if start <= end < min(start + RANGE_LIMIT, RANK_LIMIT) and len(found) + end - start < RANGE_LIMIT:
            found.extend(range(start, end + 1))
    return tuple(dict.fromkeys(found))


def host_list(text: str) -> tuple[str, ...]:
    """The hosts of a folded list as Slurm prints it: 'sg-[14-15],gpu3'. A list that a column cut off names none."""
    hosts: list[str] = []
    if text.rstrip().endswith("+"):
        return ()
    for piece in re.findall(r"[^,\s\[\]]+(?:\[[^\]]*\][^,\s\[\]]*)*", text[:65536]):
        hosts.extend(_unfold(piece))
        if len(hosts) > RANGE_LIMIT:
            break
    return tuple(dict.fromkeys(hosts))


def _unfold(piece: str) -> list[str]:
    match = re.fullmatch(r"([^\[\]]*)\[([^\[\]]*)\](.*)", piece, re.S)
    if not match:
        return [piece] if piece else []
    names: list[str] = []
    for part in match[2].split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            continue
        end = int(last or first)
        if end - int(first) > RANGE_LIMIT:
            continue
        names.extend(f"{match[1]}{n:0{len(first)}d}" for n in range(int(first), end + 1))
    return [name + rest for name in names for rest in (_unfold(match[3]) or [""])]


def small(number: int | None) -> int | None:
    """A number of a rank, a node, a device; what is larger than any job has is none."""
    return number if number is not None and number < RANK_LIMIT else None
