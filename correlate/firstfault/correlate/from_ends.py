"""Candidates from how processes ended, in the words of launchers and schedulers, where the ranks themselves raised
nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from firstfault.correlate.aborts import doubt_abort
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.exits import Exit
from firstfault.correlate.from_ranks import earliest, spread
from firstfault.correlate.last_words import named_by_last_words
from firstfault.correlate.model import Moment, Signal
from firstfault.correlate.states import RankState, is_echo, is_own_error


def reported_ends(view: View) -> Iterator[Candidate]:
    """Candidates from exit reports of ranks that raised nothing themselves."""
    by_signal: dict[tuple[str, int], list[tuple[RankState, Signal, bool]]] = defaultdict(list)
    unowned = _hosts_of_unowned_errors(view)
    for state in view.states.values():
        if state.own:
            continue
        ends = [one for one in state.exits if (one.code not in (None, 0) or one.abrupt) and not one.killed]
        if ends and ends[0].died_by == 9 and any(one.forced for one in state.exits):
            continue
        if not ends or ((ends[0].code or 0) > 0 and (state.host or "") in unowned):
            continue
        end = next((one for one in ends if one.first), ends[0])
        code = end.code or 0
        by_signal[(view.names.host_of(state.rank, view.attempt) or "", code)].append((state, end.signal, end.oom))
    ended = [_from_end(view, host, code, found) for (host, code), found in sorted(by_signal.items())]
    yield from named_by_last_words(view, [one for one in ended if one is not None])
    yield from _unnamed_deaths(view)


def _unnamed_deaths(view: View) -> Iterator[Candidate]:
    """Hosts whose launcher saw a child die by a signal without saying which: the host is known, the rank is not."""
    for host in sorted({one.host for one in view.exits if one.host}):
        death = unnamed_death(view, host)
        ranks = view.names.ranks_of_host(host, view.attempt)
        states = [view.states[rank] for rank in ranks if rank in view.states]
        if death is None or not states or any(one.own for one in states):
            continue
        if any(one.code not in (None, 0) and not one.killed for state in states for one in state.exits):
            continue
        killed = death.died_by == 9
        echoing = all(state.derived for state in states)
        yield Candidate(
            rule="killed-by-signal",
            cls="process-killed" if killed else "process-segfault",
            entry="process-sigkill" if killed else "process-segfault",
            component="host",
            ranks=(),
            hosts=(host,),
            base=BASE["own-abort"] - (1.2 if echoing else 0.0),
            signals=[(death.signal, f"its launcher saw a child of {host} die by signal {death.died_by}")],
            moment=earliest(view, [death.signal]),
            missing=f"which process of {host} died by signal {death.died_by}: its kernel log, or one log for each rank",
        )


_LAUNCHER = re.compile(
    r"^(?:\S{0,200}/)?(?:torchrun|accelerate|deepspeed|horovodrun|mpirun|mpiexec|prterun|composer|colossalai|ray)\b"
    r"|^\S{0,200}python\S{0,12} (?:-u )?-m (?:torch\.distributed\.|accelerate\b|paddle\.distributed)"
)
"""Commands that start ranks, as a shell names the job that was killed."""


def is_launcher(signal: Signal) -> bool:
    """Whether a shell's word of a killed job is about the launcher itself."""
    return bool(_LAUNCHER.search(signal.captures.get("process", "")[:400]))


def killed_launchers(view: View) -> Iterator[Candidate]:
    """Hosts whose shell saw the launcher itself die by SIGKILL: its ranks may go on for a while, nobody guards them."""
    for one in view.exits:
        of_attempt = one.signal.attempt == view.attempt and one.host is not None and one.died_by == 9
        if not of_attempt or one.host is None or not is_launcher(one.signal):
            continue
        if any(state.own for state in view.states.values() if state.host == one.host):
            continue
        yield Candidate(
            rule="killed-by-signal",
            cls="agent-failure",
            entry=one.signal.entry,
            component="launcher",
            ranks=(),
            hosts=(one.host,),
            base=BASE["killed-by-signal"] + 0.2,
            signals=[(one.signal, f"the shell of {one.host} saw its launcher die by signal 9")],
            moment=earliest(view, [one.signal]),
        )


def unnamed_death(view: View, host: str | None) -> Exit | None:
    """A launcher's report that a child of a host died by a signal, without saying which."""
    forced = any(one.forced and one.host == host for one in view.exits)
    for one in view.exits:
        if one.signal.attempt != view.attempt or one.ranks or one.killed or one.host != host:
            continue
        if forced and one.died_by == 9:  # the launcher's own doing
            continue
        # a scheduler lists every task it ended itself; only a launcher's word about one child tells of a death
        if "tasks" in one.signal.captures or "task" in one.signal.captures or is_launcher(one.signal):
            continue
        if one.died_by in (9, 11, 7, 4):
            return one
    return None


def _hosts_of_unowned_errors(view: View) -> set[str]:
    """Hosts in whose logs errors or echoes stand that nothing ties to a rank: they may be what the exits are about."""
    found: set[str] = set()
    every = view.names.all_hosts()
    reporting: dict[int, set[str]] = defaultdict(set)
    for one in view.exits:
        if one.host:
            reporting[one.signal.source.id].add(one.host)
    for signal in view.signals:
        if signal.rank is not None or signal.source.kind in ("kernel", "scheduler", "events", "status", "kubelet"):
            continue
        if is_own_error(signal) or is_echo(signal):
            there = reporting.get(signal.source.id, set())
            only = every[0] if len(every) == 1 else next(iter(there)) if len(there) == 1 else ""
            host = signal.host or signal.source.host or only
            found.add(view.names.canonical(host) if host else "")
    return found


_OF_AN_ABORT = frozenset({"process-abort"})
"""What Python's fault handler prints of any abort: it tells of the end, not of a cause."""


def _from_end(view: View, host: str, code: int, found: list[tuple[RankState, Signal, bool]]) -> Candidate | None:
    ranks = tuple(sorted(state.rank for state, _, _ in found))
    echoes = [
        state for state, _, _ in found if state.secondary or any(one.entry not in _OF_AN_ABORT for one in state.derived)
    ]
    number = -code if code < 0 else 0
    oom = any(flag for _, _, flag in found)
    signals = [signal for _, signal, _ in found]
    against: list[str] = []
    why = f"its launcher reports {'signal ' + str(number) if number else 'exit code ' + str(code)}"
    if oom:
        cls, entry, rule, base = "host-oom-kill", "slurm-oom-kill", "oom-kill", BASE["oom-kill"]
    elif number in (11, 7, 4, 8):
        cls, entry, rule, base = "process-segfault", "process-segfault", "exit-code", BASE["exit-code"]
    elif number == 9:
        cls, entry, rule, base = "process-killed", "process-sigkill", "killed-by-signal", BASE["killed-by-signal"]
    elif number == 6:
        if len(echoes) == len(found):
            return None
        cls, entry, rule, base = "process-segfault", None, "bare-abort", BASE["bare-abort"]
        if len(found) == 1 and (doubt := doubt_abort(view, found[0][0], found[0][1])) == "":
            entry, rule, base = "process-abort", "exit-code", BASE["own-abort"]
        elif len(found) == 1:
            against.append(doubt)
    elif not code:
        first = min(found, key=lambda one: one[1].place)
        if first[0].derived or first[0].secondary:
            return None
        # of several the first: a run-time ends the others in the same way
        found, ranks, signals = [first], (first[0].rank,), [first[1]]
        why = "its raylet or executor reports that its process was suddenly gone"
        cls, entry, rule, base = "process-killed", None, "killed-by-signal", BASE["own-error"]
    elif number:
        cls, entry, rule, base = "process-killed", None, "unauthored-signal", BASE["unauthored-signal"]
    else:
        quiet = [state for state, _, _ in found if not (state.derived or state.secondary)]
        if not quiet:
            return None
        ranks = tuple(sorted(state.rank for state in quiet))
        cls, entry, rule, base = "python-exception", None, "exit-code", BASE["own-error-ambiguous"]
        if not any(state.logged for state in quiet) and (_ends_of_echoes(view, code) or len(quiet) > 1):
            base = BASE["bare-abort"]  # whoever only lost a peer ends with that code, too
    if echoes and number in (9, 11, 7, 4, 8) and len(echoes) == len(found):
        base -= 1.2
    candidate = Candidate(
        rule=rule,
        cls=cls,
        entry=entry,
        component="rank",
        ranks=ranks,
        hosts=view.names.rank_hosts(ranks, view.attempt) or ((host,) if host else ()),
        base=base,
        signals=[(signal, why) for signal in sorted(signals, key=lambda one: one.place)[:6]],
        moment=_noticed(view, host, signals),
        against=against,
    )
    for state, _, _ in found:
        for end in state.exits:
            if end.signal not in signals:
                candidate.support(end.signal, why)
    if len(ranks) >= 2 and number in (11, 7, 9) and not oom:
        return spread(view, candidate)
    return candidate


_POLL_NS = 1_000_000_000
"""How late a launcher may notice the end of a child."""


def _noticed(view: View, host: str, ends: list[Signal]) -> Moment | None:
    """When a launcher noticed that a child had ended: it then ends the others, and only reports when they are gone."""
    sources = {one.source.id for one in ends}
    kills = [
        one.signal
        for one in view.exits
        if one.killed and one.signal.attempt == view.attempt and one.host == host and one.signal.source.id in sources
    ]
    seen = earliest(view, [*ends, *kills])
    return Moment(seen.ns - _POLL_NS, seen.bound_ns, seen.end_ns - seen.bound_ns) if seen else None


def _ends_of_echoes(view: View, code: int) -> bool:
    """Whether ranks that only lost or awaited their peers ended with this exit code, or raised that as an exception,
    with which Python ends with 1.
    """
    for state in view.states.values():
        if state.derived and not state.own:
            if any(one.code == code and not one.killed for one in state.exits):
                return True
            if code == 1 and any(one.uncaught for one in state.derived):
                return True
    return False
