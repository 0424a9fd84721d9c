"""Whether data was still moving in a collective that everybody entered and nobody finished, as the ranks tell it.

Three things in what the waiting ranks print show that they were only slow: amounts that grew while they waited, earlier
transfers that had taken nearly as long as the limit, and more bytes than the link that `ethtool` shows carries in that
time. A time-out alone shows none of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise

import duckdb

from firstfault.correlate.candidate import View
from firstfault.correlate.collectives import Collective
from firstfault.correlate.from_waits import chains
from firstfault.correlate.model import Signal
from firstfault.correlate.timings import line_as_signal

_TRANSFER = (
    r"gather|broadcast|bcast|scatter|reduc|all-?to-?all|alltoall|exchang|transfer|receiv|sent\b|send|sync|upload|copied"
    r"|\brx\b|\btx\b"
)
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?(?:[KMGT]i?B)? ?(?:/|of|out of) ?(\d{1,9}(?:\.\d{1,6})?) ?[KMGT]i?B\b")
_SHARE = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3})?) ?%")
_TOOK = re.compile(
    r"\b(?:done|finished|complete[d]?|took|gathered|received|sent|broadcasted|reduced|synced|synchronised|synchronized)"
    r"\b[^\d\n]{0,40}?(\d{1,6}(?:\.\d{1,6})?) ?(s|sec|secs|seconds|min|minutes)\b"
)
_UNITS = {"min": 60.0, "minutes": 60.0}
_LINES = 2000
_WAITERS = 8
_NEARLY = 0.4
"""Share of the limit that earlier transfers must have taken, the last of them at least."""
_SECOND = 1_000_000_000
_SPEED = re.compile(r"\bSpeed: (\d{2,7}) ?Mb/s")

Line = tuple[int, int | None, str]
"""Line, stamp, text."""


def waits_of_all(view: View) -> list[Collective]:
    """Collectives that every member waits in, each with the same operation."""
    blocked = chains(view)
    return [
        one
        for one in view.collectives
        if one.seq is not None
        and one.waiters
        and not one.odd
        and not one.absent
        and one.group.members
        and one.group.members <= set(one.waiters)
        and any(blocked.get(rank, one) is one for rank in one.waiters)
    ]


def movement(con: duckdb.DuckDBPyConnection, view: View) -> tuple[str, list[tuple[Signal, str]]] | None:
    """What shows that data still moved, in words, with the lines; None where nothing does."""
    for one in waits_of_all(view):
        told = {
            rank: (signal, _before(con, signal, rank))
            for rank, signal in sorted(one.waiters.items())[:: max(1, len(one.waiters) // _WAITERS)]
        }
        for found in (_grew(told), _nearly(told), _too_large(con, view, one)):
            if found is not None:
                return found
    return None


def _limit_s(signal: Signal) -> float | None:
    waited = signal.number("timeout_ms") or signal.number("elapsed_ms")
    return waited / 1000 if waited else None


def _before(con: duckdb.DuckDBPyConnection, signal: Signal, rank: int) -> list[Line]:
    """Lines with words of a transfer that a rank, or nobody in particular, prints before it gives up."""
    rows = con.execute(
        f"""
        SELECT line, stamp_ns, left(message, 300) FROM line_rows
        WHERE source_id = ? AND line < ? AND line >= ? AND (rank = ? OR rank IS NULL)
          AND regexp_matches(message, '(?i){_TRANSFER}') AND regexp_matches(message, '[0-9]')
        ORDER BY line
        """,
        [signal.source.id, signal.first_line, max(1, signal.first_line - _LINES), rank],
    ).fetchall()
    return [(int(line), stamp, text) for line, stamp, text in rows]


def _evidence(signal: Signal, lines: list[Line], why: str) -> list[tuple[Signal, str]]:
    return [
        (line_as_signal(signal.source, line, text, signal.rank, signal.attempt), why) for line, _, text in lines[-2:]
    ]


def _grew(told: dict[int, tuple[Signal, list[Line]]]) -> tuple[str, list[tuple[Signal, str]]] | None:
    """Amounts of a whole that ranks print while they wait, and that grow, or are part of it on several ranks."""
    evidence: list[tuple[Signal, str]] = []
    moving, ranks = 0, 0
    for signal, lines in told.values():
        limit = _limit_s(signal)
        if limit is None or signal.stamp_ns is None:
            continue
        since = signal.stamp_ns - int((limit + 5) * _SECOND)
        within = [one for one in lines if one[1] is not None and since <= one[1] <= signal.stamp_ns]
        parts = []
        for one in within:
            if amount := _AMOUNT.search(one[2]):
                parts.append((float(amount[1]) / max(float(amount[2]), 1e-9), one))
            elif share := _SHARE.search(one[2]):
                parts.append((float(share[1]) / 100, one))
        parts = [(part, one) for part, one in parts if 0.0 < part < 1.0]
        if not parts:
            continue
        ranks += 1
        late = signal.stamp_ns - (parts[-1][1][1] or 0) < limit * _SECOND / 2
        grown = len(parts) >= 2 and all(one[0] < other[0] for one, other in pairwise(parts))
        moving += grown and late
        if grown or parts[-1][0] > 0.5:
            evidence.extend(_evidence(signal, [one for _, one in parts], "data still arrived while it waited"))
    if moving or (ranks >= 2 and len(evidence) >= 2):
        return "the amounts that the waiting ranks print had grown until shortly before the limit", evidence[:8]
    return None


def _nearly(told: dict[int, tuple[Signal, list[Line]]]) -> tuple[str, list[tuple[Signal, str]]] | None:
    """Earlier transfers that took nearly as long as the limit allows, on most of the waiting ranks."""
    evidence: list[tuple[Signal, str]] = []
    longest, limits, slow = 0.0, 0.0, 0
    for signal, lines in told.values():
        limit = _limit_s(signal)
        took = [(float(match[1]) * _UNITS.get(match[2], 1.0), one) for one in lines if (match := _TOOK.search(one[2]))]
        if limit is None or len(took) < 2 or took[-1][0] < _NEARLY * limit or took[-1][0] >= limit:
            continue
        slow += 1
        longest, limits = max(longest, took[-1][0]), limit
        evidence.extend(_evidence(signal, [one for _, one in took], "the transfer before it"))
    if slow and 2 * slow >= len(told):
        return f"the transfers before it had taken up to {longest:.0f} s of the {limits:.0f} s allowed", evidence[:8]
    return None


def _too_large(
    con: duckdb.DuckDBPyConnection, view: View, one: Collective
) -> tuple[str, list[tuple[Signal, str]]] | None:
    """More bytes than the slowest link that `ethtool` shows carries within the limit, at two bytes an element."""
    signal = next(iter(one.waiters.values()))
    numel = max(signal.number("numel_in") or 0, signal.number("numel_out") or 0)
    limit = _limit_s(signal)
    hosts = {view.names.host_of(rank, view.attempt) for rank in one.group.members}
    if not numel or limit is None or len(hosts) < 2:
        return None
    rows = con.execute(
        "SELECT source_id, line, left(message, 200) FROM line_rows WHERE message LIKE '%Speed: %Mb/s%' ORDER BY 1, 2 "
        "LIMIT 64"
    ).fetchall()
    speeds: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for source_id, line, text in rows:
        if (match := _SPEED.search(text)) and int(match[1]) > 0:
            speeds[int(match[1])].append((source_id, line, text))
    if not speeds:
        return None
    slowest = min(speeds)
    needed = numel * 2 * 8 * (len(hosts) - 1) / len(hosts) / (slowest * 1e6)
    if needed < 0.8 * limit:
        return None
    lines = [
        (line_as_signal(view.timeline.sources[source], line, text, None, view.attempt), "the speed of the link")
        for source, line, text in speeds[slowest][:2]
    ]
    return f"its {numel} elements need {needed:.0f} s or more at {slowest} Mb/s, and {limit:.0f} s are allowed", lines
