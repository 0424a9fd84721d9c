"""Readers of files that are no logs: flight recorder dumps, error files, stacks, RAS answers, status commands.

`find_reader` asks them in a fixed order; the first that knows the file takes it.
`read_dump` runs one and never raises: what a reader cannot read becomes a problem.
Their text stays in the timeline line by line like that of any other file, and patterns of the catalog apply to it
unless the reader's `whole` says otherwise.
"""

from __future__ import annotations

from firstfault.ingest.dumps.bounds import bounded
from firstfault.ingest.dumps.clocks import Clocks
from firstfault.ingest.dumps.cloud import CloudInstances
from firstfault.ingest.dumps.dcgm import Dcgm
from firstfault.ingest.dumps.error_file import ErrorFile
from firstfault.ingest.dumps.fabric import Fabric
from firstfault.ingest.dumps.flight_recorder import FlightRecorder
from firstfault.ingest.dumps.gpu_csv import GpuCsv
from firstfault.ingest.dumps.gpu_smi import NvidiaSmi
from firstfault.ingest.dumps.inspector import Inspector
from firstfault.ingest.dumps.kube_objects import KubeDescribe, KubeJson
from firstfault.ingest.dumps.kube_tables import KubeTables
from firstfault.ingest.dumps.machine import Machine
from firstfault.ingest.dumps.ras import Ras
from firstfault.ingest.dumps.rocm import Rocm
from firstfault.ingest.dumps.rows import (
    DumpContext,
    DumpIdentity,
    DumpProblem,
    DumpProgress,
    DumpRows,
    DumpSignal,
    Reader,
)
from firstfault.ingest.dumps.slurm import Slurm
from firstfault.ingest.dumps.stacks import Stacks
from firstfault.ingest.dumps.text import clean
from firstfault.ingest.stages import stage

__all__ = [
    "HEAD_BYTES",
    "DumpContext",
    "DumpIdentity",
    "DumpProblem",
    "DumpProgress",
    "DumpRows",
    "DumpSignal",
    "Reader",
    "find_reader",
    "read_dump",
]

HEAD_BYTES = 65536
"""How much of the beginning of a file `find_reader` wants to see."""

READERS: tuple[Reader, ...] = (
    FlightRecorder(),
    ErrorFile(),
    Ras(),
    Inspector(),
    KubeJson(),
    CloudInstances(),
    Stacks(),
    GpuCsv(),
    NvidiaSmi(),
    Rocm(),
    Dcgm(),
    Slurm(),
    KubeTables(),
    KubeDescribe(),
    Fabric(),
    Clocks(),
    Machine(),
)
"""Asked in this order: the more particular a reader's mark, the earlier it stands."""


@stage("dump readers")
def find_reader(path: str, head: bytes) -> Reader | None:
    """The reader that knows this file, or None for an ordinary log."""
    for reader in READERS:
        try:
            if reader.sniff(path, head):
                return reader
        except (ValueError, ArithmeticError, LookupError, TypeError, RecursionError):
            continue
    return None


def read_dump(reader: Reader, ctx: DumpContext, data: bytes) -> DumpRows:
    """The rows of one file; an unreadable one gives a row of problems and nothing else."""
    try:
        return bounded(reader.read(ctx, data))
    except (ValueError, ArithmeticError, LookupError, TypeError, RecursionError, MemoryError) as error:
        detail = clean(f"{reader.name} could not be read: {type(error).__name__}: {error}")[:500]
        return DumpRows(problems=(DumpProblem("unreadable", "data-loss", detail),))
