"""A Ray cluster that runs calls on its nodes: connects, knows the nodes, keeps some calls running on each.

Ray is an extra and is imported only here. Its usage statistics are off in every process that this starts, and it starts
no dashboard. What a call gives back or why it failed comes as data; Ray itself runs a call again whose worker died.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_AGAIN = 2
_LOOK = 0.2
_ANSWER = 5.0
_EXPECTED = frozenset({1, 4})
"""Ends of a node that are no loss: told to end, or drained because it was idle (`NodeDeathInfo` of Ray)."""


class ClusterError(Exception):
    """A cluster that cannot be used: which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Node:
    """A living node. `name` is its host, or the name that Ray has for it where several nodes share a host."""

    id: str
    name: str
    cpus: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function that its node runs, or any node where `node` is None."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """What became of a call whose worker or node died, again and again."""

    why: str


@contextlib.contextmanager
def connected(address: str | None, workers: int | None) -> Iterator[RayCluster]:
    """The cluster at an address, by default the one that this machine is part of. Raises ClusterError."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ClusterError(
            f"--engine ray needs Ray ({error.name} is not installed): pip install 'firstfault[ray]', here and on every "
            f"node (this Python is {sys.executable})"
        ) from error
    if ray.is_initialized():  # by a program that uses this one
        yield RayCluster(ray, workers)
        return
    where = address or os.environ.get("RAY_ADDRESS") or "auto"
    if not _answers(where):
        raise ClusterError(
            f"--engine ray: nothing listens at {where}; give the HOST:PORT that `ray start --head` printed"
        )
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    more = {"include_dashboard": False} if where == "local" else {}
    try:
        ray.init(where, log_to_driver=False, logging_level="critical", **more)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ClusterError(_unreached(where, error)) from error
    try:
        if main:
            signal.signal(signal.SIGTERM, before)
        with contextlib.redirect_stdout(sys.stderr):  # a thread of Ray tells there of workers that died
            yield RayCluster(ray, workers)
    finally:
        ray.shutdown()


def _answers(address: str) -> bool:
    """Whether something listens at HOST:PORT, as Ray would try for two minutes; True where it is no such address."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
    except (OSError, OverflowError):
        return False
    return True


def _unreached(address: str, error: Exception) -> str:
    said = "\n".join(str(one) for one in (error, error.__cause__) if one)
    if "InvalidAuthToken" in said:
        why = "it asks for a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH as on its nodes"
        return f"--engine ray: the cluster at {address}: {why}"
    if address == "auto" and isinstance(error, ConnectionError):
        return (
            "--engine ray: no Ray cluster runs on this machine; run this on one of its nodes (or give --address), or "
            "begin one: `ray start --head` here, `ray start --address HEAD:6379` on the others"
        )
    return f"--engine ray: the cluster at {address} cannot be used from here: {said.split(chr(10))[0]}"


class RayCluster:
    """A connected cluster."""

    def __init__(self, ray: Any, workers: int | None) -> None:
        self._ray, self._workers = ray, workers

    def nodes(self) -> tuple[list[Node], list[str]]:
        """The nodes that live, by name, and the names of those that were lost and have not come back."""
        living: dict[tuple[str, str], Any] = {}
        lost: set[tuple[str, str]] = set()
        for one in self._ray.nodes():
            who = one["NodeManagerHostname"] or one["NodeManagerAddress"], one["NodeName"]
            if one["Alive"]:
                living[who] = one
            elif one["DeathReason"] not in _EXPECTED:
                lost.add(who)
        hosts = Counter(host for host, _ in {*living, *lost})
        names = {who: who[0] if hosts[who[0]] == 1 else who[1] for who in {*living, *lost}}
        found = [Node(one["NodeID"], names[who], int(one["Resources"].get("CPU", 0))) for who, one in living.items()]
        return sorted(found, key=lambda node: (node.name, node.id)), sorted(names[who] for who in lost - set(living))

    def run(self, calls: Sequence[Call]) -> Generator[tuple[int, Any]]:
        """The place of each call with what it gives or a `Failed`, as they end. Raises what a call raised."""
        lanes = self._lanes(calls)
        running: dict[Any, tuple[int, _Lane]] = {}
        try:
            while running or any(lane.waiting for lane in lanes):
                for lane in lanes:
                    while lane.waiting and lane.running < lane.room:
                        place = lane.waiting.popleft()
                        running[self._begin(calls[place], lane.cpus)] = place, lane
                        lane.running += 1
                for ended in self._ray.wait(list(running), timeout=_LOOK)[0]:
                    place, lane = running.pop(ended)
                    lane.running -= 1
                    yield place, self._result(ended)
        finally:
            for left in running:
                self._ray.cancel(left, force=True)

    def _lanes(self, calls: Sequence[Call]) -> list[_Lane]:
        """The calls by where they run, and how many may run there at once."""
        lanes: dict[str | None, _Lane] = {}
        for place, call in enumerate(calls):
            key = call.node.id if call.node else None
            if key not in lanes:
                cpus = call.node.cpus if call.node else sum(node.cpus for node in self.nodes()[0])
                if call.node is None and not cpus:
                    raise ClusterError("--engine ray: no node of the cluster offers a CPU; start one with --num-cpus")
                # a head that offers no CPU may still have logs of its own
                room = min(max(cpus, 1), self._workers or cpus + 1)
                lanes[key] = _Lane(deque(), room, min(cpus, 1))
            lanes[key].waiting.append(place)
        return list(lanes.values())

    def _begin(self, call: Call, cpus: int) -> Any:
        strategy: Any = "SPREAD"
        if call.node is not None:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            strategy = NodeAffinitySchedulingStrategy(call.node.id, soft=False)
        task = self._ray.remote(call.function).options(
            num_cpus=cpus, max_retries=_AGAIN, scheduling_strategy=strategy, name=f"firstfault.{call.function.__name__}"
        )
        return task.remote(*call.arguments)

    def _result(self, ended: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(ended)
        except errors.RayTaskError as error:
            if "failed to import on the worker" in str(error):
                why = "the Python of its workers has no firstfault like this one; install the same on every node"
                raise ClusterError(f"--engine ray: {why}") from error
            raise (error.cause or error) from None
        except errors.RayError as error:
            return Failed(str(error).strip().split("\n")[0] or type(error).__name__)


@dataclass(slots=True)
class _Lane:
    """Calls that wait for the same nodes, and how many CPUs each takes."""

    waiting: deque[int]
    room: int
    cpus: int
    running: int = 0
