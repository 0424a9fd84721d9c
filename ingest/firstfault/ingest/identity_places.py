"""Reads sentences that place a rank on a host (`I am rank 3 on node-07`) and the job maps that MPI launchers print.

A sentence may be about anybody, and still tells where a rank lives; whose file it stands in is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

PLACES = frozenset(
    {"identity-place-rank-on", "identity-place-worker-on", "identity-place-host-rank", "identity-place-host-process"}
)
"""Facts that are such sentences."""
MAP_NODE = "identity-ompi-node"
MAP_FACTS = frozenset({MAP_NODE, "identity-ompi-process"})
"""Facts that are lines of a job map: a node, then its processes."""
MAP_SPAN = 1 << 13
"""Lines that a node of a job map may go on for."""
_NO_HOST = re.compile(
    r"(?i)(?:gpu|cuda|npu|cpu|xpu|hpu|rocm|hip|device|step|epoch|rank|iter|iteration|batch|layer|stage|shard|pid|port"
    r"|eth|ib|ens?|eno|enp|mlx|bond|hsn|roce|lo|nvme|local|phase|attempt|part|chunk|bucket|tp|pp|dp|ep|cp|pg)"
    r"(?:[:_]?\d[\w.-]*|-\d)"
)


RANKS_ON = "identity-ranks-on"
_HOST_RANKS = re.compile(
    r"(?i)(?:\b(?:node|host) |[,;] )(?P<host>[A-Za-z][A-Za-z_-]{0,60}\d[\w.-]{0,200}): ranks "
    r"(?P<ranks>\d{1,7}(?:(?:-|\.\.| to )\d{1,7}|(?:, ?\d{1,7}){1,64}))"
)
_RANKS_ON = re.compile(
    r"(?i)\branks? (?P<ranks>\d{1,7}(?:(?:-|\.\.| to )\d{1,7}|(?:, ?\d{1,7}){1,64}))"
    r"(?: (?:are |run |running |live )?(?:on |at )?(?:host |node )?|: ?| ?= ?| ?-> ?|@)"
    r"(?P<host>[A-Za-z][A-Za-z_-]{0,60}\d[\w.-]{0,200}|[A-Za-z][A-Za-z0-9]{0,40}-[a-z]\b)"
)


class Row(Protocol):
    """A signal as far as a job map needs it."""

    @property
    def source_id(self) -> int: ...
    @property
    def line(self) -> int: ...
    @property
    def fact(self) -> str | None: ...
    @property
    def captures(self) -> Mapping[str, str]: ...


R = TypeVar("R", bound=Row)


def place_of_row(captures: Mapping[str, str]) -> dict[str, str]:
    """The captures of a sentence, none where what stands for the host is a device, an interface or a step."""
    host = captures.get("host", "").rstrip(".-")
    if not host or _NO_HOST.fullmatch(host):
        return {}
    return {**captures, "host": host}


def ranks_on(captures: Mapping[str, str], text: str) -> list[tuple[str, str]]:
    """(ranks as printed, host) of every part of a line that says which ranks a host has."""
    found = [(match["ranks"], match["host"]) for match in _HOST_RANKS.finditer(text)]
    if len(found) < 2:
        found = [(match["ranks"], match["host"]) for match in _RANKS_ON.finditer(text)]
    told = captures.get("ranks") or captures.get("ranks2"), captures.get("host") or captures.get("host2")
    if not found and told[0] and told[1]:
        found = [(told[0], told[1])]
    return [(ranks, host.rstrip(".-")) for ranks, host in found if not _NO_HOST.fullmatch(host)]


def placed_by_maps(rows: Sequence[R]) -> Iterator[tuple[R, str, int, int, int]]:
    """Line, host, rank, local rank and node rank of each process in job maps; a map that is shown again starts anew."""
    source, host, first, local, node = -1, "", 0, 0, -1
    seen: set[int] = set()
    for row in rows:
        if row.fact not in MAP_FACTS:
            continue
        if row.source_id != source or row.line - first > MAP_SPAN:
            source, host, node, seen = row.source_id, "", -1, set()
        if row.fact == MAP_NODE:
            host, first, local, node = row.captures.get("host", ""), row.line, 0, node + 1
            continue
        text = row.captures.get("rank", "")
        if not host or not text.isdigit() or len(text) > 7:
            continue
        if int(text) in seen:
            node, seen = 0, set()
        seen.add(int(text))
        yield row, host, int(text), local, node
        local += 1
