"""Reads what a line says in free words about the ranks of the node it is printed on: `node 1 ranks 8-15`,
`task 1 of 4 on amp-22 (8 local ranks, global 8-15)`, `rank 2,3 num_workers=16`.

A range of ranks stands in many sentences about others (who is missing, who waits), so one counts only where the lines
of all sources fit together: each source names one range, and no two overlap.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from firstfault.ingest.identity_commands import numbers

RANKS_HERE = "identity-ranks-here"
HOST_HERE = "identity-host-here"
SIZE_LIMIT = 1024
"""Ranks that one node can carry."""
_RANKS = re.compile(
    r"(?i)(?:^|[\s(,;\[])(?:global(?:[_ ]ranks?)?|ranks?)['\"]?(?: are| is)?[ :=]{1,3}[\[(]?"
    r"(\d{1,7}(?: ?(?:-|\.\.) ?\d{1,7}| to \d{1,7}|(?:, ?\d{1,7}){1,64}))[\])]?(?:[\s.;,)|:]|$)"
)
_HOST = r"[A-Za-z][A-Za-z_-]{0,60}\d[\w.-]{0,120}"
_ON = re.compile(rf"(?i)\b(?:on|host|hostname|@)[ =:]{{1,2}}(?:host |node )?({_HOST})")
_FIRST = re.compile(rf"^\[?({_HOST})[\]:,|]{{0,2}} (?:node[_ ]?rank|node|ranks?|global|local|task)\b", re.I)
_NODE = re.compile(r"(?i)\bnode[_ ]?(?:rank|id|index|number)?[ =:#]{1,2}(\d{1,6})\b")
_OTHERS = re.compile(
    r"(?i)\b(?:miss\w*|wait\w*|lost|los(?:e|ing)|fail\w*|errors?|time[sd]? ?-?out|timeout|dead|died|did|not|never"
    r"|absent"
    r"|joined|connect\w*|exit\w*|kill\w*|abort\w*|barrier|slow\w*|stragg\w*|from|peers?|groups?|subgroup|split|tp|pp|dp"
    r"|ep|cp|mesh|stages?|experts?|pipeline|tensor|data[- ]parallel|lagging|behind|hung|stuck|report\w*|desync\w*"
    r"|mismatch\w*|unreachable|recv|send|sending|shards?|layers?|checkpoint\w*|loss|process_group|gpus? of|other)\b"
)
_NO_HOST = re.compile(
    r"(?i)(?:gpu|cuda|npu|cpu|device|step|epoch|rank|iter|node|worker|task|proc|local|phase)[:_-]?\d+$"
)


class Here(NamedTuple):
    """What one line says about the node of its writer."""

    ranks: tuple[int, ...]
    host: str | None
    node_rank: int | None


def ranks_here(text: str) -> Here | None:
    """The range of ranks in a line that speaks of no others, with the host and the node's number beside it."""
    found = _RANKS.findall(text)
    if len(found) != 1 or _OTHERS.search(text):
        return None
    ranks = numbers(found[0].replace(" to ", "-").replace(" ", ""))
    if not 1 < len(ranks) <= SIZE_LIMIT or list(ranks) != list(range(ranks[0], ranks[0] + len(ranks))):
        return None
    named = [match for match in (_ON.search(text), _FIRST.match(text)) if match]
    hosts = [match[1].rstrip(".-") for match in named if not _NO_HOST.match(match[1])]
    node = _NODE.search(text)
    return Here(ranks, hosts[0] if hosts else None, int(node[1]) if node else None)


def fitting(said: Iterable[tuple[int, int, Here]]) -> list[tuple[int, int, Here]]:
    """(source, line, what it says) of those sources that name one range each, where no two ranges overlap.

    A range of a single source counts where it stands beside a host or the number of a node.
    """
    by_source: dict[int, dict[tuple[int, ...], tuple[int, Here]]] = defaultdict(dict)
    for source_id, line, here in said:
        before = by_source[source_id].get(here.ranks)
        if before is None or (before[1].host is None and here.host is not None):
            by_source[source_id][here.ranks] = (line, here)
    alone = {s: next(iter(found.values())) for s, found in by_source.items() if len(found) == 1}
    return [(s, *alone[s]) for s in sorted(alone)] if _apart(alone, len(by_source)) else []


def hosts_here(said: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """(source, line, host) of sources in which lines that begin with a host name one alone, where no two name the same.

    A single source must begin several lines so.
    """
    by_source: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for source_id, line, host in said:
        if not _NO_HOST.match(host):
            by_source[source_id].append((line, host))
    names = {s: {host for _, host in found} for s, found in by_source.items()}
    every = [host for found in names.values() for host in found]
    if len(every) != len(names) or len(set(every)) < len(every):
        return []
    least = 3 if len(names) == 1 else 1
    return [(s, *found[0]) for s, found in sorted(by_source.items()) if len(found) >= least]


def _apart(alone: Mapping[int, tuple[int, Here]], sources: int) -> bool:
    ranges = {here.ranks for _, here in alone.values()}
    if len(alone) < sources or not ranges:
        return False
    if len(ranges) == 1:
        return all(here.host is not None or here.node_rank is not None for _, here in alone.values())
    return sum(len(ranks) for ranks in ranges) == len(set().union(*ranges)) and len({len(r) for r in ranges}) == 1
