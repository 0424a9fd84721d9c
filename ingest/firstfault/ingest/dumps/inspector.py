"""Files of NCCL's inspector plugin: one JSON object a line for each measured collective of one process."""

from __future__ import annotations

import json
from typing import Any

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpProblem, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import lines_of


class Inspector:
    """Reader of inspector files: the last measured collective of each kind and communicator, and who the process is."""

    name = "nccl-inspector"
    kind = "status"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        return head.lstrip()[:1] == b"{" and b'"coll_perf"' in head and b'"coll_sn"' in head

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        last: dict[tuple[str, str], DumpSignal] = {}
        who: dict[str, DumpIdentity] = {}
        odd = 0
        for number, line in enumerate(lines_of(data), 1):
            if not line.strip():
                continue
            try:
                one = json.loads(line)
            except (ValueError, RecursionError):
                odd += 1
                continue
            if isinstance(one, dict):
                _record(number, one, last, who)
        problems = (DumpProblem("odd-record", "data-loss", "lines that are no JSON", count=odd),) if odd else ()
        return DumpRows(
            tuple(sorted(last.values(), key=lambda s: s.line)), tuple(who[key] for key in sorted(who)), (), problems
        )


def _record(
    number: int, one: dict[str, Any], last: dict[tuple[str, str], DumpSignal], who: dict[str, DumpIdentity]
) -> None:
    header, meta, perf = (one.get(key) for key in ("header", "metadata", "coll_perf"))
    header, meta = header if isinstance(header, dict) else {}, meta if isinstance(meta, dict) else {}
    if not isinstance(perf, dict):
        return
    comm, host = str(header.get("id", ""))[:40], str(meta.get("hostname", ""))[:253] or None
    rank, size, pid = (_int(value) for value in (header.get("rank"), header.get("n_ranks"), meta.get("pid")))
    who.setdefault(
        comm, DumpIdentity(number, "comm-init", host=host, pid=pid, comm=comm, comm_rank=rank, comm_size=size)
    )
    micros = _int(meta.get("dump_timestamp_us"))
    op, seq = str(perf.get("coll", ""))[:40], _int(perf.get("coll_sn"))
    captures = {
        "comm_id": comm, "comm_rank": str(rank), "comm_size": str(size), "op": op, "seq": str(seq),
        "bytes": str(perf.get("coll_msg_size_bytes", "")),
        "elapsed_ms": str((_int(perf.get("coll_exec_time_us")) or 0) / 1000),
    }  # fmt: skip
    last[(comm, op)] = DumpSignal(
        number, Event.COLL_STATE, f"inspector: {op} #{seq} took {captures['elapsed_ms']} ms",
        fact="inspector-last", host=host,
        pid=pid, stamp_ns=micros * 1000 if micros else None, stamp_kind="offset" if micros else None,
        stamp_res_ns=1000 if micros else None, utc_offset_s=0 if micros else None, captures=captures,
    )  # fmt: skip


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62 else None
