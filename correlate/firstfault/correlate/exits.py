"""How processes ended, in the words of launchers and schedulers: exit codes, signals, who was killed by whom.

A launcher's kill makes an exit collateral; a launcher's table states what one node saw, never what the job suffered.
"""

from __future__ import annotations

from dataclasses import dataclass

from firstfault.catalog.model import Event
from firstfault.correlate.model import Signal, parse_ranks
from firstfault.correlate.names import Names

_SIGNAL_NUMBERS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9,
    "USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
}  # fmt: skip
_WORDS = (
    ("out of memory", 9), ("out-of-memory", 9), ("oom", 9), ("segmentation fault", 11), ("bus error", 7),
    ("aborted", 6), ("killed", 9), ("terminated", 15), ("illegal instruction", 4), ("floating point", 8), ("hangup", 1),
    ("interrupt", 2),
)  # fmt: skip


def signal_number(text: str | None) -> int | None:
    """Number of a signal from 'SIGKILL', 'Killed', '9', 'Segmentation fault (core dumped)'."""
    if not text:
        return None
    bare = text.strip().upper().removeprefix("SIGNALS.").removeprefix("SIG")
    if bare.isdigit():
        return int(bare)
    if bare in _SIGNAL_NUMBERS:
        return _SIGNAL_NUMBERS[bare]
    lower = text.lower()
    return next((number for word, number in _WORDS if word in lower), None)


@dataclass(frozen=True, slots=True)
class Exit:
    """How one process ended. `code` is negative for a signal; None where only a kill by the launcher is reported, or
    where (`abrupt`) all that is known is that the process was suddenly gone.
    """

    ranks: tuple[int, ...]
    host: str | None
    code: int | None
    killed: bool
    first: bool
    oom: bool
    signal: Signal
    abrupt: bool = False

    @property
    def forced(self) -> bool:
        """Whether a launcher ended it with SIGKILL, because it did not leave when it was told to."""
        told = self.signal.captures.get("signal", "")
        by_kill = signal_number(told) == 9 or "SIGKILL" in self.signal.text or "via 9" in self.signal.text
        return self.killed and by_kill

    @property
    def died_by(self) -> int | None:
        """Signal that ended the process, None where it exited by itself."""
        return -self.code if self.code is not None and self.code < 0 else None


def exit_code(signal: Signal) -> int | None:
    """Exit code of a report, shells' 128+n and signal names made negative."""
    code = signal.number("exitcode")
    if code is None:
        number = signal.number("signal_no") or signal_number(signal.captures.get("signal"))
        if number is None:
            number = signal_number(signal.captures.get("reason") or signal.captures.get("state"))
        return -number if number else None
    if 128 < code < 160:
        return -(code - 128)
    return code


def ranks_of(signal: Signal, names: Names, tasks_are_ranks: bool) -> tuple[int, ...]:
    """The global ranks that a report is about, through rank, local rank, process id or Slurm task."""
    rank = signal.number("rank")
    if rank is not None:
        return (rank,)
    host = signal.captures.get("host") or signal.captures.get("ip") or signal.host or signal.source.host
    pid = signal.number("child_pid") or signal.number("victim_pid")
    if pid is not None and (found := names.rank_of_pid(host, pid)) is not None:
        return (found,)
    local = signal.number("local_rank")
    if (
        local is not None
        and host is not None
        and (found := names.rank_of_local(host, local, signal.attempt)) is not None
    ):
        return (found,)
    listed = signal.captures.get("ranks")
    if listed:
        return parse_ranks(listed)
    tasks = signal.captures.get("tasks") or signal.captures.get("task")
    if tasks:
        numbers = parse_ranks(tasks)
        if tasks_are_ranks:
            return numbers
    if signal.event is Event.EXIT and signal.rank is not None and pid is None and local is None:
        return (signal.rank,)
    return ()


def read_exits(signals: tuple[Signal, ...], names: Names) -> list[Exit]:
    """All reports of ended processes, in the order of their place."""
    tasks = [
        number
        for signal in signals
        if signal.event is Event.EXIT
        for number in parse_ranks(signal.captures.get("tasks") or signal.captures.get("task") or "")
    ]
    world = names.world or len(names.ranks)
    by_agent = any(
        signal.event in (Event.AGENT_REPORT, Event.AGENT_KILL)
        and ("child_pid" in signal.captures or "local_rank" in signal.captures)
        for signal in signals
    )
    tasks_are_ranks = not tasks or (
        not by_agent and (not world or max(tasks) < world) and _one_task_a_rank(signals, world)
    )
    found = []
    codes = _codes_of_blocks(signals)
    ending, crashed = step_is_ended(signals), first_crashed(signals)
    for signal in signals:
        abrupt = _SUDDENLY_GONE.get(signal.entry or "", "") in signal.captures
        if signal.event not in (Event.EXIT, Event.AGENT_KILL, Event.AGENT_REPORT) and not abrupt:
            continue
        code = None if abrupt else exit_code(signal)
        if signal.entry == _BLOCK:
            if "exitcode" in signal.captures:
                continue  # the second line of a block, read with its first
            code = code if code is not None else codes.get((signal.source.id, signal.line))
        elif signal.entry == _TERMINATION:
            if "rank" not in signal.captures:
                continue  # read with the line that names the rank
            code = code if code is not None else codes.get((signal.source.id, signal.line))
        killed = signal.event is Event.AGENT_KILL
        reason = (signal.captures.get("reason") or signal.captures.get("state") or "").lower()
        oom = "out of memory" in reason or "oom" in reason or "out_of_memory" in reason
        behind = signal.line > ending.get(signal.source.id, signal.line)
        if behind and (code or 0) < 0 and not oom and "tasks" in signal.captures:
            killed = True  # whichever signal it died of in the end
        if signal.entry in _COMPOSER and code == -9 and signal.line > crashed.get(signal.source.id, signal.line):
            killed = True  # half a minute after it was told to leave
        if code is None and not killed and not abrupt:
            continue
        ranks = ranks_of(signal, names, tasks_are_ranks)
        named = signal.captures.get("host") or signal.captures.get("hosts") or signal.captures.get("ip")
        host = named or signal.host or signal.source.host
        found.append(
            Exit(
                ranks=ranks,
                host=names.canonical(host) if host else None,
                code=None if killed else code,
                killed=killed or (code == -15),
                first=signal.captures.get("reported") == "first"
                or (signal.event is Event.EXIT and "local_rank" in signal.captures)
                or signal.entry == _BLOCK,
                oom=oom,
                signal=signal,
                abrupt=abrupt,
            )
        )
    return found


_BLOCK = "mpi-proc-aborted"
_TERMINATION = "mpich-bad-termination"
_SUDDENLY_GONE = {"ray-worker-crashed": "child_pid", "vllm-worker-died": "ranks"}
"""Entries that only say that a process was suddenly gone, and the capture that tells which."""


_TASK = "slurm-task-exit"
_ENDS_STEP = "slurm-step-aborted"


def step_is_ended(signals: tuple[Signal, ...]) -> dict[int, int]:
    """The line of each log with which srun says that it ends a step, behind the first task whose end it had reported:
    who is killed after it, is killed by it (srun(1), --kill-on-bad-exit).
    """
    reported = {one.source.id: 0 for one in signals}
    for one in signals:
        if one.entry == _TASK and not one.weak and exit_code(one) not in (None, 0, -15):
            line = reported.get(one.source.id, 0)
            reported[one.source.id] = min(line or one.line, one.line)
    found: dict[int, int] = {}
    for one in signals:
        first = reported.get(one.source.id, 0)
        if one.entry == _ENDS_STEP and first and one.line > first:
            found[one.source.id] = min(found.get(one.source.id, one.line), one.line)
    return found


_COMPOSER = ("composer-rank-crashed", "launcher-rank-exited")


def first_crashed(signals: tuple[Signal, ...]) -> dict[int, int]:
    """The line of each log with which Composer's launcher names the rank that it found dead; then it ends the others.

    Its process id is not in that line, and stands in the list that follows at the end.
    """
    found: dict[int, int] = {}
    for one in signals:
        if one.entry == _COMPOSER[0] and "child_pid" not in one.captures and not one.weak:
            found[one.source.id] = min(found.get(one.source.id, one.line), one.line)
    return found


def _codes_of_blocks(signals: tuple[Signal, ...]) -> dict[tuple[int, int], int]:
    """Exit codes that mpirun prints in the line behind the one that names the rank, by the place of that line."""
    found = {}
    for signal in signals:
        behind = signal.entry in (_BLOCK, _TERMINATION) and "rank" not in signal.captures
        if behind and (code := exit_code(signal)) is not None:
            for before in (1, 2):
                found[signal.source.id, signal.line - before] = code
    return found


def _one_task_a_rank(signals: tuple[Signal, ...], world: int) -> bool:
    """Whether Slurm tasks number the ranks: some rank's own file or line carries the task of the same number, or counts
    agree.
    """
    pairs = {
        (signal.rank, signal.number("task"))
        for signal in signals
        if signal.rank is not None and signal.number("task") is not None
    }
    if pairs:
        return all(rank == task for rank, task in pairs)
    return world > 1
