"""Sources as they were met, what was said in them, and the host that each belongs to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from firstfault.ingest.dumps.rows import DumpProblem
from firstfault.ingest.identity_commands import small
from firstfault.ingest.identity_hosts import (
    Alias,
    HostNames,
    host_like,
    place_of,
    prompted,
    sibling_names,
    single,
    stands_in,
)
from firstfault.ingest.identity_paths import PathClaims, claims_of, shape_of, stem_of
from firstfault.ingest.identity_statements import TABLES, Statement, is_address
from firstfault.ingest.identity_words import lone_host

NODE_KINDS = frozenset({"kernel", "kubelet", "gpu-state", "status", "launcher", "raylet"})


@dataclass(frozen=True, slots=True)
class SourceSeen:
    """A source as the pipeline met it: path, first bytes, and the kind of the dump reader that took it, if any."""

    source_id: int
    path: str
    head: bytes = b""
    reader_kind: str | None = None


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """What was decided about a source; columns of `sources` by the same names."""

    kind: str
    why: str
    host: str | None
    node_rank: int | None
    rank: int | None
    local_rank: int | None
    attempt: int | None
    stream: str | None
    clock: str | None


@dataclass(frozen=True, slots=True)
class LineKey:
    """Lines of one source whose headers name the same writer, and how many there are."""

    source_id: int
    host: str | None
    rank: int | None
    local_rank: int | None
    pid: int | None
    task: int | None
    count: int
    first: int


@dataclass(frozen=True, slots=True)
class Witnesses:
    """All that identities are decided from."""

    sources: Mapping[int, SourceSeen]
    claims: Mapping[int, PathClaims]
    keys: Mapping[int, tuple[LineKey, ...]]
    own: Mapping[int, tuple[Statement, ...]]
    statements: tuple[Statement, ...]
    names: HostNames

    @property
    def order(self) -> list[int]:
        return sorted(self.sources)

    def is_node_log(self, source_id: int) -> bool:
        """Whether a file speaks for a machine rather than for a rank."""
        return (self.sources[source_id].reader_kind or self.claims[source_id].kind) in NODE_KINDS


def line_keys(summary: pl.DataFrame, known: Sequence[int]) -> dict[int, tuple[LineKey, ...]]:
    """The summary of the lines by source."""
    found: dict[int, list[LineKey]] = {source_id: [] for source_id in known}
    for row in summary.select("source_id", "host", "rank", "local_rank", "pid", "task", "n", "first").rows():
        if row[0] in found:
            key = LineKey(*row)
            found[row[0]].append(key if small(key.rank) == key.rank else replace(key, rank=None))
    return {source_id: tuple(keys) for source_id, keys in found.items()}


def path_claims(sources: Mapping[int, SourceSeen]) -> dict[int, PathClaims]:
    """The claims of every path."""
    return {source_id: claims_of(one.path) for source_id, one in sources.items()}


class SourceHosts:
    """The host of every source; second names and contradictions that showed on the way."""

    def __init__(self, seen: Witnesses, said_by_user: Mapping[int, str]) -> None:
        self._seen = seen
        self.aliases: list[Alias] = []
        self.problems: list[tuple[int, DumpProblem]] = []
        self.guessed: dict[int, str] = {}
        """Sources whose host is only a part of their path that looks like one."""
        self.remote = False
        """Whether some source names the hosts of other nodes only, so that its own node has no name."""
        self._spoken: dict[int, Counter[str]] = {}
        for source_id in seen.order:
            votes: Counter[str] = Counter()
            for key in seen.keys[source_id]:
                if short := seen.names.short(key.host):
                    votes[short] += key.count
            self._spoken[source_id] = votes
        self._listed = _listed_hosts(seen.statements)
        words = [set(one.words) for one in seen.claims.values()]
        self._common = set.intersection(*words) if len(words) > 1 else set()
        self._siblings = sibling_names(seen.claims, {s: one.path for s, one in seen.sources.items()})
        self._lone = _lone_names(seen)
        self._machines = {host for s in seen.order if seen.is_node_log(s) for host in self._spoken[s]}
        self._host = {s: self._decide(s, said_by_user.get(s)) for s in seen.order}
        self._like_brothers()
        self._inside_names()
        self._behind_underscores()
        self._files_of_nodes()

    def of(self, source_id: int) -> str | None:
        """The host of a source, None where its lines differ or nothing says it."""
        return self._host.get(source_id)

    def spoken(self, source_id: int) -> int:
        """How many hosts the lines of a source name."""
        return len(self._spoken.get(source_id, ()))

    def all_spoken(self, source_id: int) -> frozenset[str]:
        """The hosts that the lines of a source name."""
        return frozenset(self._spoken.get(source_id, ()))

    def put(self, source_id: int, host: str) -> None:
        """A host that was found on another way, for a source without one."""
        if self._host.get(source_id) is None:
            self._host[source_id] = host

    def correct(self, found: Mapping[int, str]) -> None:
        """Hosts of sources whose ranks lines elsewhere place; guesses like a wrong one count no more."""
        wrong = {shape_of(self.guessed[s]) for s, host in found.items() if s in self.guessed and host != self._host[s]}
        for s, guess in self.guessed.items():
            if s in found:
                self._host[s] = found[s]
            elif shape_of(guess) in wrong:
                self._host[s] = None

    def forget(self, sources: Iterable[int]) -> None:
        """Guesses out of the name of a file that turned out to be the number of a rank."""
        for s in sources:
            if self.guessed[s] in stem_of(self._seen.sources[s].path.rpartition("/")[2]):
                self._host[s] = None

    def named(self, node_logs: bool) -> set[str]:
        """Hosts of sources, with or without those that only speak for a machine."""
        return {h for s, h in self._host.items() if h is not None and (node_logs or not self._seen.is_node_log(s))}

    def _decide(self, s: int, override: str | None) -> str | None:
        seen, lines = self._seen, self._spoken[s]
        if override is not None:
            return seen.names.short(override)
        meant, sure = self._meant(s)
        stated = {one.host for one in seen.own.get(s, ()) if one.host}
        listed = self._listed.get(s, frozenset())
        if len(lines) == 1:
            host: str | None = next(iter(lines))
            if self._remote_only(s, str(host)):
                host, self.remote = None, True
            elif stated - {host} or (listed - {host} and not self._mostly(s)):
                host = None
        elif lines:
            host = self._major(lines) if seen.claims[s].rank is not None else None
        else:
            host = single(stated | listed) if stated else None
        pod = seen.names.short(seen.claims[s].pod)
        shown = seen.names.short(prompted(seen.sources[s].head))
        if host is None and not lines and not stated and shown is not None:
            return shown
        if host is None and not lines and not stated:
            table = single(listed)
            if pod is None and table is not None and not sure and (meant or seen.claims[s].node_rank is not None):
                return table  # a file of one node, and the table of its own launcher
            if pod is None and meant is not None and not sure:
                self.guessed[s] = meant
            return pod or meant or seen.names.short(seen.claims[s].address)
        if host is not None and meant is not None and meant != host:
            self._join(s, host, meant, sure)
        if pod is not None and host is not None and pod != host:
            self.aliases.append(Alias(pod, host, s, 1, "path"))
        return host

    def _like_brothers(self) -> None:
        """`gpt-g042.log` beside `gpt-g041.log`, which is of the known host g041, is of g042."""
        fronts: dict[tuple[str, str], set[str]] = defaultdict(set)
        for s in self._seen.order if self.guessed else ():
            path = self._seen.sources[s].path
            for candidate in self._seen.claims[s].hosts:
                known = self._seen.names.of_candidate(candidate)
                if known and known != candidate and candidate.endswith(known):
                    fronts[(place_of(path, candidate), candidate.removesuffix(known))].add(shape_of(known))
        for s, guess in sorted(self.guessed.items()):
            place = place_of(self._seen.sources[s].path, guess)
            for (where, front), shapes in sorted(fronts.items()):
                rest = guess.removeprefix(front)
                if where == place and rest != guess and shape_of(rest) in shapes:
                    self.guessed[s] = self._host[s] = rest
                    break

    def _inside_names(self) -> None:
        """A file whose name holds that of one host that other files are of is about that host."""
        known = {host for host in self._host.values() if host is not None}
        for s in self._seen.order:
            if self._host[s] is None and not self._spoken[s]:
                name = stem_of(self._seen.sources[s].path.rpartition("/")[2])
                found = [host for host in known if stands_in(host, name)]
                longest = [host for host in found if not any(host != other and host in other for other in found)]
                if len(longest) == 1 and longest[0] not in self._common:
                    self._host[s] = longest[0]

    def _behind_underscores(self) -> None:
        """`n07_composer` beside the files of a host n07 is no other host: no name of a host has an underscore."""
        known = {host for s, host in self._host.items() if host is not None and s not in self.guessed}
        known |= {guess for guess in self.guessed.values() if "_" not in guess}
        for s, guess in sorted(self.guessed.items()):
            found = {part for part in guess.split("_") if part in known} if self._host[s] == guess else set()
            if len(found) == 1 and guess not in found:
                self.guessed[s] = self._host[s] = found.pop()

    def _files_of_nodes(self) -> None:
        """Files that each hold other ranks, several each and equally many, are of nodes: those are called like them."""
        spoken: dict[int, set[int]] = {}
        for s in self._seen.order:
            found = {one.rank for one in self._seen.own.get(s, ())} | {key.rank for key in self._seen.keys[s]}
            if ranks := {rank for rank in found if rank is not None}:
                spoken[s] = ranks
        every = [rank for ranks in spoken.values() for rank in ranks]
        alike = len(spoken) > 1 and len({len(ranks) for ranks in spoken.values()}) == 1
        if not alike or len(every) == len(spoken) or len(set(every)) < len(every):
            return
        if any(self._host[s] is not None or self._seen.claims[s].pod is not None for s in spoken):
            return
        for at in range(2):
            names = {s: stem_of(self._seen.claims[s].words[at : at + 1][0]) for s in spoken if self._words(s, at)}
            if len(set(names.values())) == len(spoken) and all(lone_host(f"{name}-1") for name in names.values()):
                for s, name in names.items():
                    self.guessed[s] = self._host[s] = name
                return

    def _words(self, s: int, at: int) -> bool:
        return len(self._seen.claims[s].words) > at

    def _remote_only(self, s: int, host: str) -> bool:
        """Whether an address is named for processes of another node only: Ray leaves the driver's own node out."""
        if not is_address(host):
            return False
        keys = [key for key in self._seen.keys[s] if key.pid is not None]
        remote = {key.pid for key in keys if key.host is not None}
        return bool({key.pid for key in keys if key.host is None} - remote)

    def _mostly(self, s: int) -> bool:
        """Whether most lines of a source name a host."""
        return sum(self._spoken[s].values()) * 2 > sum(key.count for key in self._seen.keys[s])

    @staticmethod
    def _major(lines: Counter[str]) -> str | None:
        total = sum(lines.values())
        return next((host for host, count in sorted(lines.items()) if count * 10 >= total * 9), None)

    def _meant(self, s: int) -> tuple[str | None, bool]:
        """The host that the path stands for, and whether lines know it by that name."""
        seen = self._seen
        for candidate in seen.claims[s].hosts:
            look_up = seen.names.exactly if candidate in self._common else seen.names.of_candidate
            if known := look_up(candidate):
                return known, True
        for word in seen.claims[s].words:
            if word not in self._common and (known := seen.names.inside(word)):
                return known, True
        for candidate in seen.claims[s].hosts:
            if is_address(candidate):
                if candidate in self._common and seen.names.known():
                    continue  # where the logs were brought together
                return seen.names.short(candidate), False
            brothers = (place_of(seen.sources[s].path, candidate), candidate) in self._siblings
            if brothers or (seen.is_node_log(s) and host_like(candidate)):
                return seen.names.short(candidate), False
        lone = self._lone.get(s)
        return (seen.names.short(lone), False) if lone is not None else (None, False)

    def _join(self, s: int, said: str, meant: str, sure: bool) -> None:
        """Lines and path name different hosts: a second name of one machine, unless both are machines."""
        if sure and meant in self._machines and said in self._machines:
            detail = f"the path stands for host {meant}, the lines say {said}; the lines were believed"
            self.problems.append((s, DumpProblem("identity-conflict", "notice", detail)))
        elif not sure:
            self.aliases.append(Alias(said, meant, s, 1, "path"))
        elif self._seen.is_node_log(s):
            self.aliases.append(Alias(meant, said, s, 1, "path"))


def _lone_names(seen: Witnesses) -> dict[int, str]:
    """The host of a job of one file, where that is called like one and no line anywhere names any."""
    if len(seen.order) != 1 or seen.names.known():
        return {}
    s = seen.order[0]
    *above, base = seen.sources[s].path.replace("!/", "/").split("/")
    found = [name for name in (stem_of(base), *above[-1:]) if lone_host(name)]
    return {s: found[0]} if len(found) == 1 else {}


def _listed_hosts(statements: Sequence[Statement]) -> dict[int, frozenset[str]]:
    """The hosts on which a job's launcher places ranks or tasks in a source; that of a node lists its neighbours."""
    found: dict[int, set[str]] = defaultdict(set)
    for one in statements:
        told = one.fact is None or one.fact in TABLES
        if one.how == "launcher-table" and told and one.host and (one.rank is not None or one.task is not None):
            found[one.source_id].add(one.host)
    return {source_id: frozenset(hosts) for source_id, hosts in found.items()}


def grouped_statements(statements: Sequence[Statement]) -> dict[int, tuple[Statement, ...]]:
    """What each source says about its own writers."""
    found: dict[int, list[Statement]] = defaultdict(list)
    for one in statements:
        if one.own:
            found[one.source_id].append(one)
    return {source_id: tuple(own) for source_id, own in found.items()}
