"""Adapters and their ports: `ibdev2netdev`, `ibstat`, `ibv_devinfo`, `show_gids`, `perfquery`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import COMMAND, head_lines, lines_of, share

NETDEV = compiled(r"^(?P<hca>[\w-]+) port (?P<port>\d+) ==> (?P<ifname>\S+) \((?P<state>Up|Down)\)")
GID = compiled(
    r"^(?P<hca>[\w-]+)\s+(?P<port>\d+)\s+(?P<index>\d+)\s+(?P<gid>[0-9a-f:]{20,39})\s+(?:(?P<ip>\d+\.\d+\.\d+"
    r"\.\d+)\s+)?(?P<version>v[12])\s+(?P<ifname>\S+)"
)
GID_HEAD = compiled(r"^(?:DEV\s+PORT\s+INDEX\s+GID|---\s|n_gids_found)")
STAT_HCA = compiled(r"^(?:CA '(?P<hca>[^']+)'|hca_id:\s*(?P<hca2>\S+))")
STAT_PORT = compiled(r"^\s+(?:Port|port:)\s*(?P<port>\d+):?\s*$")
STAT_STATE = compiled(r"^\s+(?:State: (?P<state>\w+)|state:\s+PORT_(?P<state2>\w+)|Physical state: (?P<physical>\w+))")

COUNTER_HEAD = compiled(r"^# Port (?:extended )?counters: .*\bport (?P<port>\d+)")
COUNTER_OF = compiled(r"^[#$] .*perfquery.* -C (?P<hca>[\w-]+)")
COUNTER = compiled(r"^(?P<name>[A-Z]\w+):\.{2,}(?P<count>\d+)$")
ERRORS = {
    "SymbolErrorCounter": 100, "LinkErrorRecoveryCounter": 1, "LinkDownedCounter": 1, "PortRcvErrors": 10,
    "LocalLinkIntegrityErrors": 1, "ExcessiveBufferOverrunErrors": 1,
}  # fmt: skip
"""Counters of a port that went bad, and from what count on they say so; nobody knows since when they count."""


class Fabric:
    """Reader of what the adapters of a host say about their ports."""

    name = "rdma-ports"
    kind = "status"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        lines = head_lines(head)
        if share(lines, NETDEV) > 0.4 and share(lines, NETDEV, COMMAND) > 0.8:
            return True
        if share(lines, GID) > 0.3 and share(lines, GID, GID_HEAD, COMMAND) > 0.8:
            return True
        if any(COUNTER_HEAD.match(line) for line in lines[:6]) and share(lines, COUNTER, COUNTER_HEAD, COMMAND) > 0.8:
            return True
        return any(STAT_HCA.match(line) for line in lines[:3]) and any(STAT_STATE.match(line) for line in lines)

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        lines = lines_of(data)
        states = [*_netdev(lines), *_stat(lines)]
        alive = any(up for _, _, _, up, _ in states)
        signals = []
        for number, hca, port, up, text in states:
            if not up and alive:
                captures = {"hca": hca, "port": port, "state": "down", "text": text}
                signals.append(
                    DumpSignal(
                        number, Event.LINK_FAULT, f"{hca} port {port} is down: {text}", fact="port-state",
                        cls="ib-link-failure",
                        role="ambiguous", weak=True, captures=captures,
                    )
                )  # fmt: skip
        signals.extend(_counters(lines))
        identities = []
        for number, line in enumerate(lines, 1):
            if (match := GID.match(line)) and match["ip"]:
                identities.append(DumpIdentity(number, "gids", address=match["ip"]))
        return DumpRows(tuple(signals), tuple(identities))


def _netdev(lines: Sequence[str]) -> Iterator[tuple[int, str, str, bool, str]]:
    for number, line in enumerate(lines, 1):
        if match := NETDEV.match(line):
            yield number, match["hca"] or "", match["port"] or "", match["state"] == "Up", line.strip()


def _stat(lines: Sequence[str]) -> Iterator[tuple[int, str, str, bool, str]]:
    hca, port = "", "1"
    for number, line in enumerate(lines, 1):
        if match := STAT_HCA.match(line):
            hca = match["hca"] or match["hca2"] or ""
        elif match := STAT_PORT.match(line):
            port = match["port"] or "1"
        elif match := STAT_STATE.match(line):
            word = (match["state"] or match["state2"] or "").upper()
            if word:
                yield number, hca, port, word in ("ACTIVE", "ARMED"), line.strip()


def _counters(lines: Sequence[str]) -> Iterator[DumpSignal]:
    """Ports whose error counters stand out; where all ports of a host count alike, none does."""
    hca, port = "", ""
    found: dict[str, list[tuple[int, int, str, str]]] = {}
    for number, line in enumerate(lines, 1):
        if match := COUNTER_OF.match(line):
            hca = match["hca"] or ""
        elif match := COUNTER_HEAD.match(line):
            port = match["port"] or ""
        elif (match := COUNTER.match(line)) and (match["name"] or "") in ERRORS:
            count = min(int((match["count"] or "0")[:18]), 2**62)
            found.setdefault(match["name"] or "", []).append((count, number, hca, port))
    for name, counts in sorted(found.items()):
        usual = sorted(count for count, *_ in counts)[(len(counts) - 1) // 2] if len(counts) > 1 else 0
        for count, number, device, which in counts:
            if count >= ERRORS[name] and count > 10 * usual:
                captures = {"hca": device, "port": which, "state": "errors", "count": str(count), "text": name}
                yield DumpSignal(
                    number, Event.LINK_FAULT, f"{device} port {which}: {name} {count}", fact="port-counters",
                    cls="ib-link-failure", role="ambiguous", weak=True,
                    captures={key: value for key, value in captures.items() if value},
                )  # fmt: skip
