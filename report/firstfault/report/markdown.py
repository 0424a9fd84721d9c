"""The report as Markdown that pastes well into an issue, a chat or a wiki page. Log text only stands in code spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from firstfault.correlate.diagnosis import AlsoFailed, Diagnosis, Evidence, RankFate, Verdict
from firstfault.report import comparing
from firstfault.report.lanes_text import lane_rows
from firstfault.report.openings import openings, resume_words
from firstfault.report.preserve import commands
from firstfault.report.words import (
    Witness,
    clean,
    clocks_words,
    group_words,
    job_words,
    number_ranges,
    one_sentence,
    place_words,
    says_again,
    short,
    suspect_words,
    time_words,
    verdict_words,
    witnesses,
)

_ESCAPED = str.maketrans({**{char: f"\\{char}" for char in "\\`*_[]|#~"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"})


def code(text: str) -> str:
    """Text in a code span that no backtick inside can close."""
    text = clean(text)
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _longest_run(text: str) -> int:
    """Length of the longest run of backticks."""
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest


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
    yield from (f"**For the {opening.reader}:** {words(opening.text)}\n" for opening in openings(one))
    yield from _evidence(one)
    yield from _lanes(one)
    yield from _collateral(one)
    yield from _doubt(one)
    yield from _also(one.also)
    yield from _advice(one)
    yield from _preserve(one)
    yield from _fates(one)
    yield from _comparison(one)
    yield from _attempts(one)
    yield from _contexts(one)
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
            yield f"- {candidate.confidence:.2f} {code(candidate.cls)}, {words(suspect_words(candidate))}"
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
        ("Resume", (resume_words(one),)),
    )
    for name, listed in steps:
        if listed:
            yield f"**{name}**"
            yield ""
            yield from (f"- {words(step)}" for step in listed)
            yield ""


def block(lines: Iterable[str]) -> Iterator[str]:
    """Lines in a fenced block that no backticks inside can close."""
    listed = [clean(line) for line in lines]
    fence = "`" * max(3, max(map(_longest_run, listed), default=0) + 1)
    yield from (f"{fence}text", *listed, fence, "")


def _lanes(one: Diagnosis) -> Iterator[str]:
    rows = [row for row, _ in lane_rows(one.swim, 100)]
    if rows:
        yield from _title("What happened when")
        yield from block(rows)


def _preserve(one: Diagnosis) -> Iterator[str]:
    listed = commands(one)
    if listed:
        yield from _title("Before a restart")
        for command in listed:
            yield f"- {words(command.where)}: {words(command.why)}"
            yield f"  {code(command.command)}"
        yield ""


def _fates(one: Diagnosis) -> Iterator[str]:
    groups: dict[str, list[RankFate]] = {}
    for fate in sorted(one.fates, key=lambda one: one.rank):
        groups.setdefault(fate.fate, []).append(fate)
    if len(groups) < 2:
        return
    yield from _title("How each rank ended")
    yield "| fate | ranks | last steps |"
    yield "| --- | --- | --- |"
    for said, members in sorted(groups.items(), key=lambda item: (not item[0].startswith("initiating"), item[0])):
        steps = sorted({fate.last_step for fate in members if fate.last_step is not None})
        reach = "" if not steps else str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
        ranks = short(number_ranges(fate.rank for fate in members), 300)
        yield f"| {words(said)} | {len(members)}: {words(ranks)} | {reach} |"
    yield ""


def _comparison(one: Diagnosis) -> Iterator[str]:
    healthy = one.comparison
    if healthy is None:
        return
    yield from _title("Against the healthy run")
    yield words(comparing.summary(healthy))
    yield ""
    yield from (f"- {words(comparing.timing_words(timing))}" for timing in healthy.timings)
    yield from (
        f"- {kind} {code(name)}: {code(now)}, in the healthy run {code(then)}"
        for kind, name, now, then in comparing.setting_rows(healthy)
    )
    yield ""
    for change, title in comparing.HEADS.items():
        rows = [row for row in healthy.templates if row.change == change][:12]
        if rows:
            yield f"**{title}**"
            yield ""
        for row in rows:
            yield f"- {code(f'{row.path}:{row.line}')}: {words(comparing.template_words(row))}"
            yield f"  {code(comparing.example(row))}"
        yield ""


def _contexts(one: Diagnosis) -> Iterator[str]:
    for number, context in enumerate(one.contexts):
        if number == 0:
            yield from _title("Lines before the first evidence")
        yield f"**{words(context.who)}**, {code(context.path)} up to line {context.until}"
        yield ""
        yield from block(f"{line:>7}  {said}" for line, said in context.lines)


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
    yield from (f"- clock: {words(said)}" for said in clocks_words(one.clocks, 8))
    for severity, kind, count, detail in one.coverage.problems:
        yield f"- {severity}: {words(kind)} ({count:,}): {words(short(detail, 200))}"
    yield ""


def _title(text: str) -> Iterator[str]:
    yield f"## {text}"
    yield ""
