"""Names of hosts: which names the lines use, which belong together, and which host a path means.

Names are kept short (cut at the first dot); a full name, an address, a pod's node or a folder that stands for a host
are aliases. An address gives way to a name where some line joins the two.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from firstfault.ingest.identity_paths import NOT_A_HOST, POD_SUFFIX, PathClaims, shape_of
from firstfault.ingest.identity_statements import Statement, is_address, short_host
from firstfault.ingest.identity_words import lone_host, names_nobody

GENERAL = re.compile(r"^(?P<word>host|node|worker|machine|server|n)[-_]?(?P<number>\d{1,6})$")
NUMBERED = re.compile(r"^(?P<stem>.*?)(?P<number>\d{1,6})$")
PREFIXES = ("host-of-", "node-of-", "logs-", "host-", "node-", "pod-")
PROMPTS = (
    (
        b"hostname",
        re.compile(rb"^[^\n]{0,80}[$#>] ?hostname(?: -[sf])?[ \t]*\n(?P<host>[A-Za-z][\w.-]{1,200})[ \t]*$", re.M),
    ),
    (
        b"@",
        re.compile(
            rb"^[(\[]?(?:\w{1,20}[)\]] )?[a-z_][\w-]{0,31}@(?P<host>[A-Za-z][\w.-]{1,200})[: ]"
            rb"[\w./~-]{0,80}[\])]?[$#] \S",
            re.M,
        ),
    ),
    (
        b"ssh ",
        re.compile(
            rb"^[^\n]{0,80}[$] [^\n]{0,200}?\bssh (?:-\w+ )*(?:[\w.-]{1,40}@)?(?P<host>[A-Za-z][\w.-]{1,200}) ", re.M
        ),
    ),
)
"""The answer of `hostname`, a shell's prompt, a command that another host runs; with a text that each of them holds."""
LOOPBACK = frozenset({"localhost", "127", "localhost6", "ip6-localhost", "none", "unknown", "nil", "-", "host", "node"})
LEVELS = frozenset({"trace", "debug", "info", "warn", "warning", "error", "critical", "fatal", "notice"})


@dataclass(frozen=True, slots=True)
class Alias:
    """Two names of one host, with the line that joins them."""

    host: str
    alias: str
    source_id: int
    line: int
    how: str


class HostNames:
    """Every name of a host that the lines or the statements use, and how names are joined."""

    def __init__(
        self,
        spoken: Mapping[str, int],
        statements: Sequence[Statement],
        candidates: Iterable[str] = (),
        mentioned: Iterable[str] = (),
        folders: Collection[str] = (),
    ) -> None:
        """`mentioned` are hosts that lines are about, whoever wrote those. A number is a host where headers say so and
        a file or a folder is called so.
        """
        self._numbers = {name for name in spoken if name.isdigit() and len(name) > 2 and name in folders}
        self._mentioned = {short_host(name) for name in mentioned if usable(name) and not is_address(name)}
        self._general: dict[str, set[int]] = defaultdict(set)
        for candidate in candidates:
            if match := GENERAL.match(candidate):
                self._general[match["word"]].add(int(match["number"]))
        self.lines: Counter[str] = Counter()
        self.aliases: list[Alias] = []
        self._listed: set[str] = set()
        self._named_by_address: dict[str, Counter[str]] = defaultdict(Counter)
        for name, count in sorted(spoken.items()):
            if usable(name) or name in self._numbers:
                self.lines[short_host(name)] += count
        for one in statements:
            host = one.host or one.pod or (one.said_host if one.own else None)
            if not host or not usable(host):
                continue
            short = short_host(host)
            if one.how in ("pods", "nodes"):
                self._listed.add(short)
            if one.own or one.how in ("launcher-table", "rendezvous", "host-list", "comm-init", "coordinator"):
                self.lines[short] += 1
            if one.address and is_address(one.address) and not is_address(short):
                self._named_by_address[one.address][short] += 1
        self._pods = _pods_of_hostnames(self.lines, self._listed)
        self._cache: dict[str, str] = {}
        self._meant: dict[str, str | None] = {}

    def known(self) -> list[str]:
        """Names that lines use, in order."""
        return sorted({*self.lines, *self._mentioned})

    def short(self, name: str | None) -> str | None:
        """The name to use for a host: short, and a name instead of an address where one is known."""
        if not name or not (usable(name) or name in self._numbers):
            return None
        if name not in self._cache:
            short = short_host(name)
            if is_address(short):
                votes = self._named_by_address.get(short)
                if votes:
                    short = min(votes, key=lambda host: (-votes[host], -self.lines[host], host))
            self._cache[name] = self._pods.get(short, short)
        return self._cache[name]

    def of_candidate(self, candidate: str) -> str | None:
        """The known host that a part of a path means, if exactly one fits."""
        if candidate not in self._meant:
            self._meant[candidate] = self._fitting(candidate)
        return self._meant[candidate]

    def inside(self, text: str) -> str | None:
        """The one known host whose whole name stands in a text, between marks."""
        found = [name for name in self.known() if name in text and _telling(name) and _stands_in(name, text)]
        longest = [name for name in found if not any(name != other and name in other for other in found)]
        return longest[0] if len(longest) == 1 else None

    def exactly(self, candidate: str) -> str | None:
        """The known host with this very name, or behind a word that only says that a host follows."""
        for name in _without_word(candidate):
            short = short_host(name)
            if short in self.lines or short in self._listed or short in self._mentioned:
                return short
        return None

    def _fitting(self, candidate: str) -> str | None:
        if (found := self.exactly(candidate)) is not None:
            return found
        names = _without_word(candidate)
        for name in names:
            fits = [k for k in self.known() if k.endswith("-" + name) or (len(k) > 3 and name.endswith("-" + k))]
            if len(fits) == 1:
                return fits[0]
        return self._by_number(candidate)

    def _by_number(self, candidate: str) -> str | None:
        """The host with the number of a general name (`host3`) in one numbered family (`jax-h0`, `jax-h3`, ...)."""
        general = GENERAL.match(candidate)
        family = [match for name in sorted(self.lines) if (match := NUMBERED.match(name))]
        if general is None or not family or len({match["stem"] for match in family}) > 1:
            return None
        if not {int(match["number"]) for match in family} <= self._general[general["word"]]:
            return None  # the two do not count alike
        fits = [match[0] for match in family if int(match["number"]) == int(general["number"])]
        return fits[0] if len(fits) == 1 and not family[0]["stem"].startswith(general["word"]) else None


def _pods_of_hostnames(lines: Mapping[str, int], listed: Iterable[str]) -> dict[str, str]:
    """The one pod that a host name inside it belongs to: Kubernetes appends five letters to the pods of an indexed job,
    not to the host names of their containers.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for name in {*lines, *listed}:
        if POD_SUFFIX.search(name):
            found[POD_SUFFIX.sub("", name)].add(name)
    return {name: next(iter(pods)) for name, pods in found.items() if len(pods) == 1 and name in lines}


def prompted(head: bytes) -> str | None:
    """The one host whose shell or commands a transcript shows."""
    shown = [one for mark, one in PROMPTS if mark in head]
    found = {match["host"].decode("ascii", "replace") for one in shown for match in one.finditer(head[:65536])}
    return single(short_host(name) for name in found if usable(name))


def usable(name: str) -> bool:
    """Whether a name says anything about where."""
    short = short_host(name).lower()
    return (
        0 < len(name) <= 253
        and short not in LOOPBACK
        and short not in LEVELS
        and not short.isdigit()
        and "[" not in short
        and not name.startswith("127.")
    )


def _without_word(candidate: str) -> list[str]:
    """A candidate, and what stands behind `host-`, `logs-` and the like."""
    rest = [candidate[len(word) :] for word in PREFIXES if candidate.startswith(word) and len(candidate) > len(word)]
    return [candidate, *rest]


def _telling(name: str) -> bool:
    """Whether a name is long enough to be meant where it stands inside another."""
    return len(name) >= 4 or (len(name) >= 2 and any(letter.isdigit() for letter in name))


def stands_in(name: str, text: str) -> bool:
    """Whether a name that is long enough to be meant stands in a text, between marks."""
    return _telling(name) and name in text and _stands_in(name, text)


def _stands_in(name: str, text: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text) is not None


def sibling_names(claims: Mapping[int, PathClaims], paths: Mapping[int, str]) -> frozenset[tuple[str, str]]:
    """(place, name) of candidates that have a brother of the same shape and another name in the same place.

    Names of words only (`ws-blue`, `ws-green`) are hosts where the first word is the same and the others say nothing.
    """
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    folders: dict[str, set[str]] = defaultdict(set)
    for path in paths.values():
        *above, base = path.replace("!/", "/").split("/")
        if above and host_like(above[-1]) and not NOT_A_HOST.match(above[-1]):
            folders[base].add(above[-1])
    for source_id, one in claims.items():
        base = paths[source_id].rpartition("/")[2]
        for candidate in one.hosts:
            if len(folders[base]) > 1 and candidate in base:
                continue  # a name that every host's folder has is no host's
            groups[(place_of(paths[source_id], candidate), shape_of(candidate))].add(candidate)
    found: set[tuple[str, str]] = set()
    for (place, _), names in groups.items():
        if len(names) > 1:
            found.update((place, name) for name in names if host_like(name))
            found.update((place, name) for name in names if _of_words(name, names))
    return frozenset(found)


def _of_words(name: str, names: Iterable[str]) -> bool:
    """Whether a name is two words, of which its brothers share the first and nothing means the second."""
    first, _, last = name.partition("-")
    plain = re.fullmatch(r"[a-z]{2,12}-[a-z]{2,12}", name) is not None
    told = lone_host(f"{last}-1") and lone_host(f"{first}-1")
    return plain and told and all(other.partition("-")[0] == first for other in names)


def place_of(path: str, candidate: str) -> str:
    """The folder that holds a candidate: of a folder its parent, of a file name its folder."""
    parts = path.replace("!/", "/").split("/")
    for at, part in enumerate(parts[:-1]):
        if part == candidate or part.startswith(f"{candidate}_"):
            return "/".join(parts[:at]) + "/*/"
    return "/".join(parts[:-1]) + "/"


def host_like(name: str) -> bool:
    """Whether a bare name looks like a host: a digit in it, or a single letter behind a hyphen (`lab-a`)."""
    if names_nobody(name):
        return False
    tail = name.rsplit("-", 1)
    return any(letter.isdigit() for letter in name) or (len(tail) == 2 and len(tail[1]) == 1)


def single(names: Iterable[str | None]) -> str | None:
    """The one name among these, None where there are none or several."""
    found = {name for name in names if name}
    return next(iter(found)) if len(found) == 1 else None
