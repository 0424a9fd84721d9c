"""Candidates from outside the ranks: kernel, devices, links, nodes, storage, schedulers; joined to ranks by identity.

Identity outranks time: a bus id, a process id or a host name ties a kernel line to a rank where clocks disagree or
where the kernel prints only its uptime. Time serves to set apart what lies surely outside the run.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from firstfault.catalog.model import Event, Role
from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_ranks import earliest, told_to_end
from firstfault.correlate.model import Moment, Signal, parse_ranks
from firstfault.correlate.states import is_echo
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
            yield _doubt_undated_kill(view, window, host, candidate)


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
    if rank is None and process and not process.startswith(_WORKER_NAMES):
        return
    ranks = (rank,) if rank is not None else ()
    candidate = Candidate(
        rule="oom-kill",
        cls=signals[0].cls or "host-oom-kill",
        entry=signals[0].entry,
        component="rank" if ranks else "host",
        ranks=ranks,
        hosts=view.names.rank_hosts(ranks, view.attempt) or ((host,) if host else ()),
        base=BASE["oom-kill"] if ranks else BASE["device-fault-unjoined"] + (0.6 if lost else 0.0),
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
    for (host, device), signals in sorted(devices.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        yield _doubt_date(view, window, _from_device(view, host, device, signals))


def _doubt_date(view: View, window: Window, candidate: Candidate) -> Candidate:
    """A fault that nothing dates may be weeks old: it counts only where its rank shows that the device failed it."""
    fits = {window.fit(signal) for signal, _ in candidate.signals if signal.rank is None}
    if fits != {Fit.UNKNOWN}:
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
        ended = any(one.died_by in (6, 7, 9, 11) and not one.killed for one in state.exits)
        siblings = [one for one in view.logged() if one.host == state.host]
        # where all of a host are silent, silence says nothing of one of them
        apart = len(siblings) == 1 or not all(one.silent for one in siblings)
        # its launcher ended it because it was told to, or because another child had failed by itself
        ended_early = state.killed and (state.host in told or any(one.own and not one.killed for one in siblings))
        apart = apart and not ended_early
        if felt or ended or (state.silent and apart and not state.completed and others_lost):
            return candidate
    candidate.base -= 2.4
    candidate.against.append("nothing says when it was, and the rank of that device shows nothing of it")
    return candidate


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
        if gpu is not None and host is not None and (rank := view.names.rank_of_gpu(host, gpu)) is not None:
            return rank, f"GPU {gpu} of {host} is rank {rank}"
    return None, ""


def _onset(moment: Moment | None, signal: Signal) -> Moment | None:
    """When a fault began that its reporter first waited for: 'timeout after 45 s' began 45 s earlier."""
    waited = signal.number("elapsed_s")
    if moment is None or waited is None:
        return moment
    return Moment(moment.ns - waited * 1_000_000_000, moment.bound_ns, moment.end_ns)


def _from_device(view: View, host: str | None, device: str, signals: list[Signal]) -> Candidate:
    sure = [one for one in signals if one.role is Role.INITIATING]
    first = (sure or signals)[0]
    rank, how = _device_rank(view, host, signals)
    ranks: tuple[int, ...] = (rank,) if rank is not None else ()
    telling = tuple(sorted({one.rank for one in signals if one.rank is not None}))
    if not device and len(telling) > 1:  # not one device: what all of them need
        ranks, how = telling, f"ranks {telling[0]} to {telling[-1]} themselves report it"
    base = BASE["device-fault"] if ranks else BASE["device-fault-unjoined"]
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


def link_faults(view: View, window: Window) -> Iterator[Candidate]:
    """Ports, links and adapters that report their own failure, by host."""
    ends = _ends(view, unclosed=True)
    hosts: dict[str | None, list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if usable(signal, Event.LINK_FAULT) and not window.stale(signal):
            host = (
                view.names.host_of(signal.rank, view.attempt)
                if signal.rank is not None
                else host_of_signal(view, signal)
            )
            hosts[host].append(signal)
    for host, signals in sorted(hosts.items(), key=lambda item: item[0] or ""):
        sure = [one for one in signals if one.role is Role.INITIATING]
        ranks = tuple(sorted({one.rank for one in signals if one.rank is not None}))
        first = (sure or signals)[0]
        # a port that goes down for a moment breaks no connection by itself
        felt = any(
            one.event is Event.PEER_LOSS and "closed by" not in one.text
            for state in view.states.values()
            for one in state.derived
        )
        # connections that break while every launcher is told to end break because of that
        ended = set(view.names.all_hosts()) <= told_to_end(view)
        doubtful = BASE["own-error-ambiguous"] - (0.0 if felt and not ended else 0.6)
        far = ends.get(host or "", {}) or _unknown_end(view, ends, host)
        end = len(far) >= 2 and not ended
        yield Candidate(
            rule="link-fault",
            cls=first.cls or "ib-link-failure",
            entry=first.entry,
            component="network",
            ranks=ranks,
            hosts=(host,) if host else (),
            base=BASE["link-fault"] if sure or end else doubtful,
            signals=[(one, "the adapter's own report") for one in sorted(sure or signals, key=lambda o: o.place)[:6]],
            moment=earliest(view, sure or signals),
            for_=[f"the connections of {len(far)} other hosts to it broke"] if end else [],
        )


def _stalled_rank(view: View, signal: Signal) -> int | None:
    """The rank whose process the kernel reports as blocked."""
    pid = signal.number("victim_pid") or signal.number("pid")
    return view.names.rank_of_pid(host_of_signal(view, signal), pid) if pid is not None else None


_SHORT_STALL_NS = 300 * 1_000_000_000
"""A stall that lasted longer is felt: by loaders, checkpoints and those who wait for them."""


def storage(view: View, window: Window) -> Iterator[Candidate]:
    """File systems that stall or fail, by server or path; no rank is blamed for them."""
    places: dict[tuple[str, str], list[Signal]] = defaultdict(list)
    recoveries = _recoveries(view)
    for signal in view.signals:
        if _recovered(view, signal, recoveries):
            continue
        own = signal.event is Event.IO_ERROR and signal.rank is None
        if (usable(signal, Event.IO_STALL) or (own and usable(signal, Event.IO_ERROR))) and not window.stale(signal):
            places[(signal.cls or "", signal.captures.get("server") or signal.captures.get("path") or "")].append(
                signal
            )
    for (cls, _), signals in sorted(_with_waiters(view, places).items()):
        hosts = {host for one in signals if (host := host_of_signal(view, one))}
        first = signals[0]
        stuck = {rank for one in signals if (rank := _stalled_rank(view, one)) is not None}
        ranks = tuple(sorted(stuck)) if len(stuck) <= max(1, len(view.states) // 4) else ()
        yield Candidate(
            rule="io-stall",
            cls=cls or "filesystem-io-error",
            entry=first.entry,
            component="storage",
            ranks=ranks,
            hosts=view.names.rank_hosts(ranks, view.attempt) if ranks else (tuple(hosts) if len(hosts) == 1 else ()),
            base=BASE["io-stall"] + (0.6 if ranks else 0.0),  # the kernel names the process that waits
            signals=[(one, "the file system's own report") for one in signals[:6]],
            moment=earliest(view, signals),
        )


def _recoveries(view: View) -> dict[tuple[str, str], list[Signal]]:
    """Of each source, the lines that say that a server answers again, in their order."""
    found: dict[tuple[str, str], list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if signal.event is Event.RECOVERED:
            found[signal.source.path, signal.captures.get("server", "")].append(signal)
    return {key: sorted(signals, key=lambda one: one.line) for key, signals in found.items()}


def _recovered(view: View, signal: Signal, recoveries: Mapping[tuple[str, str], list[Signal]]) -> bool:
    """Whether the server of a stall answered again, and soon where both times are known."""
    later = recoveries.get((signal.source.path, signal.captures.get("server", "-")), ())
    again = next((one for one in later if one.line > signal.line), None)
    if again is None:
        return False
    lost, back = view.times.of(signal), view.times.of(again)
    return lost is None or back is None or back.ns - lost.ns <= _SHORT_STALL_NS


def _with_waiters(view: View, places: Mapping[tuple[str, str], list[Signal]]) -> dict[tuple[str, str], list[Signal]]:
    """Reports of blocked processes, which name no server, joined with the one server of their class on their hosts."""
    joined = {key: list(signals) for key, signals in places.items()}
    for (cls, place), waiting in places.items():
        hosts = {host_of_signal(view, one) for one in waiting}
        servers = [
            key
            for key, signals in places.items()
            if key[0] == cls and key[1] and hosts & {host_of_signal(view, one) for one in signals}
        ]
        if not place and len(servers) == 1 and None not in hosts:
            joined[servers[0]] += joined.pop((cls, place))
    return joined


def _ends(view: View, unclosed: bool = False) -> dict[str, dict[str, list[Signal]]]:
    """Where broken connections led: by host, by the host that lost them.

    `unclosed` leaves out those that the other end closed: its kernel does so for a process that ends, no link does.
    Most of them must lead to a host for it to be their common end.
    """
    ends: dict[str, dict[str, list[Signal]]] = defaultdict(lambda: defaultdict(list))
    counts: Counter[int | None] = Counter()
    for signal in view.signals:
        peer = signal.captures.get("peer") or signal.captures.get("peer_host") or signal.captures.get("peer_ip")
        if (
            not is_echo(signal)
            or signal.event is not Event.PEER_LOSS
            or not peer
            or signal.captures.get("status") == "5"
            or (unclosed and "closed by" in signal.text)
        ):
            continue
        counts[signal.rank] += 1
        if signal.rank is not None and counts[signal.rank] > 6:
            continue
        host = view.names.host_of_address(peer)
        own = view.names.host_of(signal.rank, view.attempt) if signal.rank is not None else None
        own = own or host_of_signal(view, signal)
        end = host or peer  # an address that no line ties to a host is still one place
        if own and end != own:
            ends[end][own].append(signal)
    total = sum(len(signals) for one in ends.values() for signals in one.values())
    return {
        host: printers
        for host, printers in ends.items()
        if sum(len(signals) for signals in printers.values()) >= 0.8 * total
    }


def _unknown_end(view: View, ends: dict[str, dict[str, list[Signal]]], host: str | None) -> dict[str, list[Signal]]:
    """Who lost one address that no line ties to a host, if it can be that host's: it lost nothing there itself."""
    unknown = [address for address in ends if view.names.host_of_address(address) is None]
    return ends[unknown[0]] if host and len(unknown) == 1 == len(ends) and host not in ends[unknown[0]] else {}


def common_ends(view: View, window: Window) -> Iterator[Candidate]:
    """The host that connections from several other hosts broke to, before anybody was seen to die.

    A process that died draws the same star, so without InfiniBand's own completion codes it stays a suspicion.
    """
    ends = _ends(view)
    for host, printers in sorted(ends.items()):
        if len(printers) < 2 or view.names.host_of_address(host) is None:
            continue
        signals = [signal for _, listed in sorted(printers.items()) for signal in listed]
        first = signals[0]
        fabric = first.cls in ("ib-completion-error", "ib-link-failure")
        dead = any(
            state.own or state.exit_code in (-9, -11, -7) for state in view.states.values() if state.host == host
        )
        yield Candidate(
            rule="peer-common-end",
            cls=first.cls if fabric and first.cls else "nccl-socket-failure",
            entry=first.entry,
            component="network",
            ranks=(),
            hosts=(host,),
            base=BASE["peer-common-end"] + (1.2 if fabric and not dead else 0.0),
            signals=[(one, f"lost its connection to {host}") for one in signals[:6]],
            moment=earliest(view, signals),
            for_=[f"{len(signals)} connections from {len(printers)} other hosts broke, all to {host}"],
            missing=f"port counters and the kernel log of {host}, and whether a process of {host} had ended before",
        )


def lost_nodes(view: View, window: Window) -> Iterator[Candidate]:
    """Nodes that a scheduler, a platform or their own kernel declares lost."""
    hosts: dict[str, list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if not usable(signal, Event.NODE_LOST) or window.stale(signal) or _before_the_run(view, signal):
            continue
        host = host_of_signal(view, signal)
        for name in (signal.captures.get("hosts") or host or "").replace(",", " ").split():
            hosts[view.names.canonical(name)].append(signal)
    unknown = [host for host in hosts if not view.names.ranks_of_host(host, view.attempt)]
    for host, signals in sorted(hosts.items()):
        ranks = view.names.ranks_of_host(host, view.attempt) or (_left_over(view) if unknown == [host] else ())
        of_the_job = any(one.source.kind in ("launcher", "job", "node", "rank") for one in signals)
        if view.states and not ranks and view.names.all_hosts() and not of_the_job:
            continue
        waited = [rank for rank in ranks if _waited_on(view, rank)]
        yield Candidate(
            rule="node-lost",
            cls=signals[0].cls or "host-down",
            entry=signals[0].entry,
            component="host",
            ranks=ranks,
            hosts=(host,),
            base=BASE["node-lost"]
            - (2.0 if waited else 0.0)
            - (0.6 if all(one.role is Role.AMBIGUOUS for one in signals) else 0.0),
            against=[f"ranks {waited[0]} and others of it went on to wait like everybody else"] if waited else [],
            signals=[(one, "the platform's word on this node") for one in signals[:6]],
            moment=earliest(view, signals),
        )


def _before_the_run(view: View, signal: Signal) -> bool:
    """Whether a node went down and came back before its ranks printed their first line, by the node's own clock."""
    host = host_of_signal(view, signal)
    starts = [
        extent.first_ns
        for state in view.states.values()
        for extent in state.extents
        if extent.first_ns is not None and state.host == host and extent.source.clock == signal.source.clock
    ]
    return signal.stamp_ns is not None and bool(starts) and signal.stamp_ns < min(starts)


def _left_over(view: View) -> tuple[int, ...]:
    """The ranks of which nothing was read, not even their host, where they are as many as every known host has."""
    hosts = {host: len(view.names.ranks_of_host(host, view.attempt)) for host in view.names.all_hosts()}
    without = tuple(state.rank for state in view.states.values() if state.host is None and not state.logged)
    return without if set(hosts.values()) == {len(without)} else ()


def authored_actions(view: View, window: Window) -> Iterator[Candidate]:
    """Actions of a scheduler or platform that state their reason."""
    actions: dict[tuple[str, str | None], list[Signal]] = defaultdict(list)
    pods = {pod for one in view.signals if (pod := one.captures.get("pod"))}
    own = {pod for pod in pods if view.names.ranks_of_host(pod, view.attempt)}
    for signal in view.signals:
        if usable(signal, Event.SCHED_ACTION) and not window.stale(signal):
            pod = signal.captures.get("pod")
            if own and pod is not None and pod not in own:
                continue  # a list of events holds the pods of other jobs, too
            of_a_host = signal.source.host is not None and signal.source.kind not in ("scheduler", "events", "job")
            placed = pod or signal.cls == "pod-evicted" or (signal.cls == "preempted" and of_a_host)
            place = host_of_signal(view, signal) if placed else None
            actions[(signal.cls or "cancelled-by-user", place)].append(signal)
    _place_notices(view, actions)
    for (cls, host), signals in sorted(actions.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        ranks = view.names.ranks_of_host(host, view.attempt) if host else ()
        if host and len(ranks) == len(view.states):
            ranks = ranks if cls == "pod-evicted" else ()
        sure = [one for one in signals if one.role is Role.INITIATING]
        first = (sure or signals)[0]
        candidate = Candidate(
            rule="authored-action" if sure else "unauthored-action",
            cls=cls,
            entry=first.entry,
            component="scheduler" if not ranks else "host",
            ranks=ranks,
            hosts=(host,) if host and ranks else (),
            base=BASE["authored-action"]
            if sure
            else BASE["own-error-ambiguous"]
            - (1.3 if _after_echoes(view, signals) else 0.0)
            - (0.6 if not view.timeline.progress else 0.0),
            signals=[(one, "the scheduler's or platform's own words") for one in (sure or signals)[:6]],
            moment=earliest(view, sure or signals),
        )
        _long_silent(view, candidate)
        lived = [rank for rank in ranks if _waited_on(view, rank)]
        if lived:
            candidate.base -= 2.0
            candidate.against.append(f"rank {lived[0]} of it went on to wait like everybody else")
        yield candidate


def _place_notices(view: View, actions: dict[tuple[str, str | None], list[Signal]]) -> None:
    """A notice that one machine will be taken, printed by that machine's own rank, places what else tells of it."""
    notices = actions.get(("preempted", None), [])
    heard = {
        host
        for one in notices
        if one.rank is not None and (host := view.names.host_of(one.rank, view.attempt)) is not None
    }
    if len(heard) == 1 and len(view.names.all_hosts()) > 1:
        actions[("preempted", heard.pop())].extend(actions.pop(("preempted", None)))


def _long_silent(view: View, candidate: Candidate) -> None:
    """A job that had been silent for long when it was ended had hung before: the end is not what failed first."""
    if candidate.moment is None or candidate.cls not in ("time-limit", "cancelled-by-user"):
        return
    ends = [ns for state in view.logged() if (ns := state.last_progress_ns(view.times)) is not None]
    if not ends:
        return
    silent = candidate.moment.ns - max(ends)
    usual = view.usual_step_ns
    if silent > max(15 * 60 * 1_000_000_000, 20 * usual):
        candidate.base -= 2.6
        candidate.against.append(f"the job had made no progress for {silent / 60e9:.0f} minutes when it was ended")
        candidate.missing = "what the ranks waited for since then: py-spy stacks or flight-recorder dumps of all ranks"


def _waited_on(view: View, rank: int) -> bool:
    """Whether a rank lost or awaited its peers like the others: then it was still there."""
    state = view.states.get(rank)
    return state is not None and any(one.event in (Event.COLL_TIMEOUT, Event.PEER_LOSS) for one in state.derived)


def signalled_launchers(view: View, window: Window) -> Iterator[Candidate]:
    """A launcher that was told to end while another one lived on: the signal came from outside and began it.

    Where every launcher was told, it is a scheduler or a user ending the whole job, and only their record says which.
    """
    told: dict[str, list[Signal]] = defaultdict(list)
    for signal in view.signals:
        if signal.event is Event.SIGNAL_RECEIVED and signal.rank is None and not signal.weak:
            host = host_of_signal(view, signal)
            if host:
                told[host].append(signal)
    hosts = {host for rank in view.states if (host := view.names.host_of(rank, view.attempt))}
    spared = hosts - set(told)
    # a launcher whose log is not here may have been told as well
    speaking = {one.host for one in view.exits if one.host} | {
        view.names.canonical(source.host)
        for source in view.timeline.sources.values()
        if source.host and source.kind in ("launcher", "node")
    }
    lived = {state.host for state in view.states.values() if state.derived or state.exits or state.completed}
    every_host = all(state.host is not None for state in view.states.values())
    for host, signals in sorted(told.items()):
        alone = len(told) == 1 and bool(spared) and spared <= speaking and spared <= lived and every_host
        by_hand = any(one.number("signal_no") == 2 for one in signals)
        unhurt = not any(state.own or state.derived for state in view.states.values() if state.host == host)
        candidate = Candidate(
            rule="unauthored-signal",
            cls="cancelled-by-user",
            entry=signals[0].entry,
            component="launcher",
            ranks=(),
            hosts=(host,) if alone else (),
            base=BASE["own-error-ambiguous"] + 0.5
            if (alone and unhurt) or (by_hand and unhurt)
            else BASE["unauthored-signal"],
            signals=[(one, "this launcher was told to end") for one in signals[:3]],
            moment=earliest(view, signals),
            for_=[f"only the launcher of {host} was told to end, the others lost its ranks"] if alone else [],
            missing="who sent the signal: the scheduler's record of the job, or the shell history of that host",
        )
        _long_silent(view, candidate)
        if by_hand and not view.timeline.progress:
            candidate.base -= 1.5
            candidate.against.append("nothing shows that the job was making progress when it was ended")
        yield candidate


def _after_echoes(view: View, signals: list[Signal]) -> bool:
    """Whether ranks had lost or awaited their peers before a scheduler's action that names no reason."""
    moments = [moment for signal in signals if (moment := view.times.of(signal)) is not None]
    for state in view.states.values():
        for echo in state.derived:
            if echo.event is Event.SIGNAL_RECEIVED:
                continue
            when = view.times.of(echo)
            if any(one.source is echo.source and one.line > echo.last_line for one in signals):
                return True
            if when is not None and any(when.surely_before(moment) for moment in moments):
                return True
    return False
