"""The grid of fates: a cell for each rank, for each host where the ranks are too many; and the same as a table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from firstfault.correlate.diagnosis import RankFate
from firstfault.report.swim_svg import text
from firstfault.report.words import number_ranges, short, time_words

MOST_CELLS = 2048
_KINDS = (
    ("initiating", "root", "where it began"),
    ("raised an error", "error", "an error of its own"),
    ("printed an error", "echo", "an error that follows"),
    ("waited", "echo", "waited in a collective"),
    ("lost", "lost", "lost a peer or the store"),
    ("was torn down", "lost", "torn down"),
    ("was told", "echo", "told to dump or end"),
    ("was asked", "kill", "asked to end"),
    ("was ended", "kill", "ended by its launcher"),
    ("ended with", "error", "ended by itself"),
    ("completed", "good", "completed"),
    ("left no log", "none", "left no log"),
)
_ORDER = ("root", "error", "lost", "echo", "kill", "", "none", "good")


def kind_of(fate: str) -> str:
    """Style of a fate."""
    return next((kind for start, kind, _ in _KINDS if fate.startswith(start)), "")


def grid(fates: tuple[RankFate, ...]) -> Iterator[str]:
    """Cells in the order of ranks, what each style means, and the fates folded in a table."""
    if not fates:
        return
    ordered = sorted(fates, key=lambda one: one.rank)
    cells = _by_rank(ordered) if len(ordered) <= MOST_CELLS else _by_host(ordered)
    yield '<figure><ul class="grid">'
    for label, kind, said in cells:
        yield f'<li{f" class={kind}" if kind else ""} title="{text(said)}">{text(label)}</li>'
    yield '</ul><figcaption aria-live="polite"></figcaption></figure>'
    kinds = dict.fromkeys(kind for _, kind, _ in cells)
    words: dict[str, list[str]] = defaultdict(list)
    for _, kind, said in _KINDS:
        if any(kind_of(one.fate) == kind and one.fate.startswith(_start(said)) for one in ordered):
            words[kind].append(said)
    words[""].append("no error, or as the table says")
    yield '<ul class="legend">'
    for kind in sorted(kinds, key=_ORDER.index):
        yield f'<li><ul class="grid keys"><li class="{kind}">&nbsp;</li></ul>{text(", ".join(words[kind]))}</li>'
    yield "</ul>"
    yield from _table(ordered)


def _start(said: str) -> str:
    return next(start for start, _, words in _KINDS if words == said)


def _by_rank(fates: list[RankFate]) -> list[tuple[str, str, str]]:
    return [(str(one.rank), kind_of(one.fate), _said(one)) for one in fates]


def _said(one: RankFate) -> str:
    host = f" on {one.host}" if one.host else ""
    step = f", last step {one.last_step}" if one.last_step is not None else ""
    seen = f", last line {time_words(one.last_seen)}" if one.last_seen else ""
    return f"rank {one.rank}{host}: {one.fate}{step}{seen}"


def _by_host(fates: list[RankFate]) -> list[tuple[str, str, str]]:
    hosts: dict[str, list[RankFate]] = defaultdict(list)
    for one in fates:
        hosts[one.host or ""].append(one)
    if len(hosts) == 1:  # no host is known: blocks of neighbouring ranks
        size = -(-len(fates) // MOST_CELLS)
        hosts = {f"block {first}": fates[first : first + size] for first in range(0, len(fates), size)}
    cells = []
    for host, members in hosts.items():
        ranks = [one.rank for one in members]
        counts = Counter(one.fate for one in members)
        said = "; ".join(
            f"{count}× {fate}" for fate, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
        )
        worst = min((kind_of(one.fate) for one in members), key=_ORDER.index)
        cells.append((str(ranks[0]), worst, f"{host or 'host unknown'}, ranks {number_ranges(ranks)}: {said}"))
    return cells


def _table(fates: list[RankFate]) -> Iterator[str]:
    groups: dict[str, list[RankFate]] = defaultdict(list)
    for one in fates:
        groups[one.fate].append(one)
    yield "<details open><summary>By fate</summary><table><tr><th>fate</th><th>ranks</th><th>last steps</th></tr>"
    for fate, members in sorted(groups.items(), key=lambda item: (_ORDER.index(kind_of(item[0])), item[0])):
        ranks = short(number_ranges(one.rank for one in members), 400)
        steps = sorted({one.last_step for one in members if one.last_step is not None})
        reach = "" if not steps else f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
        yield f"<tr><td>{text(fate)}</td><td>{len(members):,}: {text(ranks)}</td><td>{reach}</td></tr>"
    yield "</table></details>"
