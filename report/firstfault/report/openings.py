"""Three openings of one report: for who is on call, for the engineer who mends it, for who has to be told."""

from __future__ import annotations

from dataclasses import dataclass

from firstfault.correlate.diagnosis import Diagnosis, Verdict
from firstfault.report.words import (
    clean,
    group_words,
    hosts_words,
    lower_first,
    many,
    one_sentence,
    place_words,
    says_again,
    span_of,
    time_words,
    witnesses,
)

_RESTART = {
    "same nodes after the fix": "Start again on the same nodes once it is mended.",
    "not before the fix": "Do not start again before it is mended: it would fail the same way.",
    "anywhere": "It can start again at once, on any nodes.",
    "as its cause says": "Find why first; a restart may meet it again.",
    "as the peer's cause says": "Find out about the peer first; a restart may meet it again.",
    "as the code says": "Look the code up before a restart.",
    "from an earlier checkpoint": "Start again from an earlier checkpoint, not from the last.",
    "from the checkpoint before it, not before the fix": "Start again from the checkpoint before, once it is mended.",
    "same nodes once, then exclude": "Start again on the same nodes once; leave them out if it comes again.",
}
_OWNERS = {
    "user": "a matter of the training code, its configuration or its data",
    "platform": "a matter of the machines, for the platform team",
    "network": "a matter of the network",
    "storage": "a matter of the storage",
    "user or platform": "a matter of the configuration or of the machines",
    "platform or user": "a matter of the machines or of the configuration",
    "user or storage": "a matter of the job or of the storage",
    "network or user": "a matter of the network or of the job",
    "network, or the owner of the peer": "a matter of the network or of the machine at the other end",
    "user first, then platform": "first a matter of the code, then of the machines",
}


@dataclass(frozen=True, slots=True)
class Opening:
    """The first paragraph for one reader."""

    reader: str
    text: str


def openings(one: Diagnosis) -> tuple[Opening, ...]:
    """On call, engineer, manager."""
    made = (("on call", _on_call), ("engineer", _engineer), ("manager", _manager))
    return tuple(Opening(reader, " ".join(filter(None, say(one)))) for reader, say in made)


def restart_words(one: Diagnosis) -> str:
    """Whether and where the job can start again."""
    if one.verdict is not Verdict.IDENTIFIED:
        return ""
    if one.advice.restart == "exclude the node":
        hosts = one.initiating.hosts
        return (
            f"Start again without {hosts_words(hosts)}." if hosts else "Find the bad node and start again without it."
        )
    return _RESTART.get(one.advice.restart, "")


def resume_words(one: Diagnosis) -> str:
    """From where: the last checkpoint that the logs show as written, and what the catalog says of this failure."""
    said = one_sentence(one.advice.resume)
    usual = said.removeprefix("the ").startswith("last complete checkpoint")
    saved = one.job.checkpoint
    if saved is None:
        return f"{said.rstrip('.')} (the logs show none)" if usual else said or "the logs show no finished checkpoint"
    what = f"step {saved.step}" if saved.step is not None else "the checkpoint"
    where = f" in {one_sentence(saved.path)}" if saved.path else ""
    at = f", written {time_words(saved.at)}" if saved.at else ""
    last = f"the last finished checkpoint in the logs is {what}{where}{at} ({clean(saved.source)}:{saved.line})"
    rest = said.partition(",")[2].strip() if usual else said
    return f"{last}; {rest}" if rest else last


def sure_words(confidence: float) -> str:
    """A probability for who does not read numbers."""
    return "sure" if confidence >= 0.9 else "fairly sure" if confidence >= 0.75 else "not sure"


def _on_call(one: Diagnosis) -> list[str]:
    if one.verdict is Verdict.NO_FAILURE:
        return ["Nothing to do: the job completed."]
    if one.verdict is Verdict.UNDETERMINED:
        return ["Do not blame anybody yet: fetch the missing fact first, and save what a restart destroys."]
    placed = one.initiating.ranks or one.initiating.hosts
    said = [f"{_title(one)}{f': {place_words(one.initiating)}' if placed else ''}.", restart_words(one)]
    if one.advice.fix:
        said.append(f"Fix: {_stop(one.advice.fix[0])}")
    elif not says_again(one.next_action, one.summary):
        said.append(_stop(one.next_action))
    said += [f"Resume: {_stop(resume_words(one))}", "Before a restart, save what it destroys (commands below)."]
    return said


def _engineer(one: Diagnosis) -> list[str]:
    if one.verdict is Verdict.NO_FAILURE:
        proofs = witnesses(one.evidence)
        where = f": {proofs[0].shown.path}:{proofs[0].shown.line}" if proofs else ""
        return [f"Proof of completion{where}; nothing fatal contradicts it."]
    said = []
    if one.verdict is Verdict.IDENTIFIED:
        code = f"{one.failure.cls} (entry {one.failure.entry})" if one.failure.entry else str(one.failure.cls)
        said.append(f"{code}: {place_words(one.initiating)}.")
        if one.advice.mechanism:
            said.append(_stop(one_sentence(one.advice.mechanism).split(". ")[0]))
    elif one.hypotheses:
        said.append("Candidates: " + "; ".join(f"{h.cls} {h.confidence:.2f}" for h in one.hypotheses[:3]) + ".")
    shown = witnesses(one.evidence)[:1]
    said += [
        f"Best evidence: {one_sentence(w.shown.path)}:{w.shown.line} ({one_sentence(w.shown.why)})." for w in shown
    ]
    groups = one.collateral.groups[:2]
    if groups:
        said.append("Others: " + "; ".join(group_words(group) for group in groups) + ".")
    rival = next((h for h in one.hypotheses[1:] if h.confidence >= 0.02), None)
    if one.verdict is Verdict.IDENTIFIED and rival is not None:
        said.append(f"Closest rival: {rival.cls}, {rival.confidence:.2f}.")
    return said


def _manager(one: Diagnosis) -> list[str]:
    job = one.job
    size = f" on {many(job.ranks, 'GPU process')}" if job.ranks else ""
    if one.verdict is Verdict.NO_FAILURE:
        return [f"The job{size} completed."]
    said = []
    when = f" at {time_words(one.initiating.at)}" if one.initiating.at else ""
    after = span_of(job.started, one.initiating.at or job.ended)
    ran = f" after {after[0]}" if after and after[1] > 0 else ""
    if one.verdict is Verdict.UNDETERMINED:
        said.append(
            f"The job{size} did not complete; the logs at hand do not say why. Somebody is needed to fetch more."
        )
        return said
    slow = one.failure.cls in ("straggler", "gpu-thermal-or-power") and not when
    what = "is slower than it should be" if slow else f"stopped{when}{ran}"
    said.append(f"The job{size} {what}: {lower_first(_title(one))}.")
    if one.advice.owner in _OWNERS:
        said.append(f"It is {_OWNERS[one.advice.owner]}; we are {sure_words(one.confidence)} of this.")
    lost = span_of(job.checkpoint.at if job.checkpoint else None, one.initiating.at)
    if lost and lost[1] > 0 and job.ranks:
        said.append(f"Lost: {lost[0]} of work since the last checkpoint, {lost[1] * job.ranks / 3600:,.1f} GPU hours.")
    said.append(restart_words(one))
    return said


def _title(one: Diagnosis) -> str:
    return one_sentence(one.failure.title or one.failure.cls or "a failure")


def _stop(text: str) -> str:
    return one_sentence(text).rstrip(".;:") + "."
