"""The whole stage: a timeline in, candidates for each attempt, one `Diagnosis` out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from firstfault.catalog import Catalog
from firstfault.catalog.model import Event
from firstfault.correlate.attempts import attempts_of, in_their_attempts
from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.checkpoints import by_frames
from firstfault.correlate.collectives import read_collectives
from firstfault.correlate.contexts import Wanted
from firstfault.correlate.diagnosis import Diagnosis
from firstfault.correlate.exits import Exit, read_exits
from firstfault.correlate.from_calls import odd_operations, ran_out_of_data, stuck_in_completed
from firstfault.correlate.from_callsites import odd_call_sites
from firstfault.correlate.from_ends import killed_launchers, reported_ends
from firstfault.correlate.from_launchers import lost_outside_store, lost_own_store, lost_stores, ownerless_errors
from firstfault.correlate.from_links import common_ends, link_faults
from firstfault.correlate.from_machines import device_faults, doubt_zone, oom_kills
from firstfault.correlate.from_platforms import authored_actions, lost_nodes, signalled_launchers
from firstfault.correlate.from_ranks import own_errors
from firstfault.correlate.from_reruns import wrong_results
from firstfault.correlate.from_silence import mute_ranks
from firstfault.correlate.from_stacks import behind_in_ras, stacks_elsewhere
from firstfault.correlate.from_storage import storage
from firstfault.correlate.from_timings import blame_power, measured_stragglers, megatron_reports, slow_places
from firstfault.correlate.from_waits import (
    absent_by_counters,
    last_member,
    missing_members,
    named_absent,
    nobody_died,
    nobody_missing,
    unlogged,
)
from firstfault.correlate.generations import numbered_alike
from firstfault.correlate.health import last_generation, outlives, proof
from firstfault.correlate.healthy import Healthy, attach, familiar_signals, weigh
from firstfault.correlate.load import Timeline, load
from firstfault.correlate.model import Moment, Signal
from firstfault.correlate.names import Names
from firstfault.correlate.odd_sizes import odd_sizes
from firstfault.correlate.odd_values import place
from firstfault.correlate.odd_words import odd_words
from firstfault.correlate.orphans import adopt
from firstfault.correlate.own_loss import place_own_loss
from firstfault.correlate.owners import owned
from firstfault.correlate.ranking import CONCLUSIVE, Ranked, rank
from firstfault.correlate.saturation import blame_full_network
from firstfault.correlate.states import build_states
from firstfault.correlate.survival import step_times
from firstfault.correlate.times import Times
from firstfault.correlate.versions import odd_versions
from firstfault.correlate.window import Window
from firstfault.timeline import open_timeline
from firstfault.timeline.writer import memory_for


@dataclass(slots=True)
class AttemptResult:
    """One attempt, judged."""

    attempt: int
    view: View
    ranked: Ranked
    healthy: list[Signal]

    @property
    def failed(self) -> bool:
        """Whether anything in this attempt says that it did not end well."""
        return not self.healthy and bool(self.ranked.open or self.view.failing())


@dataclass(slots=True)
class Correlation:
    """Everything the stage worked out, before it is put into words."""

    timeline: Timeline
    names: Names
    times: Times
    attempts: list[AttemptResult]


def later_steps(con: duckdb.DuckDBPyConnection) -> dict[int, tuple[int, int]]:
    """For each error signal: how many distinct steps its log shows after it, by the same rank and by anybody.

    Whoever printed an echo and went on had lost nobody; that others went on says less, since they are told later.
    """
    rows = con.execute(
        """
        WITH errors AS (
            SELECT signal_id, source_id, coalesce(last_line, line) AS line, rank, role FROM signal_rows
            WHERE entry IS NOT NULL AND role IN ('initiating', 'ambiguous', 'collateral')
              AND NOT coalesce(weak, FALSE)
            QUALIFY row_number() OVER (PARTITION BY source_id, rank, entry ORDER BY line DESC) <= 200
        )
        SELECT e.signal_id, count(DISTINCT p.step) FILTER (p.rank = e.rank),
               count(DISTINCT p.step) FILTER (e.role <> 'collateral')
        FROM errors e JOIN progress p ON p.source_id = e.source_id AND p.line > e.line
        GROUP BY e.signal_id ORDER BY e.signal_id
        """
    ).fetchall()
    return {int(signal): (int(own), int(every)) for signal, own, every in rows}


def correlate(con: duckdb.DuckDBPyConnection, healthy: Healthy | None = None) -> Correlation:
    """Judge every attempt of a timeline, against a run that went well where there is one (see `healthy.attach`)."""
    familiar = familiar_signals(con) if healthy and healthy.completed else None
    read = load(con)
    times = Times(read)
    alike = numbered_alike(read, times)
    if alike is not read:
        times = Times(alike)
    timeline = in_their_attempts(alike, times)
    names = Names(timeline)
    exits = read_exits(timeline.signals, names)
    signals = owned(timeline.signals, names, exits)
    steps = later_steps(con)

    def usual(candidates: list[Candidate]) -> None:
        if healthy is not None and familiar is not None:
            weigh(candidates, familiar, healthy.name)

    results = [
        _attempt(con, timeline, names, times, exits, signals, steps, number, usual) for number in attempts_of(timeline)
    ]
    if len(results) > 1 and not results[-1].healthy:
        results[-1].healthy = last_generation([one.view for one in results])
    return Correlation(timeline, names, times, results)


def _attempt(
    con: duckdb.DuckDBPyConnection,
    timeline: Timeline,
    names: Names,
    times: Times,
    exits: list[Exit],
    signals: tuple[Signal, ...],
    steps: dict[int, tuple[int, int]],
    number: int,
    usual: Callable[[list[Candidate]], None],
) -> AttemptResult:
    mine = [signal for signal in signals if signal.attempt == number]
    scoped = replace(timeline, signals=tuple(mine))
    states = build_states(scoped, names, times, exits, number, steps)
    groups, collectives = read_collectives(mine, states, names)
    passed = step_times(timeline, times, number)
    view = View(number, timeline, names, times, mine, states, exits, groups, collectives, steps, passed)
    window = Window(timeline, times, states)
    candidates: list[Candidate] = []
    for source in (
        own_errors,
        wrong_results,
        reported_ends,
        absent_by_counters,
        odd_operations,
        ran_out_of_data,
        named_absent,
        missing_members,
        stacks_elsewhere,
        behind_in_ras,
        mute_ranks,
        last_member,
        stuck_in_completed,
        nobody_missing,
        nobody_died,
        unlogged,
        ownerless_errors,
        lost_stores,
        lost_outside_store,
        lost_own_store,
        killed_launchers,
    ):
        candidates.extend(place_own_loss(view, place(view, one)) for one in source(view))
    for outside in (
        signalled_launchers,
        common_ends,
        oom_kills,
        device_faults,
        link_faults,
        storage,
        lost_nodes,
        authored_actions,
        slow_places,
    ):
        candidates.extend(doubt_zone(window, one) for one in outside(view, window))
    by_frames(con, candidates)
    odd_words(con, view, candidates)
    odd_sizes(con, view, candidates)
    odd_versions(con, view, candidates)
    blame_full_network(con, view, candidates)
    adopt(view, candidates)
    if not any(one.base >= CONCLUSIVE for one in candidates):
        candidates.extend(odd_call_sites(con, view))
    if not any(one.base >= CONCLUSIVE and one.rule != "straggler" for one in candidates):
        candidates.extend(measured_stragglers(con, view))
        candidates.extend(megatron_reports(view))
        blame_power(candidates)
    usual(candidates)
    done = proof(view)
    ranked = rank(view, candidates)
    healthy = done if done and outlives(view, done) else []
    if ranked.best is not None and ranked.best.outweighs_completion:
        healthy = []
    return AttemptResult(number, view, ranked, healthy)


def diagnose(
    database: Path | str,
    catalog: Catalog | None = None,
    wanted: Wanted | None = None,
    healthy: Healthy | None = None,
) -> Diagnosis:
    """Diagnose the job of a timeline file and write the findings back into it, where the file can be written."""
    writable = os.access(database, os.W_OK) or not os.path.exists(database)
    con = open_timeline(database, writable=writable)
    try:
        if writable:  # what does not fit goes to a folder beside the file
            row = con.execute("SELECT coalesce(sum(lines), 0) FROM sources").fetchone()
            con.execute(f"SET memory_limit = '{memory_for(int(row[0]) if row else 0)}'")
        return diagnose_open(con, catalog, wanted, healthy, keep=writable)
    finally:
        con.close()


def diagnose_open(
    con: duckdb.DuckDBPyConnection,
    catalog: Catalog | None = None,
    wanted: Wanted | None = None,
    healthy: Healthy | None = None,
    *,
    keep: bool,
) -> Diagnosis:
    """Diagnose the job of an open timeline; `keep` writes the findings into it."""
    from firstfault.correlate.enrich import enriched
    from firstfault.correlate.store import save, save_changes
    from firstfault.correlate.verdict import compose

    if healthy is not None:
        attach(con, healthy)
    found = correlate(con, healthy)
    answer = compose(found, catalog)
    if keep:
        save(con, found, answer)
    full = enriched(con, found, answer, wanted or Wanted(), healthy)
    if keep:
        save_changes(con, full.comparison)
    return full


def echo_moment(view: View) -> Moment | None:
    """The earliest line that only follows a failure."""
    moments = [
        moment
        for state in view.states.values()
        for signal in state.derived
        if signal.event is not Event.SIGNAL_RECEIVED and (moment := view.times.of(signal)) is not None
    ]
    return min(moments, default=None)
