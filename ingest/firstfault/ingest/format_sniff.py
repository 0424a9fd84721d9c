"""Owns what is decided once for a whole source, from a sample of its lines: which ambiguous prefixes are meant, and what
their numbers count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .format_model import LineFormat, SourceFormat
from .format_regex import for_line
from .format_text import clean_line

_BEHIND_COLON = r"\[rank(\d+)\]:(.*)$"
_REAL_HEADER = r"(?: |\[[VIWEFC](?:\d{3,4})? |[VIWEC]\d{4} \d\d:|\[\d{4}-\d\d-\d\d |$)"
MOST_LOCAL_RANKS = 16


def sniff(formats: Sequence[LineFormat], sample: Sequence[str], path: str = "") -> SourceFormat:
    """What holds for the source that the sample is taken from."""
    del path
    lines = [clean_line(line) for line in sample if line.strip()]
    trusted: set[str] = set()
    why: list[str] = []
    if _tee_role_is_rank(lines):
        trusted.add("torch-tee-rank")
        why.append("[rankN]: is put in front by torchrun --tee with --role rank: N is the local rank")
    role = _tee_role(lines)
    return SourceFormat(trusted=frozenset(trusted), tee_role=role, why="; ".join(why))


def _tee_role_is_rank(lines: Sequence[str]) -> bool:
    """Whether `[rankN]:` comes from the launcher: PyTorch itself puts a blank or a header of its own behind it."""
    proof = False
    for line in lines:
        found = for_line(_BEHIND_COLON).match(line)
        if found is None:
            continue
        if int(found[1]) >= MOST_LOCAL_RANKS:
            return False
        again = for_line(_BEHIND_COLON).match(found[2])
        proof = proof or again is not None or for_line(_REAL_HEADER).match(found[2]) is None
    return proof


def _tee_role(lines: Sequence[str]) -> str | None:
    """The role of the tee prefix where it ends in digits that would read as the local rank's first ones."""
    names: Counter[str] = Counter()
    for line in lines:
        found = for_line(r"\[([A-Za-z_][\w.-]*\d)\]:").match(line)
        if found is not None and not found[1].startswith("rank"):
            names[found[1]] += 1
    shown = sorted(names)
    if len(shown) < 2:
        return None
    stem = shown[0]
    for name in shown[1:]:
        while not name.startswith(stem):
            stem = stem[:-1]
    tails = {name[len(stem) :] for name in shown}
    if stem and stem[-1].isdigit() and "0" in tails and all(tail.isdigit() for tail in tails):
        return stem
    return None
