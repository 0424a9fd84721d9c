"""Kubernetes objects: `kubectl get ... -o json`, `-o yaml` and `kubectl describe` of pods and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from firstfault.ingest.dumps.json_places import line_of, parse
from firstfault.ingest.dumps.kube_reasons import event_signal, exit_signal
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import any_stamp, head_lines, lines_of

FIELD = compiled(r"^(?P<indent> *)(?P<key>[A-Z][\w /()-]*?): *(?P<value>\S.*)?$")
NODE = compiled(r"^(?P<name>[\w.-]+)/(?P<ip>[\d.:a-f]+)$")
KINDS = frozenset({"Pod", "PodList", "Event", "EventList", "Node", "NodeList", "List"})


class KubeJson:
    """Reader of Kubernetes objects as JSON."""

    name = "kubectl-json"
    kind = "events"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        return (
            head.lstrip()[:1] == b"{"
            and b'"apiVersion"' in head
            and b'"kind"' in head
            and (b'"items"' in head or b'"metadata"' in head)
        )

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        value = parse(data)
        if not isinstance(value, dict):
            raise ValueError("no object")
        items = value.get("items")
        signals: list[DumpSignal] = []
        identities: list[DumpIdentity] = []
        for one in items if isinstance(items, list) else [value]:
            if isinstance(one, dict):
                _object(one, str(value.get("kind", "")), signals, identities)
        return DumpRows(tuple(signals), tuple(identities))


def _get(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Any, *path: str) -> str:
    found = _get(value, *path)
    return found[:4000] if isinstance(found, str) else ""


def _object(one: dict[str, Any], outer: str, signals: list[DumpSignal], identities: list[DumpIdentity]) -> None:
    kind = _text(one, "kind") or outer.removesuffix("List")
    name = _text(one, "metadata", "name")
    if kind == "Event" or "involvedObject" in one:
        place = one.get("involvedObject", one.get("regarding"))
        stamp = any_stamp(
            _text(one, "lastTimestamp") or _text(one, "eventTime") or _text(one, "metadata", "creationTimestamp")
        )
        count = one.get("count")
        signal = event_signal(
            line_of(one, "reason"), _text(one, "reason"), _text(place, "kind"), _text(place, "name"),
            _text(one, "message") or _text(one, "note"), stamp, str(count) if isinstance(count, int) else "",
        )  # fmt: skip
        if signal is not None:
            signals.append(signal)
    elif kind == "Pod":
        node, ip = _text(one, "spec", "nodeName"), _text(one, "status", "podIP")
        if name and node:
            identities.append(DumpIdentity(line_of(one), "pods", host=name, pod=name, alias=node, address=ip or None))
        signals.extend(_pod(one, name))
    elif kind == "Node":
        for address in _list(_get(one, "status", "addresses")):
            if _text(address, "type") == "InternalIP":
                identities.append(DumpIdentity(line_of(address), "nodes", host=name, address=_text(address, "address")))
        for condition in _list(_get(one, "status", "conditions")):
            if _text(condition, "type") == "Ready" and _text(condition, "status") != "True":
                stamp = any_stamp(_text(condition, "lastTransitionTime"))
                signal = event_signal(
                    line_of(condition, "status"), "NodeNotReady", "node", name, _text(condition, "message"), stamp
                )
                signals.extend([signal] if signal is not None else [])


def _list(value: Any) -> Iterator[dict[str, Any]]:
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict):
            yield one


def _pod(one: dict[str, Any], name: str) -> Iterator[DumpSignal]:
    if reason := _text(one, "status", "reason"):
        place = _get(one, "status")
        signal = event_signal(line_of(place, "reason"), reason, "pod", name, _text(one, "status", "message"), None)
        if signal is not None:
            yield signal
    for container in _list(_get(one, "status", "containerStatuses")):
        for where in ("state", "lastState"):
            ended = _get(container, where, "terminated")
            if isinstance(ended, dict):
                yield from _ended(ended, name, _text(container, "name"))


def _ended(ended: dict[str, Any], pod: str, container: str) -> Iterator[DumpSignal]:
    reason, code = _text(ended, "reason"), ended.get("exitCode")
    stamp = any_stamp(_text(ended, "finishedAt"))
    line = line_of(ended, "exitCode") if "exitCode" in ended else line_of(ended)
    yield exit_signal(line, reason, code if isinstance(code, int) else None, pod, container, stamp)


class KubeDescribe:
    """Reader of `kubectl describe pod|node`."""

    name = "kubectl-describe"
    kind = "events"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        lines = head_lines(head, 120)
        keys = {line.split(":", 1)[0] for line in lines if ":" in line and not line.startswith(" ")}
        whole = (
            {"Namespace", "Status"} <= keys or {"Namespace", "Containers"} <= keys or {"Roles", "Conditions"} <= keys
        ) and len(keys) >= 3
        return "Name" in keys and (whole or {"Taints", "Conditions"} <= keys)

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        signals: list[DumpSignal] = []
        identities: list[DumpIdentity] = []
        for block in _blocks(lines_of(data)):
            _described(block, signals, identities)
        return DumpRows(tuple(signals), tuple(identities))


def _blocks(lines: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("Name:") and block:
            yield block
            block = []
        block.append((number, line))
    if block:
        yield block


def _described(block: Sequence[tuple[int, str]], signals: list[DumpSignal], identities: list[DumpIdentity]) -> None:
    name, node, container, ip, state = "", "", "", "", ""
    code: tuple[int, int] | None = None
    reason, kind, in_events = "", "pod", False
    for number, line in block:
        if line.startswith("Events:"):
            in_events = True
            continue
        if in_events:
            signals.extend(_event_row(number, line, kind, name))
            continue
        if condition := NOT_READY.match(line):
            stamp = any_stamp(condition["since"] or "")
            if signal := event_signal(number, "NodeNotReady", "node", name, condition["text"] or "", stamp):
                signals.append(signal)
            continue
        match = FIELD.match(line)
        if match is None:
            continue
        indent, key, value = len(match["indent"] or ""), match["key"] or "", match["value"] or ""
        if code is not None and state == "Terminated" and key in ("State", "Last State", "Ready", "Restart Count"):
            signals.append(exit_signal(code[0], reason, code[1], name, container, None))  # an excerpt without times
            state, code = "", None
        if indent == 0:
            if key == "Name":
                name = value
            elif key == "Roles":
                kind = "node"
            elif key == "Node" and (found := NODE.match(value)):
                node = found["name"] or ""
            elif key == "IP":
                ip = value
            elif key == "Reason" and (signal := event_signal(number, value, "pod", name, "", None)):
                signals.append(signal)
        elif indent == 2 and not value:
            container, state, code, reason = key, "", None, ""
        elif key in ("State", "Last State"):
            state, reason, code = value, "", None
        elif key == "Reason":
            reason = value
        elif key == "Exit Code" and value.lstrip("-").isdigit() and len(value) < 12:
            code = (number, int(value))
        elif key == "Finished" and state == "Terminated" and code is not None:
            signals.append(exit_signal(code[0], reason, code[1], name, container, any_stamp(value)))
            state, code = "", None
    if code is not None and state == "Terminated":
        signals.append(exit_signal(code[0], reason, code[1], name, container, None))
    if name and node:
        identities.append(DumpIdentity(block[0][0], "pods", host=name, pod=name, alias=node, address=ip or None))


_WHEN = r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"
NOT_READY = compiled(rf"^ +Ready +(?:Unknown|False) +{_WHEN} +(?P<since>{_WHEN}) +(?P<reason>\w+) +(?P<text>.+)$")
"""The condition of a node; that of a pod has no times."""
EVENT_ROW = compiled(
    r"^ +(?P<type>Normal|Warning) +(?P<reason>\w+) +(?P<age>\S+(?: \(x\d+ over \S+\))?) +(?P<source>\S+) +(?P<"
    r"message>.*)$"
)


def _event_row(line: int, text: str, kind: str, name: str) -> Iterator[DumpSignal]:
    if match := EVENT_ROW.match(text):
        signal = event_signal(line, match["reason"] or "", kind, name, match["message"] or "", None)
        if signal is not None:
            yield signal
