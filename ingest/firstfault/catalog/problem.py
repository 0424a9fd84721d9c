"""What is wrong with a catalog file: which file and line, what, why it matters and how to mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to mend in one catalog file; `line` is 0 where the whole file is meant."""

    path: str
    line: int
    what: str
    why: str
    mend: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.what}\n    why:  {self.why}\n    mend: {self.mend}"


class CatalogError(ValueError):
    """Catalog files that cannot be used. All problems are named at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))


class Places:
    """Finds the line of a key in the text of a TOML file, for messages: TOML readers keep no line numbers."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def of(self, key: str = "", table: str = "", index: int = 0) -> int:
        """Line of `key` in the `index`-th [[table]] (without: in the head of the file); 1 where it is not found."""
        start, seen = 0, -1
        if table:
            for number, line in enumerate(self._lines, 1):
                if line.strip().startswith(f"[[{table}]]"):
                    seen += 1
                    if seen == index:
                        start = number
                        break
            if not start or not key:
                return start
        for number, line in enumerate(self._lines[start:], start + 1):
            stripped = line.strip()
            if stripped.startswith("[[") and stripped.endswith("]]"):
                break
            if stripped.startswith(key) and stripped[len(key) :].lstrip().startswith("="):
                return number
        return start or 1

    def saying(self, text: str) -> int:
        """The first line that says this, 0 where none does."""
        return next((number for number, line in enumerate(self._lines, 1) if line.strip() == text), 0)


class Reporter:
    """Collects problems, and finds their lines in the text of the files."""

    def __init__(self, problems: Iterable[Problem], places_of: Callable[[str], Places]) -> None:
        self.problems = list(problems)
        self._places_of = lru_cache(maxsize=None)(places_of)

    def add(
        self,
        path: str,
        what: str,
        why: str,
        mend: str,
        *,
        key: str = "",
        table: str = "",
        index: int = 0,
        saying: str = "",
    ) -> None:
        """Notes a problem at a key, in the `index`-th [[table]] where one is given, or at the line `saying` this."""
        places = self._places_of(path)
        line = places.saying(saying) if saying else places.of(key, table, index)
        self.problems.append(Problem(path, line, what, why, mend))
