"""Which candidate failed first: merge what is said twice, explain away what follows, weigh the rest, refuse where it is
a guess.

An effect is dropped only for a cause that is not weaker and not surely later. Order comes from the line number inside a
log, from one clock inside a host, from aligned clocks with their bounds between hosts; inside the bounds nothing is
ordered.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import exp

from firstfault.catalog.model import FALLBACK_ENTRIES, Event, Role
from firstfault.correlate.candidate import ANSWERABLE, BASE, NULL_SCORE, SHARPNESS, Candidate, View
from firstfault.correlate.from_waits import waiting_moment
from firstfault.correlate.model import Moment, Signal

STRUCTURAL = frozenset(
    {
        "absent",
        "mute",
        "last-member",
        "stuck-in-completed",
        "named-absent",
        "behind",
        "fabric",
        "unlogged",
        "peer-common-end",
        "silent-host",
        "nothing-enqueued",
        "elsewhere",
        "between",
    }
)
"""Rules that argue from who is missing, not from what somebody says of itself."""

AMBIGUOUS = frozenset(
    {
        "own-error-ambiguous",
        "bare-abort",
        "unauthored-signal",
        "unauthored-action",
        "peer-common-end",
        "raised-desync",
        "lost-store",
    }
)
"""Rules whose lines a healthy rank prints too when somebody else fails."""

_SECOND = 1_000_000_000
_OUTSIDE = frozenset({"io-stall", "link-fault", "device-fault", "oom-kill", "node-lost"})
_MANY_STEPS = 10
CONCLUSIVE = 2.7
"""Evidence of this worth may explain others away."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The candidates that nothing explains, best first, with their probabilities, and what was explained away."""

    open: tuple[Candidate, ...]
    probabilities: tuple[float, ...]
    explained: tuple[Candidate, ...]
    refusals: tuple[str, ...]

    @property
    def best(self) -> Candidate | None:
        """The answer, None where every candidate is a guess."""
        if self.open and self.probabilities[0] > 0.7 and self.open[0].base >= ANSWERABLE:
            return self.open[0]
        return None


def merge(candidates: list[Candidate]) -> list[Candidate]:
    """Join candidates that name the same place: the machine's word over the rank's, the rank's over its absence."""
    _place_by_machines(candidates)
    order = sorted(candidates, key=lambda one: (-_authority(one), not one.ranks, -one.base, one.key()))
    kept: list[Candidate] = []
    for one in order:
        into = next((other for other in kept if _same_failure(other, one)), None)
        if into is None:
            kept.append(one)
            continue
        for signal, why in one.signals:
            if len(into.signals) < 16:
                into.support(signal, why)
        if _names_the_device(into, one):
            into.ranks = one.ranks
        # who only is silent, or left no log, joins nobody whom somebody names
        widens = one.rule not in STRUCTURAL and (into.cls == one.cls or not into.ranks)
        if widens and into.hosts == one.hosts and set(into.ranks) < set(one.ranks):
            into.ranks = one.ranks
        into.for_.extend(reason for reason in one.for_ if reason not in into.for_)
        if one.rule not in STRUCTURAL:
            into.base += 0.2
        elif one.rule != into.rule:  # another group that shows the same is no other kind of evidence
            into.base += 0.3
        if into.moment is None or (one.moment is not None and one.rule not in STRUCTURAL and one.moment < into.moment):
            into.moment = one.moment if one.rule not in STRUCTURAL else into.moment
    return kept


_OF_RANKS = ("own-error", "own-error-witnessed", "own-error-ambiguous")
_OF_MACHINES = ("own-error", "device-fault", "oom-kill", "io-stall", "link-fault")


def _place_by_machines(candidates: list[Candidate]) -> None:
    """The host of ranks that nothing places, from the one machine whose own log holds a failure of the same class."""
    for one in candidates:
        if one.rule not in _OF_RANKS or one.hosts or len(one.ranks) != 1 or one.common:
            continue
        alike = [
            other
            for other in candidates
            if other.rule in _OF_MACHINES and other.cls == one.cls and other.hosts and not other.common
        ]
        hosts = {host for other in alike for host in other.hosts}
        if len(hosts) == 1 and all(not other.ranks and _near(one.moment, other.moment) for other in alike):
            one.hosts = tuple(hosts)
            one.for_.append(f"the log of {one.hosts[0]} alone holds the same failure")


def _near(first: Moment | None, second: Moment | None) -> bool:
    """Whether two moments can lie within ten minutes of each other, or two if a log is in another time zone."""
    if first is None or second is None:
        return True
    gap, half = abs(first.ns - second.ns), 1800 * _SECOND
    shifted = min(gap % half, half - gap % half) <= 120 * _SECOND and gap <= 14 * 2 * half
    return shifted or gap <= 600 * _SECOND + first.bound_ns + second.bound_ns


def _authority(one: Candidate) -> int:
    if one.rule in ("oom-kill", "device-fault", "node-lost", "authored-action"):
        return 4 if one.base >= BASE["device-fault-unjoined"] else 1
    if one.rule == "link-fault" or (one.rule == "io-stall" and one.ranks):
        return 3
    if one.rule in ("own-error-witnessed", "own-error", "common-error", "launcher-error", "odd-operation", "ran-out"):
        return 3
    if one.rule in ("killed-by-signal", "exit-code"):
        return 2 if one.base >= CONCLUSIVE else 0
    return 1


def _names_the_device(known: Candidate, other: Candidate) -> bool:
    """Whether both ends of a link raise its error, and the driver names the device whose link it is."""
    link = known.cls == other.cls == "gpu-nvlink-error" and known.hosts == other.hosts
    return link and other.rule == "device-fault" and len(other.ranks) == 1 and known.rule in _OF_RANKS


def _same_failure(known: Candidate, other: Candidate) -> bool:
    """Whether two candidates speak of one failure: the same ranks, or a host's loss and what its ranks show of it."""
    if (
        other.rule in ("own-error", "own-error-ambiguous")
        and not other.ranks
        and known.ranks
        and known.cls == other.cls
    ):
        return set(other.hosts) <= set(known.hosts)
    if other.rule == "authored-action" and not other.ranks and not other.hosts and known.cls == other.cls:
        return known.rule in ("authored-action", "node-lost") and bool(known.hosts)  # the same act, without a place
    if known.rule == "device-fault" and len(known.ranks) == 1 and other.common and known.cls == other.cls:
        # its neighbours feel a broken link, too; the driver names the device
        return known.ranks[0] in other.scope_ranks and known.hosts == other.hosts
    if _names_the_device(known, other):
        return True
    if known.common or other.common:
        return known.common and other.common and known.cls == other.cls
    if known.ranks and set(other.ranks) == set(known.ranks):
        return True
    if known.ranks and other.ranks and known.cls == other.cls and known.hosts == other.hosts:
        return set(other.ranks) <= set(known.ranks) or set(known.ranks) <= set(other.ranks)
    whole = known.rule in ("node-lost", "authored-action", "silent-host") and known.ranks
    if whole and other.ranks and set(other.ranks) <= set(known.ranks):
        return True
    if (
        other.rule in STRUCTURAL
        and known.ranks
        and other.ranks
        and set(known.ranks) <= set(other.ranks)
        and len(other.ranks) <= 2
    ):
        return True
    if not known.ranks and not other.ranks and known.cls == other.cls:
        return known.hosts == other.hosts or (not known.common and set(other.hosts) <= set(known.hosts))
    if known.ranks and other.rule == "io-stall" and not other.ranks and other.hosts and known.cls == other.cls:
        return set(other.hosts) <= set(known.hosts)
    same_host = bool(known.hosts) and known.hosts == other.hosts
    if same_host and not known.ranks and len(other.ranks) == 1 and other.rule in _OF_RANKS:
        # the driver's word without a device, and the error of the rank on it
        return known.rule in ("device-fault", "own-error") and known.cls == other.cls
    if same_host and not other.ranks and other.rule == known.rule == "killed-by-signal":
        return known.cls == other.cls
    if same_host and not other.ranks and other.rule in ("oom-kill", "device-fault", "link-fault"):
        return known.cls == other.cls and not _other_device(known, other)
    if same_host and not known.ranks and known.rule == "oom-kill":
        return other.rule == "killed-by-signal"
    return False


def rank(view: View, candidates: list[Candidate]) -> Ranked:
    """Explain away, score and weigh the candidates of one attempt."""
    merged = merge(candidates)
    refusals: list[str] = []
    begun = waiting_moment(view)
    for one in merged:
        _demote_waiting(view, one, refusals)
        _demote_late(one, begun, refusals)
        _demote_waiter(view, one, merged, refusals)
        _demote_outlived(view, one, refusals)
    explained: list[Candidate] = []
    for effect in sorted(merged, key=lambda one: one.key()):
        causes = [cause for cause in merged if cause is not effect and explains(view, cause, effect)]
        if causes:
            effect.explained_by = max(causes, key=lambda one: (one.base, one.key()))
            explained.append(effect)
    still = [one for one in merged if one.explained_by is None]
    if not still and merged:  # a circle: nothing is before all others
        still, explained = list(merged), []
        refusals.append("the candidates explain each other in a circle")
        for one in still:
            one.explained_by = None
    for one in still:
        one.score = one.base + 2.0 * _share(view, one) + _bonus(one)
    still.sort(key=lambda one: (-one.score, one.key()))
    weights = [exp(SHARPNESS * one.score) for one in still]
    total = sum(weights) + exp(SHARPNESS * NULL_SCORE)
    chances = tuple(weight / total for weight in weights)
    if len(still) > 1 and _two_roots(view, still[0], still[1]):
        refusals.append(f"{still[0].cls} and {still[1].cls}: two failures of their own, and nothing orders them")
        chances = tuple(min(chance, 0.6) for chance in chances)
    for one in still[:3]:
        if one.base < ANSWERABLE:
            refusals.append(f"{one.rule}: explaining much is not evidence, and by itself it is only a suspicion")
    return Ranked(tuple(still), chances, tuple(explained), tuple(dict.fromkeys(refusals)))


_SUFFICIENT = frozenset(
    {"own-error-witnessed", "oom-kill", "device-fault", "node-lost", "killed-by-signal", "launcher-error", "exit-code"}
)
"""Rules whose evidence shows a death of its own, which needs no other one."""


def _two_roots(view: View, one: Candidate, other: Candidate) -> bool:
    """Whether two candidates are each a sufficient failure of their own, and nothing says which was first."""
    if one.rule not in _SUFFICIENT or other.rule not in _SUFFICIENT or other.base < 3.0:
        return False
    if set(one.ranks) & set(other.ranks) or set(one.hosts) & set(other.hosts):
        return False
    return before(view, one, other) is None


def _other_device(known: Candidate, other: Candidate) -> bool:
    """Whether two reports of a driver name different devices."""
    one, two = (
        {bus for signal, _ in each.signals if (bus := signal.captures.get("bus_id"))} for each in (known, other)
    )
    return bool(one and two) and not one & two


def _bonus(one: Candidate) -> float:
    """A catalogued cause outweighs an exception that nobody knows more about."""
    fallback = one.entry is None or one.entry in FALLBACK_ENTRIES
    return 0.0 if fallback or one.rule in STRUCTURAL else 0.5


def _demote_waiting(view: View, one: Candidate, refusals: list[str]) -> None:
    """A rank that had been waiting in a collective before its own failure is not the one that the others wait for."""
    if one.rule in STRUCTURAL or one.rule == "device-fault" or not one.ranks or one.moment is None:
        return
    for number in one.ranks:
        since = blocked_since(view, number)
        if since is None:
            return
        begun, said = since
        if begun + 5 * _SECOND > one.moment.ns and not any(known.source is said.source for known, _ in one.signals):
            return
        waited = one.moment.ns - begun
        if waited < 5 * _SECOND:
            return
    one.base -= 1.6
    one.against.append("it had already been waiting in a collective when it failed")
    refusals.append(f"{one.cls} on rank {one.ranks[0]}: it was waiting for somebody before it failed")


def _demote_waiter(view: View, one: Candidate, every: list[Candidate], refusals: list[str]) -> None:
    """A rank that waited to the limit in a collective after its error had lived on; the one that never came had not."""
    if one.rule in STRUCTURAL or not one.ranks:
        return
    waiting: set[int] = set()
    for collective in view.collectives:
        waiting |= set(collective.waiters)
    if not set(one.ranks) <= waiting:
        return
    for other in every:
        if other is not one and other.ranks and not set(other.ranks) & waiting and other.base >= CONCLUSIVE:
            one.base -= 1.6
            one.against.append("it went on to wait in a collective like the others")
            refusals.append(f"{one.cls} on rank {one.ranks[0]}: it went on to wait like the others")
            return


def _demote_outlived(view: View, one: Candidate, refusals: list[str]) -> None:
    """What a machine reports, and the job then took many more steps, was no failure of the job."""
    if one.rule not in _OUTSIDE or one.cls == "gpu-thermal-or-power":  # that slows a job, which goes on
        return
    moments = [view.times.of(signal) if signal.own_stamp else None for signal, _ in one.signals]
    known = [moment for moment in moments if moment is not None]
    if not known or len(known) < len(moments):
        return
    last = max(moment.end_ns for moment in known)
    later = len(view.step_times) - bisect_right(view.step_times, last + 60 * _SECOND)
    if later >= _MANY_STEPS:
        one.base -= 2.6
        one.against.append(f"the job went on for {later} steps that its logs show after it")
        refusals.append(f"{one.cls}: the job went on after it")


def _demote_late(one: Candidate, begun: Moment | None, refusals: list[str]) -> None:
    """What surely happened after others had begun to wait for somebody is not what they wait for."""
    if one.rule in STRUCTURAL or one.moment is None or begun is None:
        return
    # a driver or a scheduler notices late what the ranks feel at once
    delay = 180 * _SECOND if one.rule in ("device-fault", "node-lost", "silent-host") else 5 * _SECOND
    if begun.ns + begun.bound_ns + delay < one.moment.ns - one.moment.bound_ns:
        one.base -= 1.6
        one.against.append("ranks had already been waiting for somebody when it happened")
        refusals.append(f"{one.cls}: ranks were already waiting before it")


def blocked_since(view: View, number: int) -> tuple[int, Signal] | None:
    """Since when a rank says that it waits in a collective, not having given up: (aligned nanoseconds, the signal)."""
    best: tuple[int, Signal] | None = None
    for signal in view.signals:
        if signal.rank != number or signal.event not in (Event.PHASE, Event.COLL_STATE):
            continue
        waited = signal.captures.get("elapsed_s")
        moment = view.times.of(signal)
        if waited is None or moment is None:
            continue
        try:
            begun = moment.ns - round(float(waited) * _SECOND)
        except ValueError:
            continue
        if best is None or begun < best[0]:
            best = (begun, signal)
    return best


def _share(view: View, one: Candidate) -> float:
    """Share of the ranks that only suffered which can follow from a candidate: none of them surely began before it."""
    suffering = [
        state
        for state in view.states.values()
        if state.rank not in one.ranks and (state.derived or state.secondary or state.killed)
    ]
    if not suffering:
        return 1.0
    if one.moment is None:
        return 1.0
    reached = 0
    for state in suffering:
        firsts = [
            moment
            for signal in (*state.derived, *state.secondary)
            if signal.own_stamp and (moment := view.times.of(signal)) is not None
        ]
        first = min(firsts, default=None)
        # a death is noticed at once, a stall only after the limit: an echo two seconds earlier cannot be an effect
        if first is None or not (first.ns + first.bound_ns + one.moment.bound_ns + 2 * _SECOND < one.moment.ns):
            reached += 1
    return reached / len(suffering)


def before(view: View, one: Candidate, other: Candidate) -> bool | None:
    """Whether one candidate was surely earlier than another; None where nothing orders them."""
    for a, _ in one.signals[:4]:
        for b, _ in other.signals[:4]:
            if a.source is b.source and a.rank == b.rank and a.line != b.line and a.rank is not None:
                return a.line < b.line
    # a log that several hosts share holds the stamps of several clocks
    apart = _SECOND if one.hosts and other.hosts and one.hosts != other.hosts else 0
    for a, _ in one.signals[:4]:
        for b, _ in other.signals[:4]:
            if a.own_stamp and b.own_stamp:
                gap = view.times.same_clock_gap(a, b)
                if gap is not None and abs(gap) > max(a.res_ns, b.res_ns) + apart:
                    return gap > 0
    noticed = _noticed_first(view, one, other)
    if noticed is not None:
        return noticed
    if one.moment is not None and other.moment is not None:
        if one.moment.surely_before(other.moment):
            return True
        if other.moment.surely_before(one.moment):
            return False
    dated = all(any(signal.own_stamp for signal, _ in each.signals[:4]) and each.moment for each in (one, other))
    if dated and one.hosts and other.hosts and one.hosts != other.hosts:
        return None  # lines of several hosts stand in the order in which they arrived, which says less than their times
    shared = [(a, b) for a, _ in one.signals[:4] for b, _ in other.signals[:4] if a.source is b.source]
    if shared and all(a.line < b.line for a, b in shared):
        return True
    if shared and all(a.line > b.line for a, b in shared):
        return False
    return None


def _noticed_first(view: View, one: Candidate, other: Candidate) -> bool | None:
    """Order of two ranks' ends by when their launchers noticed them; both poll alike, so the delays cancel but for a
    poll. A process that raised takes seconds to end. A launcher first ends the others, and reports the one that failed
    when they are gone.
    """
    moments = []
    for candidate in (one, other):
        seen = [
            moment
            for end in view.exits
            if end.signal.attempt == view.attempt and end.signal.own_stamp and end.host in candidate.hosts
            if end.killed or not end.ranks or set(end.ranks) & set(candidate.ranks)
            if (moment := view.times.of(end.signal)) is not None
        ]
        if not candidate.ranks or len(candidate.hosts) != 1 or not seen:
            return None
        moments.append(min(seen))
    first, second = moments
    raised = any(a.rule.startswith("own-error") for a in (one, other))
    slack = first.bound_ns + second.bound_ns + (5 * _SECOND if raised else 300_000_000)
    if one.hosts == other.hosts or abs(first.ns - second.ns) <= slack:
        return None
    return first.ns < second.ns


_REACH_NOBODY = frozenset({"master-unreachable", "rendezvous-timeout", "store-lost", "nccl-init-failure"})
"""What those raise that did start, where one of them never did."""
_MISFITS = frozenset({"nccl-init-failure", "nccl-socket-failure", "nccl-version-mismatch", "collective-desync"})
"""What ranks raise that run software of different versions."""


def explains(view: View, cause: Candidate, effect: Candidate) -> bool:
    """Whether a candidate follows from another one that is not weaker."""
    if cause.rule in STRUCTURAL and effect.rule in STRUCTURAL:
        return cause.rule == "silent-host" and effect.rule != "silent-host" and set(effect.ranks) <= set(cause.ranks)
    if effect.cls == "rendezvous-timeout" and cause.cls != effect.cls and not cause.common:
        # whoever waits at the rendezvous waits for a node that has a failure of its own
        return cause.base >= BASE["own-error-ambiguous"] - 0.1 and before(view, effect, cause) is not True
    if cause.rule in STRUCTURAL:
        weaker = effect.rule in AMBIGUOUS and cause.base >= CONCLUSIVE
        return weaker and before(view, effect, cause) is not True
    if cause.rule == "oom-kill" and effect.rule == "node-lost" and cause.hosts == effect.hosts:
        # who kills all of a session kills the launcher's daemon with it, and the launcher takes the node for lost
        told_by = {signal.source.kind for signal, _ in effect.signals}
        return not told_by & {"scheduler", "events", "kernel", "status"}
    if cause.base < CONCLUSIVE:
        return False
    order = before(view, cause, effect) if effect.rule not in STRUCTURAL else None
    if order is False:
        return False
    if effect.rule in STRUCTURAL:
        begun = waiting_moment(view)
        late = (
            begun is not None
            and cause.moment is not None
            and begun.ns + begun.bound_ns + cause.moment.bound_ns + 60 * _SECOND < cause.moment.ns
        )
        return not late
    if cause.rule == "oom-kill" and effect.rule == "node-lost" and cause.hosts == effect.hosts:
        # a launcher that lost its daemon on a host cannot tell what took it
        return all(signal.role is Role.AMBIGUOUS for signal, _ in effect.signals)
    if cause.rule == "odd-version" and effect.cls in _MISFITS:
        return True
    if cause.rule == "never-ran" and effect.cls in _REACH_NOBODY:
        return True
    if effect.rule in AMBIGUOUS and cause.rule not in AMBIGUOUS:
        return True
    if cause.rule in AMBIGUOUS:
        placed = bool(cause.ranks) and not effect.ranks and cause.base >= effect.base + 0.4
        alike = cause.rule == effect.rule == "own-error-ambiguous" and bool(cause.ranks) and bool(effect.ranks)
        return effect.rule in AMBIGUOUS and (placed or (alike and order is True and cause.base >= effect.base))
    if order is True:
        unplaced = cause.rule == "own-error" and not cause.ranks and not cause.common
        return cause.base >= effect.base - (0.0 if unplaced else 1.5)
    if effect.cls in ("time-limit", "cancelled-by-user") and effect.rule == "authored-action":
        # nobody runs on behind a time limit or a cancellation: what else is seen in the run lies before it
        return cause.rule in ("io-stall", "device-fault", "oom-kill", "node-lost", "link-fault", "own-error-witnessed")
    if cause.rule == "oom-kill" and effect.cls == "agent-failure" and effect.rule == "launcher-error":
        return bool(cause.hosts) and cause.hosts == effect.hosts  # a daemon that ended without a word was killed, too
    if (
        cause.rule in ("oom-kill", "device-fault", "node-lost")
        and effect.rule in ("killed-by-signal", "exit-code")
        and set(effect.hosts) <= set(cause.hosts)
    ):
        return True
    return cause.rule == "own-error-witnessed" and effect.rule == "launcher-error" and not _starts_nothing(view)


def _starts_nothing(view: View) -> bool:
    """Whether no rank ever printed a line: then the launcher is where it began."""
    return not any(state.extents for state in view.states.values())
