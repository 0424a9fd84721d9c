"""Puts the numbers and codes of logs into words: Xid, completion status, results, errno, signals, exit codes, states.

The words are in decoders/*.toml, one file a kind. `decode` looks one code up, `decoded` all that a signal captured.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "decoders"


class CodeKind(StrEnum):
    """What a code is a code of; the value names the file."""

    XID = "xid"
    SXID = "sxid"
    IB_STATUS = "ib-status"
    IB_VENDOR = "ib-vendor"
    NCCL_RESULT = "nccl-result"
    CUDA_ERROR = "cuda-error"
    HIP_ERROR = "hip-error"
    ERRNO = "errno"
    SIGNAL = "signal"
    EXIT_CODE = "exit-code"
    SLURM_STATE = "slurm-state"
    SLURM_REASON = "slurm-reason"
    SLURM_EXIT = "slurm-exit"
    KUBERNETES_REASON = "kubernetes-reason"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code is called and what it means, in a sentence or two."""

    kind: CodeKind
    code: str
    name: str
    means: str


@dataclass(frozen=True, slots=True)
class CodeTable:
    """All codes of one kind, and where they are documented."""

    title: str
    reference: str
    meanings: Mapping[str, Meaning]
    by_name: Mapping[str, Meaning]


_BY_CAPTURE = {
    "xid": (CodeKind.XID,),
    "sxid": (CodeKind.SXID,),
    "vendor_err": (CodeKind.IB_VENDOR,),
    "signal": (CodeKind.SIGNAL,),
    "signal_no": (CodeKind.SIGNAL,),
    "errno": (CodeKind.ERRNO,),
    "exitcode": (CodeKind.EXIT_CODE, CodeKind.SLURM_EXIT),
    "state": (CodeKind.SLURM_STATE,),
    "reason": (CodeKind.KUBERNETES_REASON, CodeKind.SLURM_REASON),
    "result": (CodeKind.NCCL_RESULT,),
}
"""Kinds to try for a capture. `status` and `code` are left out: what they number depends on the entry."""


@cache
def code_table(kind: CodeKind) -> CodeTable:
    """All codes of one kind."""
    document = tomllib.loads((_FOLDER / f"{kind}.toml").read_text(encoding="utf-8"))
    meanings = {code: Meaning(kind, code, row["name"], row["means"]) for code, row in document["code"].items()}
    by_name: dict[str, Meaning] = {}
    for meaning in meanings.values():
        by_name.setdefault(meaning.name.lower(), meaning)
    return CodeTable(document["title"], document["reference"], meanings, by_name)


def decode(kind: CodeKind | str, code: str | int) -> Meaning | None:
    """The meaning of a code, given as a number or by its name; None where it is unknown."""
    kind = CodeKind(kind)
    text = str(code).strip()
    table = code_table(kind)
    found = table.meanings.get(text) or table.by_name.get(text.lower())
    if found is None and kind is CodeKind.EXIT_CODE and (number := _integer(text)) is not None:
        ended_by = -number if number < 0 else number - 128
        signal = code_table(CodeKind.SIGNAL).meanings.get(str(ended_by))
        if signal is not None:
            return Meaning(kind, text, f"ended by {signal.name}", signal.means)
    if found is None and kind is CodeKind.SLURM_EXIT and ":" in text:
        status, _, by_signal = text.partition(":")
        if by_signal == "0":
            return decode(CodeKind.EXIT_CODE, status)
        return decode(CodeKind.SIGNAL, by_signal)
    if found is None and kind is CodeKind.SIGNAL:
        found = table.by_name.get("sig" + text.lower()) or table.meanings.get(text.lstrip("-"))
    return found


def decoded(captures: Mapping[str, str]) -> tuple[Meaning, ...]:
    """The meanings of all codes among the captures of one signal, in the order of their names."""
    found = []
    for name in sorted(captures):
        for kind in _BY_CAPTURE.get(name, ()):
            meaning = decode(kind, captures[name])
            if meaning is not None:
                found.append(meaning)
                break
    return tuple(found)


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
