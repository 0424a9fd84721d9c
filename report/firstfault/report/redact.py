"""Replaces what must not leave a site: hosts, users, addresses, e-mail addresses, paths, URLs.

The same name gets the same stand-in everywhere. Secrets are masked beforehand, whatever is asked for.

Names of hosts are known from the timeline; the rest is recognised by its form. What a path ends with stays, so that a
reader still sees `train.py`; so do system paths and what lies inside installed packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import re2  # type: ignore[import-untyped]

from firstfault.correlate.diagnosis import Diagnosis
from firstfault.correlate.secrets import mapped, masked

_EMAIL = r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
_URL = r"\b(?:https?|s3|gs|abfss?|wasbs?|hdfs|tcp|ssh|git|oss|obs|swift|az)://[^\s\"'<>)\]}]+"
_PATH = r"(?:/[A-Za-z0-9._@+=%~-]+){2,}"
_IP4 = r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b"
_IP6 = (
    r"(?i)\b(?:[23][0-9a-f]{3}|f[cde][0-9a-f]{2})(?::[0-9a-f]{1,4}){0,6}::?(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?\b"
)
_USER = (
    r"(?i)(\b(?:user(?:name)?|owner|logname|submitted by|uid=[0-9]+)[\"']?\s?[:=(]\s?[\"']?)([a-z_][a-z0-9_.-]{1,31})\b"
)
_HOME = r"/(?:home|Users|scratch|users|gpfs/home|lustre/home)/([A-Za-z0-9._-]{2,32})"
_PUBLIC = (
    "pytorch.org", "nvidia.com", "github.com", "huggingface.co", "python.org", "kernel.org", "kubernetes.io", "amd.com",
    "readthedocs.io", "slurm.schedmd.com", "docs.ray.io",
)  # fmt: skip
_SYSTEM = ("/dev/", "/proc/", "/sys/", "/usr/", "/lib", "/bin/", "/sbin/", "/etc/", "/var/log/", "/run/", "/__w/")
_PACKAGES = ("site-packages/", "dist-packages/")
_ENDINGS = frozenset(
    ("log", "txt", "out", "err", "json", "jsonl", "gz", "zst", "xz", "csv", "py", "cc", "cpp", "h", "pt")
)
_COMMON = frozenset(
    (
        "root", "user", "users", "ubuntu", "admin", "nobody", "localhost", "unknown", "none", "rank", "ranks", "node",
        "nodes", "host", "hosts", "launcher", "job", "the", "local", "main", "worker", "workers", "master", "default",
        "log", "logs", "train", "python",
    )
)  # fmt: skip
"""Words that are no names, whatever says so."""
_STABLE = frozenset(
    {
        "cls", "entry", "rule", "strength", "severity", "component", "advice", "fate", "reader", "verdict",
        "sources_by_kind", "at", "started", "ended", "last_seen", "origin", "how", "title",
    }
)  # fmt: skip
"""Fields whose words come from firstfault itself, or are times."""


class Redactor:
    """Stand-ins of one job; made once, used for every output of it."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._logs: dict[str, str] = {}
        self._engine: Any = None
        for host in sorted({name for name in hosts if name}):
            self._host(host)

    def _host(self, name: str) -> None:
        """A host by each of its names; what stands behind its first dot is its domain."""
        if _compiled(_IP4).fullmatch(name) or _compiled(_IP6).fullmatch(name):
            return
        short = name.split(".", 1)[0]
        if len(short) < 2 or short.lower() in _COMMON or short.isdigit():
            return
        self._learn("host", short)

    def _learn(self, kind: str, name: str) -> str:
        found = self._names.get(name)
        if found is None:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            found = self._names[name] = f"{kind}-{self._counts[kind]}"
            if kind in ("host", "user"):
                self._engine = None
        return found

    def text(self, said: str) -> str:
        """One text with everything replaced."""
        said = masked(said)
        if not said or said.isdigit():
            return said
        if not self._logs or "/" not in said:
            return self._plain(said)
        parts: list[tuple[bool, str]] = []
        for word in said.split(" "):
            cited = self._cited(word)
            if cited is None and parts and not parts[-1][0]:
                parts[-1] = (False, f"{parts[-1][1]} {word}")
            else:
                parts.append((cited is not None, cited if cited is not None else word))
        return " ".join(part if cited else self._plain(part) for cited, part in parts)

    def _plain(self, said: str) -> str:
        """Text without a path of a log that was met before."""
        for match in _compiled(_HOME).finditer(said):
            self._user(match.group(1))
        if "@" in said:
            said = _compiled(_EMAIL).sub(lambda m: self._learn("mail", m.group(0)), said)
        if "://" in said:
            said = _compiled(_URL).sub(self._url, said)
        if "/" in said:
            said = _compiled(_PATH).sub(self._path, said)
        lower = said.lower()
        if "user" in lower or "owner" in lower or "uid=" in lower or "logname" in lower or "submitted by" in lower:
            said = _compiled(_USER).sub(lambda m: m.group(1) + self._user(m.group(2)), said)
        said = _compiled(_IP4).sub(self._ip, said)
        if said.count(":") > 1:
            said = _compiled(_IP6).sub(self._ip, said)
        return self._known(said)

    def _cited(self, word: str) -> str | None:
        """A word that is the path of a log that was met before, with or without a line number; None otherwise."""
        bare = word.strip("(),;:")
        path = bare if bare in self._logs else bare.rstrip("0123456789").rstrip(":")
        return word.replace(path, self._logs[path]) if path in self._logs else None

    def _user(self, name: str) -> str:
        return name if name.lower() in _COMMON or name.isdigit() else self._learn("user", name)

    def _url(self, match: Any) -> str:
        url = match.group(0)
        scheme, _, rest = url.partition("://")
        site = rest.split("/", 1)[0].lower()
        if any(site == one or site.endswith(f".{one}") for one in _PUBLIC):
            return str(url)
        return f"{scheme}://{self._learn('url', rest)}"

    def _path(self, match: Any) -> str:
        path = match.group(0)
        if match.start() and match.string[match.start() - 1] == "/":
            return str(path)  # of an address on the web that is public
        for inside in _PACKAGES:
            if inside in path:
                head, _, tail = path.partition(inside)
                return f"/{self._learn('path', head)}/{inside}{tail}"
        if path.startswith(_SYSTEM):
            return str(path)
        folder, _, name = path.rpartition("/")
        return f"/{self._learn('path', folder)}/{name}"

    def _ip(self, match: Any) -> str:
        address = match.group(0)
        if address.startswith(("127.", "0.0.0.0", "255.")) or address in ("::1",):
            return str(address)
        if ":" in address and "::" not in address and address.count(":") != 7:
            return str(address)  # hexadecimal words with colons, no address of the network
        return self._learn("ip", address)

    def _known(self, said: str) -> str:
        """Names of hosts and users, whole words of them; a domain behind a host goes with it."""
        if self._engine is None:
            names = sorted(
                (n for n, s in self._names.items() if s.startswith(("host-", "user-"))), key=len, reverse=True
            )
            options = re2.Options()
            options.max_mem = 256 << 20
            options.longest_match = True
            self._engine = re2.compile("|".join(map(re2.escape, names)), options) if names else False
        if self._engine is False:
            return said
        parts, at = [], 0
        for match in self._engine.finditer(said):
            start, end = match.span()
            if start < at or (start and said[start - 1].isalnum()) or (end < len(said) and said[end].isalnum()):
                continue
            parts += [said[at:start], self._names[match.group(0)]]
            at = end + _domain(said, end)
        return "".join([*parts, said[at:]]) if parts else said

    def path(self, path: str) -> str:
        """A path inside the given logs: folders are replaced too, but for those that only number things."""
        if path not in self._logs:
            self._logs[path] = self.text(path) if path.startswith("/") else self._log(path)
        return self._logs[path]

    def _log(self, path: str) -> str:
        head, slash, name = path.rpartition("/")
        folders = [self._folder(part) for part in head.split("/")] if slash else []
        return "/".join([*folders, self._known(masked(name))])

    def _folder(self, name: str) -> str:
        if not name or _compiled(r"(?i)(?:attempt|rank|node|pod|host|worker|task|part|step|run|logs?|std(?:out|err))?"
                                 r"[_.-]?[0-9]*!?").fullmatch(name):  # fmt: skip
            return name
        known = self._known(name)
        return known if known != name else self._learn("dir", name)

    def answer(self, one: Diagnosis) -> Diagnosis:
        """A diagnosis with everything replaced, its own words kept."""
        paths = _paths(one, self.path)
        return mapped(paths, self.text, _STABLE | _WHERE | {"failure"})  # type: ignore[no-any-return]


_WHERE = frozenset({"path", "source"})


def _paths(value: Any, change: Callable[[str], str]) -> Any:
    """The fields that hold the path of a log."""
    if isinstance(value, tuple):
        return tuple(_paths(one, change) for one in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {}
    for field in fields(value):
        inner = getattr(value, field.name)
        log = field.name in _WHERE and isinstance(inner, str)
        changed[field.name] = change(inner) if log else _paths(inner, change)
    return replace(value, **changed)


def _domain(said: str, end: int) -> int:
    """Length of the domain behind a host's short name: two labels or more, or one that only private names have."""
    match = _compiled(r"(?:\.[A-Za-z][A-Za-z0-9-]*)+").match(said[end : end + 200])
    if match is None:
        return 0
    labels = match.group(0)[1:].split(".")
    if labels[-1].lower() in _ENDINGS:
        return 0
    private = labels[-1].lower() in ("local", "internal", "lan", "corp", "cluster", "intern")
    return len(match.group(0)) if len(labels) > 1 or private else 0


@cache
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern)
