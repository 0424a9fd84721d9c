"""What readers of text share: lines, shares of lines in a head, and times as status commands print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from firstfault.ingest.dumps.linear import Lines, Pattern, compiled, matching

LINE_LIMIT = 4096
LINES_LIMIT = 2_000_000
_HEAD_LINES = 200
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as printed, with its kind and resolution, in the words of `line_rows`."""

    ns: int
    kind: str
    res_ns: int
    utc_offset_s: int | None = None

    def earlier(self, seconds: float, res_ns: int) -> Stamp:
        """The time so many seconds before."""
        return Stamp(self.ns - round(seconds * SECOND), self.kind, max(self.res_ns, res_ns), self.utc_offset_s)

    @property
    def epoch_s(self) -> float | None:
        """Seconds since 1970 in UTC, where the zone is known."""
        return None if self.utc_offset_s is None else self.ns / SECOND - self.utc_offset_s


def clean(text: str) -> str:
    """The text without halves of characters and NUL."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "�").encode("utf-8", "replace").decode("utf-8")


def lines_of(data: bytes) -> list[str]:
    """The lines of a file, cut at `\\n` only, each bounded in length."""
    parts = data.split(b"\n", LINES_LIMIT)[:LINES_LIMIT]
    if parts and not parts[-1]:
        parts.pop()
    return [part[:LINE_LIMIT].decode("utf-8", "replace").rstrip("\r") for part in parts]


def head_lines(head: bytes, limit: int = _HEAD_LINES) -> list[str]:
    """Lines of a head that are not empty; a line that the head cuts is left out unless it is the only one."""
    lines = _head_lines(head)
    return lines if len(lines) <= limit else lines[:limit]


@lru_cache(maxsize=2)  # all readers ask for the lines of the same head
def _head_lines(head: bytes) -> list[str]:
    cut = head[: head.rfind(b"\n") + 1] or head
    return Lines([line for line in lines_of(cut[:65536]) if line.strip()][:_HEAD_LINES])


def share(lines: Sequence[str], *shapes: Pattern) -> float:
    """Share of the lines that match one of the shapes from their beginning."""
    return float(matching(lines, *shapes).mean()) if lines else 0.0


COMMAND = compiled(r"^(?:\[?[\w.@~:/ -]{0,60}\]?)?[$#] (?P<command>\S.{0,400})$")


def commands(lines: Iterable[str]) -> list[str]:
    """Commands that a transcript echoes in front of their output (`$ nvidia-smi -L`)."""
    return [
        match["command"] or "" for line in lines if ("$ " in line or "# " in line) and (match := COMMAND.match(line))
    ]


MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
MONTHS = {name: n + 1 for n, name in enumerate(MONTH_NAMES)}
DATE = compiled(
    r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +(?:(?P<d1>\d{1,2}) +(?P<m1>[A-Z][a-z]{2}) +(?P<y1>\d{4}) +|(?P<m2>["
    r"A-Z][a-z]{2}) +(?P<d2>\d{1,2}) +)"
    r"(?P<h>\d{1,2}):(?P<mi>\d\d):(?P<s>\d\d)(?: (?P<ap>AM|PM))?(?: +(?P<zone>[A-Z]{2,5}|[+-]\d\d:?\d\d))?(?:"
    r" +(?P<y2>\d{4}))?"
)  # fmt: skip
ISO = compiled(
    r"(?P<y>\d{4})[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T_ ](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}"
    r"))?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
AGE_UNITS = {"y": 31_536_000, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 1}
UTC_NAMES = frozenset({"UTC", "GMT", "Z"})


def _offset(zone: str | None) -> int | None:
    if zone is None:
        return None
    if zone in UTC_NAMES:
        return 0
    match = OFFSET.fullmatch(zone)
    if match is None:
        return None
    return (1 if match[1] == "+" else -1) * (int(match[2] or 0) * 3600 + int(match[3] or 0) * 60)


def _stamp(
    year: int, month: int, day: int, clock: tuple[int, int, int], fraction: str, zone: str | None
) -> Stamp | None:
    try:
        moment = datetime(year, month, day, *clock, tzinfo=UTC)
    except ValueError:
        return None
    ns = int(moment.timestamp()) * SECOND + int(fraction.ljust(9, "0"))
    offset = _offset(zone)
    return Stamp(ns, "full" if offset is None else "offset", 10 ** (9 - len(fraction)), offset)


def iso_stamp(text: str) -> Stamp | None:
    """The first ISO-like time in a text."""
    match = ISO.search(text[:LINE_LIMIT])
    if match is None:
        return None
    got = {name: int(match[name] or 0) for name in ("y", "mo", "d", "h", "mi", "s")}
    clock = (got["h"], got["mi"], got["s"])
    return _stamp(got["y"], got["mo"], got["d"], clock, match["f"] or "", match["zone"])


def date_stamp(text: str) -> Stamp | None:
    """The first time in the form of `date` or of RFC 2822 in a text."""
    match = DATE.search(text[:LINE_LIMIT])
    if match is None:
        return None
    month = MONTHS.get(match["m1"] or match["m2"] or "")
    year = match["y1"] or match["y2"]
    if month is None or year is None:
        return None
    hour = int(match["h"] or 0)
    if match["ap"]:
        hour = hour % 12 + (12 if match["ap"] == "PM" else 0)
    clock = (hour, int(match["mi"] or 0), int(match["s"] or 0))
    return _stamp(int(year), month, int(match["d1"] or match["d2"] or 0), clock, "", match["zone"])


def any_stamp(text: str) -> Stamp | None:
    """An ISO-like time, else one in the form of `date`."""
    return iso_stamp(text) or date_stamp(text)


def epoch_stamp(seconds: float, res_ns: int = SECOND) -> Stamp | None:
    """A time that was printed as seconds since 1970."""
    if not 0 < seconds < 1e11:
        return None
    return Stamp(round(seconds * SECOND) if res_ns < SECOND else int(seconds) * SECOND, "offset", res_ns, 0)


AGE = compiled(r"(\d{1,6})(ms|y|d|h|m|s)")
OFFSET = compiled(r"([+-])(\d\d):?(\d\d)")
COLUMN = compiled(r"\S+(?: \S+)*")


def age_seconds(text: str) -> tuple[int, int] | None:
    """A Kubernetes age such as `4m43s` as seconds, and the unit it was rounded to in seconds."""
    parts = [(match[1] or "0", match[2] or "s") for match in AGE.finditer(text[:40])]
    if not parts or "".join(n + unit for n, unit in parts) != text:
        return None
    return sum(int(n) * AGE_UNITS[unit] for n, unit in parts), min(AGE_UNITS[unit] for _, unit in parts)


def columns_of(header: str) -> list[tuple[str, int]]:
    """Names and starts of the columns of a table whose header words stand over them, two blanks or more apart."""
    return [(match[0] or "", match.start()) for match in COLUMN.finditer(header)]


def _inside_word(line: str, at: int) -> bool:
    return 0 < at < len(line) and not line[at - 1].isspace() and not line[at].isspace()


def cells(line: str, columns: Sequence[tuple[str, int]]) -> dict[str, str]:
    """The cells of a row of such a table; the last column takes the rest.

    Where a name is wider than its column the row has lost its place under the header: then its cells are counted.
    """
    if any(_inside_word(line, start) for _, start in columns):
        pieces = [piece.strip() for piece in line.replace("\t", "  ").split("  ") if piece.strip()]
        counted = [*pieces[: len(columns) - 1], "  ".join(pieces[len(columns) - 1 :])]
        if len(counted) == len(columns):
            return {name: text for (name, _), text in zip(columns, counted, strict=True)}
    found = {}
    for index, (name, start) in enumerate(columns):
        stop = columns[index + 1][1] if index + 1 < len(columns) else len(line)
        found[name] = line[start:stop].strip()
    return found
