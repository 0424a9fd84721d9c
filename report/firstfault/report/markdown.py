"""The report as Markdown that pastes well into an issue, a chat or a wiki page. Log text only ever stands in code
spans.
"""

from __future__ import annotations

from collections.abc import Iterator

from firstfault.correlate.diagnosis import Diagnosis, Evidence, Verdict
from firstfault.report.words import (
    clean,
    clock_words,
    job_words,
    number_ranges,
    place_words,
    ranks_words,
    short,
    verdict_words,
)


def code(text: str) -> str:
    """Text in a code span that no backtick inside can close."""
    text = clean(text)
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def words(text: str) -> str:
    """Prose with the characters that Markdown and HTML act on made literal."""
    text = clean(text)
    for char in "\\`*_[]<>|#":
        text = text.replace(char, f"\\{char}" if char not in "<>" else {"<": "&lt;", ">": "&gt;"}[char])
    return text


def to_markdown(diagnosis: Diagnosis) -> str:
    """The whole report."""
    return "\n".join(_lines(diagnosis)).rstrip() + "\n"


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"# firstfault: {verdict_words(diagnosis)}"
    yield ""
    yield words(diagnosis.summary)
    yield ""
    yield "| | |"
    yield "| --- | --- |"
    if diagnosis.verdict is Verdict.IDENTIFIED:
        entry = f", {code(diagnosis.failure.entry)}" if diagnosis.failure.entry else ""
        yield f"| what | {words(diagnosis.failure.title or '')} ({code(diagnosis.failure.cls or '')}{entry}) |"
        yield f"| where | {words(place_words(diagnosis.initiating))} |"
        if diagnosis.initiating.at:
            yield f"| when | {diagnosis.initiating.at} |"
    if diagnosis.missing_fact:
        yield f"| missing fact | {words(diagnosis.missing_fact)} |"
    yield f"| next | {words(diagnosis.next_action)} |"
    yield f"| confidence | {diagnosis.confidence:.2f} |"
    yield f"| job | {words(job_words(diagnosis))} |"
    yield ""
    if diagnosis.evidence:
        yield "## Evidence"
        yield ""
        for one in diagnosis.evidence[:10]:
            yield f"- {_cite(one)}: {words(one.why)}"
            if one.text:
                yield f"  {code(short(one.text, 300))}"
        yield ""
    yield from _collateral(diagnosis)
    yield from _doubt(diagnosis)
    yield from _advice(diagnosis)
    yield from _reading(diagnosis)


def _cite(one: Evidence) -> str:
    return code(f"{one.path}:{one.line}")


def _collateral(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.collateral.groups:
        yield "## Collateral"
        yield ""
        for group in diagnosis.collateral.groups:
            example = f" (e.g. {_cite(group.example)})" if group.example else ""
            count = len(group.ranks)
            yield f"- {count} rank{'' if count == 1 else 's'} ({number_ranges(group.ranks)}): {words(group.what)}{example}"
        yield ""
    if diagnosis.chain:
        yield "## How it spread"
        yield ""
        for link in diagnosis.chain:
            places = ", ".join(_cite(one) for one in link.evidence)
            yield f"- {words(link.cause)} → {words(link.effect)}: {words(link.why)} ({link.strength}{f'; {places}' if places else ''})"
        yield ""


def _doubt(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.hypotheses:
        yield "## Hypotheses"
        yield ""
        for one in diagnosis.hypotheses[:6]:
            where = ranks_words(one.ranks) if one.ranks else ", ".join(one.hosts) or "no single place"
            yield f"- {one.confidence:.2f} {code(one.cls)} on {words(where)}"
            for reason in one.for_:
                yield f"  - for: {words(reason)}"
            for reason in one.against:
                yield f"  - against: {words(reason)}"
        yield ""
    if diagnosis.why_not:
        yield "## Why not the others"
        yield ""
        for who, why in diagnosis.why_not:
            yield f"- {words(who)}: {words(why)}"
        yield ""


def _advice(diagnosis: Diagnosis) -> Iterator[str]:
    advice = diagnosis.advice
    if not advice.fix:
        return
    yield "## What it means and what to do"
    yield ""
    if advice.mechanism:
        yield words(" ".join(advice.mechanism.split()))
        yield ""
    for title, steps in (
        ("Fix", advice.fix),
        ("Confirm", advice.confirm),
        ("Verify", advice.verify),
        ("Prevent", advice.prevent),
    ):
        if steps:
            yield f"**{title}**"
            yield ""
            for step in steps:
                yield f"- {words(step)}"
            yield ""
    if advice.resume:
        yield f"**Resume**: {words(advice.resume)}"
        yield ""


def _reading(diagnosis: Diagnosis) -> Iterator[str]:
    yield "## What was read"
    yield ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in diagnosis.coverage.sources_by_kind)
    yield f"- sources: {kinds or 'none'}"
    for clock in diagnosis.clocks:
        yield f"- clock {words(clock_words(clock))}"
    for severity, kind, count, detail in diagnosis.coverage.problems:
        yield f"- {severity}: {words(kind)} ({count}) {words(short(detail, 200))}"
    yield ""
