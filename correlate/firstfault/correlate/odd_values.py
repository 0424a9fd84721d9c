"""Values that must agree over the job, compared: who runs another version, or was started with other settings, than
most.

Where a failure is a mismatch, every rank raises it, and only this comparison says whose value is the odd one. Two
halves of a job are no majority and no minority.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from firstfault.correlate.candidate import Candidate, View
from firstfault.correlate.model import Signal, parse_ranks

_COMPARED = {
    "nccl-version-mismatch": ("version-nccl", "version-net-plugin"),
    "cuda-driver-mismatch": ("version-driver", "version-cuda-driver"),
}
"""Class of a failure, and the facts whose values must agree for it not to happen."""

_NUMBER = re.compile(r"\d{1,4}(?:\.\d{1,4}){1,3}")


def release(text: str) -> str:
    """A version without its build, `2.19.3+cuda12.3` as `2.19.3`; NCCL's number, 21903, is 2.19.3, too (nccl.h)."""
    if text.isdigit() and len(text) == 5:
        return f"{int(text[0])}.{int(text[1:3])}.{int(text[3:])}"
    found = _NUMBER.match(text)
    return found[0] if found else text


def _statements(view: View, fact: str) -> Iterator[tuple[int | None, str | None, str, Signal]]:
    """What lines say of versions: rank and host it is about, the version, the line."""
    for signal in view.timeline.signals:
        captures = signal.captures
        host = view.names.canonical(signal.host) if signal.host else None
        if signal.fact == fact and "version" in captures:
            yield signal.rank, host, release(captures["version"]), signal
        if fact != "version-nccl" or not (signal.entry or "").startswith("nccl-"):
            continue
        if signal.rank is not None and "version" in captures:
            yield signal.rank, host, release(captures["version"]), signal
        for who, version in (("comm_rank", "version_a"), ("comm_ranks", "version_b")):
            number = signal.number(who)
            if number is not None and version in captures and number in view.states:
                yield number, view.names.host_of(number, view.attempt), release(captures[version]), signal


def odd_ranks(view: View, fact: str) -> dict[int, tuple[str, Signal]]:
    """Ranks that print another version than most do, with it and the line that prints it; empty where all agree.

    Ranks that print none share what another rank of their host prints.
    """
    printed: dict[int, tuple[str, Signal]] = {}
    by_host: dict[str, tuple[str, Signal]] = {}
    for rank, host, version, signal in _statements(view, fact):
        place = (view.names.host_of(rank, view.attempt) if rank is not None else None) or host
        if rank is not None:
            printed.setdefault(rank, (version, signal))
        if place:
            by_host.setdefault(place, (version, signal))
    for rank in view.states:
        host = view.names.host_of(rank, view.attempt)
        if rank not in printed and host in by_host:
            printed[rank] = by_host[host]
    counts = Counter(version for version, _ in printed.values())
    if len(counts) < 2:
        return {}
    usual, most = counts.most_common(1)[0]
    if 2 * most <= len(printed):
        return {}
    return {rank: said for rank, said in sorted(printed.items()) if said[0] != usual}


def odd_settings(view: View) -> tuple[str, str, list[Signal]] | None:
    """The one host whose launcher was started with another setting than most: host, setting, lines."""
    values: dict[str, dict[str, Signal]] = defaultdict(dict)
    for signal in view.timeline.signals:
        if signal.fact == "setting-elastic" and signal.host:
            values[signal.captures["name"]].setdefault(view.names.canonical(signal.host), signal)
    for name, hosts in sorted(values.items()):
        counts = Counter(signal.captures["text"] for signal in hosts.values())
        usual, most = counts.most_common(1)[0]
        odd = [(host, signal) for host, signal in sorted(hosts.items()) if signal.captures["text"] != usual]
        if len(odd) == 1 and most >= 2:
            host, signal = odd[0]
            other = next(one for one in hosts.values() if one.captures["text"] == usual)
            return host, f"{name} is {signal.captures['text']} there and {usual} elsewhere", [signal, other]
    return None


_TWICE = "nccl-bootstrap-duplicate"


def _started_twice(view: View, candidate: Candidate) -> Candidate:
    """Put the word of NCCL's bootstrap root about a rank that came twice on the hosts that both carry it."""
    doubled = {rank for signal, _ in candidate.signals for rank in parse_ranks(signal.captures.get("comm_ranks", ""))}
    hosts = {
        view.names.canonical(one.host)
        for one in view.timeline.identities
        if one.host and one.rank in doubled and one.attempt in (None, view.attempt)
    }
    candidate.ranks, candidate.scope_ranks = (), candidate.ranks
    candidate.component, candidate.common = "launcher", False
    candidate.hosts = tuple(sorted(hosts)) if len(hosts) > 1 else ()
    candidate.for_[:] = [
        f"rank {rank} was started twice, on {' and '.join(candidate.hosts)}" for rank in sorted(doubled)
    ]
    if not candidate.hosts:
        candidate.for_[:] = ["the rank that prints it only counted who came"]
    return candidate


def place(view: View, candidate: Candidate) -> Candidate:
    """Put a mismatch that all ranks raise on those whose value is the odd one."""
    if candidate.cls == "rendezvous-timeout" and not candidate.hosts and (odd := odd_settings(view)) is not None:
        host, why, lines = odd
        candidate.hosts = (host,)
        candidate.component = "launcher"
        candidate.common = False
        candidate.base += 0.7
        candidate.signals[:0] = [(signal, why) for signal in lines]
        candidate.for_[:] = [why]
        return candidate
    if candidate.entry == _TWICE:
        return _started_twice(view, candidate)
    for fact in _COMPARED.get(candidate.cls, ()):
        versions = odd_ranks(view, fact)
        if not versions or (candidate.ranks and not set(candidate.ranks) - set(versions)):
            continue
        version = next(iter(versions.values()))[0]
        candidate.ranks = tuple(versions)
        candidate.hosts = view.names.rank_hosts(candidate.ranks, view.attempt)
        candidate.common = False
        candidate.component = "host" if len(candidate.hosts) == 1 else "rank"
        told = dict.fromkeys(signal for _, signal in versions.values())
        candidate.signals[:0] = [(signal, "the odd version") for signal in list(told)[:2]]
        candidate.for_[:] = [f"all of them raise it, and only the odd ones run version {version}"]
        return candidate
    return candidate
