"""`nvidia-smi --query-gpu=... --format=csv -l`: one row for each GPU and moment.

A GPU whose clock falls far below that of the others at the same moments, and below its own past, is slow. A low clock
with no work on the GPU says nothing, so power or utilisation must not fall with it where those columns exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import Stamp, head_lines, iso_stamp, lines_of

COLUMN_WORDS = (
    "index",
    "pci.bus_id",
    "gpu_bus_id",
    "uuid",
    "temperature.gpu",
    "clocks.",
    "power.draw",
    "utilization.gpu",
    "memory.used",
    "name",
)
NUMBER = compiled(r"^-?\d+(?:\.\d+)?")
BUS = compiled(r"^(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d$")
LOW = 0.8
SUSTAINED = 3
THERMAL = ("thermal", "power_brake", "hw_slowdown")


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what one GPU showed at one moment."""

    line: int
    moment: str
    gpu: int
    clock: float | None
    temperature: float | None
    power: float | None
    busy: float | None
    reasons: tuple[str, ...]
    stamp: Stamp | None


class GpuCsv:
    """Reader of nvidia-smi tables in CSV."""

    name = "nvidia-smi-csv"
    kind = "gpu-state"
    whole = False

    def sniff(self, path: str, head: bytes) -> bool:
        lines = [line for line in head_lines(head, 40) if not line.startswith(("$", "#"))]
        while lines and "," not in lines[0]:  # the answer of `date` in front
            del lines[0]
        if not lines or not is_header(lines[0]):
            return False
        width = lines[0].count(",")
        return all(line.count(",") == width for line in lines[:40])

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        header: list[str] = []
        rows: list[Row] = []
        identities: dict[tuple[int, str], DumpIdentity] = {}
        for number, line in enumerate(lines_of(data), 1):
            cells = [cell.strip() for cell in line.split(",")]
            if is_header(line):
                header = [cell.lower() for cell in cells]
            elif header and len(cells) == len(header):
                got = dict(zip(header, cells, strict=True))
                if (row := _row(number, got)) is not None:
                    rows.append(row)
                    bus = next((got[name] for name in got if name.endswith("bus_id")), "")
                    if BUS.match(bus):
                        identities.setdefault(
                            (row.gpu, bus), DumpIdentity(number, "nvidia-smi", gpu=row.gpu, bus_id=bus_id(bus))
                        )
        return DumpRows(tuple(_slow(rows)), tuple(identities[key] for key in sorted(identities)))


def is_header(line: str) -> bool:
    """Whether a line names columns of nvidia-smi."""
    cells = [cell.strip().lower() for cell in line.split(",")]
    return len(cells) > 1 and sum(any(cell.startswith(word) for word in COLUMN_WORDS) for cell in cells) >= 2


def bus_id(text: str) -> str:
    """A PCI address as nvidia-smi prints it, in the form of `identities`."""
    parts = text.strip().lower().split(":")
    domain = int(parts[0], 16) if len(parts) == 3 else 0
    return f"{domain:04x}:{parts[-2]}:{parts[-1]}"


def _number(text: str | None) -> float | None:
    match = NUMBER.match(text or "")
    return float(match[0] or 0) if match else None


def _row(line: int, got: dict[str, str]) -> Row | None:
    index = _number(got.get("index"))
    if index is None:
        return None

    def first(*starts: str) -> float | None:
        return next((_number(value) for name, value in got.items() if name.startswith(starts)), None)

    reasons = tuple(
        sorted(name.split(".")[-1] for name, value in got.items() if "reasons" in name and value == "Active")
    )
    moment = got.get("timestamp", "")
    clock = first("clocks.current.sm", "clocks.sm", "clocks.current.graphics", "clocks.gr")
    return Row(
        line, moment, int(index), clock, first("temperature.gpu"), first("power.draw"), first("utilization.gpu"),
        reasons, iso_stamp(moment),
    )  # fmt: skip


def _slow(rows: Sequence[Row]) -> list[DumpSignal]:
    rounds = _rounds(rows)
    low: dict[int, list[tuple[Row, float]]] = defaultdict(list)
    past: dict[int, list[float]] = defaultdict(list)
    for same in rounds:
        for row in same:
            others = [other.clock for other in same if other.gpu != row.gpu and other.clock]
            if row.clock is None or len(others) < 2:
                continue
            if row.clock < LOW * median(others) and not _idle(row, same):
                low[row.gpu].append((row, median(others)))
            else:
                past[row.gpu].append(row.clock)
    found = []
    for gpu, hits in sorted(low.items()):
        usual = median(past[gpu]) if past[gpu] else None
        needed = SUSTAINED if len(rounds) >= SUSTAINED else 1
        if len(hits) < needed or (
            usual is not None and hits[0][0].clock is not None and hits[0][0].clock > LOW * usual
        ):
            continue
        found.append(_signal(gpu, hits, usual))
    return found


def _rounds(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that were asked at once: those of one stamp, or those between two of the same GPU where each has its own,
    since the tool stamps every GPU when it comes to it.
    """
    by_moment: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_moment[row.moment or "all"].append(row)
    if len(by_moment) < len(rows) or not rows:
        return list(by_moment.values())
    found: list[list[Row]] = [[]]
    seen: set[int] = set()
    for row in rows:
        if row.gpu in seen:
            found.append([])
            seen.clear()
        found[-1].append(row)
        seen.add(row.gpu)
    return found


def _idle(row: Row, same: Sequence[Row]) -> bool:
    """Whether the GPU had nothing to do at that moment."""
    if "gpu_idle" in row.reasons:
        return True
    busy = [other.busy for other in same if other.gpu != row.gpu and other.busy is not None]
    return row.busy is not None and bool(busy) and row.busy < 0.3 * median(busy)


def _signal(gpu: int, hits: Sequence[tuple[Row, float]], usual: float | None) -> DumpSignal:
    row, others = hits[0]
    reasons = sorted({reason for hit, _ in hits for reason in hit.reasons})
    hottest = max((hit.temperature for hit, _ in hits if hit.temperature is not None), default=None)
    text = f"GPU {gpu}: SM clock {row.clock:g} MHz while the others run at {others:g} MHz ({len(hits)} samples"
    text += f", its own usual clock {usual:g} MHz" if usual is not None else ""
    text += f", up to {hottest:g} C" if hottest is not None else ""
    text += f", active: {', '.join(reasons)})" if reasons else ")"
    limited = [reason for reason in reasons if any(word in reason for word in THERMAL)]
    captures = {
        "gpu": str(gpu),
        "text": text,
        "count": str(len(hits)),
        "used": f"{row.clock:g}",
        "expected": f"{others:g}",
    }
    if limited:
        captures["reason"] = ",".join(limited)
    stamp = row.stamp
    shown = next((hit for hit, _ in hits if any(word in reason for reason in hit.reasons for word in THERMAL)), row)
    return DumpSignal(
        shown.line, Event.SLOW, text, fact="gpu-clock-low", cls="gpu-thermal-or-power", role="ambiguous", gpu=gpu,
        first_line=row.line, last_line=hits[-1][0].line,captures=captures,
    ).at(stamp)  # fmt: skip
