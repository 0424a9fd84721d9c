"""Stacks of a process that somebody dumped: py-spy (text and JSON), faulthandler, gdb.

Each process gives one signal: what its main thread was doing. `state` says whether it waits in a collective, in the
data pipeline, on input or output, or runs elsewhere. There is no time in such a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firstfault.catalog.model import Event
from firstfault.ingest.dumps.json_places import line_of, parse
from firstfault.ingest.dumps.linear import compiled, matching
from firstfault.ingest.dumps.rows import TEXT_LIMIT, DumpContext, DumpIdentity, DumpRows, DumpSignal
from firstfault.ingest.dumps.text import head_lines, lines_of, share

SPY_PROCESS = compiled(r"^Process (?P<pid>\d+): (?P<text>.*)$")
SPY_THREAD = compiled(r'^Thread (?P<tid>\d+|0x[0-9a-fA-F]+) \((?P<state>[^)]*)\)(?:: "(?P<thread>[^"]*)")?$')
SPY_FRAME = compiled(r"^ {4,}(?P<function>\S.*?) \((?P<src_file>[^()]+?)(?::(?P<src_line>\d+))?\)$")
PY_THREAD = compiled(
    r"^(?P<current>Current thread|Thread) (?P<tid>0x[0-9a-f]+)(?: \[(?P<thread>[^\]]*)\])?(?: \(most recent ca"
    r"ll first\))?:$"
)
PY_FRAME = compiled(r'^ +File "(?P<src_file>[^"]+)", line (?P<src_line>\d+) in (?P<function>.+)$')
PY_HEAD = compiled(
    r"^(?:Fatal Python error: .*|Timeout \([\d:.]+\)!|Extension modules: .*|Python runtime state: .*|  (?:File"
    r"|\.\.\.).*|  <.*>)$"
)
GDB_THREAD = compiled(r"^Thread (?P<number>\d+) \((?P<text>(?:Thread|LWP) .*)\):?$")
GDB_FRAME = compiled(
    r"^#(?P<number>\d+) +(?:0x[0-9a-f]+ in )?(?P<function>[^ (]+)(?: ?\(.*\))?(?: (?:at|from) (?P<src_file>[^:"
    r" ]+)(?::(?P<src_line>\d+))?)?$"
)
GDB_HEAD = compiled(
    r"^(?:\[New LWP|\[Thread debugging|Attaching to process|Using host|0x[0-9a-f]+ in |warning: |\(gdb\)|Pytho"
    r"n v|#\d+ )"
)

COLLECTIVE = (
    "all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter", "broadcast", "barrier", "all_to_all",
    "nccl", "processgroup", "wait_tensor", "synchronize", "cudastreamsynchronize", "cudaeventsynchronize", "gloo",
    "monitored_barrier", "batch_isend_irecv", "irecv", "isend", "_broadcast_coalesced",
)  # fmt: skip
DATA = ("_next_data", "_try_get_data", "_get_data", "_worker_loop", "dataloader.py", "get_batch", "fetch.py")
IO = (
    "save",
    "torch/serialization",
    "_write",
    "open",
    "read",
    "fsync",
    "pwrite",
    "checkpoint",
    "write",
    "upload",
    "copyfile",
)
LIBRARY = ("site-packages/", "dist-packages/", "/lib/python", "threading.py", "selectors.py", "<frozen", "torch/")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a stack."""

    function: str
    file: str
    src_line: str


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread, its frames from the innermost to the outermost."""

    line: int
    name: str
    state: str
    pid: int | None
    main: bool
    frames: list[Frame] = field(default_factory=list)


class Stacks:
    """Reader of stack dumps."""

    name = "stacks"
    kind = "stacks"
    whole = False

    def sniff(self, path: str, head: bytes) -> bool:
        if head.lstrip()[:1] in (b"[", b"{"):
            return b'"frames"' in head and (b'"thread_name"' in head or b'"os_thread_id"' in head)
        lines = head_lines(head)
        if not matching(lines, SPY_THREAD, PY_THREAD, GDB_THREAD).any():
            return False
        shapes = (SPY_PROCESS, SPY_THREAD, SPY_FRAME, PY_THREAD, PY_FRAME, PY_HEAD, GDB_THREAD, GDB_FRAME, GDB_HEAD)
        return share(lines, *shapes) > 0.75

    def read(self, ctx: DumpContext, data: bytes) -> DumpRows:
        if data.lstrip()[:1] in (b"[", b"{"):
            threads = list(_json_threads(parse(data)))
        else:
            threads = _text_threads(lines_of(data))
        by_process: dict[int | None, list[Thread]] = {}
        for thread in threads:
            by_process.setdefault(thread.pid, []).append(thread)
        signals = [_signal(ctx, pid, found) for pid, found in by_process.items()]
        processes = [
            DumpIdentity(min(one.line for one in found), "dump", pid=pid)
            for pid, found in by_process.items()
            if pid is not None
        ]
        return DumpRows(tuple(sorted(signals, key=lambda one: one.line)), tuple(processes))


def _json_threads(value: Any) -> Iterator[Thread]:
    items = value if isinstance(value, list) else value.get("threads", [value]) if isinstance(value, dict) else []
    for one in items[:100_000]:
        if not isinstance(one, dict):
            continue
        frames = [
            Frame(
                str(frame.get("name", ""))[:200],
                str(frame.get("short_filename") or frame.get("filename") or frame.get("module") or "")[:400],
                str(frame.get("line", ""))[:12],
            )
            for frame in (one.get("frames") or [])[:400]
            if isinstance(frame, dict)
        ]
        pid = one.get("pid")
        name = str(one.get("thread_name") or "")[:100]
        state = "active" if one.get("active") else "idle"
        state += "+gil" if one.get("owns_gil") else ""
        main = name == "MainThread" or (one.get("os_thread_id") is not None and one.get("os_thread_id") == pid)
        yield Thread(line_of(one), name, state, pid if isinstance(pid, int) else None, main, frames)


def _text_threads(lines: Sequence[str]) -> list[Thread]:
    threads: list[Thread] = []
    pid: int | None = None
    for number, line in enumerate(lines, 1):
        if match := SPY_PROCESS.match(line):
            pid = int(match["pid"] or 0)
        elif match := SPY_THREAD.match(line):
            name, tid = match["thread"] or "", match["tid"] or ""
            main = name == "MainThread" or tid == str(pid)
            threads.append(Thread(number, name, match["state"] or "", pid, main))
        elif match := PY_THREAD.match(line):
            name, current = match["thread"] or "", match["current"] == "Current thread"
            threads.append(Thread(number, name, "current" if current else "", pid, current))
        elif match := GDB_THREAD.match(line):
            threads.append(Thread(number, match["text"] or "", "", pid, match["number"] == "1"))
        elif threads and (frame := _frame(line)) is not None and len(threads[-1].frames) < 400:
            threads[-1].frames.append(frame)
    if threads and not any(thread.main for thread in threads):
        # faulthandler of a time-out names no current thread; the main thread is the last one it prints
        threads[-1] = replace(threads[-1], main=True)
    return threads


def _frame(line: str) -> Frame | None:
    match = SPY_FRAME.match(line) or PY_FRAME.match(line) or GDB_FRAME.match(line)
    if match is None:
        return None
    return Frame((match["function"] or "")[:200], (match["src_file"] or "")[:400], match["src_line"] or "")


def _signal(ctx: DumpContext, pid: int | None, threads: Sequence[Thread]) -> DumpSignal:
    main = next((thread for thread in threads if thread.main), threads[0])
    own = next((f for f in main.frames if f.file and not any(part in f.file for part in LIBRARY)), None)
    captures = {
        "state": _doing(main.frames),
        "thread": main.name or "main",
        "status": main.state,
        "count": str(len(threads)),
    }
    if own is not None:
        captures |= {"function": own.function, "src_file": own.file, "src_line": own.src_line}
    if pid is not None:
        captures["pid"] = str(pid)
    if ctx.rank is not None:
        captures["rank"] = str(ctx.rank)
    shown = " < ".join(f"{f.function} ({f.file}{f':{f.src_line}' if f.src_line else ''})" for f in main.frames[:12])
    captures = {key: value for key, value in captures.items() if value}
    return DumpSignal(
        main.line, Event.PHASE, f"stack: {shown or 'empty'}"[:TEXT_LIMIT], fact="stack", rank=ctx.rank,
        local_rank=ctx.local_rank, pid=pid, first_line=threads[0].line,
        last_line=max(thread.line + len(thread.frames) for thread in threads), captures=captures,
    )  # fmt: skip


def _doing(frames: Sequence[Frame]) -> str:
    for frame in frames:
        where = f"{frame.file} {frame.function}".lower()
        if any(word in where for word in COLLECTIVE):
            return "collective"
        if any(word in where for word in DATA):
            return "data"
        if any(frame.function.lower().startswith(word) or f"/{word}" in where for word in IO):
            return "io"
        if frame.file and not any(part in frame.file for part in LIBRARY):
            return "user"
    return "unknown"
