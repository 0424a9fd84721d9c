"""Compares a job with a run that went well: which lines are new, gone or more frequent, what is slower, what is set
differently; and which error lines the healthy run prints too, so that nobody is accused for them.

Lines are compared by template: numbers, hexadecimal words, quoted words and paths are taken out by the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import duckdb

from firstfault.correlate.candidate import Candidate
from firstfault.correlate.comparison import Comparison, SettingChange, TemplateChange, TimingChange
from firstfault.correlate.timings import read_timings
from firstfault.timeline import open_timeline

_TEMPLATE = r"""(/[\w.+@%=~-]+)+/?|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]{6,}\b|0x[0-9a-fA-F]+|[0-9]+"""
_MACROS = (
    # what repeats after masking (a list of numbers) is one
    f"CREATE OR REPLACE TEMP MACRO ff_template(said) AS regexp_replace(regexp_replace(left(said, 240), '{_TEMPLATE}', "
    "'#', 'g'), '#([ ,.:x/-]?#)+', '#', 'g')",
)
_MOST = 60
_OFTENER = 4.0
_LEAST = 20
_SLOWER = 1.25
_DOUBT = 1.5

_COUNTS = """
    SELECT ff_template(l.message) AS template, count(*) AS lines,
           list_sort(list_distinct(list(l.rank)))[1:64] AS ranks,
           max(CASE WHEN l.level IN ('ERROR', 'FATAL') THEN 2 WHEN l.level = 'WARN' THEN 1 ELSE 0 END) AS weight,
           min(l.entry) AS entry, arg_min(l.level, (s.path, l.line)) AS level,
           min((s.path, l.line)) AS place, arg_min(left(l.message, 300), (s.path, l.line)) AS said
    FROM {run}line_rows l JOIN {run}sources s USING (source_id)
    WHERE l.message IS NOT NULL AND l.message <> '' AND (l.record IS NULL OR l.record = l.line OR l.entry IS NOT NULL)
    GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class Healthy:
    """A run that went well: its timeline, what it is called, and whether it proves that it completed."""

    database: Path
    name: str
    completed: bool


def attach(con: duckdb.DuckDBPyConnection, healthy: Healthy) -> None:
    """Make the healthy run's tables readable as `healthy.` beside those of the job."""
    open_timeline(healthy.database).close()  # says what is wrong with it, in words
    quoted = str(healthy.database).replace("'", "''")
    con.execute(f"ATTACH '{quoted}' AS healthy (READ_ONLY)")
    for macro in _MACROS:
        con.execute(macro)


def familiar_signals(con: duckdb.DuckDBPyConnection) -> frozenset[int]:
    """Numbers of error signals whose line the healthy run prints too, by template."""
    rows = con.execute(
        """
        SELECT signal_id FROM signal_rows
        WHERE role IN ('initiating', 'ambiguous') AND text <> ''
          AND ff_template(text) IN (SELECT ff_template(text) FROM healthy.signal_rows WHERE text <> '')
        """
    ).fetchall()
    return frozenset(int(row[0]) for row in rows)


def weigh(candidates: list[Candidate], familiar: frozenset[int], name: str) -> None:
    """Doubt candidates all of whose own lines a run that went well prints too; say where it prints none of them."""
    for one in candidates:
        own = [signal.id for signal, _ in one.signals if signal.role is not None and signal.id >= 0]
        if not own:
            continue
        if all(number in familiar for number in own):
            one.base -= _DOUBT
            one.against.append(f"{name}, which went well, prints the same lines")
        elif not any(number in familiar for number in own):
            one.for_.append(f"{name}, which went well, prints no such line")


def compare(con: duckdb.DuckDBPyConnection, healthy: Healthy) -> Comparison:
    """The whole comparison; `attach` comes first."""
    changes, left = _templates(con)
    lines = [
        int((con.execute(f"SELECT count(*) FROM {run}line_rows").fetchone() or (0,))[0]) for run in ("", "healthy.")
    ]
    with open_timeline(healthy.database) as other:
        timings = tuple(_timings(con, other))
    return Comparison(
        of=healthy.name,
        completed=healthy.completed,
        lines_now=lines[0],
        lines_then=lines[1],
        templates=changes,
        left_out=left,
        timings=timings,
        settings=tuple(_settings(con)),
    )


def _templates(con: duckdb.DuckDBPyConnection) -> tuple[tuple[TemplateChange, ...], int]:
    """Templates by what changed: errors first, then warnings, then what is most frequent.

    Frequencies are compared by the share of all lines, since the runs are not equally long.
    """
    rows = con.execute(
        f"""
        WITH now AS ({_COUNTS.format(run="")}), past AS ({_COUNTS.format(run="healthy.")}),
        totals AS (SELECT (SELECT sum(lines) FROM now) AS now_all, (SELECT sum(lines) FROM past) AS then_all),
        joined AS (
            SELECT template, coalesce(n.lines, 0) AS now, coalesce(t.lines, 0) AS past,
                   coalesce(n.ranks, t.ranks) AS ranks, greatest(n.weight, t.weight) AS weight,
                   coalesce(n.entry, t.entry) AS entry, coalesce(n.level, t.level) AS level,
                   coalesce(n.place, t.place) AS place, coalesce(n.said, t.said) AS said,
                   now / greatest(now_all, 1) AS now_share, past / greatest(then_all, 1) AS then_share
            FROM now n FULL JOIN past t USING (template), totals
        )
        SELECT CASE WHEN past = 0 THEN 'new' WHEN now = 0 THEN 'gone' WHEN now_share > then_share THEN 'more'
                    ELSE 'fewer' END AS change,
               template, now, past, ranks, level, entry, place, said
        FROM joined
        WHERE now = 0 OR past = 0
           OR (now >= {_LEAST} AND now_share > {_OFTENER} * then_share)
           OR (past >= {_LEAST} AND then_share > {_OFTENER} * now_share)
        ORDER BY array_position(['new', 'more', 'gone', 'fewer'], change), weight DESC, entry IS NULL,
                 greatest(now, past) DESC, template
        """
    ).fetchall()
    counts: dict[str, int] = {}
    kept = []
    for change, template, now, then, ranks, level, entry, place, said in rows:
        counts[change] = counts.get(change, 0) + 1
        if counts[change] <= (_MOST if change == "new" else _MOST // 3):
            path, line = (place["path"], place["line"]) if isinstance(place, dict) else place
            ranks_ = tuple(one for one in ranks or () if one is not None)
            kept.append(TemplateChange(change, template, now, then, ranks_, level, entry, path, line, said))
    return tuple(kept), len(rows) - len(kept)


def _timings(now: duckdb.DuckDBPyConnection, then: duckdb.DuckDBPyConnection) -> Iterator[TimingChange]:
    """Durations whose median over the ranks differs, the most first; the time between steps is one of them."""
    found = []
    here, there = _medians(now), _medians(then)
    for name in sorted(set(here) & set(there)):
        mine, usual = median(here[name].values()), median(there[name].values())
        slow = {rank: value for rank, value in here[name].items() if usual > 0 and value > _SLOWER * usual}
        if usual <= 0 or (1 / _SLOWER < mine / usual < _SLOWER and not slow):
            continue
        ranks = tuple(sorted(slow)) if len(slow) <= len(here[name]) // 2 else ()
        found.append(TimingChange(name, round(mine, 6), round(usual, 6), ranks))
    yield from sorted(found, key=lambda one: (-max(one.now / one.then, one.then / max(one.now, 1e-9)), one.name))[:20]


def _medians(con: duckdb.DuckDBPyConnection) -> dict[str, dict[int, float]]:
    """For each duration, the median of each rank."""
    values: dict[str, dict[int, list[float]]] = {}
    for ranks in read_timings(con).values():
        for rank, lines in ranks.items():
            for _, _, named, _ in lines:
                for name, value in named.items():
                    values.setdefault(name, {}).setdefault(rank, []).append(value)
    found = {name: {rank: median(one) for rank, one in ranks.items()} for name, ranks in values.items()}
    rows = con.execute(
        """
        SELECT rank, median(span) FROM (
            SELECT rank, (stamp_ns - lag(stamp_ns) OVER w) / 1e9 / nullif(step - lag(step) OVER w, 0) AS span
            FROM progress WHERE rank IS NOT NULL AND stamp_own AND stamp_ns IS NOT NULL
            WINDOW w AS (PARTITION BY rank, coalesce(attempt, 0), source_id ORDER BY line)
        ) WHERE span > 0 GROUP BY rank ORDER BY rank
        """
    ).fetchall()
    if rows:
        found["time between steps"] = {int(rank): float(span) for rank, span in rows}
    return found


def _settings(con: duckdb.DuckDBPyConnection) -> Iterator[SettingChange]:
    """Versions, sizes and variables of the environment that differ; several values of one run are listed."""
    query = """
        SELECT 'version' AS kind, replace(fact, 'version-', '') AS name,
               coalesce(map_extract(captures, 'version')[1], map_extract(captures, 'name')[1]) AS value
        FROM {run}signal_rows WHERE starts_with(fact, 'version-')
        UNION SELECT 'topology', 'ranks', max(world_size)::VARCHAR FROM {run}identities
        UNION SELECT 'topology', 'hosts', count(DISTINCT host)::VARCHAR FROM {run}identities WHERE rank IS NOT NULL
        UNION SELECT 'topology', 'ranks a host', max(n)::VARCHAR FROM (
            SELECT count(DISTINCT rank) AS n FROM {run}identities
            WHERE rank IS NOT NULL AND host IS NOT NULL GROUP BY host)
        UNION SELECT 'environment', regexp_extract(message, '{variable}', 1), regexp_extract(message, '{variable}', 2)
        FROM {run}line_rows WHERE regexp_matches(message, '{variable}')
    """
    variable = (
        r"\b((?:NCCL|RCCL|TORCH|CUDA|HIP|OMP|UCX|FI|HSA|GLOO|PYTORCH|MASTER|HF|XLA|DEEPSPEED)_[A-Z0-9_]{2,60})"
        r"(?: set by environment to |=| set to )[ \"]?([^\s\"]{1,120}?)[.\",]?(?:\s|$)"
    )
    gathered: dict[tuple[str, str], list[set[str]]] = {}
    for number, run in enumerate(("", "healthy.")):
        for kind, name, value in con.execute(query.format(run=run, variable=variable.replace("'", "''"))).fetchall():
            if value:
                gathered.setdefault((kind, name), [set(), set()])[number].add(value)
    for (kind, name), (now, then) in sorted(gathered.items()):
        if now != then:
            yield SettingChange(kind, name, _listed(now), _listed(then))


def _listed(values: set[str]) -> str | None:
    shown = sorted(values)
    more = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
    return ", ".join(shown[:4]) + more if shown else None
