"""What each rank did and suffered in one attempt: its own errors, the errors it only echoes, its exit, its last sign of
life.

An exception that the rank lived on after is set apart; an error after the rank's own first echo is secondary. Both
rules are refusals 5 and 6 of the causal model: most wrong accusations come from leaving them out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from firstfault.catalog.model import FALLBACK_ENTRIES, Event, Role
from firstfault.correlate.exits import Exit
from firstfault.correlate.load import Timeline
from firstfault.correlate.model import DERIVED_EVENTS, PRIMARY_EVENTS, Extent, Progress, Signal, Source
from firstfault.correlate.names import Names
from firstfault.correlate.survival import ORDERLY, Survival
from firstfault.correlate.times import Times

_NUMBERS = re.compile(r"\d+")
_PLAIN_SOCKET = "mp-connection-lost"
_RECORDER = "flight-recorder"
_FRAME_KINDS = frozenset({"launcher", "scheduler", "kernel", "kubelet", "events", "status", "gpu-state", "raylet"})


@dataclass(slots=True)
class RankState:
    """One rank in one attempt."""

    rank: int
    attempt: int
    host: str | None
    own: list[Signal] = field(default_factory=list)
    secondary: list[Signal] = field(default_factory=list)
    survived: list[Signal] = field(default_factory=list)
    derived: list[Signal] = field(default_factory=list)
    exits: list[Exit] = field(default_factory=list)
    completed: list[Signal] = field(default_factory=list)
    phases: list[Signal] = field(default_factory=list)
    extents: list[Extent] = field(default_factory=list)
    progress: Progress | None = None
    shared_log: Source | None = None
    half_read: bool = False
    """Its error stream is not among the files, though those of most other ranks are."""

    @property
    def logged(self) -> bool:
        """Whether any line of this rank was read, or the log was read that it shares with ranks that print in it."""
        return bool(self.extents) or self.shared_log is not None

    @property
    def killed(self) -> bool:
        """Whether its launcher or scheduler ended it (SIGTERM, or SIGKILL after an ignored SIGTERM)."""
        return any(one.killed for one in self.exits)

    @property
    def exit_code(self) -> int | None:
        """Its exit code where somebody reports one; a kill by the launcher is -15."""
        codes = [one.code for one in self.exits if one.code is not None]
        return codes[0] if codes else (-15 if self.killed else None)

    @property
    def timeouts(self) -> list[Signal]:
        """Collectives in which this rank waited to the limit."""
        return [signal for signal in self.derived if signal.event is Event.COLL_TIMEOUT]

    @property
    def silent(self) -> bool:
        """Whether lines were read but no failure of any kind is among them; what a recorder dumped is no log."""
        printed = self.shared_log is not None or any(one.source.kind != _RECORDER for one in self.extents)
        return printed and not self.half_read and not (self.own or self.secondary or self.derived)

    @property
    def last_step(self) -> int | None:
        """Furthest step that this rank itself printed."""
        return self.progress.step if self.progress else None

    def last_ns(self, times: Times) -> int | None:
        """Aligned time of its last stamped line."""
        moments = [
            moment.ns
            for extent in self.extents
            if extent.last_ns is not None and (moment := times.of_source(extent.source, extent.last_ns)) is not None
        ]
        return max(moments) if moments else None

    def last_progress_ns(self, times: Times) -> int | None:
        """Aligned time of its last step line; of its last stamped line where it prints no steps."""
        if self.progress is None or self.progress.stamp_ns is None:
            return self.last_ns(times)
        moment = times.of_source(self.progress.source, self.progress.stamp_ns)
        return moment.ns if moment else None

    def last_extent(self, times: Times) -> Extent | None:
        """The source that holds its last line."""
        if not self.extents:
            return None
        return max(self.extents, key=lambda one: (one.last_ns or 0, one.lines, one.source.path))


def _without_error_stream(timeline: Timeline, attempt: int) -> set[int]:
    """Ranks whose error stream was not read where that of most others was: their silence would have been there."""
    streams: dict[int, set[str | None]] = defaultdict(set)
    for source in timeline.sources.values():
        if source.rank is not None and source.kind == "rank" and source.attempt in (None, attempt):
            streams[source.rank].add(source.stream)
    lacking = {rank for rank, names in streams.items() if "stderr" not in names and None not in names}
    return lacking if 2 * len(lacking) < len(streams) else set()


def is_own_error(signal: Signal) -> bool:
    """Whether a line can be where a failure started in this process."""
    return signal.event in PRIMARY_EVENTS and signal.role in (Role.INITIATING, Role.AMBIGUOUS) and not signal.weak


def is_echo(signal: Signal) -> bool:
    """Whether a line follows from a failure elsewhere."""
    if signal.role is Role.CONTEXT or signal.weak:
        return False
    return signal.event in DERIVED_EVENTS or (signal.role is Role.COLLATERAL and signal.event in PRIMARY_EVENTS)


def _share_logs(states: dict[int, RankState], signals: tuple[Signal, ...], hosts_logs: list[Source]) -> None:
    """A rank without a line of its own still has a log where all of its host, or of the job, print in one file."""
    shared: dict[str | None, Source] = {}
    everywhere: Source | None = None
    users: dict[int, set[int]] = defaultdict(set)
    sources: dict[int, Source] = {}
    for state in states.values():
        for extent in state.extents:
            users[extent.source.id].add(state.rank)
            sources[extent.source.id] = extent.source
    for signal in signals:
        if signal.rank in states and is_echo(signal) and signal.source.kind not in _FRAME_KINDS:
            users[signal.source.id].add(signal.rank)
            sources[signal.source.id] = signal.source
    for number in sorted(users):
        hosts = {states[rank].host for rank in users[number]}
        if len(users[number]) >= 2 and len(hosts) > 1:
            everywhere = everywhere or sources[number]
        elif len(users[number]) >= 2:
            shared.setdefault(next(iter(hosts)), sources[number])
    for source in hosts_logs:
        if source.host is not None:
            shared.setdefault(source.host, source)
    placeless = sum(not state.extents and state.host is None for state in states.values())
    for state in states.values():
        if not state.extents:
            state.shared_log = shared.get(state.host) if state.host else None
            if state.shared_log is None and everywhere is not None:
                state.shared_log = everywhere
            elif state.shared_log is None and len(shared) == 1 and state.host is None:
                # as many as print there, or more, may be the ranks of other hosts
                (only,) = shared.values()
                if only.host is None or placeless < len(users[only.id]):
                    state.shared_log = only


def is_plain_echo(signal: Signal, echo_lines: set[tuple[int, int]]) -> bool:
    """Whether an exception that no entry knows lies on a line that an echo's entry does know: then it is only that
    echo.
    """
    fallback = signal.entry is None or signal.entry in FALLBACK_ENTRIES
    return fallback and is_own_error(signal) and (signal.source.id, signal.line) in echo_lines


def echo_lines_of(signals: tuple[Signal, ...] | list[Signal]) -> set[tuple[int, int]]:
    """Source and line of each echo, and of a `RuntimeError` whose message goes on with the echo in the next two lines:
    run-times of accelerators put what they waited for behind what they were doing.
    """
    lines = {(signal.source.id, signal.line) for signal in signals if is_echo(signal)}
    waits = {
        (signal.source.id, signal.rank, signal.line)
        for signal in signals
        if is_echo(signal) and signal.event in (Event.COLL_TIMEOUT, Event.PEER_LOSS) and not signal.own_stamp
    }
    for signal in signals:
        behind = {(signal.source.id, signal.rank, signal.last_line + more) for more in (1, 2)}
        if signal.captures.get("exception", "").endswith("RuntimeError") and behind & waits:
            lines.add((signal.source.id, signal.line))
    return lines


def build_states(
    timeline: Timeline,
    names: Names,
    times: Times,
    exits: list[Exit],
    attempt: int,
    later_steps: dict[int, tuple[int, int]],
) -> dict[int, RankState]:
    """States of all ranks of one attempt, by rank."""
    states = {rank: RankState(rank, attempt, names.host_of(rank, attempt)) for rank in sorted(names.ranks)}
    for extent in timeline.extents:
        if extent.attempt == attempt and extent.rank in states:
            states[extent.rank].extents.append(extent)
    for number in _without_error_stream(timeline, attempt) & set(states):
        states[number].half_read = True
    merged = [
        source
        for source in timeline.sources.values()
        if source.kind in ("node", "job") and source.attempt in (None, attempt)
    ]
    _share_logs(states, timeline.signals, merged)
    for step in timeline.progress:
        if step.attempt == attempt and step.rank in states:
            state = states[step.rank]
            if state.progress is None or step.step > state.progress.step:
                state.progress = step
    for one in exits:
        if one.signal.attempt == attempt:
            for number in one.ranks:
                if number in states:
                    states[number].exits.append(one)
    survival = Survival(timeline, times, attempt, later_steps)
    echo_lines = echo_lines_of(timeline.signals)
    echoed: dict[tuple[int, int], int] = {}
    for signal in timeline.signals:
        rank = signal.rank
        if signal.attempt != attempt or rank is None or rank not in states:
            continue
        state = states[rank]
        if signal.event is Event.COMPLETION and signal.source.kind not in _FRAME_KINDS:
            state.completed.append(signal)
        elif signal.event in (Event.PHASE, Event.CHECKPOINT):
            state.phases.append(signal)
        elif is_plain_echo(signal, echo_lines):
            continue
        elif is_own_error(signal) or is_echo(signal):
            _take_error(state, signal, survival.of(signal, rank), echoed)
    told = _launchers_told_to_end(timeline, exits, attempt)
    hosts = {one.id: names.canonical(host) for one in told if (host := one.host or one.source.host)}
    reached = _reached_the_wait(states)
    neighbours: dict[str | None, list[RankState]] = defaultdict(list)
    for state in states.values():
        neighbours[state.host].append(state)
    for state in states.values():
        if state.own:
            state.completed = [one for one in state.completed if not (one.fact or "").startswith(ORDERLY)]
        _end_by_last_error(state)
        mine = [
            one for one in told if hosts.get(one.id) == state.host or any(one.source is e.source for e in state.own)
        ]
        _set_apart(state, state.rank in reached, neighbours[state.host], times, mine)
    return states


def _reached_the_wait(states: dict[int, RankState]) -> set[int]:
    """Ranks that waited to the limit in the same operation as most: whatever they raised, they had come that far."""
    waits: dict[tuple[str, str], set[int]] = defaultdict(set)
    for state in states.values():
        for signal in state.timeouts:
            if "seq" in signal.captures:
                waits[(signal.captures.get("op", ""), signal.captures["seq"])].add(state.rank)
    return {rank for ranks in waits.values() if len(ranks) > len(states) / 2 for rank in ranks}


def _launchers_told_to_end(timeline: Timeline, exits: list[Exit], attempt: int) -> list[Signal]:
    """What launchers print when they are told to end: the workers that they then shut down print errors of their own.

    A launcher that had seen a child fail before was told because of it.
    """
    failed = [one.signal for one in exits if one.code not in (None, 0) and not one.killed]
    return [
        signal
        for signal in timeline.signals
        if signal.event is Event.SIGNAL_RECEIVED
        and signal.rank is None
        and signal.attempt == attempt
        and not any(one.source is signal.source and one.line < signal.line for one in failed)
    ]


def _set_apart(state: RankState, reached: bool, on_host: list[RankState], times: Times, told: list[Signal]) -> None:
    """Move exceptions that cannot have begun it: of a rank that came to the common wait, or that was being ended."""
    if not state.own:
        return
    kills = [one.signal for one in state.exits if one.killed]
    kills += told
    others = [other for other in on_host if other is not state]
    # the launcher saw another child fail that had lost nobody: then this one was ended because of it
    failed = [
        other
        for other in others
        if not other.derived and any(one.code not in (None, 0, -6) and not one.killed for one in other.exits)
    ]
    spoiled = state.killed and bool(failed)
    # what the child raised that failed is what befell both
    common = {_said(signal) for other in failed for signal in other.own}
    kept = []
    for signal in state.own:
        fallback = signal.entry is None or signal.entry in FALLBACK_ENTRIES
        plain = signal.event in (Event.EXCEPTION, Event.INIT_FAILURE, Event.IO_ERROR, Event.NUMERIC)
        if (reached and plain) or (fallback and plain and lived_on(state, signal)):
            state.survived.append(signal)
        elif any(_after(kill, signal, times) for kill in kills) or (
            spoiled and fallback and plain and _said(signal) not in common
        ):
            state.secondary.append(signal)
        else:
            kept.append(signal)
    state.own = kept


def _said(signal: Signal) -> str:
    """What an exception says, whichever rank, number or device it says it of."""
    return _NUMBERS.sub("0", signal.text)


def lived_on(state: RankState, error: Signal) -> bool:
    """Whether an exception was caught: nothing caught a later one of the main thread, or a signal ended the process.

    Frames that Python prints as one chain are one record, so an error and what it led to are not taken apart here.
    """
    if error.uncaught:
        return False
    if any(one.died_by in (4, 7, 8, 9, 11) and not one.killed for one in state.exits):
        return True
    return any(
        other.uncaught and other.source is error.source and other.first_line > error.last_line
        for other in (*state.derived, *state.secondary)
    )


def _after(kill: Signal, error: Signal, times: Times) -> bool:
    """Whether an error came after the launcher's kill, in one log or by one clock."""
    if kill.source is error.source:
        return kill.line < error.first_line
    gap = times.same_clock_gap(kill, error) if kill.own_stamp and error.own_stamp else None
    return gap is not None and gap > max(kill.res_ns, error.res_ns)


def _end_by_last_error(state: RankState) -> None:
    """A rank whose launcher saw it fail by itself, and which raised one kind of error in a log that ranks share, ended
    by it.

    The lines behind it in such a log are from before: its two streams are copied one after the other.
    """
    if state.own or state.derived or not state.survived or not all(map(is_own_error, state.survived)):
        return
    failed = any(one.code not in (None, 0) and not one.killed for one in state.exits)
    shared = all(signal.source.kind != "rank" for signal in state.survived)
    lines = [signal.line for signal in state.survived]
    together = len({signal.source.id for signal in state.survived}) == 1 and max(lines) - min(lines) <= 60
    if failed and shared and together:
        state.own, state.survived = state.survived, []


def _take_error(state: RankState, signal: Signal, survived: bool, echoed: dict[tuple[int, int], int]) -> None:
    if survived and is_echo(signal) and any(one.killed or one.code not in (None, 0) for one in state.exits):
        survived = False  # in a log whose streams are copied one after the other, older lines stand behind it
    if survived:
        state.survived.append(signal)
        return
    key = (signal.source.id, state.rank)
    if is_echo(signal):
        state.derived.append(signal)
        echoed.setdefault(key, signal.first_line)
        return
    first_echo = echoed.get(key)
    cause = state.derived[-1] if state.derived else None
    if cause is not None and cause.entry == _PLAIN_SOCKET and signal.number("cause_line") == cause.line:
        # a client of its own that found nobody: the peers of the job print it in torch's words
        state.derived.pop()
        if not state.derived:
            echoed.pop(key, None)
        state.own.append(signal)
        return
    # the watchdog may print the same error in its own words on the very line of the echo
    if first_echo is not None and first_echo < signal.first_line:
        state.secondary.append(signal)
    else:
        state.own.append(signal)
