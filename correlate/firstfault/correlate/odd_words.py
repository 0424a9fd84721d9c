"""Which rank called another size, in the words of the program itself, where a library says only that two calls differ.

All ranks print the same sentence at the same step, and in one position of it one rank prints another whole number than
all others, where before they had all printed the same: that rank did something else.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import duckdb

from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.timings import line_as_signal

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?", re.IGNORECASE)
_MOST = 512
_LINES = 240

Told = tuple[int, int, str, tuple[str, ...]]
"""Source, line, text, numbers."""


def odd_words(con: duckdb.DuckDBPyConnection, view: View, candidates: list[Candidate]) -> None:
    """Name the rank whose last sentence holds another number, for a mismatch that names none, in place."""
    open_ones = [one for one in candidates if one.rule == "raised-desync" and not one.ranks]
    states = sorted(state.rank for state in view.logged())
    if not open_ones or not 3 <= len(states) <= _MOST:
        return
    told = _sentences(con, view, states)
    for template in sorted(told):
        ranks = told[template]
        if len(ranks) < len(states) or any(len(lines) < 2 for lines in ranks.values()):
            continue
        odd = _odd(ranks)
        if odd is None:
            continue
        rank, number, usual = odd
        source, line, text, _ = ranks[rank][0]
        said = line_as_signal(view.timeline.sources[source], line, text, rank, view.attempt)
        for one in open_ones:
            one.rule, one.base = "odd-operation", BASE["odd-operation"]
            one.ranks = (rank,)
            one.hosts = view.names.rank_hosts(one.ranks, view.attempt)
            one.component, one.missing = "rank", None
            one.signals.insert(0, (said, f"rank {rank} says {number}, all others {usual}"))
            one.for_.append(f"rank {rank} printed {number} where the {len(ranks) - 1} others printed {usual}")
        return


def _sentences(con: duckdb.DuckDBPyConnection, view: View, states: list[int]) -> dict[str, dict[int, list[Told]]]:
    """The last lines of each rank by their template, latest first."""
    rows = con.execute(
        """
        SELECT rank, source_id, line, left(message, 300) FROM line_rows
        WHERE rank = ANY($1::INTEGER[]) AND coalesce(attempt, 0) = $2 AND message IS NOT NULL
          AND regexp_matches(message, '[0-9]')
        QUALIFY row_number() OVER (PARTITION BY rank ORDER BY source_id DESC, line DESC) <= $3
        ORDER BY rank, source_id DESC, line DESC
        """,
        [states, view.attempt, _LINES],
    ).fetchall()
    found: dict[str, dict[int, list[Told]]] = defaultdict(lambda: defaultdict(list))
    for rank, source, line, text in rows:
        if ' File "' not in text:
            found[_NUMBER.sub("#", text)][rank].append((source, line, text, tuple(_NUMBER.findall(text))))
    return found


def _odd(ranks: dict[int, list[Told]]) -> tuple[int, str, str] | None:
    """The one rank, its number and that of all others, where they had agreed in that position before."""
    last = {rank: lines[0][3] for rank, lines in ranks.items()}
    before = {rank: lines[1][3] for rank, lines in ranks.items()}
    odd: list[tuple[int, str, str]] = []
    for position in range(len(next(iter(last.values())))):
        now = Counter(numbers[position] for numbers in last.values())
        then = {numbers[position] for numbers in before.values()}
        if len(now) == 1:
            continue
        (usual, _), (other, few) = now.most_common(2)
        steady = then == {usual} and usual.isdigit() and other.isdigit()
        if len(now) == 2 and few == 1 and steady:
            odd.append((next(rank for rank, numbers in last.items() if numbers[position] == other), other, usual))
        elif usual.isdigit() and other.isdigit() and len(now) < len(last):
            return None  # they had come to different points
    return odd[0] if len(odd) == 1 else None
