"""`rocminfo` and `rocm-smi`: HSA node numbers, PCI addresses and the order of AMD GPUs.

HSA counts CPUs first, so `GPU node-8` is neither GPU 8 nor rank 8.
"""

from __future__ import annotations

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.linear import compiled, matching
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import head_lines, lines_of

FIELD = compiled(r"^ *(?P<key>Marketing Name|Node|BDFID|Device Type|Name|Domain|Agent \d+|Uuid) *:? *(?P<value>.*?) *$")
SMI_BUS = compiled(r"^GPU\[(?P<gpu>\d+)\]\s*: PCI Bus: (?P<bus>[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)")
SMI_LINE = compiled(r"^GPU\[(?P<gpu>\d+)\]\s*: (?P<text>.*)$")
GPU_NAME = ("Instinct", "Radeon", "MI2", "MI3", "gfx")


class Rocm:
    """Reader of what ROCm says about its agents."""

    name = "rocm"
    kind = "gpu-state"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        lines = head_lines(head)
        if matching(lines, SMI_LINE).sum() >= 2:
            return True
        return sum("BDFID:" in line for line in lines) >= 1 and any("Node:" in line for line in lines)

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        agents: list[dict[str, tuple[int, str]]] = []
        identities: list[DumpIdentity] = []
        for number, line in enumerate(lines_of(data), 1):
            if match := SMI_BUS.match(line):
                identities.append(
                    DumpIdentity(number, "rocm", gpu=int(match["gpu"] or 0), bus_id=(match["bus"] or "").lower())
                )
                continue
            match = FIELD.match(line)
            if match is None:
                continue
            key, value = match["key"] or "", match["value"] or ""
            if not agents or key in agents[-1] or key.startswith("Agent"):
                agents.append({})
            if not key.startswith("Agent"):
                agents[-1][key] = (number, value)
        signals = []
        gpu = 0
        for agent in agents:
            bus = _bus(agent.get("BDFID", (0, ""))[1], agent.get("Domain", (0, "0"))[1])
            at, node = agent.get("Node", (1, ""))
            if bus is None or not node.isdigit() or not _is_gpu(agent, bus):
                continue
            identities.append(DumpIdentity(at, "rocm", gpu=gpu, bus_id=bus))
            text = f"HSA node {node} is GPU {gpu} at {bus}"
            captures = {"hsa_node": node, "gpu": str(gpu), "bus_id": bus}
            signals.append(DumpSignal(at, Event.IDENTITY, text, fact="hsa-node", gpu=gpu, captures=captures))
            gpu += 1
        return DumpRows(tuple(signals), tuple(identities))


def _bus(text: str, domain: str) -> str | None:
    if not text.isdigit() or len(text) > 10:
        return None
    value = int(text)
    first = int(domain) if domain.isdigit() and len(domain) < 6 else 0
    return f"{first:04x}:{value >> 8 & 0xFF:02x}:{value >> 3 & 0x1F:02x}.{value & 7:x}"


def _is_gpu(agent: dict[str, tuple[int, str]], bus: str) -> bool:
    if "Device Type" in agent:
        return agent["Device Type"][1] == "GPU"
    name = agent.get("Marketing Name", (0, ""))[1] + agent.get("Name", (0, ""))[1]
    return any(word in name for word in GPU_NAME) or not bus.endswith("00:00.0")
