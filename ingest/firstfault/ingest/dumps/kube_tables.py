"""Tables of `kubectl get events|pods|nodes`, with ages counted back from the `date` that stands above them.

Ages are rounded down; the resolution of a time is the unit of its age.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.kube_reasons import event_signal, exit_signal
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import (
    SECOND,
    Stamp,
    age_seconds,
    any_stamp,
    cells,
    columns_of,
    head_lines,
    iso_stamp,
    lines_of,
)

ASSIGNED = compiled(r"Successfully assigned (?:[\w.-]+/)?(?P<pod>[\w.-]+) to (?P<node>[\w.-]+)")
RESTARTS = compiled(r"^(?P<count>\d+)(?: \((?P<age>\w+) ago\))?")
EVENT_COLUMNS = {"REASON", "OBJECT", "MESSAGE"}
POD_COLUMNS = {"READY", "STATUS", "RESTARTS"}
NODE_COLUMNS = {"STATUS", "ROLES", "VERSION"}

END_COLUMNS = ("EXIT", "EXITCODE", "EXIT_CODE", "EXIT-CODE", "CODE")
"""What people call the exit code in custom columns."""


class KubeTables:
    """Reader of kubectl's tables."""

    name = "kubectl-table"
    kind = "events"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        return any(_kind_of(line) for line in head_lines(head, 6))

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        signals: list[DumpSignal] = []
        identities: list[DumpIdentity] = []
        for number, what, row, now in _rows(lines_of(data)):
            if what == "events":
                _event(number, row, now, signals, identities)
            elif what == "pods":
                _pod(number, row, now, signals, identities)
            elif what == "ends":
                _end(number, row, signals, identities)
            else:
                _node(number, row, now, signals, identities)
        return DumpRows(tuple(signals), tuple(identities))


def _kind_of(line: str) -> str | None:
    words = set(line.split())
    if words >= EVENT_COLUMNS:
        return "events"
    if words >= POD_COLUMNS and "NAME" in words:
        return "pods"
    if words & set(END_COLUMNS) and "REASON" in words and words & {"NAME", "POD"}:
        return "ends"
    if words >= NODE_COLUMNS and "NAME" in words:
        return "nodes"
    return None


def _rows(lines: Sequence[str]) -> Iterator[tuple[int, str, dict[str, str], Stamp | None]]:
    what: str | None = None
    columns: list[tuple[str, int]] = []
    now: Stamp | None = None
    for number, line in enumerate(lines, 1):
        kind = _kind_of(line)
        if kind is not None:
            what, columns = kind, _starts(line)
        elif not line.strip() or line.startswith("$"):
            what = None if line.startswith("$") else what
        elif what is None:
            now = any_stamp(line) or now
        else:
            yield number, what, cells(line, columns), now


def _starts(header: str) -> list[tuple[str, int]]:
    """Columns of a header; LAST SEEN and the like hold one blank, other names may be only one blank apart."""
    found: list[tuple[str, int]] = []
    for name, start in columns_of(header):
        at = start
        for word in name.split(" "):
            if (
                found
                and word in ("SEEN", "NODE", "GATES")
                and found[-1][0] in ("LAST", "FIRST", "NOMINATED", "READINESS")
            ):
                found[-1] = (f"{found[-1][0]} {word}", found[-1][1])
            else:
                found.append((word, at))
            at += len(word) + 1
    return found


def _before(now: Stamp | None, age: str) -> Stamp | None:
    """The moment of an age: in the middle of what rounding leaves open."""
    parsed = age_seconds(age)
    if now is None or parsed is None:
        return None
    seconds, unit = parsed
    return now.earlier(seconds, unit * SECOND)


def _event(
    line: int, row: dict[str, str], now: Stamp | None, signals: list[DumpSignal], identities: list[DumpIdentity]
) -> None:
    seen = row.get("LAST SEEN") or row.get("AGE") or ""
    stamp = iso_stamp(seen) or _before(now, seen.split(" ")[0])
    kind, _, name = row.get("OBJECT", "").partition("/")
    if not name:
        kind, name = row.get("KIND", "pod"), kind
    message = row.get("MESSAGE", "")
    if match := ASSIGNED.search(message):
        pod = match["pod"]
        identities.append(DumpIdentity(line, "pods", host=pod, pod=pod, alias=match["node"]))
    signal = event_signal(line, row.get("REASON", ""), kind, name, message, stamp, row.get("COUNT", ""))
    if signal is not None:
        signals.append(signal)


def _pod(
    line: int, row: dict[str, str], now: Stamp | None, signals: list[DumpSignal], identities: list[DumpIdentity]
) -> None:
    name, node, ip = row.get("NAME", ""), row.get("NODE", ""), row.get("IP", "")
    if name and node and node != "<none>":
        address = ip if ip not in ("", "<none>") else None
        identities.append(DumpIdentity(line, "pods", host=name, pod=name, alias=node, address=address))
    restarts = RESTARTS.match(row.get("RESTARTS", ""))
    stamp = _before(now, restarts["age"] or "") if restarts and restarts["age"] else None
    status = row.get("STATUS", "").removeprefix("Init:")
    count = (restarts["count"] or "") if restarts else ""
    # when a pod ended its row does not say: its age counts from its creation
    signal = event_signal(line, status, "pod", name, f"status {status}, {count or 0} restarts", stamp, count)
    if signal is not None:
        signals.append(signal)


def _end(line: int, row: dict[str, str], signals: list[DumpSignal], identities: list[DumpIdentity]) -> None:
    """A row of custom columns that tell how each pod ended."""
    name, node = row.get("POD") or row.get("NAME", ""), row.get("NODE", "")
    ip = row.get("IP", "")
    if not name:
        return
    if node not in ("", "<none>"):
        address = ip if ip not in ("", "<none>") else None
        identities.append(DumpIdentity(line, "pods", host=name, pod=name, alias=node, address=address))
    code = next((row[column] for column in END_COLUMNS if row.get(column)), "")
    if code.isdigit() and len(code) < 4:
        stamp = iso_stamp(row.get("FINISHED") or row.get("FINISHEDAT") or row.get("ENDED") or "")
        signals.append(
            exit_signal(line, row.get("REASON", "").strip(), int(code), name, row.get("CONTAINER", ""), stamp)
        )


def _node(
    line: int, row: dict[str, str], now: Stamp | None, signals: list[DumpSignal], identities: list[DumpIdentity]
) -> None:
    name, ip = row.get("NAME", ""), row.get("INTERNAL-IP", "")
    if not name:
        return
    if ip not in ("", "<none>"):
        identities.append(DumpIdentity(line, "nodes", host=name, address=ip))
    if "NotReady" in row.get("STATUS", ""):
        text = f"node {name} is {row['STATUS']}"
        captures = {"node": name, "state": row["STATUS"]}
        signals.append(
            DumpSignal(
                line, Event.NODE_LOST, text, fact="kube-node", cls="host-down", role="ambiguous", host=name,
captures=captures,
            ).at(now)
        )  # fmt: skip
