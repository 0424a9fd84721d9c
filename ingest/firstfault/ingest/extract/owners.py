"""Lines that say whose traceback stands beside them, where the traceback itself names no rank."""

from __future__ import annotations

import re

from firstfault.ingest.extract.rows import Own

SPAWNED = "-- Process "
REMOTE = "ray::"
_SPAWNED = re.compile(r"^-- Process (\d{1,5}) terminated with (?:the following error|exit code|signal)")
_REMOTE = re.compile(r"ray::[\w.<>\[\]-]{1,200}\(.{0,200}?\) \(pid=(\d{1,9})(?:, ip=([0-9a-fA-F.:]{3,45}))?[,)]")
_ASCEND = re.compile(r"\(PID:(\d{1,9}), Device:-?\d{1,5}, RankID:(\d{1,7})\) ERR\d")

_NOTED = re.compile(
    r"^(?:In|At|On|While|When|For|Note|\[|\()[^\n]{0,300}?(?:, |\(|\[|\bon |\bat |\bin )"
    r"(?:global )?rank[ =:]{1,2}(\d{1,7})[)\].]{0,2}$"
)
_CARRIED = re.compile(r"\(most recent call last\): \(RANK (\d{1,7})\)$")


def headed(text: str) -> int | None:
    """In the head of a traceback that every rank prints: torch's checkpoints name the rank that raised it."""
    found = _CARRIED.search(text)
    return int(found[1]) if found else None


def announced(text: str) -> Own | None:
    """Before a traceback: `torch.multiprocessing` numbers its processes from 0, that is the local rank."""
    found = _SPAWNED.match(text)
    return Own(local_rank=int(found[1])) if found else None


def remote(text: str) -> Own | None:
    """At the head of a traceback that Ray carried over: function, process and node that raised it."""
    found = _REMOTE.search(text) if REMOTE in text else None
    return Own(pid=int(found[1]), host=found[2]) if found else None


def signed(text: str) -> Own | None:
    """Behind an exception: process and rank as torch_npu signs it, a note of the program that ends with its rank."""
    found = _ASCEND.search(text) if "RankID:" in text else None
    if found is None and "rank" in text and (noted := _NOTED.match(text[:400])) is not None:
        return Own(rank=int(noted[1]))
    return Own(pid=int(found[1]), rank=int(found[2])) if found else None


def names_place(own: Own) -> bool:
    """Whether a header says anything about who wrote its line."""
    return any(value is not None for value in (own.rank, own.local_rank, own.task, own.pid))
