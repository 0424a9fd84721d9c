"""Candidates from where in the program each rank was when its collective failed: all run the same program, so the one
whose traceback comes from another line called another collective.

A traceback that Python prints ends in the innermost frame; the fault handler's begins with it. Frames of installed
packages say only how a collective is called.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import duckdb

from firstfault.catalog.model import Event
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.model import Signal
from firstfault.correlate.states import RankState

Site = tuple[str, int]

_FRAME = re.compile(r'File "([^"\n]{1,400})", line (\d{1,7}),? in ')
_INSTALLED = re.compile(r"site-packages|dist-packages|/lib/python\d|<frozen |<string>|/bin/")
_SAYS_WHERE = frozenset({Event.PEER_LOSS, Event.COLL_TIMEOUT, Event.DESYNC})
_FAULT_HANDLER = "process-abort"
_BEHIND = 60
"""Lines that the fault handler's stack may take."""
_MOST = 512
"""Ranks whose tracebacks are read."""


def odd_call_sites(con: duckdb.DuckDBPyConnection, view: View) -> list[Candidate]:
    """The one rank whose collective was called from another line than that of all others, where none of them raised an
    error of its own.
    """
    states = [state for state in view.states.values() if not state.own][:_MOST]
    if len(states) < 3 or len(states) < len(view.states):
        return []
    records = {state.rank: one for state in states if (one := _record(state)) is not None}
    sites = _sites(con, records)
    votes = Counter(site for site, _ in sites.values())
    if len(votes) != 2 or len(sites) < max(3, len(states) // 2 + 1):
        return []
    (usual, most), (odd, few) = votes.most_common()
    if few != 1 or most < 2:
        return []
    rank = next(number for number, (site, _) in sites.items() if site == odd)
    other = next(number for number, (site, _) in sorted(sites.items()) if site == usual)
    raised = any(
        one.event is Event.DESYNC and not one.weak and one.rank is not None and "FingerPrint" not in one.text
        for one in view.signals
    )
    if not raised and not all(_waited_or_lost(state) for state in states if state.rank != rank):
        return []
    return [
        Candidate(
            rule="odd-operation",
            cls="collective-desync",
            entry=None,
            component="rank",
            ranks=(rank,),
            hosts=view.names.rank_hosts((rank,), view.attempt),
            base=BASE["odd-operation"] if raised else BASE["odd-call-site"],
            signals=[
                (sites[rank][1], f"rank {rank} called its collective from {_words(odd)}"),
                (sites[other][1], f"rank {other} and all others called theirs from {_words(usual)}"),
            ],
            for_=[f"{most} ranks were at {_words(usual)}, rank {rank} at {_words(odd)}"],
        )
    ]


def _words(site: Site) -> str:
    return f"{site[0].rsplit('/', 1)[-1]}:{site[1]}"


def _waited_or_lost(state: RankState) -> bool:
    return not state.logged or any(one.event in _SAYS_WHERE for one in state.derived) or state.killed


def _record(state: RankState) -> Signal | None:
    """The traceback with which a rank's collective ended, or the stack that the fault handler printed of it."""
    told = [one for one in (*state.derived, *state.secondary) if one.event in _SAYS_WHERE]
    whole = [one for one in told if one.last_line > one.first_line and one.source.kind != "error-file"]
    if whole:
        return whole[0]
    return next((one for one in state.derived if one.entry == _FAULT_HANDLER), None)


def _sites(con: duckdb.DuckDBPyConnection, records: dict[int, Signal]) -> dict[int, tuple[Site, Signal]]:
    """Innermost frame of the program itself, for each rank whose traceback has one."""
    if not records:
        return {}
    ranks = sorted(records)
    rows = con.execute(
        """
        WITH wanted AS (
            SELECT unnest($1::INTEGER[]) AS number, unnest($2::INTEGER[]) AS source_id,
                   unnest($3::BIGINT[]) AS first, unnest($4::BIGINT[]) AS last
        )
        SELECT w.number, left(l.message, 500)
        FROM wanted w JOIN line_rows l ON l.source_id = w.source_id AND l.line BETWEEN w.first AND w.last
        WHERE l.message LIKE '%File "%' AND (l.rank IS NULL OR l.rank = w.number)
        ORDER BY w.number, l.line
        """,
        [
            ranks,
            [records[rank].source.id for rank in ranks],
            [records[rank].first_line for rank in ranks],
            [records[rank].last_line + (_BEHIND if records[rank].entry == _FAULT_HANDLER else 0) for rank in ranks],
        ],
    ).fetchall()
    frames: dict[int, list[Site]] = defaultdict(list)
    for rank, text in rows:
        match = _FRAME.search(text)
        if match and not _INSTALLED.search(match[1]):
            frames[rank].append((match[1], int(match[2])))
    return {
        rank: (listed[0] if records[rank].entry == _FAULT_HANDLER else listed[-1], records[rank])
        for rank, listed in sorted(frames.items())
    }
