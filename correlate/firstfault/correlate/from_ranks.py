"""Candidates from the ranks themselves: their own errors."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from firstfault.catalog.model import FALLBACK_ENTRIES, Event, Role
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.model import Moment, Signal, parse_ranks, rank_ranges
from firstfault.correlate.states import RankState

REACH = frozenset(
    {
        "master-unreachable",
        "store-lost",
        "rendezvous-timeout",
        "nccl-socket-failure",
        "nccl-init-failure",
        "ib-completion-error",
    }
)
"""Classes whose lines say that the other end could not be reached: one rank that prints them may be the victim."""


_PYTHON_WARNING = re.compile(r"\.py:\d{1,7}: [A-Za-z]{0,60}Warning: ")
"""What the module `warnings` prints; the program goes on."""
_DEVICE_WORDS = re.compile(r"\b(?:CUDA|GPUs?|cuda|device|NVIDIA)\b")
_WENT_ON = 50
"""Lines that a rank prints after a message that did not end it; an ending takes a traceback or two, not more."""


def root_error(errors: list[Signal]) -> Signal:
    """The error of a rank that says most about what failed first in it.

    The first error counts, but an exception nobody knows more about gives way to a catalogued one of the same record
    or right behind it: the wrapper comes first where a worker's error is raised again by its parent.
    """
    first = errors[0]
    if first.entry is not None and first.entry not in FALLBACK_ENTRIES and first.role is Role.INITIATING:
        return first
    near = [one for one in errors if one.source is first.source and one.first_line <= first.last_line + 60] or [first]
    known = [one for one in near if one.entry is not None and one.entry not in FALLBACK_ENTRIES]
    sure = [one for one in known if one.role is Role.INITIATING]
    return (sure or known or [first])[0]


def error_kind(signal: Signal) -> tuple[str, str, str]:
    """What makes two errors the same failure: class, entry, and for fallbacks the exception's name."""
    fallback = signal.entry is None or signal.entry in FALLBACK_ENTRIES
    return (
        signal.cls or "python-exception",
        signal.entry or "",
        signal.captures.get("exception", "") if fallback else "",
    )


def earliest(view: View, signals: list[Signal]) -> Moment | None:
    """The earliest moment of some signals."""
    moments = [moment for signal in signals if (moment := view.times.of(signal)) is not None]
    return min(moments, default=None)


def own_errors(view: View) -> Iterator[Candidate]:
    """One candidate for each kind of error that ranks raised themselves."""
    kinds: dict[tuple[str, str, str], list[tuple[RankState, Signal]]] = defaultdict(list)
    for state in view.states.values():
        if state.own:
            signal = root_error(state.own)
            kinds[error_kind(signal)].append((state, signal))
    _unite_told(kinds)
    yield from _of_whole_hosts(view, [_from_errors(view, _terminal(found)) for _, found in sorted(kinds.items())])


_OF_A_HOST = frozenset(
    {"cuda-driver-mismatch", "import-or-dependency", "network-interface-misconfigured", "authentication-failed"}
)
"""Classes of what is installed or configured on a host, which all of its ranks meet."""


def _of_whole_hosts(view: View, candidates: list[Candidate]) -> Iterator[Candidate]:
    """One candidate of those of one class on one host that together are all of its ranks, where other hosts have none:
    a cause that lies in the host is told in different words.
    """
    alike: dict[tuple[str, tuple[str, ...]], list[Candidate]] = defaultdict(list)
    for one in candidates:
        own = one.rule.startswith("own-error") and one.cls in _OF_A_HOST
        if own and not one.common and len(one.hosts) == 1 and one.ranks:
            alike[one.cls, one.hosts].append(one)
    for (_, hosts), parts in sorted(alike.items()):
        ranks = {rank for one in parts for rank in one.ranks}
        every = view.names.ranks_of_host(hosts[0], view.attempt)
        if len(parts) < 2 or len(ranks) < 2 or ranks != set(every) or len(every) == len(view.states):
            continue
        first = max(parts, key=lambda one: (one.base, len(one.ranks), one.key()))
        first.ranks, first.component = tuple(sorted(ranks)), "host"
        first.for_.append("every rank of this host and of no other raises it, in different words")
        for other in parts:
            if other is not first:
                for signal, why in other.signals[:4]:
                    first.support(signal, why)
                candidates.remove(other)
    yield from candidates


_TOLD = "dcp-exception"
"""torch raises it on every rank of a distributed checkpoint, and lists the ranks whose own part failed
(distributed/checkpoint/api.py).
"""


def _unite_told(kinds: dict[tuple[str, str, str], list[tuple[RankState, Signal]]]) -> None:
    """Who raises what failed on other ranks only follows; the listed ranks failed alike where one of them says how."""
    told = next((kind for kind in sorted(kinds) if kind[1] == _TOLD), None)
    if told is None:
        return
    every = [signal for found in kinds.values() for state, _ in found for signal in state.own if signal.entry == _TOLD]
    named = {rank for signal in every for rank in parse_ranks(signal.captures.get("ranks", ""))}
    if not named:
        return
    listed = [(state, signal) for state, signal in kinds[told] if state.rank in named]
    reasons = [kind for kind, found in kinds.items() if kind != told and {state.rank for state, _ in found} & named]
    if len(reasons) == 1:
        kinds[reasons[0]].extend(listed)
        del kinds[told]
    elif listed:
        kinds[told] = listed


def _terminal(found: list[tuple[RankState, Signal]]) -> list[tuple[RankState, Signal]]:
    """Those ranks whom the error ended, where some raised it as an exception and others only mention it in passing."""

    def raised(state: RankState, signal: Signal) -> bool:
        kind = error_kind(signal)
        same = [one for one in state.own if error_kind(one) == kind or one.cls == signal.cls]
        left = any(one.code not in (None, 0) and not one.killed for one in state.exits)
        return left or any("exception" in one.captures or one.last_line > one.first_line for one in same)

    def went_on(state: RankState, signal: Signal) -> bool:
        kind = error_kind(signal)
        again = [one.last_line for one in state.own if one.source is signal.source and error_kind(one) == kind]
        last = max(again, default=signal.last_line)
        return any(extent.source is signal.source and extent.last_line > last + _WENT_ON for extent in state.extents)

    ended = [(state, signal) for state, signal in found if raised(state, signal) or not went_on(state, signal)]
    return ended if ended else found


def _from_errors(view: View, found: list[tuple[RankState, Signal]]) -> Candidate:
    doubts = {
        state.rank: "" if _second_witness(view, state, signal) else may_have_lived_on(view, state, signal)
        for state, signal in found
    }
    found = [(state, signal) for state, signal in found if not doubts[state.rank]] or found
    signals = [signal for _, signal in found]
    ranks = _with_folded(view, found)
    first = signals[0]
    witnessed = [state for state, signal in found if _second_witness(view, state, signal)]
    ambiguous = all(signal.role is Role.AMBIGUOUS for signal in signals)
    if ambiguous and first.event is Event.NATIVE_CRASH and any(_died_natively(state) for state, _ in found):
        ambiguous = False  # the signal that its launcher saw is the crash itself, not an abort by its watchdog
    if ambiguous and _stands_alone(view, found):
        ambiguous = False
    rule = "own-error-ambiguous" if ambiguous else "own-error-witnessed" if witnessed else "own-error"
    base = BASE[rule] + (0.5 if ambiguous and witnessed else 0.0)
    doubt = "" if witnessed else doubts[found[0][0].rank]
    if doubt:
        rule, base = "own-error-ambiguous", BASE["own-error-doubtful"]
    candidate = Candidate(
        rule=rule,
        cls=first.cls or "python-exception",
        entry=first.entry,
        component=_component(first),
        ranks=ranks,
        hosts=view.names.rank_hosts(ranks, view.attempt),
        base=base,
        signals=[(signal, "the rank's own error") for signal in sorted(signals, key=lambda one: one.place)[:6]],
        moment=earliest(view, signals),
    )
    if doubt:
        candidate.against.append(doubt)
    reasons = [_ended_for_another(view, state, signal) for state, signal in found]
    if not witnessed and all(reasons):
        candidate.base -= 1.2
        candidate.against.append(reasons[0])
    if all(_only_warned(signal) for signal in signals) and not witnessed:
        candidate.rule = "own-error-ambiguous"
        candidate.base = BASE["own-error-ambiguous"] - 0.6
        candidate.against.append("the program reports it as a warning, so it went on")
    everywhere = {host for rank in view.states if (host := view.names.host_of(rank, view.attempt))}
    several = 1 < len(candidate.hosts) < len(everywhere)
    if several and first.cls == "master-unreachable" and len(candidate.hosts) == len(everywhere) - 1:
        candidate.ranks, candidate.hosts, candidate.component = (), (), "job"
        candidate.for_.append("all hosts but one print it: none of them reaches that one")
    elif ambiguous and several and (first.cls or "") in REACH:
        candidate.base -= 1.2 if witnessed else 0.6
        candidate.against.append("ranks of several hosts print it: what they could not reach lies elsewhere")
    if candidate.rule == "own-error-ambiguous" or first.event is Event.INIT_FAILURE:
        _doubt_unread(view, candidate)
    if witnessed:
        candidate.for_.append(_witness_words(view, witnessed[0]))
    for state, signal in found:
        for other in state.own:
            if other is not signal and other.place != signal.place and len(candidate.signals) < 10:
                candidate.support(other, "the same rank, right with it")
    # what others quote of it stands behind the lines of the rank's own log
    own_lines = {(state.rank, extent.source.id) for state, _ in found for extent in state.extents}
    candidate.signals.sort(key=lambda told: (told[0].rank, told[0].source.id) not in own_lines)
    return spread(view, _without_a_device(view, candidate))


_FOLDED = re.compile(r"\[repeated (\d{1,6})x across cluster\]$")
"""What Ray prints for similar lines of other workers (python/ray/_private/ray_logging, LogDeduplicator)."""


def _with_folded(view: View, found: list[tuple[RankState, Signal]]) -> tuple[int, ...]:
    """The ranks that raise an error, with those whose lines Ray folded into one of theirs, where these can only be all
    others of the job or of the same hosts.
    """
    ranks = {state.rank for state, _ in found}
    folded = [int(match[1]) for _, signal in found if (match := _FOLDED.search(signal.text[-200:]))]
    printed = len(found) - len(folded) + sum(folded)
    if folded:
        hosts = {state.host for state, _ in found if state.host}
        of_hosts = {rank for host in hosts for rank in view.names.ranks_of_host(host, view.attempt)}
        whole = set(view.states) if printed >= len(view.states) else of_hosts if printed == len(of_hosts) else set()
        ranks |= whole & set(view.states)
    return tuple(sorted(ranks))


def _doubt_unread(view: View, candidate: Candidate) -> None:
    """An error that also follows from a failure elsewhere may follow from that of a rank whose log is not here; all the
    more where every rank that was read raises it.
    """
    unread = [rank for rank in view.unread() if rank not in candidate.ranks]
    if not unread:
        return
    read = [state for state in view.logged() if not state.half_read]
    if len(read) == 1 and plain_exception(candidate.signals[0][0]):
        return  # one traceback is all there is: an exception of the program follows from no peer's failure
    everybody = len(read) > 1 and all(state.own for state in read)
    if not everybody and candidate.rule != "own-error-ambiguous":
        return
    candidate.base -= (1.4 if everybody else 0.8) + max(0.0, candidate.base - 2.8)
    candidate.against.append(f"it may follow from another failure, and the log of rank {unread[0]} is not here")
    candidate.missing = f"the log of rank {rank_ranges(unread)}, with its error stream"


def _without_a_device(view: View, candidate: Candidate) -> Candidate:
    """A program that gives up for want of a GPU, in words of its own, where torch had warned that its driver does not
    fit.
    """
    first = candidate.signals[0][0]
    if first.entry not in FALLBACK_ENTRIES or not _DEVICE_WORDS.search(first.text[:500]):
        return candidate
    warned = [
        signal
        for signal in view.signals
        if signal.cls == "cuda-driver-mismatch" and signal.source is first.source and signal.line < first.line
    ]
    if warned:
        candidate.cls, candidate.entry = "cuda-driver-mismatch", warned[0].entry
        candidate.signals.insert(0, (warned[0], "why there is no device"))
        candidate.rule, candidate.base = "own-error", max(candidate.base, BASE["own-error"])
    return candidate


def _only_warned(signal: Signal) -> bool:
    """Whether a program's own logger reports an error in one line below the level of an error: it was handled."""
    if signal.event not in (Event.EXCEPTION, Event.IO_ERROR):
        return False
    if _PYTHON_WARNING.search(signal.text[:2000]):
        return True
    return signal.level in ("DEBUG", "INFO", "NOTICE", "WARN") and signal.first_line == signal.last_line


def _stands_alone(view: View, found: list[tuple[RankState, Signal]]) -> bool:
    """Whether an error that may follow from another one is the only one of its kind, while the others only lose or
    await peers.

    Many ranks print it when they are torn down; where one does, and before any echo of its own, it is the lead.
    """
    if len(found) > max(1, len(view.states) // 8):
        return False
    if any(signal.event is Event.INIT_FAILURE or (signal.cls or "") in REACH for _, signal in found):
        return False
    mine = {state.rank for state, _ in found}
    return any(state.derived for state in view.states.values() if state.rank not in mine)


def _died_natively(state: RankState) -> bool:
    return any(one.died_by in (4, 7, 8, 11) for one in state.exits)


def _component(signal: Signal) -> str:
    if signal.event is Event.CUDA_ERROR:
        return "gpu"
    return "rank"


def spread(view: View, candidate: Candidate) -> Candidate:
    """Decide what a failure of many ranks means: common to all, to one host, or still some ranks."""
    logged = [state.rank for state in view.logged()] or sorted(view.states)
    hosts = {host for rank in view.states if (host := view.names.host_of(rank, view.attempt))}
    share = len(candidate.ranks) / max(1, len(logged))
    several_hosts = len(set(candidate.hosts)) > 1 or len(hosts) <= 1
    world = max(len(view.states), len(logged))
    sure = candidate.rule != "own-error-ambiguous"
    everyone = len(candidate.ranks) >= world and world > 1
    if len(set(candidate.hosts)) > 1 and len(candidate.ranks) > 2:  # an error of all that was read accuses none of them
        everyone = everyone or len(candidate.ranks) == len(logged)
    if (everyone and (sure or world > 2)) or (
        share >= 0.4 and len(candidate.ranks) >= 4 and several_hosts and not _few_first(candidate, view)
    ):
        candidate.common = True
        candidate.scope_ranks = candidate.ranks
        candidate.for_.append(f"{len(candidate.ranks)} of {len(logged)} ranks raise it: the cause is common to them")
        if all(signal.event is Event.HANG for signal, _ in candidate.signals):
            candidate.base = BASE["fabric"]
            candidate.missing = (
                "where the ranks hang: stacks (py-spy) or flight-recorder dumps of all of them, "
                "and the last enqueued and completed collective of each"
            )
        if sure:
            candidate.rule, candidate.base = "common-error", max(candidate.base, BASE["common-error"])
        candidate.ranks = ()
        candidate.component = "job"
        if len(hosts) > 1:
            candidate.hosts = ()
    elif len(candidate.hosts) == 1 and len(hosts) > 1 and len(candidate.ranks) > 1:
        of_host = view.names.ranks_of_host(candidate.hosts[0], view.attempt)
        if len(of_host) == len(candidate.ranks):
            candidate.component = "host"
            candidate.for_.append("every rank of this host and of no other raises it")
    return candidate


def _few_first(candidate: Candidate, view: View) -> bool:
    """Whether one rank raised the error clearly before the others did, by their own clocks or steps."""
    moments = sorted(
        (moment, signal.rank)
        for signal, _ in candidate.signals
        if signal.own_stamp and (moment := view.times.of(signal)) is not None and signal.rank is not None
    )
    return (
        len(moments) >= 2
        and moments[0][0].surely_before(moments[1][0])
        and moments[1][0].ns - moments[0][0].ns > 30_000_000_000
    )


def plain_exception(signal: Signal) -> bool:
    """Whether a line is an exception that no entry knows more about."""
    return signal.event is Event.EXCEPTION and (signal.entry is None or signal.entry in FALLBACK_ENTRIES)


def told_to_end(view: View) -> frozenset[str]:
    """Hosts whose launcher was asked to end by a signal: it had seen no child fail until then."""
    found = set()
    for signal in view.signals:
        host = signal.host or signal.source.host
        if signal.event is Event.SIGNAL_RECEIVED and signal.rank is None and not signal.weak and host:
            found.add(view.names.canonical(host))
    return frozenset(found)


def may_have_lived_on(view: View, state: RankState, error: Signal) -> str:
    """Why an exception that nobody knows more about, and that no exit code confirms, may not be what ended its rank;
    empty where nothing speaks against it.

    Programs print tracebacks of exceptions that they catch. torch's hook marks those that nothing caught
    (distributed_c10d.py, init_process_group), so where it marked one, an unmarked one was caught, or not in the main
    thread.
    """
    if not plain_exception(error):
        return ""
    told = told_to_end(view)
    if state.killed and told:
        return f"launchers were told to end from outside, and rank {state.rank} was still running when its own ended it"
    if state.completed and not any(one.code for one in state.exits):
        return f"rank {state.rank} says that it completed"
    if not error.uncaught:
        if state.killed:
            return f"rank {state.rank} was still running when its launcher ended it"
        if told:
            return "launchers were told to end from outside, and nothing says that it was not caught"
        if any(echo.source is error.source and echo.first_line > error.last_line for echo in state.derived):
            return f"rank {state.rank} went on after it: it lost or awaited its peers later"
        # a line that names its group's GUID is of torch 2.5 or later, the hook of 2.3
        if any(signal.uncaught or "pg_guid" in signal.captures for signal in view.signals):
            return "nothing says that it was not caught, and torch marks those that are not in this job"
    siblings = view.names.ranks_of_host(state.host, view.attempt) if state.host else ()
    unread = [rank for rank in siblings if rank in view.states and not view.states[rank].logged]
    # that a launcher ended a rank does not tell who had failed before
    if unread and not any(one.host == state.host and not one.killed for one in view.exits):
        return f"rank {unread[0]} of the same host left no log, and no launcher says which of them failed"
    return ""


def _ended_for_another(view: View, state: RankState, error: Signal) -> str:
    """Why a rank that its launcher had to end was hardly the first of its host, although it raised an exception: who
    raises one ends by itself, and launchers end the others. Empty where it may have been, or where nothing shows it.
    """
    if not state.killed or not plain_exception(error) or not state.host:
        return ""
    if any(one.host == state.host and not one.killed for one in view.exits):
        return ""
    siblings = [view.states[rank] for rank in view.names.ranks_of_host(state.host, view.attempt) if rank in view.states]
    unseen = [one.rank for one in siblings if not one.killed and (one.silent or not one.logged)]
    if not unseen:
        return ""
    return (
        f"its launcher ended rank {state.rank}, and rank {unseen[0]} of the same host, whose end is unknown, may be why"
    )


def _second_witness(view: View, state: RankState, error: Signal) -> bool:
    if error.uncaught and not plain_exception(error):
        return True
    # Python ends with 1 after an exception; an abort is the watchdog's or the runtime's
    codes = [one.code for one in state.exits if one.code not in (None, 0) and not one.killed]
    if any(not plain_exception(error) or code is None or code > 0 for code in codes):
        return True
    others_wait = any(
        state.rank in one.absent or (one.waiters and state.rank not in one.waiters and state.rank in one.group.members)
        for one in view.collectives
    )
    if others_wait:
        return True
    alone = not any(other.derived for other in view.states.values() if other.rank != state.rank)
    return alone and len(view.states) == 1


def _witness_words(view: View, state: RankState) -> str:
    """Who else shows that a rank failed."""
    end = next((one for one in state.exits if one.code not in (None, 0) and not one.killed), None)
    if end is not None:
        how = f"by signal {end.died_by}" if end.died_by else f"with exit code {end.code}"
        return f"its launcher saw rank {state.rank} end {how} by itself"
    for one in view.collectives:
        if state.rank in one.absent or state.rank not in one.waiters:
            return f"other ranks wait for rank {state.rank} in {one.label}"
    return "no other rank is there to have failed first"
