"""PyTorch Flight Recorder dumps, as pickle or JSON, of every version since 2.2.

For each process group: its counters, its last entries and every entry that did not complete.
`line` is the line of the entry in a JSON text, and the number of the entry in a pickle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.json_places import Placed, line_of, parse
from firstfault.ingest.dumps.linear import compiled
from firstfault.ingest.dumps.pickle_data import load
from firstfault.ingest.dumps.rows import DumpContext, DumpIdentity, DumpProblem, DumpRows, DumpSignal

MARKS = (b"pg_config", b"collective_seq_id", b"profiling_name", b"pg_status", b"nccl_comm_state", b"time_created_ns")
FILE_NAME = compiled(r"(?:^|/)[^/]*(?:nccl|comm_lib|fr)_trace_rank_(\d+)")
LAST_NUMBER = compiled(
    r"(?i)(?:(?:rank|trace|nccl|comm|dump|debug|flight|recorder|(?:^|[/_.-])fr)[^/]{0,120}?|(?:^|/))(\d{1,7})"
    r"(?:\.(?:json|pkl|pickle|dump|trace|bin))*(?:\.(?:gz|zst|xz|bz2))?$"
)
"""The number at the end of a name that says what the file is; `file012` numbers files."""
KEEP_LAST = 8
KEEP_OPEN = 64
OP_NAMES = {
    "all_reduce": "ALLREDUCE", "all_gather": "ALLGATHER", "_all_gather_base": "_ALLGATHER_BASE",
    "all_gather_into_tensor": "_ALLGATHER_BASE", "reduce_scatter": "REDUCE_SCATTER",
    "_reduce_scatter_base": "_REDUCE_SCATTER_BASE", "reduce_scatter_tensor": "_REDUCE_SCATTER_BASE",
    "broadcast": "BROADCAST", "_broadcast_oop": "_BROADCAST_OOP", "reduce": "REDUCE", "gather": "GATHER",
    "scatter": "SCATTER", "all_to_all": "ALLTOALL", "all_to_all_single": "ALLTOALL_BASE", "barrier": "BARRIER",
    "send": "SEND", "recv": "RECV", "coalesced": "COALESCED", "all_gather_into_tensor_coalesced": "COALESCED",
}  # fmt: skip
PROFILING_NAME = compiled(r"^(?:(?P<backend>\w+):)?(?P<op>\w+)(?: (?P<from>\d+)(?:->|<-)(?P<to>\d+))?")
LIBRARY_FRAMES = ("site-packages/torch/", "dist-packages/torch/", "/torch/distributed/", "torch/_ops.py")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the ring buffer."""

    line: int
    group: str
    pg_id: str
    desc: str
    seq: int
    p2p: bool
    state: str
    raw: Mapping[str, Any]


class FlightRecorder:
    """Reader of flight recorder dumps."""

    name = "flight-recorder"
    kind = "flight-recorder"
    whole = True

    def sniff(self, path: str, head: bytes) -> bool:
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:2]
        if start[:1] not in (b"\x80", b"{", b"[") and not (FILE_NAME.search(path) and start[:1] in (b"(", b"]", b"}")):
            return False
        return sum(mark in head for mark in MARKS) >= (1 if FILE_NAME.search(path) else 2)

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        text = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
        dump = parse(data) if text else load(data)
        problems: list[DumpProblem] = []
        entries = _entries(dump, text, problems)
        config = _config(dump)
        rank = ctx.rank if ctx.rank is not None else _int(dump.get("rank") if isinstance(dump, dict) else None)
        if rank is None and (match := LAST_NUMBER.search(ctx.path)):
            rank = int(match[1] or 0)  # whatever the prefix is called, PyTorch puts the global rank behind it
        if rank is None:
            problems.append(
                DumpProblem("unknown-rank", "notice", "neither the name nor the dump says which rank it is")
            )
        groups: dict[str, list[Entry]] = {}
        for entry in entries:
            groups.setdefault(entry.group, []).append(entry)
        status = _status(dump, groups, config)
        signals: list[DumpSignal] = []
        for name in sorted({*groups, *status}):
            members = config.get(name, (name, "", ""))
            signals.extend(_group(rank, name, groups.get(name, []), status.get(name), members, problems))
        world = max((len(_ranks(ranks)) for _, desc, ranks in config.values() if desc == "default_pg"), default=None)
        identities = () if rank is None else (DumpIdentity(1, "dump", rank=rank, world_size=world or None),)
        signals.sort(key=lambda one: (one.line, one.fact or "", one.captures.get("pg_name", "")))
        return DumpRows(tuple(signals), identities, (), tuple(problems))


def _int(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, str) and value.lstrip("-").isdigit() and len(value) < 20:
        return int(value)
    return None


def _entries(dump: Any, text: bool, problems: list[DumpProblem]) -> list[Entry]:
    raw = dump if isinstance(dump, list) else dump.get("entries", []) if isinstance(dump, dict) else None
    if not isinstance(raw, list):
        raise ValueError("no list of entries")
    found: list[Entry] = []
    odd = 0
    for number, item in enumerate(raw, 1):
        if not isinstance(item, dict):
            odd += 1
            continue
        place = item.get("process_group")
        pg_id = str(item.get("pg_id", ""))[:200]
        group, desc = pg_id, ""
        if isinstance(place, list | tuple) and len(place) == 2:
            group, desc = str(place[0])[:200], str(place[1])[:200]
        p2p = item.get("is_p2p") is True
        seq = _int(item.get("p2p_seq_id")) if p2p else _int(item.get("collective_seq_id", item.get("seq_id")))
        if seq is None:
            odd += 1
            continue
        line = line_of(item, "profiling_name") if text else number
        found.append(Entry(line, group, pg_id, desc, seq, p2p, str(item.get("state", ""))[:40], item))
    if odd:
        problems.append(DumpProblem("odd-record", "data-loss", "entries without a sequence number", count=odd))
    return found


def _config(dump: Any) -> dict[str, tuple[str, str, str]]:
    """Groups by name and by id: (name, description, ranks as printed)."""
    raw = dump.get("pg_config") if isinstance(dump, dict) else None
    found: dict[str, tuple[str, str, str]] = {}
    for key, one in raw.items() if isinstance(raw, dict) else ():
        if isinstance(one, dict):
            ranks = one.get("ranks", "")
            text = (
                ranks if isinstance(ranks, str) else json.dumps(ranks, default=str) if isinstance(ranks, list) else ""
            )
            row = (str(one.get("name", key))[:200], str(one.get("desc", ""))[:200], text[:65536])
            found.setdefault(row[0], row)
            found.setdefault(str(key)[:200], row)
    return found


def _ranks(text: str) -> list[int]:
    return [int(part) for part in text.strip("[] ").split(",") if part.strip().isdigit()]


def _status(
    dump: Any, groups: Mapping[str, Sequence[Entry]], config: Mapping[str, tuple[str, str, str]]
) -> dict[str, tuple[int, Mapping[str, Any]]]:
    """The counters of each group by its name, with the line that shows them."""
    raw = dump.get("pg_status") if isinstance(dump, dict) else None
    by_id = {entry.pg_id: name for name, entries in groups.items() for entry in entries}
    found: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for key, one in raw.items() if isinstance(raw, dict) else ():
        if isinstance(one, dict):
            name = by_id.get(str(key)) or (config[str(key)][0] if str(key) in config else str(key)[:200])
            found[name] = (line_of(one, "last_enqueued_collective") if isinstance(one, Placed) else 1, one)
    return found


def _group(
    rank: int | None,
    name: str,
    entries: Sequence[Entry],
    status: tuple[int, Mapping[str, Any]] | None,
    members: tuple[str, str, str],
    problems: list[DumpProblem],
) -> list[DumpSignal]:
    collectives = [entry for entry in entries if not entry.p2p]
    counted = {
        "last_enqueued": max((e.seq for e in collectives), default=None),
        "last_started": max((e.seq for e in collectives if e.state in ("started", "completed")), default=None),
        "last_completed": max((e.seq for e in collectives if e.state == "completed"), default=None),
    }
    line = entries[-1].line if entries else 1
    if status is not None:
        line = status[0] if status[0] > 1 or not entries or isinstance(status[1], Placed) else line
        for key in counted:
            said = _int(status[1].get(f"{key}_collective"))
            counted[key] = said if said is not None else counted[key]
    desc = members[1] or next((entry.desc for entry in entries if entry.desc), "")
    common = {"pg_name": name, "pg_desc": desc, "pg_ranks": members[2]}
    common |= {key: str(value) for key, value in counted.items() if value is not None}
    if rank is not None:
        common["rank"] = str(rank)
    common = {key: value for key, value in common.items() if value}
    last = max((_int(entry.raw.get("time_created_ns")) or 0 for entry in entries), default=0) or None
    text = f"process group {name}{f' ({desc})' if desc else ''}: last enqueued {counted['last_enqueued']}"
    text += f", last started {counted['last_started']}, last completed {counted['last_completed']}"
    signals = [
        DumpSignal(
            line, Event.COLL_STATE, text, fact="fr-status", rank=rank, stamp_ns=last,
            stamp_kind="offset" if last else None, stamp_res_ns=1000 if last else None,
            utc_offset_s=0 if last else None,
            captures=common,
        )
    ]  # fmt: skip
    opened = [entry for entry in entries if entry.state != "completed"]
    if len(opened) > KEEP_OPEN:
        problems.append(
            DumpProblem(
                "left-out", "info", f"of the open entries of group {name} only the first and last are kept",
                count=len(opened) - KEEP_OPEN,
            )
        )  # fmt: skip
        opened = [*opened[: KEEP_OPEN // 2], *opened[-KEEP_OPEN // 2 :]]
    wanted = {id(entry): entry for entry in [*entries[-KEEP_LAST:], *opened]}
    signals.extend(_signal(rank, entry, common) for entry in wanted.values())
    return signals


def _signal(rank: int | None, entry: Entry, common: Mapping[str, str]) -> DumpSignal:
    raw = entry.raw
    match = PROFILING_NAME.match(str(raw.get("profiling_name", ""))[:200])
    op = (match["op"] or "") if match else ""
    created = _int(raw.get("time_created_ns"))
    if created is None and (micros := _int(raw.get("time_created_us"))) is not None:
        created = micros * 1000
    captures = dict(common)
    captures |= {"seq": str(entry.seq), "op": OP_NAMES.get(op, op.upper()), "state": entry.state}
    for name, key in (("shape", "input_sizes"), ("dtype", "input_dtypes")):
        if isinstance(raw.get(key), list | tuple):
            captures[name] = json.dumps(raw[key], default=str)[:400]
    for name, key in (("numel_in", "input_sizes"), ("numel_out", "output_sizes")):
        if (count := _numel(raw.get(key))) is not None:
            captures[name] = str(count)
    for name, key in (("timeout_ms", "timeout_ms"), ("index", "record_id")):
        if (number := _int(raw.get(key))) is not None:
            captures[name] = str(number)
    if created:
        captures["epoch_s"] = f"{created // 10**9}.{created % 10**9:09d}"
    if raw.get("retired") is True and entry.state != "completed":
        captures["reason"] = "retired"
    if match and match["to"] is not None:
        captures["peer_rank"] = match["to"] or ""
    captures |= _frame(raw.get("frames"))
    where = f" in {captures['function']}" if "function" in captures else ""
    text = f"{captures['op']} #{entry.seq} of process group {entry.group}: {entry.state or 'no state'}{where}"
    return DumpSignal(
        entry.line, Event.COLL_STATE, text, fact="fr-entry", rank=rank, stamp_ns=created or None,
        stamp_kind="offset" if created else None, stamp_res_ns=1000 if created else None,
        utc_offset_s=0 if created else None, captures=captures,
    )  # fmt: skip


def _numel(sizes: Any) -> int | None:
    if not isinstance(sizes, list | tuple) or len(sizes) > 4096:
        return None
    total = 0
    for shape in sizes:
        if not isinstance(shape, list | tuple) or len(shape) > 64:
            return None
        count = 1
        for side in shape:
            side = _int(side)
            if side is None or not 0 <= side < 2**48 or count > 2**62:
                return None
            count *= side
        total += count
    return total


def _frame(frames: Any) -> dict[str, str]:
    """The innermost frame that is not PyTorch's own."""
    if not isinstance(frames, list | tuple):
        return {}
    known = [frame for frame in frames[:256] if isinstance(frame, dict)]
    for frame in known:
        file = str(frame.get("filename", ""))[:400]
        if file and not any(part in file for part in LIBRARY_FRAMES) and not file.startswith("??"):
            return {
                "function": str(frame.get("name", ""))[:200],
                "src_file": file,
                "src_line": str(_int(frame.get("line")) or 0),
            }
    return {}
