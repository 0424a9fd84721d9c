"""The report as Markdown that pastes well into an issue, a chat or a wiki page. Log text only stands in code spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from firstfault.correlate.diagnosis import AlsoFailed, Diagnosis, Evidence, Verdict
from firstfault.report.words import (
    Witness,
    clean,
    clock_words,
    group_words,
    job_words,
    number_ranges,
    one_sentence,
    place_words,
    ranks_words,
    says_again,
    short,
    time_words,
    verdict_words,
    witnesses,
)

_ESCAPED = str.maketrans({**{char: f"\\{char}" for char in "\\`*_[]|#~"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"})


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


def cell(text: str) -> str:
    """A code span for a table, where a bar would end the cell."""
    return code(text).replace("|", "\\|")


def words(text: str) -> str:
    """Prose with the characters that Markdown and HTML act on made literal."""
    return one_sentence(text).translate(_ESCAPED)


def to_markdown(diagnosis: Diagnosis) -> str:
    """The whole report."""
    return "\n".join(_lines(diagnosis)).rstrip() + "\n"


def _lines(one: Diagnosis) -> Iterator[str]:
    yield f"# firstfault: {verdict_words(one)}"
    yield ""
    if one.missing_fact:
        yield "The logs do not settle what failed first."
    else:
        yield words(one.summary)
    yield ""
    yield "| | |"
    yield "| --- | --- |"
    yield from (f"| {name} | {value} |" for name, value in _facts(one))
    yield ""
    yield from _evidence(one)
    yield from _collateral(one)
    yield from _doubt(one)
    yield from _also(one.also)
    yield from _advice(one)
    yield from _attempts(one)
    yield from _reading(one)


def _facts(one: Diagnosis) -> Iterator[tuple[str, str]]:
    if one.verdict is Verdict.IDENTIFIED:
        entry = f", entry {cell(one.failure.entry)}" if one.failure.entry else ""
        yield "what", f"{words(one.failure.title or '')} (class {cell(one.failure.cls or '')}{entry})"
        yield "where", words(place_words(one.initiating))
        if one.initiating.aliases:
            yield "also named", words(", ".join(one.initiating.aliases[:4]))
        if one.initiating.at:
            yield "when", time_words(one.initiating.at)
    if one.missing_fact:
        yield "missing fact", words(one.missing_fact)
    if not says_again(one.next_action, one.missing_fact, one.summary):
        yield "next", words(one.next_action)
    yield "confidence", f"{one.confidence:.2f}"
    yield "job", words(job_words(one))


def _cite(one: Evidence) -> str:
    return code(f"{one.path}:{one.line}")


def _witness(one: Witness) -> Iterator[str]:
    yield f"- {_cite(one.shown)}: {words(one.shown.why)}"
    if one.shown.text:
        yield f"  {code(short(one.shown.text, 300))}"
    if one.again:
        rest = f" and {len(one.again) - 3} more" if len(one.again) > 3 else ""
        yield f"  the same in {', '.join(map(_cite, one.again[:3]))}{rest}"


def _evidence(one: Diagnosis) -> Iterator[str]:
    if one.evidence:
        yield from _title("Evidence")
        for witness in witnesses(one.evidence)[:10]:
            yield from _witness(witness)
        yield ""


def _collateral(one: Diagnosis) -> Iterator[str]:
    if one.collateral.groups:
        yield from _title("Who followed" if one.verdict is Verdict.IDENTIFIED else "The other ranks")
        for group in one.collateral.groups:
            example = f": {_cite(group.example)}" if group.example else ""
            yield f"- {words(group_words(group))} ({number_ranges(group.ranks)}){example}"
        yield ""
    if one.chain:
        yield from _title("How it spread")
        for link in one.chain:
            places = f": {', '.join(map(_cite, link.evidence))}" if link.evidence else ""
            yield f"- {words(link.cause)} → {words(link.effect)} ({link.strength}): {words(link.why)}{places}"
        yield ""


def _doubt(one: Diagnosis) -> Iterator[str]:
    if one.hypotheses and one.verdict is not Verdict.NO_FAILURE:
        yield from _title("Hypotheses")
        for candidate in one.hypotheses[:6]:
            where = ranks_words(candidate.ranks) if candidate.ranks else ", ".join(candidate.hosts) or "no single place"
            yield f"- {candidate.confidence:.2f} {code(candidate.cls)}, {words(where)}"
            yield from (f"  - for: {words(reason)}" for reason in candidate.for_)
            yield from (f"  - against: {words(reason)}" for reason in candidate.against)
        yield ""
    if one.why_not:
        yield from _title("Why not")
        yield from (f"- {words(who)}: {words(why)}" for who, why in one.why_not)
        yield ""


def _also(also: Iterable[AlsoFailed]) -> Iterator[str]:
    for number, one in enumerate(also):
        if number == 0:
            yield from _title("Failed as well, and not because of it")
        at = f", {time_words(one.initiating.at)}" if one.initiating.at else ""
        yield f"**{words(one.failure.title or one.failure.cls or '')}**: {words(place_words(one.initiating))}{at}"
        yield ""
        for witness in witnesses(one.evidence)[:3]:
            yield from _witness(witness)
        yield ""


def _advice(one: Diagnosis) -> Iterator[str]:
    advice = one.advice
    if one.verdict is not Verdict.IDENTIFIED or not (advice.fix or advice.mechanism):
        return
    yield from _title("What it means and what to do")
    if advice.mechanism:
        yield words(advice.mechanism)
        yield ""
    steps = (
        ("Fix", advice.fix),
        ("Check", advice.confirm),
        ("Then see", advice.verify),
        ("Prevent", advice.prevent),
        ("Resume", tuple(filter(None, (advice.resume, one.job.last_checkpoint)))),
    )
    for name, listed in steps:
        if listed:
            yield f"**{name}**"
            yield ""
            yield from (f"- {words(step)}" for step in listed)
            yield ""


def _attempts(one: Diagnosis) -> Iterator[str]:
    if len(one.attempts) < 2:
        return
    yield from _title("Attempts")
    for attempt in one.attempts:
        said = "completed" if attempt.verdict is Verdict.NO_FAILURE else "not determined"
        if attempt.failure.cls:
            said = f"{words(attempt.failure.title or attempt.failure.cls)}: {words(place_words(attempt.initiating))}"
        yield f"- {attempt.attempt}: {said}"
    yield ""


def _reading(one: Diagnosis) -> Iterator[str]:
    yield from _title("What was read")
    kinds = ", ".join(f"{count} {kind}" for kind, count in one.coverage.sources_by_kind)
    yield f"- files: {kinds or 'none'}"
    yield from (f"- clock of {words(clock_words(clock))}" for clock in one.clocks)
    for severity, kind, count, detail in one.coverage.problems:
        yield f"- {severity}: {words(kind)} ({count:,}): {words(short(detail, 200))}"
    yield ""


def _title(text: str) -> Iterator[str]:
    yield f"## {text}"
    yield ""
