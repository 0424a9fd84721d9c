"""Where an answer stands against the truth of a simulated job."""

from __future__ import annotations

from firstfault.correlate.diagnosis import Diagnosis, Verdict

from .case import Case


def outcome(case: Case, found: Diagnosis) -> str:
    """Where an answer stands."""
    truth = case.truth
    withheld = "needless" if case.settled else "withheld"
    if truth.healthy:
        return {Verdict.IDENTIFIED: "false", Verdict.NO_FAILURE: "right"}.get(found.verdict, withheld)
    if found.verdict is Verdict.NO_FAILURE:
        return "false"
    if found.verdict is Verdict.UNDETERMINED:
        return "right" if truth.open else withheld
    ranks, hosts = set(found.initiating.ranks), set(found.initiating.hosts)
    right = set(truth.ranks)
    if not right:
        return "right" if not ranks and found.failure.cls in truth.classes else "false"
    if ranks == right:
        return "right"
    if ranks & right or (truth.later and not case.shows_first and ranks & set(truth.later)):
        return "partial"
    if not ranks and hosts == set(truth.hosts):
        return "host"
    return "false"
