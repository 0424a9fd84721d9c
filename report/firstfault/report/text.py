"""The report for a terminal: the answer on the first screen, what it rests on behind it.

`lines` says everything as styled pieces; `to_text` drops the styles, `render` hands them to rich for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from firstfault.correlate.diagnosis import Diagnosis, Evidence, Verdict
from firstfault.report import comparing
from firstfault.report.lanes_text import lane_rows
from firstfault.report.layout import Line, Piece, cut, plain, wrapped
from firstfault.report.openings import openings, resume_words
from firstfault.report.preserve import commands, folded
from firstfault.report.words import (
    Witness,
    clean,
    clocks_words,
    group_words,
    job_words,
    number_ranges,
    one_sentence,
    place_words,
    ranks_words,
    says_again,
    suspect_words,
    time_words,
    verdict_words,
    witnesses,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

NARROWEST = 40
_INDENT = 12
_SHOWN = 2
"""Pieces of evidence, and things to do, on the first screen."""

_STYLES = {
    "label": "bold",
    "head": "bold",
    "dim": "dim",
    "cite": "cyan",
    "warn": "yellow",
    "root": "red",
    str(Verdict.IDENTIFIED): "bold red",
    str(Verdict.UNDETERMINED): "bold yellow",
    str(Verdict.NO_FAILURE): "bold green",
}


def to_text(diagnosis: Diagnosis, width: int = 100) -> str:
    """The whole report as plain text, for pipes and files."""
    return "\n".join(plain(line) for line in lines(diagnosis, width)) + "\n"


def render(diagnosis: Diagnosis, width: int) -> RenderableType:
    """The whole report as something that rich prints in colour; print it with soft wrapping, it is wrapped already."""
    from rich.text import Text

    text = Text()
    for line in lines(diagnosis, width):
        for piece in line:
            text.append(piece.text, style=_STYLES.get(piece.style, ""))
        text.append("\n")
    text.right_crop(1)
    return text


def lines(diagnosis: Diagnosis, width: int) -> Iterator[Line]:
    """The report, line by line."""
    page = _Page(diagnosis, max(NARROWEST, width))
    yield from page.first_screen()
    yield from page.behind_it()


class _Page:
    """One diagnosis at one width."""

    def __init__(self, diagnosis: Diagnosis, width: int) -> None:
        self.one = diagnosis
        self.width = width

    def first_screen(self) -> Iterator[Line]:
        """What, where, when, the lines that show it, who only followed, what to do."""
        one = self.one
        verdict = Piece(f"firstfault: {verdict_words(one)}", str(one.verdict))
        yield from wrapped([verdict, Piece(f" (confidence {one.confidence:.2f})", "dim")], self.width, "  ", Piece(""))
        yield ()
        if one.verdict is Verdict.IDENTIFIED:
            yield from self._identified()
        elif one.missing_fact:
            yield from self._row("result", "the logs do not settle what failed first")
            yield from self._row("missing", clean(one.missing_fact), "warn")
            yield from self._candidates()
        else:
            yield from self._row("result", clean(one.summary))
        for label, witness in zip(("evidence", ""), witnesses(one.evidence)[:_SHOWN], strict=False):
            yield from self._witness(label, witness)
        yield from self._followers()
        yield from self._to_do()
        yield from self._row("job", job_words(one), "dim")

    def behind_it(self) -> Iterator[Line]:
        """What the answer rests on, what it means, what was read."""
        yield from self._openings()
        yield from self._lanes()
        more = witnesses(self.one.evidence)[_SHOWN:]
        if more:
            yield from self._head("More evidence")
            for witness in more:
                yield from self._witness(None, witness)
        yield from self._also()
        yield from self._chain()
        yield from self._why_not()
        yield from self._meaning()
        yield from self._preserve()
        yield from self._progress()
        yield from self._comparison()
        yield from self._attempts()
        yield from self._contexts()
        yield from self._reading()

    # parts of the first screen

    def _identified(self) -> Iterator[Line]:
        one, failure = self.one, self.one.failure
        yield from self._row("what", clean(failure.title or failure.cls or ""), "label")
        names = f"class {failure.cls}" + (f", entry {failure.entry}" if failure.entry else "")
        yield from self._row("", names, "dim")
        yield from self._row("where", place_words(one.initiating), "label")
        if one.initiating.aliases:
            yield from self._row("", f"also named {', '.join(map(clean, one.initiating.aliases[:4]))}", "dim")
        if one.initiating.at:
            yield from self._row("when", time_words(one.initiating.at))

    def _candidates(self) -> Iterator[Line]:
        for number, one in enumerate(self.one.hypotheses[:4]):
            where = suspect_words(one)
            label = "suspects" if number == 0 else ""
            yield from self._row(label, f"{one.confidence:.2f}  {one.cls}, {where}")
            for word, reasons in (("for", one.for_), ("against", one.against)):
                for reason in reasons[:2]:
                    yield from wrapped([Piece(f"{word}: {clean(reason)}", "dim")], self.width, " " * (_INDENT + 6))

    def _witness(self, label: str | None, witness: Witness) -> Iterator[Line]:
        one = witness.shown
        head, indent = self._label(label)
        yield from wrapped([*_cited(one), Piece(f" ({clean(one.why)})", "dim")], self.width, indent, head)
        if one.text:
            lines = 3 if label is None else 2  # the first screen stays one
            room = max(160, (self.width - len(indent) - 2) * lines)
            yield from wrapped([Piece(cut(clean(one.text), room))], self.width, indent + "  ")
        if witness.again:
            pieces = [Piece("the same in", "dim"), *(piece for other in witness.again[:2] for piece in _cited(other))]
            if len(witness.again) > 2:
                pieces.append(Piece(f" and {len(witness.again) - 2} more", "dim"))
            yield from wrapped(pieces, self.width, indent + "  ")

    def _followers(self) -> Iterator[Line]:
        label = "followed" if self.one.verdict is Verdict.IDENTIFIED else "others"
        for number, group in enumerate(self.one.collateral.groups[:3]):
            ranks = cut(number_ranges(group.ranks), 60)
            pieces = [Piece(group_words(group)), Piece(f" ({ranks}){':' if group.example else ''}", "dim")]
            if group.example:
                pieces.extend(_cited(group.example))
            head, indent = self._label(label if number == 0 else "")
            yield from wrapped(pieces, self.width, indent, head)

    def _to_do(self) -> Iterator[Line]:
        one = self.one
        fixes = [one_sentence(step) for step in one.advice.fix[:_SHOWN]]
        if one.verdict is not Verdict.IDENTIFIED:
            fixes = []
        if one.verdict is not Verdict.NO_FAILURE and not says_again(
            one.next_action, one.missing_fact, one.summary, *fixes
        ):
            yield from self._row("next", clean(one.next_action))
        yield from self._rows("fix", fixes)
        if fixes:
            yield from self._rows("check", [one_sentence(step) for step in one.advice.confirm[:1]])
            yield from self._row("resume", resume_words(one))

    # parts behind it

    def _openings(self) -> Iterator[Line]:
        yield from self._head("In short")
        for opening in openings(self.one):
            yield from self._row(opening.reader, opening.text)

    def _lanes(self) -> Iterator[Line]:
        rows = list(lane_rows(self.one.swim, self.width - 2))
        if rows:
            yield from self._head("What happened when")
            yield from ((Piece(f"  {row}", "root" if root else ""),) for row, root in rows)

    def _preserve(self) -> Iterator[Line]:
        listed = commands(self.one)
        if listed:
            yield from self._head("Before a restart")
        for one in listed:
            yield from self._text(f"{one.where}: {one.why}", "dim")
            for line in folded(clean(one.command), self.width - 4):
                yield (Piece(f"    {line}"),)

    def _progress(self) -> Iterator[Line]:
        reached = self.one.progress.reached
        if len(reached) < 2:
            return
        yield from self._head("Progress up to the failure")
        for one in (*reached[:3], *(reached[-1:] if len(reached) > 3 else ())):
            yield from self._text(f"step {one.step:,}: {cut(ranks_words(one.ranks), 2 * self.width)}")
        if len(reached) > 4:
            yield from self._text(f"and {len(reached) - 4:,} steps between them", "dim")

    def _comparison(self) -> Iterator[Line]:
        healthy = self.one.comparison
        if healthy is None:
            return
        yield from self._head("Against the healthy run")
        yield from self._text(comparing.summary(healthy))
        yield from self._rows("timings", [comparing.timing_words(one) for one in healthy.timings[:6]])
        changed = [f"{kind} {name}: {now}, then {then}" for kind, name, now, then in comparing.setting_rows(healthy)]
        yield from self._rows("settings", changed[:8])
        for change in comparing.HEADS:
            rows = [one for one in healthy.templates if one.change == change][: 8 if change == "new" else 3]
            for number, one in enumerate(rows):
                head, indent = self._label(change if number == 0 else "")
                place = Piece(f"{clean(one.path)}:{one.line}", "cite", whole=True)
                pieces = [place, Piece(f" ({comparing.template_words(one)})", "dim")]
                yield from wrapped(pieces, self.width, indent, head)
                yield from wrapped([Piece(cut(comparing.example(one), 2 * self.width))], self.width, indent + "  ")

    def _contexts(self) -> Iterator[Line]:
        for one in self.one.contexts:
            yield from self._head(f"Lines before the first evidence: {clean(one.who)}")
            yield from self._text(f"{clean(one.path)}, up to line {one.until:,}", "dim")
            for line, said in one.lines:
                yield (Piece(f"  {line:>7}  ", "dim"), Piece(cut(clean(said), 400)))

    def _also(self) -> Iterator[Line]:
        if self.one.also:
            yield from self._head("Failed as well, and not because of it")
        for one in self.one.also:
            what = clean(one.failure.title or one.failure.cls or "")
            at = f", {time_words(one.initiating.at)}" if one.initiating.at else ""
            yield from self._text(f"{what}: {place_words(one.initiating)}{at}")
            for witness in witnesses(one.evidence)[:2]:
                yield from self._witness(None, witness)

    def _chain(self) -> Iterator[Line]:
        if self.one.chain:
            yield from self._head("How it spread")
        for link in self.one.chain[:8]:
            yield from self._text(f"{clean(link.cause)} → {clean(link.effect)}")
            pieces = [Piece(f"{link.strength}: {clean(link.why)}{':' if link.evidence else ''}", "dim")]
            pieces.extend(piece for one in link.evidence[:1] for piece in _cited(one))
            yield from wrapped(pieces, self.width, "      ")

    def _why_not(self) -> Iterator[Line]:
        if self.one.why_not:
            yield from self._head("Why not")
        for who, why in self.one.why_not[:6]:
            yield from self._text(f"{clean(who)}: {clean(why)}")

    def _meaning(self) -> Iterator[Line]:
        advice = self.one.advice
        if self.one.verdict is not Verdict.IDENTIFIED or not (advice.mechanism or advice.fix):
            return
        yield from self._head("What it means")
        if advice.mechanism:
            yield from self._text(one_sentence(advice.mechanism))
        left = (
            ("fix", advice.fix[_SHOWN:]),
            ("check", advice.confirm[1:]),
            ("then see", advice.verify),
            ("prevent", advice.prevent),
        )
        if any(steps for _, steps in left):
            yield ()
        for label, steps in left:
            yield from self._rows(label, [one_sentence(step) for step in steps])

    def _attempts(self) -> Iterator[Line]:
        if len(self.one.attempts) < 2:
            return
        yield from self._head("Attempts")
        for one in self.one.attempts:
            if one.verdict is Verdict.NO_FAILURE:
                said = "completed"
            elif one.failure.cls:
                said = f"{clean(one.failure.title or one.failure.cls)}: {place_words(one.initiating)}"
            else:
                said = "not determined"
            yield from self._row(str(one.attempt), said)

    def _reading(self) -> Iterator[Line]:
        coverage = self.one.coverage
        yield from self._head("What was read")
        kinds = ", ".join(f"{count} {kind}" for kind, count in coverage.sources_by_kind)
        yield from self._row("files", kinds or "none", "dim")
        yield from self._rows("clocks", clocks_words(self.one.clocks, 4), "dim")
        for severity, kind, count, detail in coverage.problems:
            loud = severity in ("error", "data-loss")
            said = f"{kind} ({count:,}): {cut(clean(detail), 3 * self.width)}"
            yield from self._row(severity, said, "warn" if loud else "dim")

    # how a line looks

    def _label(self, label: str | None) -> tuple[Piece, str]:
        if label is None:
            return Piece("  "), "  "
        return Piece(f"  {label} ".ljust(_INDENT), "label"), " " * _INDENT

    def _row(self, label: str, text: str, style: str = "") -> Iterator[Line]:
        head, indent = self._label(label)
        yield from wrapped([Piece(text, style)], self.width, indent, head)

    def _rows(self, label: str, texts: Iterable[str], style: str = "") -> Iterator[Line]:
        texts = list(texts)
        for number, text in enumerate(texts):
            head, indent = self._label(label if number == 0 else "")
            mark = "- " if len(texts) > 1 else ""
            yield from wrapped([Piece(mark + text, style)], self.width, indent + " " * len(mark), head)

    def _text(self, text: str, style: str = "") -> Iterator[Line]:
        yield from wrapped([Piece(text, style)], self.width, "  ")

    def _head(self, title: str) -> Iterator[Line]:
        yield ()
        yield (Piece(f"{title} ", "head"), Piece("─" * (min(self.width, 100) - len(title) - 1), "dim"))


def _cited(one: Evidence) -> tuple[Piece, Piece]:
    """`path:line`, as editors and terminals open it, behind a place where a line may break."""
    return Piece(" "), Piece(f"{clean(one.path)}:{one.line}", "cite", whole=True)
