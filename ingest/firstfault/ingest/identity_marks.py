"""Numbers in front of the lines of several files (`[worker 3] ...`, `r2 step 7`, `[ 3] it 20`): whether they count all
ranks of the job or begin anew on each host.

One file alone does not tell; side by side the files do. Where each has other numbers and together they have no gaps,
they are ranks; where several files of different hosts carry the same numbers from 0 on, they are local.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from firstfault.ingest.identity_pairs import pairs_of
from firstfault.ingest.identity_paths import PathClaims
from firstfault.ingest.identity_sources import LineKey, SourceSeen
from firstfault.ingest.identity_statements import Statement

_STAMP = (
    r"(?:\[?(?:\d{4}[-/]\d\d[-/]\d\d[T _]|\d\d[/-]\d\d(?:[/-]\d\d(?:\d\d)?)? |[A-Z][a-z]{2} [ \d]\d )?"
    r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?[ ,:|-]{1,3})?"
    r"(?:\[?(?:DEBUG|INFO|WARNING|WARN|ERROR)\]?[ :|-]{1,3})?"
)
_MARK = re.compile(
    rf"^{_STAMP}(?:[\[(<] ?(?P<word>rank|worker|process|proc|trainer|replica|actor|task|member|global_rank|r|w|p)?"
    r"[ :=_#-]{0,2}(?P<number>\d{1,5})(?:/\d{1,5})?[\])>]:?"
    r"|(?P<word2>rank|worker|process|proc|trainer|replica|actor|r|w)[ :=_#-]?(?P<number2>\d{1,5})"
    r"(?:/\d{1,5})? ?[:|>]?)(?= )",
    re.I,
)
LINE_LIMIT = 300
_LEAST = 4
"""Lines of a file that must bear a mark."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one file's first lines: their word, how often each number, lines, and what stands behind."""

    word: str
    numbers: Counter[int]
    lines: int
    named: tuple[tuple[int, int, str], ...]

    @property
    def only(self) -> int | None:
        """The one number of nearly all lines."""
        number, count = self.numbers.most_common(1)[0]
        return number if len(self.numbers) == 1 and count * 10 >= self.lines * 6 else None


def marked(text: str) -> tuple[str, int] | None:
    """The word and the number of the mark in front of a text."""
    match = _MARK.match(text[:LINE_LIMIT])
    if match is None:
        return None
    return (match["word"] or match["word2"] or "").lower(), int(match["number"] or match["number2"])


def marks_of(head: bytes) -> Marks | None:
    """The marks of the first lines of a file, None where few lines bear one."""
    lines = [line for line in head.decode("utf-8", "replace").split("\n")[:-1] if line.strip()]
    found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for number, line in enumerate(lines, 1):
        if (mark := marked(line)) is not None:
            found[mark[0]].append((number, mark[1], line[:LINE_LIMIT]))
    if not found:
        return None
    word = max(sorted(found), key=lambda one: len(found[one]))
    rows = found[word]
    share = 12 if len(word) > 1 else 4  # a whole word says enough beside a library's own lines
    if len(rows) < _LEAST or len(rows) * share < len(lines):
        return None
    named = tuple((line, rank, text) for line, rank, text in rows if "pid" in text or "host" in text)
    return Marks(word, Counter(rank for _, rank, _ in rows), len(lines), named[:256])


class MarkReading:
    """What the marks of all files say together."""

    def __init__(
        self,
        sources: Mapping[int, SourceSeen],
        claims: Mapping[int, PathClaims],
        keys: Mapping[int, tuple[LineKey, ...]],
    ) -> None:
        self._claims = claims
        self._spoken = {s: {key.rank for key in keys[s] if key.rank is not None} for s in sources}
        found = {s: marks for s in sorted(sources) if (marks := marks_of(sources[s].head)) is not None}
        free = {s: one for s, one in found.items() if not sources[s].reader_kind and claims[s].kind is None}
        words = Counter(one.word for one in free.values())
        word = max(sorted(words), key=lambda one: words[one]) if words else ""
        self._found = {s: one for s, one in free.items() if one.word == word}
        self.local = self._begin_anew()
        """Files whose marks hold local ranks, which the headers of their lines give as ranks."""
        self.global_ = frozenset() if self.local else self._count_on(word)
        """Files whose marks hold ranks."""

    def _begin_anew(self) -> frozenset[int]:
        """Files of different places that bear the same numbers from 0 on, and no others."""
        alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for s, one in self._found.items():
            shown = tuple(sorted(one.numbers))
            if len(shown) > 1 and shown == tuple(range(len(shown))) and self._spoken[s] <= set(shown):
                alike[shown].append(s)
        for files in alike.values():
            places = {self._claims[s].hosts[:1] or self._claims[s].words[:2] for s in files}
            streams = {self._claims[s].stream for s in files}
            if len(files) > 1 and len(places) == len(files) and (len(streams) == 1 or None in streams):
                return frozenset(files)
        return frozenset()

    def _count_on(self, word: str) -> frozenset[int]:
        """Files that each bear other numbers, which together leave no gap."""
        if len(self._found) < 2 or (not word and any(one.only is None for one in self._found.values())):
            return frozenset()
        shown = [number for one in self._found.values() for number in one.numbers]
        known = {rank for spoken in self._spoken.values() for rank in spoken if rank is not None}
        every = set(shown) | known
        if len(set(shown)) < len(shown) or len(every) < 2 or sorted(every) != list(range(len(every))):
            return frozenset()
        return frozenset(self._found)

    def claims(self) -> dict[int, PathClaims]:
        """The claims, with the rank of each file that bears one number."""
        out = dict(self._claims)
        for s in self.global_:
            one = self._found[s].only
            if one is not None and out[s].rank is None:
                out[s] = replace(out[s], rank=one)
        return out

    def statements(self) -> Iterator[Statement]:
        """Each number that a file bears is a rank there; pairs behind the mark name its process and host."""
        for s in sorted(self.global_):
            for rank in sorted(self._found[s].numbers):
                yield Statement(s, 1, "prefix", own=True, rank=rank)
            for line, rank, text in self._found[s].named:
                pairs = pairs_of(text)
                pid, host = pairs.get("pid"), pairs.get("host")
                yield Statement(
                    s, line, "start-line", own=True, rank=rank, pid=pid if isinstance(pid, int) else None,
                    host=host if isinstance(host, str) else None,
                )  # fmt: skip

    def rank_of(self, source_id: int, text: str) -> int | None:
        """The rank whose mark a line of such a file bears."""
        mark = marked(text) if source_id in self.global_ else None
        return mark[1] if mark is not None and mark[0] == self._found[source_id].word else None
