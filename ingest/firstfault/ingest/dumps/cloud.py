"""Answers of a cloud's control plane about instances: AWS `describe-instance-status` and `describe-instances`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.json_places import line_of, parse
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import COMMAND, any_stamp, head_lines, lines_of, share
from firstfault.ingest.identity_statements import short_host

ROW = compiled(r"^\s*\|?\s*(?P<instance>i-[0-9a-f]{8,20})\b(?P<rest>.*)$")
NAME = compiled(r"(?P<name>\b(?:ip-\d+-\d+-\d+-\d+|[a-z][\w-]*)(?:\.[\w-]+)+)")
IP = compiled(r"(?:^|\s)(?P<ip>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?:\s|$)")
BAD = frozenset({"impaired", "failed", "insufficient-data"})
GONE = frozenset({"shutting-down", "terminated", "stopping", "stopped"})


class CloudInstances:
    """Reader of AWS instance descriptions."""

    name = "aws-instances"
    kind = "status"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        if head.lstrip()[:1] in (b"{", b"["):
            return b'"InstanceId"' in head and (
                b'"InstanceStatuses"' in head
                or b'"Reservations"' in head
                or b'"InstanceStatus"' in head
                or b'"PrivateDnsName"' in head
            )
        lines = head_lines(head)
        if not any(line.lstrip("| \t").startswith("i-") for line in lines):  # far cheaper than the pattern
            return False
        return share(lines, ROW) > 0.4 and share(lines, ROW, COMMAND) > 0.6

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        signals: list[DumpSignal] = []
        identities: list[DumpIdentity] = []
        if data.lstrip()[:1] in (b"{", b"["):
            for one in _instances(parse(data), 0):
                identities.extend(_name(one))
                signals.extend(_status(one))
        else:
            for number, line in enumerate(lines_of(data), 1):
                if match := ROW.match(line):
                    rest = match["rest"] or ""
                    name, ip = NAME.search(rest), IP.search(rest)
                    if name or ip:
                        host = short_host(name["name"] or "") if name else None
                        identities.append(
                            DumpIdentity(
                                number, "instances", host=host or (ip["ip"] if ip else None), alias=match["instance"],
                                address=ip["ip"] if ip else None,
                            )
                        )  # fmt: skip
        return DumpRows(tuple(signals), tuple(identities))


def _instances(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if depth > 6:
        return
    if isinstance(value, list):
        for one in value:
            yield from _instances(one, depth + 1)
    elif isinstance(value, dict):
        if isinstance(value.get("InstanceId"), str):
            yield value
        else:
            for key in ("InstanceStatuses", "Reservations", "Instances"):
                if key in value:
                    yield from _instances(value[key], depth + 1)


def _name(one: dict[str, Any]) -> Iterator[DumpIdentity]:
    name, ip = one.get("PrivateDnsName"), one.get("PrivateIpAddress")
    host = short_host(name) if isinstance(name, str) and name else ip if isinstance(ip, str) else None
    if host:
        address = ip if isinstance(ip, str) and ip != host else None
        yield DumpIdentity(
            line_of(one, "InstanceId"), "instances", host=host[:253], alias=one["InstanceId"][:64], address=address
        )


def _status(one: dict[str, Any]) -> Iterator[DumpSignal]:
    instance = one["InstanceId"][:64]
    for event in one.get("Events") or () if isinstance(one.get("Events"), list) else ():
        if isinstance(event, dict):
            text = f"{event.get('Code', '')}: {event.get('Description', '')}"[:500]
            yield _signal(
                line_of(event, "Code"),
                f"instance {instance}: scheduled event {text}",
                instance,
                str(event.get("Code", ""))[:60],
                event.get("NotBefore"),
                weak=True,
            )
    for check in ("SystemStatus", "InstanceStatus", "AttachedEbsStatus"):
        place = one.get(check)
        if isinstance(place, dict) and place.get("Status") in BAD:
            details = place.get("Details")
            since = (
                next((d.get("ImpairedSince") for d in details if isinstance(d, dict) and d.get("ImpairedSince")), None)
                if isinstance(details, list)
                else None
            )
            text = f"instance {instance}: {check} is {place['Status']}" + (
                f" since {since}" if isinstance(since, str) else ""
            )
            yield _signal(line_of(place, "Status"), text, instance, f"{check} {place['Status']}", since)
    state = one.get("InstanceState", one.get("State"))
    if isinstance(state, dict) and state.get("Name") in GONE:
        yield _signal(
            line_of(state, "Name"), f"instance {instance} is {state['Name']}", instance, str(state["Name"]), None
        )


def _signal(line: int, text: str, instance: str, reason: str, since: Any, weak: bool = False) -> DumpSignal:
    stamp = any_stamp(since) if isinstance(since, str) else None
    return DumpSignal(
        line, Event.NODE_LOST, text, fact="instance-status", cls="host-down", role="initiating",
        weak=weak, host=instance,
captures={"instance": instance, "reason": reason, "text": text},
    ).at(stamp)  # fmt: skip
