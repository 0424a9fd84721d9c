"""Whose software is another one, where all ranks show only that their programs do not fit together.

Each rank prints its versions when it starts, in words of its own; what counts is that most ranks print one and a few
another. Two halves of a job are no majority and no minority.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import duckdb

from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.model import Signal
from firstfault.correlate.timings import line_as_signal

_TPU = ("libtpu", "jaxlib", "jax")
_NCCL = ("nccl", "rccl", "aws-ofi-nccl", "ofi-nccl")
_OF_ENTRIES = {
    "nccl-truncation": ("nccl-version-mismatch", _NCCL),
    "nccl-internal-error": ("nccl-version-mismatch", _NCCL),
    "nccl-invalid-usage": ("nccl-version-mismatch", _NCCL),
    "nccl-no-interface": ("nccl-version-mismatch", _NCCL),
    "tpu-core-halted": ("collective-desync", _TPU),
}
"""Entries that many ranks print together: the class where a version is the odd one, and the names that may be it."""

_OF_OTHER_CAUSES = frozenset({"nccl-invalid-usage", "nccl-no-interface"})
"""Entries with causes of their own: only versions that differ in more than the last number outweigh these. An address
that another version wrote reads like that of no family.
"""

_SAYS_MISFIT = {"tpu-core-halted": "different launch id"}
"""Words without which an entry does not say that programs differ."""

_PAIR = re.compile(
    r"(?i)(?:^|[\s(\[,;|\"'])(?:nvidia-)?(libtpu|jaxlib|jax|(?:aws-)?ofi-nccl|nccl|rccl)(?:-cu\d\d)?(?: version)?"
    r"[ =:v\"']{1,4}(\d{1,4}\.\d{1,4}(?:\.\d{1,5}){0,3})"
)
_FIRST_LINES = 400
_MOST = 4096


def odd_versions(con: duckdb.DuckDBPyConnection, view: View, candidates: list[Candidate]) -> None:
    """Put what all ranks raise on the few whose software is another one, in place."""
    for one in candidates:
        of_class = ("nccl-version-mismatch", _NCCL) if one.cls == "nccl-init-failure" else ("", ())
        cls, names = _OF_ENTRIES.get(one.entry or "", of_class)
        said = _SAYS_MISFIT.get(one.entry or "", "")
        if not cls or not any(said in signal.text for signal, _ in one.signals):
            continue
        told = _versions(con, view)
        for name in names:
            odd = _odd(view, told.get(name, {}))
            if odd and one.entry in _OF_OTHER_CAUSES and not _apart(told[name]):
                continue
            if not odd:
                if one.entry in _OF_OTHER_CAUSES:
                    continue
                if cls == "nccl-version-mismatch" and (halves := _halves(con, view, name)):
                    one.rule, one.cls, one.base, one.entry = "odd-version", cls, BASE["odd-operation"], None
                    one.ranks, one.hosts, one.component, one.missing = (), (), "job", None
                    one.signals[:0] = [(signal, f"{name} {version}") for version, signal in sorted(halves.items())]
                    one.for_[:] = [f"some run {name} {', others '.join(sorted(halves))}"]
                    break
                continue
            version, signal = next(iter(odd.values()))
            one.entry = one.entry if cls == one.cls else None
            one.rule, one.cls, one.base = "odd-version", cls, BASE["odd-operation"]
            one.ranks = tuple(sorted(odd))
            one.hosts = _named(odd) or view.names.rank_hosts(one.ranks, view.attempt)
            one.common, one.missing = False, None
            one.component = "host" if len(one.hosts) == 1 else "rank"
            one.signals.insert(0, (signal, f"{name} {version}, another one than on most ranks"))
            one.for_[:] = [f"all of them raise it, and only the odd ones run {name} {version}"]
            break


def _apart(told: dict[int, tuple[str, Signal]]) -> bool:
    """Whether versions differ in more than their last number."""
    return len({tuple(version.split(".")[:2]) for version, _ in told.values()}) > 1


def _halves(con: duckdb.DuckDBPyConnection, view: View, name: str) -> dict[str, Signal]:
    """Versions that different logs print, where they differ in more than the last number; else nothing."""
    rows = con.execute(
        """
        SELECT source_id, line, left(message, 300) FROM line_rows
        WHERE line <= ? AND regexp_matches(message, '(?i)(?:nccl|rccl)(?: version)?[ =:v"'']{1,4}[0-9]')
        ORDER BY source_id, line LIMIT ?
        """,
        [_FIRST_LINES, _MOST],
    ).fetchall()
    found: dict[str, Signal] = {}
    for source_id, line, text in rows:
        source = view.timeline.sources[source_id]
        for match in _PAIR.finditer(text):
            if match[1].lower() == name:
                found.setdefault(match[2], line_as_signal(source, line, text, source.rank, view.attempt))
    apart = len({tuple(version.split(".")[:2]) for version in found}) > 1
    return found if apart and len({signal.source.id for signal in found.values()}) > 1 else {}


_HOST = re.compile(r"\bhost(?:name)?[ =:]{1,3}([A-Za-z][\w-]{2,62})(?:[ .,;)]|$)")


def _named(odd: dict[int, tuple[str, Signal]]) -> tuple[str, ...]:
    """Hosts as the lines with the odd versions name them themselves, where each does; a file's name is only a claim."""
    names = [match[1] if (match := _HOST.search(signal.text)) else None for _, signal in odd.values()]
    return tuple(sorted({name for name in names if name})) if all(names) else ()


def _versions(con: duckdb.DuckDBPyConnection, view: View) -> dict[str, dict[int, tuple[str, Signal]]]:
    """What the first lines of each log say of versions: name -> rank -> version and line."""
    rows = con.execute(
        """
        SELECT source_id, line, rank, left(message, 300) FROM line_rows
        WHERE line <= ?
          AND regexp_matches(
              message, '(?i)(?:libtpu|jax|jaxlib|nccl|rccl)(?:-cu[0-9][0-9])?(?: version)?[ =:v"'']{1,4}[0-9]')
        ORDER BY source_id, line LIMIT ?
        """,
        [_FIRST_LINES, _MOST],
    ).fetchall()
    found: dict[str, dict[int, tuple[str, Signal]]] = defaultdict(dict)
    for source_id, line, rank, text in rows:
        source = view.timeline.sources[source_id]
        number = rank if rank is not None else source.rank
        of_host = number is None and source.host is not None  # a list of what is installed there
        numbers = view.names.ranks_of_host(source.host or "", view.attempt) if of_host else (number,)
        for match in _PAIR.finditer(text):
            for one in numbers:
                if one is not None:
                    signal = line_as_signal(source, line, text, number, view.attempt)
                    found[match[1].lower()].setdefault(one, (match[2], signal))
    return found


def _odd(view: View, told: dict[int, tuple[str, Signal]]) -> dict[int, tuple[str, Signal]]:
    """Ranks whose version is another one than that of most; ranks that print none share what their host prints."""
    by_host = {host: said for rank, said in sorted(told.items()) if (host := view.names.host_of(rank, view.attempt))}
    every = dict(told)
    for rank in view.states:
        host = view.names.host_of(rank, view.attempt)
        if rank not in every and host in by_host:
            every[rank] = by_host[host]
    counts = Counter(version for version, _ in every.values())
    if len(counts) < 2:
        return {}
    usual, most = counts.most_common(1)[0]
    return {rank: said for rank, said in every.items() if said[0] != usual} if 2 * most > len(every) else {}
