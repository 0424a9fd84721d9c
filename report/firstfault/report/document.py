"""The document `firstfault.diagnosis/1`: a `Diagnosis` as plain values, exactly as scripts read it.

The other reporters show the same object; this one fixes the names. Numbers that are unknown are null, never NaN.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

from firstfault.correlate.diagnosis import (
    AlsoFailed,
    Attempt,
    Diagnosis,
    Evidence,
    Failure,
    Hypothesis,
    Place,
)
from firstfault.report.openings import openings
from firstfault.report.preserve import commands
from firstfault.report.safe_json import safe_json

SCHEMA = "firstfault.diagnosis/1"


def failure_values(one: Failure) -> dict[str, Any]:
    """What failed."""
    return {"class": one.cls, "entry": one.entry, "title": one.title}


def place_values(one: Place) -> dict[str, Any]:
    """Where it began."""
    return {
        "component": one.component,
        "ranks": list(one.ranks),
        "hosts": list(one.hosts),
        "gpus": list(one.gpus),
        "aliases": list(one.aliases),
        "at": one.at,
    }


def evidence_values(one: Evidence) -> dict[str, Any]:
    """One line of evidence."""
    return {
        "path": one.path,
        "line": one.line,
        "at": one.at,
        "text": one.text[:500],
        "why": one.why,
        "rank": one.rank,
        "host": one.host,
    }


def hypothesis_values(one: Hypothesis) -> dict[str, Any]:
    """One explanation, with what speaks for and against it."""
    return {
        "class": one.cls,
        "entry": one.entry,
        "ranks": list(one.ranks),
        "hosts": list(one.hosts),
        "confidence": one.confidence,
        "for": list(one.for_),
        "against": list(one.against),
    }


def also_values(one: AlsoFailed) -> dict[str, Any]:
    """An independent failure."""
    return {
        "failure": failure_values(one.failure),
        "initiating": place_values(one.initiating),
        "evidence": [evidence_values(line) for line in one.evidence],
    }


def attempt_values(one: Attempt) -> dict[str, Any]:
    """One attempt of the job."""
    return {
        "attempt": one.attempt,
        "verdict": str(one.verdict),
        "failure": failure_values(one.failure),
        "initiating": place_values(one.initiating),
        "evidence": [evidence_values(line) for line in one.evidence],
        "started": one.started,
        "ended": one.ended,
        "same_as_first": one.same_as_first,
    }


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The whole document as dictionaries, lists and plain values."""
    advice = diagnosis.advice
    return {
        "schema": SCHEMA,
        "verdict": str(diagnosis.verdict),
        "failure": failure_values(diagnosis.failure),
        "initiating": place_values(diagnosis.initiating),
        "evidence": [evidence_values(one) for one in diagnosis.evidence],
        "collateral": {
            "ranks": list(diagnosis.collateral.ranks),
            "hosts": list(diagnosis.collateral.hosts),
            "groups": [
                {
                    "what": group.what,
                    "ranks": list(group.ranks),
                    "hosts": list(group.hosts),
                    "example": evidence_values(group.example) if group.example else None,
                }
                for group in diagnosis.collateral.groups
            ],
        },
        "confidence": diagnosis.confidence,
        "hypotheses": [hypothesis_values(one) for one in diagnosis.hypotheses],
        "missing_fact": diagnosis.missing_fact,
        "next_action": diagnosis.next_action,
        "job": {
            "ranks": diagnosis.job.ranks,
            "hosts": diagnosis.job.hosts,
            "attempts": diagnosis.job.attempts,
            "sources": diagnosis.job.sources,
            "lines": diagnosis.job.lines,
            "started": diagnosis.job.started,
            "ended": diagnosis.job.ended,
            "last_step": diagnosis.job.last_step,
            "last_checkpoint": diagnosis.job.last_checkpoint,
            "checkpoint": _plain(diagnosis.job.checkpoint),
        },
        "clocks": [
            {
                "host": clock.host,
                "offset_seconds": _finite(clock.offset_seconds),
                "uncertainty_seconds": _finite(clock.uncertainty_seconds),
                "how": clock.how,
            }
            for clock in diagnosis.clocks
        ],
        "summary": diagnosis.summary,
        "why_not": [{"who": who, "why": why} for who, why in diagnosis.why_not],
        "also": [also_values(one) for one in diagnosis.also],
        "attempts": [attempt_values(one) for one in diagnosis.attempts],
        "chain": [
            {
                "cause": link.cause,
                "effect": link.effect,
                "rule": link.rule,
                "why": link.why,
                "strength": link.strength,
                "evidence": [evidence_values(one) for one in link.evidence],
            }
            for link in diagnosis.chain
        ],
        "advice": {
            "fix": list(advice.fix),
            "confirm": list(advice.confirm),
            "verify": list(advice.verify),
            "prevent": list(advice.prevent),
            "resume": advice.resume,
            "mechanism": advice.mechanism,
            "references": list(advice.references),
            "group": advice.group,
            "owner": advice.owner,
            "restart": advice.restart,
        },
        "coverage": {
            "sources": dict(diagnosis.coverage.sources_by_kind),
            "problems": [
                {"severity": severity, "kind": kind, "count": count, "detail": detail}
                for severity, kind, count, detail in diagnosis.coverage.problems
            ],
        },
        "refusals": list(diagnosis.refusals),
        "openings": [_plain(one) for one in openings(diagnosis)],
        "preserve": [_plain(one) for one in commands(diagnosis)],
        "fates": _plain(diagnosis.fates),
        "progress": _plain(diagnosis.progress),
        "swim": _plain(diagnosis.swim),
        "graph": _plain(diagnosis.graph),
        "contexts": _plain(diagnosis.contexts),
        "comparison": _plain(diagnosis.comparison),
    }


def _plain(value: Any) -> Any:
    """Frozen values whose fields are named as in the document, as dictionaries, lists and plain values."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return _finite(value)
    return str(value) if isinstance(value, str) else value


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def to_json(diagnosis: Diagnosis) -> str:
    """The document as JSON text, keys in the order of the contract."""
    return safe_json(document(diagnosis), indent=2)
