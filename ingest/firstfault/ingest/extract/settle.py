"""Joins the signals of a source with the records they stand in, once the source is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from firstfault.catalog.matcher import Matcher
from firstfault.catalog.model import Role
from firstfault.ingest.extract.failure_table import NAME as TABLE
from firstfault.ingest.extract.records import Failure
from firstfault.ingest.extract.rows import TEXT_LIMIT, About, SignalRow
from firstfault.ingest.extract.source import MAX_HITS, PLAIN, SourceState
from firstfault.ingest.extract.tracebacks import HEAD
from firstfault.ingest.problems import Problem, Severity

_GENERIC = "python-traceback"


def settle(state: SourceState, matcher: Matcher) -> None:
    """The source is read: join signals with the records they stand in.

    Inside a record only the line with the exception speaks: frames quote source code, and a table repeats itself.
    """
    said: dict[int, list[SignalRow]] = {}
    for signal in state.signals:
        said.setdefault(signal.line, []).append(signal)
    said = {line: _distinct(signals, matcher) for line, signals in said.items()}
    by_line = {line: list(signals) for line, signals in said.items()}
    behind = {(failure.line, failure.item): failure.lines for failure in state.failures}
    state.failures = [_trimmed(failure, said) for failure in state.failures]
    for failure in state.failures:
        for line in failure.lines:
            if line <= failure.line or failure.table:
                by_line.pop(line, None)
            elif line in by_line:
                by_line[line] = [one for one in by_line[line] if one.entry != _GENERIC]
    ends = np.array([failure.line for failure in state.failures], dtype=np.int64)
    folded = {line for lines in state.folded_lines for line in ends[np.isin(ends, lines)].tolist()}
    for failure in sorted(state.failures, key=lambda one: (one.line, one.item)):
        entries = [one for one in said.get(failure.line, []) if one.entry is not None and one.entry != _GENERIC]
        made = by_line.setdefault(failure.line, [])
        if failure.item:
            made.append(_item(failure, entries, matcher))
        else:
            more = [
                one for line in behind[failure.line, failure.item] if line > failure.line for one in said.get(line, ())
            ]
            made += [_inside(signal, failure, more) for signal in entries]
            if not any(_tells(signal) for signal in entries) and failure.line not in folded:
                made.append(_traceback(failure, matcher))
    state.signals = [one for line in sorted(by_line) for one in by_line[line] if not _bare_head(one)]
    state.failures, state.folded_lines = [], []
    for pattern, count in sorted(state.folded.items()):
        name = "errors that no entry explains" if pattern == PLAIN else f"lines of {matcher.patterns[pattern].id}"
        detail = f"{count} more {name} than the {MAX_HITS} that are signals"
        state.problems.append(Problem(state.path, "folded", Severity.NOTICE, detail, None, count, state.path))


def _distinct(signals: list[SignalRow], matcher: Matcher) -> list[SignalRow]:
    """One signal for each entry and fact of a line; the entry for any exception only where no other speaks."""
    found: dict[tuple[str | None, str | None, int], list[SignalRow]] = {}
    for signal in signals:
        named = signal.entry is not None or signal.fact is not None
        found.setdefault((signal.entry, signal.fact, 0 if named else len(found)), []).append(signal)
    if any(one.entry is not None and one.entry != _GENERIC and not one.weak for one in signals):
        found = {key: same for key, same in found.items() if key[0] != _GENERIC}
    return [best_of(same, matcher) or same[0] for same in found.values()]


def _trimmed(failure: Failure, said: Mapping[int, list[SignalRow]]) -> Failure:
    """The failure without the lines behind its exception from the first that says something of its own."""
    if failure.table or failure.item:
        return failure
    foreign = [
        line
        for line in failure.lines
        if line > failure.line and any(one.entry != _GENERIC for one in said.get(line, ()))
    ]
    if not foreign:
        return failure
    return replace(failure, lines=[line for line in failure.lines if line < foreign[0]])


def _bare_head(signal: SignalRow) -> bool:
    """Whether a signal stands on the head of a traceback, which says nothing by itself."""
    return signal.entry == _GENERIC and HEAD in signal.text


def _inside(signal: SignalRow, failure: Failure, more: Iterable[SignalRow]) -> SignalRow:
    """A signal of the catalog on the line of an exception, with what its message goes on to say in `more`."""
    captures = {**failure.captures, **signal.captures}
    for one in more:
        if one.entry == signal.entry:
            captures = {**one.captures, **captures}
    return replace(
        signal, first_line=failure.lines[0], last_line=failure.lines[-1], captures=captures, owner=failure.owner,
        about=_named(failure),
    )  # fmt: skip


def _named(failure: Failure) -> About | None:
    """Whose failure it is, where every rank prints what one raised."""
    return About(rank=failure.named) if failure.named is not None else None


def _tells(signal: SignalRow) -> bool:
    """Whether an entry says by itself what the exception is; a text that is too general or only advice does not."""
    return not signal.weak and signal.role != Role.CONTEXT


def _traceback(failure: Failure, matcher: Matcher) -> SignalRow:
    """The signal of a traceback that no entry knows. A launcher's own exception only reports its children's."""
    own = failure.captures["exception"].rpartition(".")[2] != TABLE
    generic = next((pattern for pattern in matcher.patterns if pattern.id == _GENERIC), None)
    role = generic.role if generic is not None else None
    return SignalRow(
        line=failure.line,
        event="exception" if own else "agent-report",
        text=failure.text[:TEXT_LIMIT],
        entry=_GENERIC if own else None,
        cls="python-exception" if own else None,
        role=str(role) if own and role is not None else None,
        first_line=failure.lines[0],
        last_line=failure.lines[-1],
        captures=failure.captures,
        own=failure.own,
        owner=failure.owner,
        about=_named(failure),
    )


def _item(failure: Failure, entries: list[SignalRow], matcher: Matcher) -> SignalRow:
    """One failure of a launcher's table: about a rank, not written by it."""
    captures = failure.captures
    best = best_of(entries, matcher)
    if best is None and "exception" in captures:
        best = _traceback(failure, matcher)
    return SignalRow(
        line=failure.line,
        event="agent-report",
        text=failure.text[:TEXT_LIMIT],
        entry=best.entry if best else None,
        cls=best.cls if best else None,
        role=best.role if best else None,
        weak=best.weak if best else False,
        first_line=failure.lines[0],
        last_line=failure.lines[-1],
        captures={**(best.captures if best else {}), **captures},
        own=failure.own,
        about=About(
            rank=_int(captures.get("rank")),
            local_rank=_int(captures.get("local_rank")),
            host=(captures.get("host") or "").partition(".")[0] or None,
            **_when(captures.get("time")),
        ),
    )


def _when(text: str | None) -> dict[str, Any]:
    """The time of a failure as a launcher's table prints it: naive, whole seconds."""
    try:
        moment = datetime.strptime(text or "", "%Y-%m-%d_%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return {}
    return {"stamp_ns": int(moment.timestamp()) * 1_000_000_000, "stamp_kind": "full", "stamp_res_ns": 1_000_000_000}


def best_of(signals: Iterable[SignalRow], matcher: Matcher) -> SignalRow | None:
    """The signal that speaks for its line."""
    found = {signal.pattern: signal for signal in signals if signal.pattern >= 0}
    return found[matcher.best(found)] if found else None


def _int(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
