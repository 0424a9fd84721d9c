"""The report for a terminal: the answer on the first screen, what it rests on behind it. Plain text where there is no
colour.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

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

_STYLE = {Verdict.IDENTIFIED: "bold red", Verdict.UNDETERMINED: "bold yellow", Verdict.NO_FAILURE: "bold green"}


def render(diagnosis: Diagnosis, width: int) -> RenderableType:
    """The whole report as something that rich prints."""
    return Group(*_parts(diagnosis, max(40, width)))


def to_text(diagnosis: Diagnosis, width: int = 100) -> str:
    """The whole report as plain text without colours, for pipes and files."""
    console = Console(width=width, no_color=True, force_terminal=False, highlight=False, emoji=False, markup=False)
    with console.capture() as capture:
        console.print(render(diagnosis, width))
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _head(title: str) -> RenderableType:
    return Padding(Rule(title, align="left", style="dim"), (1, 0, 0, 0))


def _line(label: str, value: str, style: str = "") -> Text:
    text = Text(f"  {label:<11}", style="bold")
    text.append(clean(value), style=style)
    text.no_wrap = False
    return text


def _parts(diagnosis: Diagnosis, width: int) -> Iterator[RenderableType]:
    verdict = Text(f"firstfault: {verdict_words(diagnosis)}", style=_STYLE[diagnosis.verdict])
    verdict.append(f"   confidence {diagnosis.confidence:.2f}", style="dim")
    yield verdict
    yield Text(f"  {clean(diagnosis.summary)}")
    yield Text("")
    if diagnosis.verdict is Verdict.IDENTIFIED:
        failure = diagnosis.failure
        yield _line("what", f"{failure.title} [{failure.cls}{f', {failure.entry}' if failure.entry else ''}]")
        yield _line("where", place_words(diagnosis.initiating))
        if diagnosis.initiating.aliases:
            yield _line("also named", ", ".join(diagnosis.initiating.aliases[:4]))
        if diagnosis.initiating.at:
            yield _line("when", diagnosis.initiating.at)
    if diagnosis.missing_fact:
        yield _line("missing", diagnosis.missing_fact, "yellow")
    yield _line("next", diagnosis.next_action)
    yield _line("job", job_words(diagnosis), "dim")
    if diagnosis.evidence:
        yield _head("Evidence")
        yield from _evidence(diagnosis.evidence[:6], width)
        if len(diagnosis.evidence) > 6:
            yield Text(f"  … {len(diagnosis.evidence) - 6} more lines (--format json has them all)", style="dim")
    yield from _collateral(diagnosis, width)
    yield from _chain(diagnosis, width)
    yield from _doubt(diagnosis)
    yield from _advice(diagnosis)
    yield from _attempts(diagnosis)
    yield from _reading(diagnosis)


def _evidence(lines: tuple[Evidence, ...], width: int) -> Iterator[RenderableType]:
    for one in lines:
        place = Text(f"  {clean(one.path)}:{one.line}", style="cyan")
        place.append(f"   {clean(one.why)}", style="dim")
        yield place
        if one.text:
            yield Text(f"      {short(one.text, width - 7)}")


def _collateral(diagnosis: Diagnosis, width: int) -> Iterator[RenderableType]:
    if not diagnosis.collateral.groups:
        return
    yield _head("Collateral")
    for group in diagnosis.collateral.groups[:8]:
        count = len(group.ranks)
        text = Text(f"  {count} rank{'' if count == 1 else 's'}: {clean(group.what)}")
        text.append(f"   ({short(number_ranges(group.ranks), 60)})", style="dim")
        yield text
        if group.example:
            yield Text(f"      e.g. {clean(group.example.path)}:{group.example.line}", style="dim")


def _chain(diagnosis: Diagnosis, width: int) -> Iterator[RenderableType]:
    if not diagnosis.chain:
        return
    yield _head("How it spread")
    for link in diagnosis.chain[:6]:
        yield Text(f"  {short(link.cause, width // 2)}  →  {short(link.effect, width // 2)}")
        place = "".join(f"  {clean(one.path)}:{one.line}" for one in link.evidence[:1])
        yield Text(f"      {link.strength}: {short(link.why, width - 20)}{place}", style="dim")


def _doubt(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    if diagnosis.verdict is Verdict.UNDETERMINED and diagnosis.hypotheses:
        yield _head("Hypotheses")
        for one in diagnosis.hypotheses[:4]:
            where = ranks_words(one.ranks) if one.ranks else ", ".join(one.hosts) or "no single place"
            yield Text(f"  {one.confidence:.2f}  {one.cls} on {clean(where)}")
            for reason in one.for_[:2]:
                yield Text(f"        for: {clean(reason)}", style="dim")
            for reason in one.against[:2]:
                yield Text(f"        against: {clean(reason)}", style="dim")
    if diagnosis.why_not:
        yield _head("Why not")
        for who, why in diagnosis.why_not[:5]:
            yield Text(f"  {clean(who)}: {clean(why)}")


def _advice(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    advice = diagnosis.advice
    if not advice.fix:
        return
    yield _head("What it means and what to do")
    if advice.mechanism:
        yield Padding(Text(clean(" ".join(advice.mechanism.split()))), (0, 2, 1, 2))
    for title, steps in (("fix", advice.fix[:4]), ("check it", advice.confirm[:3]), ("then see", advice.verify[:3])):
        for number, step in enumerate(steps):
            yield _line(title if number == 0 else "", step)
    if advice.resume:
        yield _line("resume", advice.resume)
    if diagnosis.job.last_checkpoint:
        yield _line("checkpoint", diagnosis.job.last_checkpoint)


def _attempts(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    if len(diagnosis.attempts) < 2:
        return
    yield _head("Attempts")
    for one in diagnosis.attempts:
        what = one.failure.title or str(one.verdict)
        yield Text(
            f"  {one.attempt}: {clean(what)} — {place_words(one.initiating) if one.failure.cls else ''}".rstrip(" —")
        )


def _reading(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    yield _head("What was read")
    kinds = ", ".join(f"{count} {kind}" for kind, count in diagnosis.coverage.sources_by_kind)
    yield Text(f"  sources: {kinds or 'none'}", style="dim")
    for clock in diagnosis.clocks[:6]:
        yield Text(f"  clock {clock_words(clock)}", style="dim")
    if len(diagnosis.clocks) > 6:
        yield Text(f"  … {len(diagnosis.clocks) - 6} more clocks", style="dim")
    for severity, kind, count, detail in diagnosis.coverage.problems:
        yield Text(
            f"  {severity}: {kind} ({count}) {short(detail, 100)}",
            style="" if severity in ("error", "data-loss") else "dim",
        )
