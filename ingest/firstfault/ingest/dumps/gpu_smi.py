"""`nvidia-smi` as the usual table, `-L` and `-q`: where a GPU sits, which process uses it, what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.gpu_csv import bus_id
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import COMMAND, Stamp, any_stamp, head_lines, lines_of, share

LIST = compiled(r"^GPU (?P<gpu>\d+): (?P<name>.+) \(UUID: (?P<uuid>GPU-[0-9a-fA-F-]+)\)")
CARD = compiled(
    r"^\| +(?P<gpu>\d+) +(?P<name>\S.*?) +(?:On|Off|N/A) +\| +(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa"
    r"-f]{2}\.\d) +\S+ +\| +(?P<ecc>\S+)"
)
STATE = compiled(
    r"^\| *(?P<fan>\S+) +(?P<temp>\S+) +(?P<perf>\S+) +(?P<power>\S+) */ *\S+ +\| +(?P<memory>\S+) */ *\S+ +\|"
    r" +(?P<busy>\S+)"
)
PROCESS = compiled(
    r"^\| +(?P<gpu>\d+) +(?:(?:N/A|\d+) +(?:N/A|\d+) +)?(?P<pid>\d+) +(?P<type>C|G|C\+G|M\+C) +(?P<name>\S.*?)"
    r" +(?P<memory>\d+MiB|N/A) +\|"
)
BORDER = compiled(r"^(?:[+|][-=+|]{5,}|\| .*\||\|\s*\|)")
DETAIL_HEAD = compiled(r"^=+NVSMI LOG=+$")
DETAIL_GPU = compiled(r"^GPU (?P<bus>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)$")
DETAIL = compiled(r"^ +(?P<key>[A-Z][\w /.()-]*?) +: (?P<value>.*)$")
BROKEN = frozenset({"ERR!", "[Unknown Error]", "Unknown Error", "GPU requires reset", "[GPU requires reset]"})


class NvidiaSmi:
    """Reader of nvidia-smi's output for people."""

    name = "nvidia-smi"
    kind = "gpu-state"
    whole = False

    def sniff(self, path: str, head: bytes) -> bool:
        lines = head_lines(head)
        if any(DETAIL_HEAD.match(line) for line in lines[:6]):
            return True
        if any("NVIDIA-SMI" in line for line in lines[:8]):
            return share(lines, BORDER, COMMAND) > 0.6
        return share(lines, LIST) > 0.4 and share(lines, LIST, COMMAND) > 0.8

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        lines = lines_of(data)
        if any(DETAIL_HEAD.match(line) for line in lines[:6]):
            return _detail(lines)
        signals: list[DumpSignal] = []
        identities: list[DumpIdentity] = []
        stamp: Stamp | None = next((found for line in lines[:6] if (found := any_stamp(line))), None)
        gpu = -1
        for number, line in enumerate(lines, 1):
            if match := LIST.match(line):
                identities.append(DumpIdentity(number, "nvidia-smi", gpu=int(match["gpu"] or 0), alias=None))
            elif match := CARD.match(line):
                gpu = int(match["gpu"] or 0)
                identities.append(DumpIdentity(number, "nvidia-smi", gpu=gpu, bus_id=bus_id(match["bus"] or "")))
                if (ecc := match["ecc"] or "").isdigit() and int(ecc) > 0:
                    text = f"GPU {gpu}: {ecc} volatile uncorrectable ECC errors"
                    signals.append(
                        _fault(number, text, gpu, stamp, "gpu-ecc-uncorrectable", bus=bus_id(match["bus"] or ""))
                    )
            elif gpu >= 0 and "ERR!" in line and STATE.match(line):
                signals.append(_fault(number, f"GPU {gpu}: nvidia-smi shows ERR!", gpu, stamp, None))
            elif match := PROCESS.match(line):
                identities.append(
                    DumpIdentity(number, "nvidia-smi", gpu=int(match["gpu"] or 0), pid=int(match["pid"] or 0))
                )
        return DumpRows(tuple(signals), tuple(identities))


def _fault(
    line: int, text: str, gpu: int | None, stamp: Stamp | None, cls: str | None, bus: str | None = None
) -> DumpSignal:
    captures = {"text": text}
    if gpu is not None:
        captures["gpu"] = str(gpu)
    if bus:
        captures["bus_id"] = bus
    return DumpSignal(
        line, Event.NODE_FAULT, text, fact="gpu-state", cls=cls, role="ambiguous", weak=True, gpu=gpu,
captures=captures,
    ).at(stamp)  # fmt: skip


def _detail(lines: Sequence[str]) -> DumpRows:
    signals: list[DumpSignal] = []
    identities: list[DumpIdentity] = []
    stamp = next((any_stamp(line) for line in lines[:12] if line.startswith("Timestamp")), None)
    gpu, bus, section = -1, "", ""
    for number, line in enumerate(lines, 1):
        if match := DETAIL_GPU.match(line):
            gpu += 1
            bus = bus_id(match["bus"] or "")
            identities.append(DumpIdentity(number, "nvidia-smi", gpu=gpu, bus_id=bus))
        elif match := DETAIL.match(line):
            key, value = (match["key"] or "").strip(), (match["value"] or "").strip()
            if gpu < 0:
                continue
            if value in BROKEN:
                signals.append(_fault(number, f"GPU {gpu}: {key}: {value}", gpu, stamp, None, bus))
            elif value == "Active" and ("Slowdown" in key or "Brake" in key) and "SW" not in key:
                signals.append(_fault(number, f"GPU {gpu}: {key} is active", gpu, stamp, "gpu-thermal-or-power", bus))
            elif "Uncorrectable" in key and section == "Volatile" and value.isdigit() and int(value) > 0:
                signals.append(
                    _fault(number, f"GPU {gpu}: volatile {key}: {value}", gpu, stamp, "gpu-ecc-uncorrectable", bus)
                )
            elif key in ("Pending", "Remapping Failure Occurred") and value == "Yes":
                signals.append(
                    _fault(number, f"GPU {gpu}: row remapping: {key}", gpu, stamp, "gpu-ecc-uncorrectable", bus)
                )
            elif key == "Process ID" and value.isdigit():
                identities.append(DumpIdentity(number, "nvidia-smi", gpu=gpu, pid=int(value[:15])))
        elif line.strip():
            section = line.strip()
    return DumpRows(tuple(signals), tuple(identities))
