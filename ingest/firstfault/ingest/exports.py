"""Tables of log lines: a source whose first line names columns, one of them the message, as lines of JSON.

Kibana, Datadog, Grafana, CloudWatch Logs Insights, Log Analytics and Splunk save what a search found as values between
commas, semicolons or tabs (RFC 4180): a field in quotes may go on over several lines and doubles the quotes in it.
Each line stays a line, with its number and place in the file, so that evidence cites the table as it is.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from firstfault.ingest.documents import Document, indent_of
from firstfault.ingest.frame import Chunk, Lines, frame, series

COLUMNS: dict[str, frozenset[str]] = {
    "timestamp": frozenset({"timestamp", "@timestamp", "time", "_time", "date", "datetime", "timegenerated", "ts"}),
    "host": frozenset({"host", "hostname", "node", "node_name", "nodename", "host.name", "kubernetes.node.name",
                       "computer", "instance", "kubernetes.host"}),
    "pod": frozenset({"pod", "pod_name", "podname", "kubernetes.pod.name", "kubernetes.pod_name"}),
    "container": frozenset({"container", "container_name", "containername", "kubernetes.container.name"}),
    "rank": frozenset({"rank", "global_rank"}),
    "local_rank": frozenset({"local_rank"}),
    "level": frozenset({"level", "severity", "levelname", "status", "log.level"}),
    "stream": frozenset({"stream", "logsource"}),
    "message": frozenset({"message", "@message", "msg", "line", "log", "content", "logmessage", "logentry", "_raw",
                          "body", "text", "textpayload"}),
}  # fmt: skip
"""Names of columns, in lower case, by what they hold."""
PLACES = frozenset({"host", "pod", "container", "rank", "local_rank"})
MOST_COLUMNS = 64
LONGEST_HEAD = 4096
BEGINS = re.compile(rb'"?[A-Za-z@_]')
_QUOTED = r'"((?:[^"]|"")*)'


@dataclass(frozen=True, slots=True)
class Table:
    """What the first line of a table says: what each column holds, None where it is of no use, and what parts them."""

    columns: tuple[str | None, ...]
    mark: str

    @property
    def pattern(self) -> str:
        """One line of a record, from its first field up to the end of the line or of the last field."""
        text = f'(?:{_QUOTED}(?:"|$)|([^"].*|))'
        for _ in self.columns[1:]:
            text = f'(?:{_QUOTED}(?:"|$)|([^"{self.mark}]*))(?:{self.mark}{text})?'
        return f"^{text}"


def table_of(head: bytes) -> Table | None:
    """The table that the first line of a source begins, None where it begins none."""
    first = head[:LONGEST_HEAD].removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].rstrip(b"\r")
    if len(first) == LONGEST_HEAD or not BEGINS.match(first):
        return None
    text = first.decode("utf-8", "replace")
    for mark in ",;\t":
        try:
            names = next(csv.reader([text], delimiter=mark), []) if mark in text else []
        except csv.Error:  # a carriage return within the line, as progress bars leave: no names of columns
            return None
        if 1 < len(names) <= MOST_COLUMNS:
            held = [_held(name) for name in names]
            told = {one for one in held if one}
            if "message" in told and told & (PLACES | {"timestamp"}) and len(told) * 2 >= len(names):
                return Table(tuple(one if one not in held[:at] else None for at, one in enumerate(held)), mark)
    return None


def _held(name: str) -> str | None:
    """What a column of this name holds."""
    name = name.strip().lower().removesuffix(" [utc]")
    return next((one for one, names in COLUMNS.items() if name in names), None)


class Export:
    """A table while its lines are read: from its first one, or from somewhere within it."""

    def __init__(self, table: Table, begins: bool) -> None:
        self._table, self._head = table, begins
        self._inside: bool | None = False if begins else None
        self._last: dict[str, str | None] = {}

    def lines(self, lines: Lines) -> Lines:
        """The same lines, each as an object of JSON; the head becomes empty."""
        raw = series(lines.text, lines.ends)
        groups = raw.str.extract_groups(self._table.pattern).struct.unnest()
        odd = raw.str.count_matches('"', literal=True).to_numpy().astype(np.int64) & 1
        if self._inside is None:
            self._inside = self._begins_inside(groups, odd)
        open_after = (np.cumsum(odd) + self._inside) & 1 == 1
        within = pl.Series(np.append(self._inside, open_after[:-1]))
        text = self._fields(raw, groups, within).select(pl.struct(pl.all()).struct.json_encode()).to_series()
        if self._head:
            text = text.clone().scatter(0, "")
            self._head = False
        self._inside = bool(open_after[-1])
        data = ("\n".join(text.to_list()) + "\n").encode("utf-8", "replace")
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")).astype(np.int64)
        return replace(lines, text=data, ends=ends)

    @staticmethod
    def _begins_inside(groups: pl.DataFrame, odd: npt.NDArray[np.int64]) -> bool:
        """Whether the first line goes on within quotes: then more of the others are whole records."""
        whole = groups.select(pl.any_horizontal(pl.nth(-2, -1).is_not_null())).to_series().to_numpy()
        before = np.append(0, np.cumsum(odd)[:-1]) & 1
        return int(whole[before == 1].sum()) > int(whole[before == 0].sum())

    def _fields(self, raw: pl.Series, groups: pl.DataFrame, within: pl.Series) -> pl.DataFrame:
        """One column for each thing that the table holds; what goes on within quotes has the place of its record."""
        found = {}
        for number, held in enumerate(self._table.columns):
            if held is None:
                continue
            quoted, bare = groups.to_series(2 * number), groups.to_series(2 * number + 1)
            value = pl.select(pl.coalesce(_plain(quoted), bare)).to_series().replace("", None)
            if held == "message":
                rest = _plain(raw.str.extract(r'^((?:[^"]|"")*)', 1))
                found[held] = pl.select(pl.when(within).then(rest).otherwise(value).fill_null("")).to_series()
            else:
                kept = pl.select(pl.when(~within).then(value)).to_series()
                if len(kept) and within[0]:
                    kept = kept.clone().scatter(0, self._last.get(held))
                filled = pl.select(pl.when(within).then(kept.forward_fill()).otherwise(kept)).to_series()
                self._last[held] = filled[-1]
                found[held] = filled
        return pl.DataFrame(found)


def _plain(quoted: pl.Series) -> pl.Series:
    return quoted.str.replace_all('""', '"', literal=True)


def export_of(head: bytes, begins: bool = True) -> Export | Document | None:
    """What turns the lines of a source that begins so into objects, None where it is no table and no list of them.

    `begins` tells whether it is read from its first line.
    """
    table = table_of(head)
    if table is not None:
        return Export(table, begins)
    indent = indent_of(head)
    return None if indent is None else Document(indent, begins)


def sample(export: Export | Document | None, texts: Sequence[str]) -> list[str]:
    """Some lines from all over a source as objects, so that their messages can be looked at."""
    if export is None or not texts:
        return list(texts)
    data = "".join(f"{text}\n" for text in texts if text).encode("utf-8", "replace")
    return export.lines(frame(Chunk(data, 1))).text.decode("utf-8", "replace").split("\n")
