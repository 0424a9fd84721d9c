"""A job that the nodes of a cluster read: shared files by whichever node is free, files of each node where they lie.

What a node could not hand over is never left out in silence: of shared files the one who asks reads it itself, of files
on a node's own disk it becomes rows of `problems`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from firstfault.ingest.format_load import USER_FOLDERS
from firstfault.ingest.job import JobFiles
from firstfault.ingest.options import IngestOptions, OptionError
from firstfault.ingest.part import Part, load
from firstfault.ingest.plan import Unit
from firstfault.ingest.problems import Problem, Severity
from firstfault.ingest.ray_cluster import Call, ClusterError, Failed, Node, RayCluster, connected
from firstfault.ingest.ray_tasks import OtherVersion, Seen, Told, look, read
from firstfault.ingest.ray_tasks import read_shared as read_if_shared
from firstfault.ingest.shards import Machine, United, of_machines

Done = Callable[[int], None]
"""Called with the bytes of a unit that was read."""

_ROUNDS = 2


def told(options: IngestOptions, catalog: str) -> Told:
    """What the tasks of a job are told."""
    return Told(replace(options, cluster=None), catalog, os.environ.get(USER_FOLDERS))


def read_shared(
    units: Sequence[tuple[Unit, int]], options: IngestOptions, catalog: str, folder: Path, problems: list[Problem]
) -> Iterator[tuple[int, Part]]:
    """The parts of units on a disk that all nodes share, with their places, as they come; not what none could read."""
    assert options.cluster is not None
    message = told(options, catalog)
    calls = [Call(read_if_shared, (unit, place, message)) for unit, place in units]
    apart: list[int] = []
    with (
        connected(options.cluster.address, options.workers) as cluster,
        in_words(),
        contextlib.closing(cluster.run(calls)) as ended,
    ):
        for at, made in ended:
            place = units[at][1]
            if isinstance(made, bytes):
                yield place, _part(made, folder / f"shared-{place:09d}.zip")
            elif made is None:
                apart += [at]
    if apart:
        first = min(units[at][0].files[0].path for at in apart)
        count = sum(len(units[at][0].files) for at in apart)
        detail = (
            "a node of the cluster does not see the same file there, so that it was read where the command runs; "
            "--per-node reads what lies on the disk of each node"
        )
        problems.append(Problem(first, "not-shared", Severity.INFO, detail, count=count))


@contextlib.contextmanager
def in_words() -> Iterator[None]:
    """What a task raises that its user can do something about."""
    try:
        yield
    except OtherVersion as error:
        raise ClusterError(f"--engine ray: {error}; install the same on every node") from error


def _part(content: bytes, file: Path) -> Part:
    file.write_bytes(content)
    with zipfile.ZipFile(file) as archive:
        return load(file, archive, "0")


@dataclass(slots=True)
class _Disk:
    """The files of one node and what became of them."""

    node: Node
    seen: Seen
    parts: dict[int, Part] = field(default_factory=dict)
    why: str = "it left the cluster"

    def machine(self) -> Machine:
        """What was read, of a file in pieces all before the first that is missing; the rest as problems."""
        parts: list[Part] = []
        unread: dict[str, int] = {}
        for place, unit in enumerate(self.seen.units):
            paths = [found.path for found in unit.files]
            if place in self.parts and not any(path in unread for path in paths):
                parts.append(self.parts[place])
            for path in paths if place not in self.parts else ():
                unread.setdefault(path, unit.shard.start if unit.shard else 0)
        problems = [_unread(self.node.name, path, start, self.why) for path, start in unread.items()]
        return Machine(self.node.name, self.seen.roots, [*self.seen.problems, *problems], parts)


def _unread(node: str, path: str, start: int, why: str) -> Problem:
    detail = f"not read{f' from byte {start} on' if start else ''}: node {node} was lost meanwhile or failed ({why})"
    return Problem(f"{node}/{path}", "unread", Severity.DATA_LOSS if start else Severity.ERROR, detail)


class Nodes:
    """The files that lie on the disks of the nodes, under the same paths on each."""

    def __init__(self, cluster: RayCluster, paths: Sequence[str], options: IngestOptions) -> None:
        self._cluster = cluster
        self.problems: list[Problem] = []
        self._disks: list[_Disk] = []
        living, lost = cluster.nodes()
        message = told(options, "")
        calls = [Call(look, (paths, message), node=node) for node in living]
        for at, seen in sorted(cluster.run(calls), key=lambda pair: pair[0]):
            node = living[at]
            if isinstance(seen, Failed):
                lost.append(node.name)
                continue
            self.problems += [_lacks(node.name, path) for path in seen.missing]
            if seen.roots:
                self._disks.append(_Disk(node, seen))
        why = "the cluster lost this node, so that nothing on its disk was read; start it again, or copy its logs"
        self.problems += [Problem(f"{node}/", "unread", Severity.ERROR, why) for node in lost]
        if not self._disks:
            raise ClusterError(f"--per-node {', '.join(paths)}: no node of the cluster has it")
        self.options = self._said(options)

    def _said(self, options: IngestOptions) -> IngestOptions:
        """The options, with what the settings files on the nodes say."""
        first = self._disks[0]
        for disk in self._disks:
            if _settings(disk.seen.options) != _settings(first.seen.options):
                raise OptionError(
                    f".firstfault.toml on {disk.node.name} and on {first.node.name} say different things; "
                    "make them the same, or say it on the command line"
                )
        said = first.seen.options
        return replace(options, hosts=said.hosts, ranks=said.ranks, tz=said.tz, year=said.year)

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(unit.bytes for disk in self._disks for unit in disk.seen.units)

    def mark(self, own: str | None) -> str | None:
        """What stands for the files of the nodes and those of the one who asks, None where it cannot be known."""
        marks = [own, *(disk.seen.mark for disk in self._disks)]
        if any(mark is None for mark in marks) or any(one.severity is Severity.ERROR for one in self.problems):
            return None
        names = [(disk.node.name, disk.seen.roots) for disk in self._disks]
        return hashlib.sha256(repr((marks, names)).encode()).hexdigest()

    def read(self, own: United, catalog: str, folder: Path, done: Done) -> United:
        """Read all files where they lie; the union with what else was read."""
        message = told(own.options, catalog)
        for _ in range(_ROUNDS):
            self._round(message, folder, done)
        machines = [disk.machine() for disk in self._disks]
        return of_machines(machines, replace(own, problems=[*own.problems, *self.problems]))

    def _round(self, message: Told, folder: Path, done: Done) -> None:
        """Read what is not read yet, on the nodes that live; one that was started again has another id."""
        missing = [
            (number, place)
            for number, disk in enumerate(self._disks)
            for place in range(len(disk.seen.units))
            if place not in disk.parts
        ]
        if not missing:
            return
        ids = {node.name: node for node in self._cluster.nodes()[0]}
        calls, asked = [], []
        for number, place in missing:
            disk = self._disks[number]
            if (node := ids.get(disk.node.name)) is not None:
                unit = disk.seen.units[place]
                calls.append(Call(read, (unit, place, message), node))
                asked.append((disk, place))
        with in_words(), contextlib.closing(self._cluster.run(calls)) as ended:
            for at, made in ended:
                disk, place = asked[at]
                if isinstance(made, Failed):
                    disk.why = made.why
                    continue
                name = f"node-{self._disks.index(disk)}-{place:09d}.zip"
                disk.parts[place] = _part(made, folder / name)
                done(disk.seen.units[place].bytes)


def _settings(options: IngestOptions) -> object:
    return options.hosts, options.ranks, options.tz, options.year


def _lacks(node: str, path: str) -> Problem:
    return Problem(f"{node}/{path.strip('/')}", "no-such-path", Severity.NOTICE, f"node {node} has no {path}")


@contextlib.contextmanager
def nodes_of(found: JobFiles) -> Iterator[Nodes]:
    """The nodes of the cluster that the options name, with what each has below its own paths."""
    options = found.options
    assert options.cluster is not None
    with connected(options.cluster.address, options.workers) as cluster:
        yield Nodes(cluster, options.cluster.per_node, options)
