"""Faults of an NVSwitch: one switch that fails takes links of several GPUs down, and each of them reports its own end.

The switch's fatal error with links of two GPUs or more is one fault of the host. Where a GPU had fallen off the bus the
switch only echoes it (Xid 79 first, SXid behind it).
"""

from __future__ import annotations

from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.from_ranks import earliest
from firstfault.correlate.model import Signal

_FATAL = frozenset({"sxid-20034", "sxid-fatal"})
_LINKS = "gpu-nvlink-error"
_LOST = "gpu-fell-off-bus"

Devices = dict[tuple[str | None, str], list[Signal]]


def take_switch_faults(view: View, devices: Devices) -> list[Candidate]:
    """Candidates of hosts whose switch failed; what they are made of is taken out of `devices`."""
    found = []
    for host in sorted({host for host, _ in devices if host is not None}):
        here = {key: signals for key, signals in devices.items() if key[0] == host}
        every = [one for signals in here.values() for one in signals]
        fatal = [one for one in every if one.entry in _FATAL]
        links = {key for key, signals in here.items() if any(one.cls == _LINKS for one in signals)}
        gpus = {key for key in links if any(one.entry not in _FATAL for one in here[key])}
        if not fatal or len(gpus) < 2 or any(one.cls == _LOST for one in every):
            continue
        signals = sorted((one for key in links for one in devices.pop(key)), key=lambda one: one.place)
        ranks = view.names.ranks_of_host(host, view.attempt)
        suffers = [rank for rank in ranks if rank in view.states and view.states[rank].own]
        found.append(
            Candidate(
                rule="device-fault",
                cls=_LINKS,
                entry=fatal[0].entry,
                component="host",
                ranks=ranks if len(suffers) == len(ranks) else (),
                hosts=(host,),
                base=BASE["device-fault"] - 0.3,
                signals=[(one, "the switch's or driver's own report") for one in (*fatal[:2], *signals[:4])],
                moment=earliest(view, signals),
                for_=[f"a switch of {host} failed, and {len(gpus)} GPUs lost links with it"],
            )
        )
    return found
