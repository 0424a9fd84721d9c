"""The lines of simulated clocks as text on disk, read back through the whole ingest stage."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from firstfault.correlate.align import Alignment
from firstfault.correlate.load import load
from firstfault.correlate.times import Times
from firstfault.ingest import ingest
from firstfault.timeline import open_timeline

from .clocks import LOCAL_RANKS, START_S, YEAR_S, HostClock, Seen, Situation, lines_of, make_clocks, step_times

BOOT_S = 1234.567
GROUP = "[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"


def shown(clock: HostClock, at_s: float) -> datetime:
    """What the clock shows at a true time, in microseconds."""
    reading = START_S + clock.reading(at_s)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(reading * 1e6))


def c10(clock: HostClock, at_s: float) -> str:
    """Month, day and second of the wall clock, nanoseconds of the monotonic one, as the C++ of torch prints them."""
    when = shown(clock, at_s)
    return f"{when.month}{when:%d %H:%M:%S}.{round((at_s + BOOT_S) % 1 * 1e9) % 10**9:09d}"


def text_of(seen: Seen, rank: int, situation: Situation, yearless: bool) -> list[str]:
    """The lines that a rank prints."""
    when = shown(seen.clock, seen.at_s)
    head = f"[rank{rank}]:[E{c10(seen.clock, seen.at_s)} ProcessGroupNCCL.cpp"
    group = GROUP.format(rank=rank)
    if seen.kind == "fired":
        return [
            f"{head}:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=127, "
            "OpType=ALLREDUCE, NumelIn=16777216, NumelOut=16777216, Timeout(ms)=600000) ran for 600041 milliseconds "
            "before timing out.",
        ]
    if seen.kind == "told":
        return [
            f"{head}:1682] {group} Observed flight recorder dump signal from another rank via TCPStore.",
            f"{head}:1743] {group} Received a dump signal due to a collective timeout from  rank 0 and we will try our "
            "best to dump the debug info. Last enqueued NCCL work: 127, last completed NCCL work: 126."
            "This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks.",
        ]
    words = f"step {seen.name}/{situation.steps} loss 2.3142" if seen.kind == "step" else f"passed barrier {seen.name}"
    if yearless:
        return [f"I{when:%m%d %H:%M:%S}.{when.microsecond:06d} {4000 + rank} train.py:88] {words}"]
    if situation.resolution_s >= 1:
        return [f"[{when:%Y-%m-%d %H:%M:%S}] [rank {rank}] [INFO] {words}"]
    return [f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03d} [rank {rank}] INFO {words}"]


def write(
    folder: Path, chance: np.random.Generator, situation: Situation, clocks: list[HostClock], times: list[float]
) -> None:
    """One file for each rank that prints, below a folder for each host."""
    number = {clock.name: place for place, clock in enumerate(clocks)}
    files: dict[tuple[str, int], list[tuple[float, list[str]]]] = defaultdict(list)
    for seen in lines_of(chance, situation, clocks, times):
        rank = number[seen.clock.name] * LOCAL_RANKS + seen.local
        yearless = number[seen.clock.name] < situation.year_off
        host = seen.clock.name.removeprefix("wall:")
        files[(host, rank)].append((seen.at_s, text_of(seen, rank, situation, yearless)))
    for (host, rank), lines in files.items():
        path = folder / host / f"rank_{rank:02d}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = [line for _, more in sorted(lines, key=lambda one: one[0]) for line in more]
        path.write_text("\n".join(text) + "\n", encoding="utf-8")


def aligned_text(seed: int, situation: Situation, hosts: int = 8) -> tuple[Alignment, list[HostClock], list[float]]:
    """One simulated job, written as text and read: its alignment, its true clocks, the true times of its steps."""
    chance = np.random.default_rng(seed)
    clocks = make_clocks(chance, situation, hosts)
    for number in range(situation.year_off):  # their lines name no year: the reader has to
        clocks[number] = replace(clocks[number], offset_s=clocks[number].offset_s + YEAR_S)
    times = step_times(chance, situation)
    with tempfile.TemporaryDirectory() as work:
        logs, database = Path(work) / "logs", Path(work) / "t.duckdb"
        write(logs, chance, situation, clocks, times)
        ingest([logs], database)
        with open_timeline(database) as con:
            return Times(load(con)).alignment, clocks, times
