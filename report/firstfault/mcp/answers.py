"""A diagnosis as an assistant gets it: plain values, bounded, each list with a note of what is missing of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from firstfault.correlate.diagnosis import AlsoFailed, Attempt, Diagnosis, Evidence, Failure, Hypothesis, Place
from firstfault.correlate.model import parse_ranks
from firstfault.mcp.untrusted import TEXT, ranks, shown
from firstfault.report.document import (
    also_values,
    attempt_values,
    evidence_values,
    failure_values,
    hypothesis_values,
    place_values,
)
from firstfault.report.openings import restart_words, resume_words
from firstfault.report.preserve import commands
from firstfault.report.words import clock_words, job_words, verdict_words

T = TypeVar("T")
_WHO = re.compile(r"ranks? ([0-9, -]{1,2000})")


class Notes(list[str]):
    """What is missing of an answer."""

    def first(self, of: Iterable[T], most: int, what: str, how: str, make: Callable[[T], Any]) -> list[Any]:
        """The first so many of a list, each turned into plain values; the rest becomes a note."""
        listed = list(of)
        if len(listed) > most:
            self.append(f"{len(listed) - most:,} more {what}; {how}")
        return [make(one) for one in listed[:most]]


def headline(one: Diagnosis) -> str:
    """The verdict in one line that holds nothing out of a log."""
    said = f"firstfault: {verdict_words(one)} (confidence {one.confidence:.2f})"
    if one.failure.cls is None:
        return said
    where = f", {len(one.initiating.ranks)} rank(s): {ranks(one.initiating.ranks)}" if one.initiating.ranks else ""
    return f"{said}: class {one.failure.cls}, component {one.initiating.component}{where}"


def verdict(one: Diagnosis) -> dict[str, Any]:
    """The answer itself, and the lines that it rests on."""
    notes = Notes()
    made = {
        "verdict": str(one.verdict),
        "confidence": round(one.confidence, 3),
        "failure": _failure(one.failure),
        "initiating": _place(one.initiating),
        "summary": shown(one.summary, 1000),
        "evidence": notes.first(one.evidence, 12, "lines of evidence", "query: SELECT * FROM evidence", _evidence),
        "collateral": notes.first(
            one.collateral.groups, 8, "groups of ranks", "query: SELECT * FROM spread",
            lambda group: {"what": shown(group.what), "ranks": ranks(group.ranks),
                           "example": _evidence(group.example) if group.example else None},
        ),
        "missing_fact": _said(one.missing_fact),
        "next_action": shown(one.next_action, 1000),
        "fix": [shown(step, 1000) for step in one.advice.fix[:6]],
        "check": [shown(step, 1000) for step in one.advice.confirm[:6]],
        "restart": shown(restart_words(one), 1000),
        "resume": shown(resume_words(one), 1000),
        "hypotheses": notes.first(one.hypotheses, 4, "hypotheses", "ask missing_facts", _hypothesis),
        "why_not": notes.first(one.why_not, 6, "suspects cleared", "ask why_not with a rank or host", _cleared),
        "also_failed": notes.first(one.also, 4, "independent failures", "query: SELECT * FROM verdicts", _also),
        "attempts": notes.first(one.attempts, 6, "attempts", "query: SELECT * FROM attempts", _attempt)
        if len(one.attempts) > 1 else [],
        "job": shown(job_words(one), 1000),
        "problems": notes.first(
            _worst(one), 5, "kinds of problems in reading", "ask missing_facts",
            _problem,
        ),
    }  # fmt: skip
    return {**made, "notes": list(notes)}


def missing(one: Diagnosis) -> dict[str, Any]:
    """What would settle it: the missing fact, the candidates, what was not read, what to save before a restart."""
    notes = Notes()
    made = {
        "verdict": str(one.verdict),
        "missing_fact": _said(one.missing_fact),
        "next_action": shown(one.next_action, 1000),
        "hypotheses": notes.first(
            one.hypotheses, 10, "hypotheses", "query: SELECT * FROM hypotheses", _hypothesis
        ),
        "not_read": notes.first(
            _worst(one), 30, "kinds of problems", "query: SELECT * FROM problems", _problem
        ),
        "read": {shown(kind, 60): count for kind, count in one.coverage.sources_by_kind},
        "clocks": notes.first(one.clocks, 20, "clocks", "query: SELECT * FROM clocks", lambda c: shown(clock_words(c))),
        "save_before_restart": [
            {"where": shown(c.where), "why": shown(c.why), "command": shown(c.command, 1000)} for c in commands(one)
        ],
    }  # fmt: skip
    return {**made, "notes": list(notes)}


def cleared(one: Diagnosis, rank: int | None, host: str | None) -> dict[str, Any]:
    """Why a rank or host is, or is not, called the first: what the diagnosis says of it."""
    notes = Notes()
    accused = rank in one.initiating.ranks if rank is not None else host in _names(one.initiating)
    of_it = [(who, why) for who, why in one.why_not if _about(who, rank, host)]
    fates = [fate for fate in one.fates if fate.rank == rank or (rank is None and fate.host == host)]
    groups = [g for g in one.collateral.groups if (rank in g.ranks if rank is not None else host in g.hosts)]
    guesses = [h for h in one.hypotheses if (rank in h.ranks if rank is not None else host in h.hosts)]
    made = {
        "subject": f"rank {rank}" if rank is not None else shown(f"host {host}"),
        "named_as_first": accused and one.failure.cls is not None,
        "reasons": notes.first(of_it, 8, "reasons", "query: SELECT * FROM hypotheses", _cleared),
        "fate": notes.first(
            fates, 16, "ranks of that host", "query: SELECT * FROM last_lines",
            lambda fate: {"rank": fate.rank, "host": _said(fate.host), "fate": shown(fate.fate),
                          "last_step": fate.last_step, "last_seen": fate.last_seen},
        ),
        "followed": [shown(group.what) for group in groups[:6]],
        "hypotheses": notes.first(guesses, 4, "hypotheses", "query: SELECT * FROM hypotheses", _hypothesis),
        "chain": notes.first(
            [link for link in one.chain if _about(link.effect, rank, host) or _about(link.cause, rank, host)], 6,
            "links", "query: SELECT * FROM edges",
            lambda link: {"cause": shown(link.cause), "effect": shown(link.effect), "rule": link.rule,
                          "strength": link.strength, "why": shown(link.why)},
        ),
    }  # fmt: skip
    return {**made, "notes": list(notes)}


def _about(said: str, rank: int | None, host: str | None) -> bool:
    """Whether words such as 'ranks 0-7 (n1)' name a rank or a host."""
    if host is not None:
        return host in re.split(r"[^A-Za-z0-9_.-]+", said[:2000])
    return any(rank in (parse_ranks(found.strip(" ,-")) or ()) for found in _WHO.findall(said[:2000]))


def _names(place: Place) -> tuple[str, ...]:
    return (*place.hosts, *place.aliases)


def _said(text: str | None) -> str | None:
    return None if text is None else shown(text, 1000)


_MOST = {"evidence": 2, "for": 6, "against": 6}
_NAMES = 16


def _bounded(one: Any, key: str = "") -> Any:
    """A part of the document in few words: texts made harmless and cut, ranks as ranges, long lists cut with a note."""
    if key == "ranks":
        return ranks(one)
    if isinstance(one, dict):
        return {name: _bounded(value, name) for name, value in one.items()}
    if isinstance(one, list):
        most = _MOST.get(key, _NAMES)
        more = [f"… and {len(one) - most:,} more"] if len(one) > most and key not in _MOST else []
        return [_bounded(each, f"one of {key}") for each in one[:most]] + more
    if isinstance(one, str):
        return shown(one, 1000 if key == "title" else TEXT)
    return round(one, 3) if isinstance(one, float) else one


def _failure(one: Failure) -> Any:
    return _bounded(failure_values(one))


def _place(one: Place) -> Any:
    return _bounded(place_values(one))


def _evidence(one: Evidence) -> Any:
    return _bounded(evidence_values(one))


def _hypothesis(one: Hypothesis) -> Any:
    return _bounded(hypothesis_values(one))


def _also(one: AlsoFailed) -> Any:
    return _bounded(also_values(one))


def _attempt(one: Attempt) -> Any:
    return {name: value for name, value in _bounded(attempt_values(one)).items() if name != "evidence"}


def _cleared(one: tuple[str, str]) -> dict[str, Any]:
    return {"who": shown(one[0]), "why": shown(one[1], 800)}


def _worst(one: Diagnosis) -> list[tuple[str, str, int, str]]:
    order = {"error": 0, "data-loss": 1, "notice": 2, "info": 3}
    return sorted(one.coverage.problems, key=lambda found: (order.get(found[0], 4), found[1], found[3]))


def _problem(one: tuple[str, str, int, str]) -> dict[str, Any]:
    severity, kind, count, detail = one
    return {"severity": severity, "kind": kind, "count": count, "detail": shown(detail)}
