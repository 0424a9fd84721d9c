"""Puts what was worked out into one `Diagnosis`: verdict, place, evidence, collateral, hypotheses, the missing fact,
the next step.
"""

from __future__ import annotations

from dataclasses import replace

from firstfault.catalog import Catalog, load_catalog
from firstfault.catalog.model import Entry, Event, FailureClass
from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.chain import chain_of
from firstfault.correlate.diagnosis import (
    Advice,
    AlsoFailed,
    Attempt,
    Clock,
    Collateral,
    Coverage,
    Diagnosis,
    Evidence,
    Failure,
    Hypothesis,
    Job,
    Place,
    RankFate,
    Verdict,
)
from firstfault.correlate.engine import AttemptResult, Correlation
from firstfault.correlate.folded import folded
from firstfault.correlate.folding import fate_of, fate_words, fold
from firstfault.correlate.graph import build
from firstfault.correlate.missing import missing_fact
from firstfault.correlate.model import Moment, Signal, rank_ranges
from firstfault.correlate.picture import CausalGraph
from firstfault.correlate.ranking import STRUCTURAL

NO_FAILURE = Failure(None, None, None)
_MAX_EVIDENCE = 20
_SPEAKS_FOR_THE_JOB = frozenset({"rank", "launcher", "node", "job", "error-file"})
"""Kinds of logs that tell when the job began and ended; machines and schedulers log for others, too."""
_SUSPECT = 0.1
"""Least probability of a candidate whose ranks an undetermined verdict keeps out of the collateral ones."""
_ABSENT = {"collective-rank-absent": "A rank never came to the collective that the others wait in"}
_TITLES: dict[str, dict[str, str]] = {
    "absent": _ABSENT,
    "behind": _ABSENT,
    "elsewhere": _ABSENT,
    "named-absent": _ABSENT,
    "last-member": _ABSENT,
    "mute": {"collective-rank-absent": "A rank fell silent while the others waited for it"},
    "silent-host": {"host-down": "A host fell silent with all its ranks while the others waited for them"},
    "odd-operation": {"collective-desync": "Ranks called different collectives, or the same with different sizes"},
    "stuck-in-completed": {"collective-desync": "A rank waits in a collective that the others completed"},
    "ran-out": {"uneven-inputs": "Some ranks ran out of data before the others"},
    "fabric": {"collective-slow": "Every rank entered the collective, and it did not complete in time"},
    "straggler": {"straggler": "One rank works slower than the others, who wait for it"},
}
"""Titles of what is argued from absence or comparison, where an entry's title would tell of its witness."""
_OF_SEVERAL = {
    "A rank never came to the collective that the others wait in": (
        "Ranks never came to the collective that the others wait in"
    ),
    "A rank fell silent while the others waited for it": "Ranks fell silent while the others waited for them",
    "A rank waits in a collective that the others completed": "Ranks wait in a collective that the others completed",
    "One rank works slower than the others, who wait for it": "Ranks work slower than the others, who wait for them",
}


def evidence_of(view: View, signal: Signal, why: str) -> Evidence:
    """One signal as a citation."""
    text = signal.text if signal.text else signal.captures.get("text", "")
    return Evidence(
        path=signal.source.path,
        line=signal.line,
        text=text[:500],
        why=why,
        at=view.times.text(view.times.of(signal)),
        rank=signal.rank,
        host=signal.host,
    )


def failure_of(candidate: Candidate, catalog: Catalog) -> Failure:
    """Class, entry and title of a candidate. Without an entry of its class, the class gives the title."""
    entry = catalog.entries.get(candidate.entry or "")
    if entry is not None and entry.cls != candidate.cls:
        entry = None
    argued = _TITLES.get(candidate.rule, {}).get(candidate.cls)
    if len(candidate.ranks) > 1:
        argued = _OF_SEVERAL.get(argued or "", argued)
    known = catalog.classes.get(candidate.cls)
    title = argued or (entry.title if entry else known.title if known else candidate.cls)
    return Failure(candidate.cls, entry.id if entry else None, title)


def place_of(view: View, candidate: Candidate) -> Place:
    """Where a candidate lies."""
    gpus = []
    if candidate.component == "gpu":
        for rank in candidate.ranks:
            host, gpu = view.names.host_of(rank, view.attempt), view.names.gpu_of(rank)
            if gpu is None:
                gpu = view.names.local_rank(rank)
            if host is not None and gpu is not None:
                gpus.append(f"{host}/{gpu}")
    return Place(
        component=candidate.component,
        ranks=candidate.ranks,
        hosts=candidate.hosts,
        gpus=tuple(gpus),
        aliases=view.names.other_names(candidate.hosts),
        at=view.times.text(candidate.moment),
    )


def cite(view: View, candidate: Candidate) -> tuple[Evidence, ...]:
    """The candidate's lines, strongest first, one for each place; of a silent rank first the last that it printed."""
    found: dict[tuple[str, int], Evidence] = {}
    if candidate.rule in STRUCTURAL:
        for one in _last_lines(view, candidate.ranks):
            found.setdefault((one.path, one.line), one)
    signals = _in_turn(candidate.signals)
    if candidate.rule == "odd-operation":
        signals[1:1] = _said_before(view, candidate)
    for signal, why in signals:
        found.setdefault(signal.place, evidence_of(view, signal, why))
    if not found:
        for one in _last_lines(view, candidate.ranks):
            found.setdefault((one.path, one.line), one)
    return tuple(found.values())[:_MAX_EVIDENCE]


def _in_turn(signals: list[tuple[Signal, str]]) -> list[tuple[Signal, str]]:
    """The same lines, each kind of them in turn: what several ranks say alike does not hide what else speaks for it."""
    kinds: dict[tuple[str, str | None], list[tuple[Signal, str]]] = {}
    for signal, why in signals:
        kinds.setdefault((signal.source.kind, signal.entry or signal.fact), []).append((signal, why))
    longest = max(map(len, kinds.values()), default=0)
    return [listed[turn] for turn in range(longest) for listed in kinds.values() if turn < len(listed)]


def _said_before(view: View, candidate: Candidate) -> list[tuple[Signal, str]]:
    """What a rank that called another collective said last that it had done or begun: how it came there."""
    found = []
    for rank in candidate.ranks[:2]:
        state = view.states.get(rank)
        said = [*state.completed, *state.phases] if state else []
        if said:
            last = max(said, key=lambda one: (one.stamp_ns or 0, one.line))
            found.append((last, f"the last thing that rank {rank} says it had done or begun"))
    return found


def _last_lines(view: View, ranks: tuple[int, ...]) -> list[Evidence]:
    """The last line of each of some ranks, at most two where there are many."""
    found = []
    for rank in ranks[:8]:
        state = view.states.get(rank)
        extent = state.last_extent(view.times) if state else None
        if extent is not None:
            moment = view.times.of_source(extent.source, extent.last_ns) if extent.last_ns is not None else None
            why = f"the last line of rank {rank}"
            host = extent.source.host or (state.host if state else None)
            found.append(
                Evidence(
                    extent.source.path, extent.last_line, extent.last_text, why, view.times.text(moment), rank, host
                )
            )
    return found[:2] if len(found) > 2 else found


def compose(correlation: Correlation, catalog: Catalog | None = None) -> Diagnosis:
    """The answer for the whole job, worded by the catalog that it was read with."""
    catalog = catalog or load_catalog()
    results = correlation.attempts
    chosen, verdict = judged(correlation)
    view, ranked = chosen.view, chosen.ranked
    best = ranked.best if verdict is Verdict.IDENTIFIED else None
    graph = build(view, best) if best else None
    failure = failure_of(best, catalog) if best else NO_FAILURE
    entry = catalog.entries.get(failure.entry or "")
    known = catalog.classes.get(failure.cls or "")
    evidence = (
        cite(view, best)
        if best
        else tuple(evidence_of(view, signal, "states a good end") for signal in chosen.healthy[:8])
    )
    if verdict is Verdict.UNDETERMINED:
        evidence = tuple(one for candidate in ranked.open[:3] for one in cite(view, candidate)[:4])[:_MAX_EVIDENCE]
    missing = missing_fact(view, ranked, chosen.failed) if verdict is Verdict.UNDETERMINED else None
    place = place_of(view, best) if best else Place()
    suspects = [
        one for one, chance in zip(ranked.open, ranked.probabilities, strict=True) if chance >= _SUSPECT and one.ranks
    ]
    collateral = collateral_of(view, best, suspects, verdict)
    return Diagnosis(
        verdict=verdict,
        failure=failure,
        initiating=place,
        evidence=evidence,
        collateral=collateral,
        confidence=confidence(chosen, best, verdict),
        hypotheses=hypotheses(view, chosen),
        missing_fact=missing,
        next_action=next_action(verdict, entry, best, missing),
        job=job_of(correlation, chosen),
        clocks=clocks_of(correlation),
        summary=summary(view, verdict, failure, place, best, missing),
        why_not=why_not(view, chosen, best),
        also=also_failed(view, chosen, best, catalog),
        attempts=tuple(attempt_of(correlation, result, catalog) for result in results),
        chain=chain_of(view, graph) if graph is not None else (),
        graph=folded(graph) if graph is not None else CausalGraph(),
        fates=fates_of(view, best),
        advice=advice_of(entry, known),
        coverage=coverage_of(correlation),
        refusals=ranked.refusals,
    )


def judged(correlation: Correlation) -> tuple[AttemptResult, Verdict]:
    """The attempt that the answer is about, and what it settles: the last where it completed, else the first that
    failed.
    """
    last = correlation.attempts[-1]
    first_failed = next((result for result in correlation.attempts if result.failed), None)
    if last.healthy:
        return last, Verdict.NO_FAILURE
    if first_failed is None:
        return last, Verdict.UNDETERMINED
    return first_failed, Verdict.IDENTIFIED if first_failed.ranked.best is not None else Verdict.UNDETERMINED


def fates_of(view: View, best: Candidate | None) -> tuple[RankFate, ...]:
    """How each rank ended, with its last step and when its last line was printed."""
    found = []
    for state in view.states.values():
        last = state.last_ns(view.times)
        seen = view.times.text(Moment(last, 0)) if last is not None else None
        found.append(RankFate(state.rank, state.host, fate_of(state, best), state.last_step, seen, view.attempt))
    return tuple(found)


def confidence(result: AttemptResult, best: Candidate | None, verdict: Verdict) -> float:
    """Probability that the verdict is right, by how the evidence of its kind has proved."""
    if verdict is Verdict.NO_FAILURE:
        return 0.97
    if best is None:
        return round(min(0.9, 1.0 - (result.ranked.probabilities[0] if result.ranked.probabilities else 0.3)), 2)
    ceiling = 0.92 if best.rule not in STRUCTURAL else 0.88
    if best.rule in ("own-error-ambiguous", "device-fault") and best.base < 3.2:
        ceiling = 0.8
    if best.rule == "odd-operation" and best.base < 3.2:
        ceiling = 0.8
    if best.entry == "process-abort" or (best.rule == "killed-by-signal" and (not best.ranks or best.entry is None)):
        ceiling = 0.75  # what ended it, or which process of the host it was, nobody says
    return round(min(ceiling, result.ranked.probabilities[0]), 2)


def hypotheses(view: View, result: AttemptResult) -> tuple[Hypothesis, ...]:
    """Candidates with what speaks for and against each, the likeliest first; explained ones last."""
    found = [
        Hypothesis(one.cls, one.entry, one.ranks, one.hosts, round(chance, 3), reasons(one), tuple(one.against))
        for one, chance in zip(result.ranked.open, result.ranked.probabilities, strict=True)
    ]
    for one in result.ranked.explained:
        cause = one.explained_by
        reason = f"follows from {cause.cls} on {place_words(cause)}" if cause else ""
        found.append(Hypothesis(one.cls, one.entry, one.ranks, one.hosts, 0.0, reasons(one), (*one.against, reason)))
    return tuple(found[:12])


def reasons(candidate: Candidate) -> tuple[str, ...]:
    """What speaks for a candidate; where no rule says more, what its lines are."""
    if candidate.for_:
        return tuple(candidate.for_)
    shown = {why: f"{why}: {signal.source.path}:{signal.line}" for signal, why in reversed(candidate.signals[:3])}
    return tuple(reversed(shown.values()))


def place_words(candidate: Candidate) -> str:
    """A place in words: 'rank 3 (gpu-a01)', 'host gpu-b02', 'the whole job'."""
    more = f" and {len(candidate.hosts) - 4} more" if len(candidate.hosts) > 5 else ""
    host = ", ".join(candidate.hosts[: 4 if more else 5]) + more
    if candidate.ranks:
        ranks = rank_ranges(candidate.ranks)
        return f"rank{'s' if len(candidate.ranks) > 1 else ''} {ranks}{f' ({host})' if host else ''}"
    return f"host {host}" if host else "the whole job"


def collateral_of(view: View, best: Candidate | None, suspects: list[Candidate], verdict: Verdict) -> Collateral:
    """Everyone who only followed, folded by what they print; who is suspected is not said to follow."""
    if verdict is Verdict.NO_FAILURE:
        return Collateral()
    root = set(best.ranks) if best else {rank for one in suspects for rank in one.ranks}
    states = [
        state
        for state in view.states.values()
        if state.rank not in root and (state.derived or state.secondary or state.own or state.exits or state.logged)
    ]
    groups = fold(view, states)
    ranks = tuple(sorted(state.rank for state in states))
    hosts = tuple(sorted({state.host for state in states if state.host}))
    return Collateral(ranks, hosts, groups)


def next_action(verdict: Verdict, entry: Entry | None, best: Candidate | None, missing: str | None) -> str:
    """The first thing to do."""
    if verdict is Verdict.NO_FAILURE:
        return "Nothing to mend: the job completed."
    if best is None:
        return (
            f"Fetch the missing fact: {missing}."
            if missing
            else "Collect the logs of all ranks, launchers and hosts and run again."
        )
    if entry and entry.fix:
        return entry.fix[0]
    return f"Look at {place_words(best)} first: the evidence above is where it began."


def summary(
    view: View, verdict: Verdict, failure: Failure, place: Place, best: Candidate | None, missing: str | None
) -> str:
    """The verdict in one or two sentences."""
    if verdict is Verdict.NO_FAILURE:
        return "The job completed; nothing failed."
    if best is None:
        return f"The logs do not settle what failed first. Missing: {missing}."
    title = failure.title or failure.cls or "a failure"
    where = place_words(best)
    return (
        f"{title}: it began on {where}."
        if where != "the whole job"
        else f"{title}: the cause is common to the whole job."
    )


def why_not(view: View, result: AttemptResult, best: Candidate | None) -> tuple[tuple[str, str], ...]:
    """Why the others that look guilty are not accused: whose candidates follow, and who printed the first error."""
    found = []
    for one in result.ranked.explained[:8]:
        cause = one.explained_by or best
        if cause is not None:
            found.append((place_words(one), f"{one.cls} there follows from {cause.cls} on {place_words(cause)}"))
    if best is not None and (loud := _first_to_complain(view, best)) is not None:
        found.append(loud)
    return tuple(found)


def _first_to_complain(view: View, best: Candidate) -> tuple[str, str] | None:
    """The rank outside the root whose error bears the earliest time: readers of raw logs accuse it first."""
    loud = sorted(
        (moment.ns, state.rank, signal.place)
        for state in view.states.values()
        if state.rank not in best.ranks
        for signal in (state.derived + state.secondary)[:1]
        if signal.own_stamp and (moment := view.times.of(signal)) is not None
    )
    if not loud:
        return None
    ns, rank, (path, line) = loud[0]
    state = view.states[rank]
    where = f"rank {rank}{f' ({state.host})' if state.host else ''}"
    at = view.times.text(Moment(ns, 0))
    return where, f"its error of {at} is the first with a time ({path}:{line}), but it only {fate_words(state)}"


_INDEPENDENT = frozenset({"oom-kill", "device-fault", "link-fault", "node-lost", "killed-by-signal"})


def also_failed(view: View, result: AttemptResult, best: Candidate | None, catalog: Catalog) -> tuple[AlsoFailed, ...]:
    """Later failures that a machine reports by itself, and later kills: they did not have to follow from the root."""
    if best is None:
        return ()
    later = [
        one
        for one in (*result.ranked.explained, *result.ranked.open[1:])
        if one.rule in _INDEPENDENT
        and one.base >= 2.0
        and not set(one.ranks) & set(best.ranks)
        # the same on another host is another failure, on the same host most likely the same one
        and (one.cls != best.cls or (one.hosts and not set(one.hosts) & set(best.hosts)))
    ]
    return tuple(AlsoFailed(failure_of(one, catalog), place_of(view, one), cite(view, one)[:3]) for one in later[:4])


def attempt_of(correlation: Correlation, result: AttemptResult, catalog: Catalog) -> Attempt:
    """One attempt for the list of attempts."""
    best = result.ranked.best if not result.healthy else None
    verdict = Verdict.NO_FAILURE if result.healthy else Verdict.IDENTIFIED if best else Verdict.UNDETERMINED
    started, ended = span(correlation, result.attempt)
    return Attempt(
        attempt=result.attempt,
        verdict=verdict,
        failure=failure_of(best, catalog) if best else NO_FAILURE,
        initiating=place_of(result.view, best) if best else Place(),
        evidence=cite(result.view, best)[:3] if best else (),
        started=started,
        ended=ended,
    )


def span(correlation: Correlation, attempt: int | None = None) -> tuple[str | None, str | None]:
    """First and last moment of the job or of one attempt, by the lines of its ranks and what its launchers report."""
    times = correlation.times
    moments = [
        times.of_source(extent.source, stamp)
        for extent in correlation.timeline.extents
        if attempt is None or extent.attempt == attempt
        for stamp in (extent.first_ns, extent.last_ns)
        if stamp is not None
    ]
    moments += [
        times.of(signal)
        for signal in correlation.timeline.signals
        if signal.source.kind in _SPEAKS_FOR_THE_JOB and signal.own_stamp and attempt in (None, signal.attempt)
    ]
    known = [moment for moment in moments if moment is not None]
    return times.text(min(known, default=None)), times.text(max(known, default=None))


def job_of(correlation: Correlation, chosen: AttemptResult) -> Job:
    """Size and span of the job."""
    started, ended = span(correlation)
    steps = [state.last_step for state in chosen.view.states.values() if state.last_step is not None]
    saved = [
        signal for signal in chosen.view.signals if signal.event is Event.CHECKPOINT and signal.captures.get("path")
    ]
    return Job(
        ranks=correlation.names.world or len(correlation.names.ranks) or None,
        hosts=len(correlation.names.all_hosts()) or None,
        attempts=len(correlation.attempts),
        sources=len(correlation.timeline.sources),
        lines=correlation.timeline.lines,
        started=started,
        ended=ended,
        last_step=max(steps, default=None),
        last_checkpoint=saved[-1].captures["path"] if saved else None,
    )


def clocks_of(correlation: Correlation) -> tuple[Clock, ...]:
    """The clock of each host against the reference, the reference first."""
    alignment = correlation.times.alignment
    found: dict[str, Clock] = {}
    reference = correlation.times.reference
    names = sorted({source.clock for source in correlation.timeline.sources.values() if source.clock})
    for name in sorted(names, key=lambda one: (one != reference, one)):
        kind, _, host = name.partition(":")
        if kind != "wall" or host in found:
            continue
        one = alignment.clocks.get(name)
        if name == reference:
            found[host] = Clock(host, 0.0, 0.0, "the reference")
        elif one is None or one.component != 0:
            found[host] = Clock(host, None, None, "no event links this clock to the reference")
        else:
            segment = one.segments[-1]
            found[host] = Clock(host, round(segment.offset_s, 4), round(segment.bound(segment.middle_s), 4), one.how)
    return tuple(found.values())


def advice_of(entry: Entry | None, known: FailureClass | None) -> Advice:
    """What the catalog advises for the root; without an entry, the commands that its class begins with."""
    if known is None:
        return Advice()
    steps = Advice(confirm=known.first_commands)
    if entry is not None:
        steps = Advice(
            entry.fix, entry.confirm, entry.verify, entry.prevent, entry.resume, entry.mechanism, entry.references
        )
    return replace(steps, group=known.group, owner=known.owner, restart=known.restart)


def coverage_of(correlation: Correlation) -> Coverage:
    """What was read, by kind, and what was not understood."""
    kinds: dict[str, int] = {}
    for source in correlation.timeline.sources.values():
        kinds[source.kind] = kinds.get(source.kind, 0) + 1
    return Coverage(tuple(sorted(kinds.items())), correlation.timeline.problems)
