"""Owns when a mark in front of each line (`[worker 3] `, `node-07:5 | `, `(3) `) is believed to name the writer.

A format with `mark` in its `sniff` table says what its numbers are by `counts`: `rank` (global, so each on one host),
`local` (they begin anew on each host), `device` (an ordinal on its host), `all` (every rank from 0 on, told by nothing
but that), `host` (no number). Steps, parts of a list and ports begin lines as well: they grow, or have gaps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

HOST = re.compile(r"[A-Za-z][\w-]*(?:\.[\w-]+)*")
NO_HOST = re.compile(
    r"(?i)(?:rank|gpu|cuda|npu|cpu|hpu|device|step|iter|iteration|epoch|layer|shard|task|proc|process|thread|stage|batch"
    r"|worker|w|r|p|t|replica|actor|trainer|rk|part|fold|run|exp|trial|pg|tp|dp|pp|ep|v|bucket|group|train|eval|test|val"
    r"|info|debug|warning|warn|error|critical|fatal|global|local|lr|loss|time|line|file|python)s?[-_:.]?\d{0,9}$"
)
NO_HOST_END = ("error", "warning", "exception", ".py", ".cc", ".cpp", ".cu", ".h", ".c", ".go", ".rs")
LOCAL_LIMIT = 64
RANK_LIMIT = 1 << 17


def numbers_hold(counts: str, marks: Sequence[str], labels: Sequence[str], hosts: Sequence[str]) -> bool:
    """Whether the numbers of the marks, in the order of their lines, can be what the format says."""
    numbers = [int(label) for label in labels if label.isascii() and label.isdigit() and len(label) < 8]
    if len(numbers) < len(labels):
        return False
    shown = sorted(set(numbers))
    if counts in ("rank", "all") and shown[-1] >= RANK_LIMIT:
        return False
    if hosts and not all(_is_host(host) for host in set(hosts)):
        return False
    if counts == "all":
        return len(shown) > 1 and shown == list(range(len(shown))) and _in_no_order(numbers)
    if counts == "device":
        return shown[-1] < LOCAL_LIMIT and (len(shown) == 1 or _in_no_order(numbers))
    homes = _homes(numbers, hosts)
    if counts == "local":
        several = any(len(places) > 1 for places in homes.values())
        return several and shown == list(range(len(shown))) and shown[-1] < LOCAL_LIMIT
    if any(len(places) > 1 for places in homes.values()):
        return False
    if len(shown) == 1:
        return all("rank" in mark.lower() for mark in set(marks[:8]))
    named = all("rank" in mark.lower() for mark in set(marks))
    return (named or _dense(shown)) and _in_no_order(numbers)


def _is_host(name: str) -> bool:
    """Whether a word in a mark can be a host: a digit or a hyphen in it, no word for something else with a number."""
    telling = any(letter.isdigit() for letter in name) or "-" in name
    return (
        telling
        and NO_HOST.match(name) is None
        and not name.lower().endswith(NO_HOST_END)
        and HOST.fullmatch(name) is not None
    )


def _homes(numbers: Sequence[int], hosts: Sequence[str]) -> Mapping[int, set[str]]:
    homes: dict[int, set[str]] = {}
    for number, host in zip(numbers, hosts, strict=False):
        homes.setdefault(number, set()).add(host)
    return homes


def _dense(shown: Sequence[int]) -> bool:
    """Ranks of a file have few gaps: of all, or of one node."""
    return len(shown) * 2 >= shown[-1] - shown[0] + 1


def _in_no_order(numbers: Sequence[int]) -> bool:
    """Whether a number comes again after another one, as what a counter shows never does."""
    seen: set[int] = set()
    last: int | None = None
    for number in numbers:
        if number != last:
            if number in seen:
                return True
            seen.add(number)
            last = number
    return False
