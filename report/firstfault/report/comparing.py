"""The comparison with a run that went well, in words and as rows for each rendering."""

from __future__ import annotations

from collections.abc import Iterator

from firstfault.correlate.comparison import Comparison, TemplateChange, TimingChange
from firstfault.report.words import clean, duration_words, many, number_ranges, one_sentence, ranks_words, short

HEADS = {
    "new": "Lines that the healthy run does not have",
    "more": "Lines that are more frequent",
    "gone": "Lines that are gone",
    "fewer": "Lines that are rarer",
}


def summary(one: Comparison) -> str:
    """What was compared, and whether it can be relied on."""
    kinds = {change: sum(t.change == change for t in one.templates) for change in HEADS}
    counts = ", ".join(f"{count} {change}" for change, count in kinds.items() if count) or "no kind of line differs"
    said = f"{many(one.lines_now, 'line')} against {many(one.lines_then, 'line')} of {clean(one.of)}; by kind: {counts}"
    if one.left_out:
        said += f", and {one.left_out:,} kinds more that are not shown"
    if not one.completed:
        said += ". Nothing proves that that run went well, so it changes no hypothesis"
    return f"{said}."


def timing_words(one: TimingChange) -> str:
    """One duration of both runs."""
    ratio = one.now / one.then if one.then else 0.0
    how = f"{ratio:.1f} times as long" if ratio >= 1 else f"{one.now / one.then:.0%} of it"
    who = f"; slow: {ranks_words(one.ranks)}" if one.ranks else ""
    return f"{clean(one.name)}: {duration_words(one.now)} against {duration_words(one.then)}, {how}{who}"


def setting_rows(one: Comparison) -> Iterator[tuple[str, str, str, str]]:
    """Kind, name, value now, value then."""
    for row in one.settings:
        yield row.kind, clean(row.name), clean(row.now or "not shown"), clean(row.then or "not shown")


def template_words(one: TemplateChange) -> str:
    """How often, and on which ranks."""
    counts = (
        f"{one.now:,}" if not one.then else f"{one.now:,} against {one.then:,}" if one.now else f"{one.then:,} then"
    )
    ranks = f", rank{'' if len(one.ranks) == 1 else 's'} {short(number_ranges(one.ranks), 60)}" if one.ranks else ""
    entry = f", {one.entry}" if one.entry else ""
    return f"{counts}{ranks}{entry}"


def example(one: TemplateChange) -> str:
    """A line of the run that prints it."""
    return short(one_sentence(one.text), 200)
