"""The words of the catalog: classes, roles, scopes, kinds of events, and the frozen shape of an entry and of a fact.

Everything here is a value; reading the TOML files is `loader`, finding their patterns in text is `matcher`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Role(StrEnum):
    """What a line of an entry says about the start of a failure."""

    INITIATING = "initiating"  # may be what failed first
    COLLATERAL = "collateral"  # printed because something else failed
    AMBIGUOUS = "ambiguous"  # either; the entry says what decides
    CONTEXT = "context"  # neither: advice, warnings that healthy runs print too, decoded numbers


class Scope(StrEnum):
    """How much one occurrence takes down."""

    RANK = "rank"
    GPU = "gpu"
    HOST = "host"
    NETWORK = "network"
    STORAGE = "storage"
    SCHEDULER = "scheduler"
    LAUNCHER = "launcher"
    JOB = "job"


class Event(StrEnum):
    """What a line means to the causal graph. An entry or a fact has exactly one."""

    # a rank's own failure
    EXCEPTION = "exception"  # an exception that is the rank's own (user code, data, configuration, memory, files)
    CUDA_ERROR = "cuda-error"  # an error of the device runtime in this process (asynchronous unless said otherwise)
    NATIVE_CRASH = "native-crash"  # a signal in native code: segmentation fault, bus error, illegal instruction, abort
    NUMERIC = "numeric"  # NaN, infinity, loss scale at its floor
    HANG = "hang"  # this rank says that it is stuck itself (GIL, watchdog thread stuck, blocked task)
    # collectives
    COLL_TIMEOUT = "coll-timeout"  # this rank waited in a collective until the limit
    COLL_STATE = "coll-state"  # counters of this rank: last enqueued, last completed, without a verdict
    ABSENT = "absent"  # a report that names ranks which did not come (captures: ranks)
    DESYNC = "desync"  # ranks called different operations or sizes
    INIT_FAILURE = "init-failure"  # a communicator or the rendezvous could not be set up
    # what the failure of somebody else looks like
    PEER_LOSS = "peer-loss"  # a connection to a peer broke (captures: peer address)
    STORE_LOST = "store-lost"  # the key-value store or coordinator no longer answers
    TEARDOWN = "teardown"  # the process is being ended because of an earlier error: watchdog wrappers, terminate()
    DUMP_SIGNAL = "dump-signal"  # a time-out elsewhere made this rank dump its state
    SIGNAL_RECEIVED = "signal-received"  # this process was asked to end
    # launchers and schedulers
    EXIT = "exit"  # a launcher or scheduler says how a process ended (captures: exitcode or signal, pid, rank, task)
    AGENT_KILL = "agent-kill"  # a launcher ends its other children
    AGENT_REPORT = "agent-report"  # a launcher's summary or restart notice
    SCHED_ACTION = "sched-action"  # the scheduler or platform ended the job or a part of it, for a stated reason
    NODE_LOST = "node-lost"  # a node is declared lost, down or rebooted
    # the machine
    NODE_FAULT = "node-fault"  # hardware or driver of one device or host: Xid, SXid, machine check, amdgpu, thermal
    OOM_KILL = "oom-kill"  # the kernel, a cgroup or a memory monitor killed a process (captures: victim pid)
    LINK_FAULT = "link-fault"  # a port, link or adapter of this host failed
    IO_STALL = "io-stall"  # a file system does not answer
    IO_ERROR = "io-error"  # a file system or object store answered with an error
    RECOVERED = "recovered"  # a file system or server answers again (captures: the same server as its loss)
    SLOW = "slow"  # a rank, device or host is slower than the others
    # facts
    IDENTITY = "identity"  # who is who
    PROGRESS = "progress"  # how far a rank is
    COMPLETION = "completion"  # a proof that a rank or the job ended well
    CHECKPOINT = "checkpoint"  # a checkpoint is being written or was written
    START = "start"  # a process, an attempt, a process group begins
    SYNC = "sync"  # all ranks pass this point together
    CLOCK = "clock"  # a statement about a clock: offset, boot time, step
    PHASE = "phase"  # what a rank began to do (loads data, saves, compiles), useful where it then falls silent
    NOISE = "noise"  # harmless, kept so that nothing takes it for a failure


@dataclass(frozen=True, slots=True)
class Pattern:
    """One regular expression of an entry, searched in the peeled message of a line."""

    id: str
    regex: str
    program: str = ""
    versions: str = ""
    weak: bool = False
    names_peer: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """A line that a pattern must match (with captures), must not match, or is known to miss."""

    line: str
    pattern: str | None = None
    captures: dict[str, str] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True)
class FrameworkFix:
    """How the fix is worded for one framework: a flag before code."""

    framework: str
    do: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One failure: how it looks, what it means, how to confirm it, mend it and see that it worked."""

    id: str
    cls: str
    title: str
    status: str
    role: Role
    scope: Scope
    event: Event
    decides: str
    patterns: tuple[Pattern, ...]
    points_at: tuple[str, ...]
    upstream: tuple[str, ...]
    downstream: tuple[str, ...]
    siblings: tuple[str, ...]
    overlaps: tuple[str, ...]
    sequence: tuple[str, ...]
    mechanism: str
    observe: str
    confirm: tuple[str, ...]
    fix: tuple[str, ...]
    fix_for: tuple[FrameworkFix, ...]
    verify: tuple[str, ...]
    resume: str
    prevent: tuple[str, ...]
    affects: str
    cannot_prove: str
    missing_fact: str
    references: tuple[str, ...]
    match: tuple[Example, ...]
    no_match: tuple[Example, ...]
    missed: tuple[Example, ...]
    path: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A line that is no failure but tells who, where, when or how far: identity, progress, completion, clocks."""

    id: str
    event: Event
    regex: str
    match: tuple[Example, ...]
    no_match: tuple[Example, ...]
    path: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class FailureClass:
    """One class of failures: what failed first, never how it was noticed."""

    id: str
    group: str
    title: str
    owner: str
    restart: str
    first_commands: tuple[str, ...]
    observe: str


FALLBACK_ENTRIES = ("python-traceback", "xid-other")
"""Entries that lose against every narrower entry on the same line."""
