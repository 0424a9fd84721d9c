"""Which rank brought the tensor that does not fit, where a library names both shapes and no rank.

Every rank raises the same words. What each printed before of its data or its model holds one of the two sizes: the
fewer ranks that print the one are the odd ones. Two halves of a job are no majority and no minority.
"""

from __future__ import annotations

import re

import duckdb

from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.model import Signal
from firstfault.correlate.timings import line_as_signal

_TWO_SHAPES = re.compile(
    r"One rank sent a tensor (?:of shape \[([\d, ]{1,80})\]|with dimension \d{1,3} equal to (\d{1,18})), "
    r"but another rank sent a tensor (?:of shape \[([\d, ]{1,80})\]|with dimension \d{1,3} equal to (\d{1,18}))"
)
"""horovod/common/controller.cc: ConstructResponse."""
_SMALL = 10
"""Smaller numbers stand in too many lines to say anything."""
_MOST = 512
"""Ranks whose lines are read."""


def odd_sizes(con: duckdb.DuckDBPyConnection, view: View, candidates: list[Candidate]) -> None:
    """Name the ranks that printed the size which the fewer have, for a mismatch of shapes that names none, in place."""
    for one in candidates:
        if one.rule != "raised-desync" or one.ranks:
            continue
        sizes = next((found for signal, _ in one.signals if (found := _sizes(signal))), None)
        ranks = [state.rank for state in view.logged()]
        if sizes is None or not 3 <= len(ranks) <= _MOST or len(ranks) < len(view.states):
            continue
        told = _told(con, view, ranks, sizes)
        having = [[rank for rank in ranks if size in told.get(rank, {})] for size in sizes]
        if set(having[0]) & set(having[1]) or len(having[0]) + len(having[1]) < len(ranks):
            continue
        few, many = sorted((0, 1), key=lambda which: len(having[which]))
        if not having[few] or len(having[few]) >= len(having[many]):
            continue
        _place(view, one, told, having[few], (sizes[few], sizes[many]), len(having[many]))


def _place(
    view: View,
    one: Candidate,
    told: dict[int, dict[int, Signal]],
    ranks: list[int],
    sizes: tuple[int, int],
    others: int,
) -> None:
    odd, usual = sizes
    one.rule, one.base = "odd-operation", BASE["odd-operation"]
    one.ranks = tuple(ranks)
    one.hosts = view.names.rank_hosts(one.ranks, view.attempt)
    one.component, one.missing = "rank", None
    one.signals[:0] = [(told[rank][odd], f"rank {rank} says {odd}, the others {usual}") for rank in ranks[:4]]
    one.for_.append(f"rank {ranks[0]} printed {odd} where the {others} others printed {usual}")


def _sizes(signal: Signal) -> tuple[int, int] | None:
    """The two sizes that do not fit, where the shapes differ in one dimension."""
    match = _TWO_SHAPES.search(signal.text) or _TWO_SHAPES.search(signal.captures.get("text", ""))
    if match is None:
        return None
    one, other = ([int(number) for number in text.split(",")] for text in match.groups() if text)
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    return pairs[0] if len(pairs) == 1 and len(one) == len(other) and min(pairs[0]) >= _SMALL else None


def _told(
    con: duckdb.DuckDBPyConnection, view: View, ranks: list[int], sizes: tuple[int, int]
) -> dict[int, dict[int, Signal]]:
    """By rank which of two sizes its lines hold as a whole number, each with the first line; not those with both."""
    rows = con.execute(
        """
        WITH said AS (
            SELECT rank, source_id, line, left(message, 300) AS text FROM line_rows
            WHERE rank = ANY($1::INTEGER[]) AND coalesce(attempt, 0) = $2 AND message IS NOT NULL
        ), sized AS (
            SELECT *, regexp_matches(text, $3) AS one, regexp_matches(text, $4) AS other FROM said
        )
        SELECT rank, one, source_id, line, text FROM sized WHERE one <> other
        QUALIFY row_number() OVER (PARTITION BY rank, one ORDER BY source_id, line) = 1
        ORDER BY rank, one
        """,
        [ranks, view.attempt, *(rf"(?:^|[^\d.]){size}(?:[^\d.]|$)" for size in sizes)],
    ).fetchall()
    found: dict[int, dict[int, Signal]] = {}
    for rank, first, source, line, text in rows:
        said = line_as_signal(view.timeline.sources[source], line, text, rank, view.attempt)
        found.setdefault(rank, {})[sizes[0] if first else sizes[1]] = said
    return found
