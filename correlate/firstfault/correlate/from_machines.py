"""Candidates from kernels and drivers: killed processes and failed devices, joined to ranks by identity.

Identity outranks time: a bus id, a process id or a host name ties a kernel line to a rank where clocks disagree or
where the kernel prints only its uptime. Time serves to set apart what lies surely outside the run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from firstfault.catalog.model import Event, Role
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_ranks import earliest, told_to_end
from firstfault.correlate.model import Moment, Signal, parse_ranks
from firstfault.correlate.switches import take_switch_faults
from firstfault.correlate.units import whole_unit_killed
from firstfault.correlate.window import Fit, Window

_HOST_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,252}")
_WORKER_NAMES = (
    "python",
    "pt_main",
    "pt_data",
    "ray::",
    "torchrun",
    "train",
    "deepspeed",
    "accelerate",
    "vllm",
    "megatron",
)


def host_of_signal(view: View, signal: Signal) -> str | None:
    """The host that a machine line is about: the one it names, else the one that wrote it, else the only one."""
    for name in ("host", "node", "pod", "instance", "ip"):
        value = signal.captures.get(name)
        if value and _HOST_NAME.fullmatch(value) and value not in ("localhost", "0.0.0.0"):
            return view.names.canonical(value)
    found = signal.host or signal.source.host
    if found:
        return view.names.canonical(found)
    every = view.names.all_hosts()
    return every[0] if len(every) == 1 else None


def usable(signal: Signal, event: Event) -> bool:
    """Whether a machine's line of some kind can be where a failure began."""
    return signal.event is event and signal.role in (Role.INITIATING, Role.AMBIGUOUS) and not signal.weak


def doubt_zone(window: Window, candidate: Candidate) -> Candidate:
    """A machine's record that fits the run only if its clock is read in another zone is worth less than one that fits
    as it is.
    """
    fits = {window.fit(signal) for signal, _ in candidate.signals if signal.rank is None}
    if fits == {Fit.SHIFTED}:
        candidate.base -= 1.2
        candidate.against.append("its time lies within the run only if its log is in another time zone")
    return candidate


def _suffers(view: View, rank: int) -> bool:
    """Whether a rank shows a fate of its own: an own error, silence, or an end by a signal."""
    state = view.states.get(rank)
    if state is None:
        return False
    return bool(state.own) or not (state.derived or state.completed) or state.exit_code in (-9, -7, -11)


def oom_kills(view: View, window: Window) -> Iterator[Candidate]:
    """Processes that the kernel, a cgroup or a memory monitor killed."""
    victims: dict[tuple[str | None, int | None], list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if usable(signal, Event.OOM_KILL) and not window.stale(signal):
            victims[(host_of_signal(view, signal), signal.number("victim_pid") or signal.number("pid"))].append(signal)
    named_hosts = {host for host, pid in victims if pid is not None}
    for (host, pid), signals in sorted(victims.items(), key=lambda item: (item[0][0] or "", item[0][1] or -1)):
        if pid is None and host in named_hosts:
            continue
        for candidate in _from_victim(view, host, pid, signals):
            yield _doubt_undated_kill(view, window, host, whole_unit_killed(view, host, candidate))


_DAEMONS = frozenset({"raylet", "orted", "prted", "hydra_pmi_proxy"})
"""Daemons of launchers, which take all ranks of their node with them; as the kernel cuts their names."""

_OF_A_KILL = frozenset({"dataloader-worker-died", "host-oom-kill", "process-killed", "shm-exhausted"})
"""Classes of errors that a rank raises because a process of its own was killed."""


def _doubt_undated_kill(view: View, window: Window, host: str | None, candidate: Candidate) -> Candidate:
    """A kill that nothing dates and nothing ties to a rank may be old, where a rank of that host raised an error."""
    fits = {window.fit(signal) for signal, _ in candidate.signals if signal.rank is None}
    tied = any("process id" in reason or "names the rank" in reason for reason in candidate.for_)
    raised = any(
        error.cls not in _OF_A_KILL for state in view.states.values() if state.host == host for error in state.own
    )
    if fits == {Fit.UNKNOWN} and not tied and raised:
        candidate.base -= 1.4
        candidate.against.append("nothing says when it was, and a rank of that host raised an error of its own")
    return candidate


def _from_victim(view: View, host: str | None, pid: int | None, signals: list[Signal]) -> Iterator[Candidate]:
    signals = sorted(signals, key=lambda one: ("Kill" not in one.text, one.place))
    process = next((name for one in signals if (name := one.captures.get("process"))), "")
    rank = view.names.rank_of_pid(host, pid) if pid is not None else None
    how = f"process id {pid} is rank {rank}" if rank is not None else ""
    if rank is None:
        for one in signals:
            listed = parse_ranks(one.captures.get("ranks", ""))
            if len(listed) == 1:
                rank, how = listed[0], "the line names the rank"
    lost = _lost_on(view, host)
    if rank is None and (not process or process.startswith(_WORKER_NAMES)) and len(lost) == 1:
        rank, how = lost[0], f"rank {lost[0]} is the only one of {host} that was killed or fell silent"
    daemon = process in _DAEMONS
    if rank is None and process and not process.startswith(_WORKER_NAMES) and not daemon:
        return
    ranks = (rank,) if rank is not None else ()
    candidate = Candidate(
        rule="oom-kill",
        cls=signals[0].cls or "host-oom-kill",
        entry=signals[0].entry,
        component="rank" if ranks else "host",
        ranks=ranks,
        hosts=view.names.rank_hosts(ranks, view.attempt) or ((host,) if host else ()),
        base=BASE["oom-kill"] if ranks or daemon else BASE["device-fault-unjoined"] + (0.6 if lost else 0.0),
        signals=[(one, "the killer's own record") for one in signals[:4]],
        moment=earliest(view, signals),
    )
    if how:
        candidate.for_.append(how)
    if rank is not None:
        state = view.states.get(rank)
        for end in state.exits if state else ():
            if not end.killed:
                candidate.support(end.signal, "the launcher saw it end by a signal")
        if state and state.derived and not state.own and state.exit_code not in (-9,):
            candidate.base -= 1.0
            candidate.against.append(f"rank {rank} also printed errors that only follow a failure elsewhere")
    yield candidate


def _lost_on(view: View, host: str | None) -> list[int]:
    """Ranks of a host that were killed by SIGKILL, else those that simply end, else those whose worker was killed."""
    ranks = view.names.ranks_of_host(host, view.attempt) if host else tuple(view.states)
    if not ranks:  # a node whose pods go by other names
        killed = [
            state.rank
            for state in view.states.values()
            if any(one.died_by == 9 and not one.killed for one in state.exits)
        ]
        return killed if len(killed) == 1 else []
    states = [view.states[rank] for rank in ranks if rank in view.states]
    killed = [state.rank for state in states if any(one.died_by == 9 and not one.killed for one in state.exits)]
    if killed:
        return killed
    worker = [
        state.rank
        for state in states
        if any(one.cls in ("dataloader-worker-died", "host-oom-kill") for one in state.own)
    ]
    if worker:
        return worker
    # a rank without a log may be the one, too
    quiet = (state for state in states if not state.logged or (state.silent and not state.completed))
    return [state.rank for state in quiet if not state.killed]


def device_faults(view: View, window: Window) -> Iterator[Candidate]:
    """Faults of one device or host that its driver or kernel reports."""
    devices: dict[tuple[str | None, str], list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if usable(signal, Event.NODE_FAULT) and not window.stale(signal):
            captures = signal.captures
            device = (
                captures.get("bus_id") or captures.get("gpu") or captures.get("device") or captures.get("pid") or ""
            )
            devices[(host_of_signal(view, signal), device)].append(signal)
    yield from take_switch_faults(view, devices)
    for (host, device), signals in sorted(devices.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        yield _doubt_date(view, window, _from_device(view, host, device, signals))


def _doubt_date(view: View, window: Window, candidate: Candidate) -> Candidate:
    """A fault that nothing dates may be weeks old: it counts where it names a process of this run, or where its rank
    shows that the device failed it.
    """
    fits = {window.fit(signal) for signal, _ in candidate.signals if signal.rank is None}
    if fits != {Fit.UNKNOWN} or any(reason.startswith("process id") for reason in candidate.for_):
        return candidate
    if not candidate.ranks and _died_only_there(view, candidate.hosts):
        return candidate
    others_lost = any(state.derived for state in view.states.values())
    told = told_to_end(view)
    for rank in candidate.ranks:
        state = view.states.get(rank)
        if state is None or not state.logged:
            return candidate
        felt = any(
            one.event in (Event.CUDA_ERROR, Event.NATIVE_CRASH, Event.HANG) for one in (*state.own, *state.derived)
        )
        deaths = (7, 9, 11) if state.derived else (6, 7, 9, 11)  # who waited in vain aborts because of that
        ended = any(one.died_by in deaths and not one.killed for one in state.exits)
        siblings = [one for one in view.logged() if one.host == state.host]
        # where all of a host are silent, silence says nothing of one of them
        apart = len(siblings) == 1 or not all(one.silent for one in siblings)
        # its launcher ended it because it was told to, or because another child had failed by itself
        ended_early = state.killed and (state.host in told or any(one.own and not one.killed for one in siblings))
        apart = apart and not ended_early
        # a rank whose error stream is not among the files printed nothing of a failure either
        quiet = state.silent or (state.half_read and not (state.own or state.secondary or state.derived))
        if felt or ended or (quiet and apart and not state.completed and others_lost):
            return candidate
    candidate.base -= 2.4
    candidate.against.append("nothing says when it was, and the rank of that device shows nothing of it")
    return candidate


def _died_only_there(view: View, hosts: tuple[str, ...]) -> bool:
    """Whether all processes that a launcher or scheduler saw die by a signal of their own were of one host."""
    died = {
        one.host
        for one in view.exits
        if one.signal.attempt == view.attempt and one.died_by in (4, 6, 7, 8, 9, 11) and not one.killed
    }
    return len(hosts) == 1 and died == set(hosts)


_OF_GSP = re.compile(r"\bGPU(\d{1,2}) (?:GSP|sanity check failed)")
"""The driver's own number of a device, in the order of the bus, as CUDA has it where all devices are alike."""


def _device_rank(view: View, host: str | None, signals: list[Signal]) -> tuple[int | None, str]:
    for one in signals:
        if one.rank is not None:
            return one.rank, f"rank {one.rank} itself reports it"
        bus = one.captures.get("bus_id")
        if bus and (rank := view.names.rank_of_bus(host, bus)) is not None:
            return rank, f"device {bus} is rank {rank}"
    for one in signals:
        pid = one.number("pid")
        if pid is not None and (rank := view.names.rank_of_pid(host, pid)) is not None:
            return rank, f"process id {pid} is rank {rank}"
        gpu = one.number("gpu")
        if gpu is None and (named := _OF_GSP.search(one.text[:300])) is not None:
            gpu = int(named[1])
        if gpu is not None and host is not None and (rank := view.names.rank_of_gpu(host, gpu)) is not None:
            return rank, f"GPU {gpu} of {host} is rank {rank}"
    return _device_of_unknown_node(view, host, signals)


def _device_of_unknown_node(view: View, host: str | None, signals: list[Signal]) -> tuple[int | None, str]:
    """Of the ranks whose device has the address, on a node that carries none by its name: the one that fell silent or
    raised an error of its own while the others waited.
    """
    if host is None or view.names.ranks_of_host(host, view.attempt):
        return None, ""
    for one in signals:
        ranks = view.names.ranks_of_bus(one.captures.get("bus_id") or "")
        states = [view.states[rank] for rank in ranks if rank in view.states]
        apart = [state.rank for state in states if not state.derived and not state.completed]
        if len(apart) == 1 and len(states) > 1:
            return apart[0], f"of the ranks on such a device rank {apart[0]} alone awaited nobody"
    return None, ""


def _onset(moment: Moment | None, signal: Signal) -> Moment | None:
    """When a fault began that its reporter first waited for: 'timeout after 45 s' began 45 s earlier."""
    waited = signal.number("elapsed_s")
    if moment is None or waited is None:
        return moment
    return Moment(moment.ns - waited * 1_000_000_000, moment.bound_ns, moment.end_ns)


_OF_A_DEVICE = frozenset({Event.CUDA_ERROR, Event.NATIVE_CRASH, Event.HANG})


def _sole_suspect(view: View, host: str | None) -> int | None:
    """The one rank of a host that hung, fell silent or raised an error of its device, where the others of that host
    lost or awaited somebody: whose device it was, that the driver's line does not say.
    """
    if host is None:
        return None
    states = [view.states[rank] for rank in view.names.ranks_of_host(host, view.attempt) if rank in view.states]
    apart = [
        state.rank
        for state in states
        if any(one.event in _OF_A_DEVICE for one in state.own)
        or (state.logged and state.silent and not state.completed and all(one.killed for one in state.exits))
    ]
    rest = [state for state in states if state.rank not in apart]
    return apart[0] if len(apart) == 1 and rest and all(state.derived for state in rest) else None


def _all_of_host(view: View, host: str | None, signals: list[Signal]) -> tuple[int, ...]:
    """All ranks of a host where its log holds the error once for each, and none of them lost or awaited anybody."""
    ranks = view.names.ranks_of_host(host, view.attempt) if host else ()
    states = [view.states[rank] for rank in ranks if rank in view.states]
    printed = {(one.source.id, one.line) for one in signals if one.source.kind not in ("kernel", "status", "gpu-state")}
    quiet = all(not state.derived and not state.completed for state in states)
    elsewhere = len(view.states) > len(states)
    return ranks if len(states) > 1 and len(printed) >= len(states) and quiet and elsewhere else ()


def _from_device(view: View, host: str | None, device: str, signals: list[Signal]) -> Candidate:
    sure = [one for one in signals if one.role is Role.INITIATING]
    first = (sure or signals)[0]
    rank, how = _device_rank(view, host, signals)
    ranks: tuple[int, ...] = (rank,) if rank is not None else ()
    telling = tuple(sorted({one.rank for one in signals if one.rank is not None}))
    if not device and len(telling) > 1:  # not one device: what all of them need
        ranks, how = telling, f"ranks {telling[0]} to {telling[-1]} themselves report it"
    if not ranks and not device and (of_host := _all_of_host(view, host, signals)):
        ranks, how = of_host, f"it is printed for each of the {len(of_host)} ranks of {host}, and all of them ended"
    base = BASE["device-fault"] if ranks else BASE["device-fault-unjoined"]
    if not ranks and sure and (alone := _sole_suspect(view, host)) is not None:
        rank, ranks = alone, (alone,)
        how = f"rank {alone} is the only one of {host} that hung, fell silent or lost its device"
        base = BASE["device-fault"] - 0.5
    if not sure:
        base -= 1.2
    candidate = Candidate(
        rule="device-fault",
        cls=first.cls or "gpu-xid-other",
        entry=first.entry,
        component="gpu" if device else "host",
        ranks=ranks,
        hosts=view.names.rank_hosts(ranks, view.attempt) or ((host,) if host else ()),
        base=base,
        signals=[
            (one, "the driver's or kernel's own report") for one in sorted(sure or signals, key=lambda o: o.place)[:4]
        ],
        moment=_onset(earliest(view, sure or signals), first),
    )
    if how:
        candidate.for_.append(how)
    if len(ranks) == 1 and rank is not None:
        if _suffers(view, rank):
            candidate.for_.append(f"rank {rank} shows it: an error of its own, silence or a sudden end")
            for one in view.states[rank].own[:2] if rank in view.states else ():
                candidate.support(one, "the error of the rank on that device")
        elif view.states[rank].derived:
            candidate.base -= 1.5
            candidate.against.append(f"rank {rank} went on to wait like the others")
    return candidate
