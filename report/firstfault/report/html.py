"""The report as one HTML file: nothing is fetched, every word of a log is escaped, it reads in light, dark and on a
phone. One script of its own zooms the swim lanes; without it the page says the same.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from html import escape
from importlib import resources

from firstfault.correlate.comparison import TemplateChange
from firstfault.correlate.diagnosis import Diagnosis, Evidence, Verdict
from firstfault.report import comparing
from firstfault.report.charts import causal_graph, progress
from firstfault.report.grid import grid
from firstfault.report.openings import openings, resume_words
from firstfault.report.preserve import commands
from firstfault.report.swim_svg import figure
from firstfault.report.words import (
    Witness,
    clean,
    clock_words,
    clocks_words,
    group_words,
    job_words,
    number_ranges,
    one_sentence,
    place_words,
    ranks_words,
    says_again,
    short,
    suspect_words,
    time_words,
    verdict_words,
    witnesses,
)


@cache
def _asset(name: str) -> str:
    """A file of the page: its style or its script."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def _digest(content: str) -> str:
    return "'sha256-" + b64encode(sha256(f"\n{content}\n".encode()).digest()).decode() + "'"


def policy() -> str:
    """Nothing is fetched, and nothing runs but the one style and the one script of this page, by their digests."""
    style, script = _digest(_asset("page.css")), _digest(_asset("page.js"))
    return f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'"


def to_html(diagnosis: Diagnosis) -> str:
    """The whole page."""
    return "\n".join(_page(diagnosis)) + "\n"


def _page(one: Diagnosis) -> Iterator[str]:
    title = f"firstfault: {verdict_words(one)}"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(policy())}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{_text(title)}</title>\n<style>\n{_asset('page.css')}\n</style>\n</head>\n<body>"
    said = "The logs do not settle what failed first." if one.missing_fact else one.summary
    yield f'<header class="{one.verdict}"><h1>{_text(title)}</h1><p>{_text(said)}</p></header>'
    body = list(_body(one))
    yield "<nav>"
    yield from (f'<a href="#{name}">{words}</a>' for name, words, _ in body)
    yield "</nav>"
    yield "<main><dl>"
    yield from (f"<dt>{name}</dt><dd>{value}</dd>" for name, value in _facts(one))
    yield "</dl>"
    for name, words, lines in body:
        yield f'<section id="{name}">\n<h2>{words}</h2>'
        yield from lines
        yield "</section>"
    yield f"</main>\n<script>\n{_asset('page.js')}\n</script>\n</body>\n</html>"


def _body(one: Diagnosis) -> Iterator[tuple[str, str, list[str]]]:
    """Sections with something in them: id, title, lines."""
    identified = one.verdict is Verdict.IDENTIFIED
    sections: tuple[tuple[str, str, Iterable[str]], ...] = (
        ("readers", "In short", _openings(one)),
        ("evidence", "Evidence", _list(_witness(witness) for witness in witnesses(one.evidence))),
        ("lanes", "What happened when", figure(one.swim)),
        ("do", "What to do", _to_do(one)),
        ("preserve", "Before a restart", _preserve(one)),
        ("followed", "Who followed" if identified else "The other ranks", _followers(one)),
        ("spread", "How it spread", _spread(one)),
        ("ranks", "How each rank ended", grid(one.fates)),
        ("progress", "Progress up to the failure" if one.verdict is not Verdict.NO_FAILURE else "Progress",
         _progress(one)),
        ("hypotheses", "Hypotheses", _hypotheses(one)),
        ("whynot", "Why not the others", _list(f"{_text(who)}: {_text(why)}" for who, why in one.why_not)),
        ("also", "Failed as well, and not because of it", _also(one)),
        ("healthy", "Against the healthy run", _comparison(one)),
        ("attempts", "Attempts", _attempts(one)),
        ("before", "Lines before the first evidence", _contexts(one)),
        ("clocks", "Clocks", _clocks(one)),
        ("read", "What was read", _reading(one)),
    )  # fmt: skip
    for name, words, lines in sections:
        listed = list(lines)
        if listed:
            yield name, words, listed


def _text(said: str) -> str:
    return escape(one_sentence(said))


def _place(one: Evidence | TemplateChange) -> str:
    return f'<code class="place">{escape(clean(one.path))}:{one.line}</code>'


def _list(items: Iterable[str], kind: str = "ul") -> Iterator[str]:
    listed = list(items)
    if listed:
        yield f"<{kind}>"
        yield from (f"<li>{item}</li>" for item in listed)
        yield f"</{kind}>"


def _titled(title: str, items: Iterable[str]) -> Iterator[str]:
    listed = list(_list(items))
    if listed:
        yield f"<h3>{title}</h3>"
        yield from listed


def _facts(one: Diagnosis) -> Iterator[tuple[str, str]]:
    if one.verdict is Verdict.IDENTIFIED:
        entry = f", entry <code>{_text(one.failure.entry)}</code>" if one.failure.entry else ""
        names = f'<span class="soft">class <code>{_text(one.failure.cls or "")}</code>{entry}</span>'
        yield "what", f"{_text(one.failure.title or '')}<br>{names}"
        yield "where", _text(place_words(one.initiating))
        if one.initiating.aliases:
            yield "also named", _text(", ".join(one.initiating.aliases[:4]))
        if one.initiating.at:
            yield "when", _text(time_words(one.initiating.at))
    if one.missing_fact:
        yield "missing", _text(one.missing_fact)
    if not says_again(one.next_action, one.missing_fact, one.summary, *one.advice.fix):
        yield "next", _text(one.next_action)
    yield "confidence", f"{one.confidence:.2f}"
    yield "job", _text(job_words(one))


def _witness(one: Witness) -> str:
    text = f"<pre>{escape(clean(one.shown.text))}</pre>" if one.shown.text else ""
    again = ""
    if one.again:
        rest = f" and {len(one.again) - 5} more" if len(one.again) > 5 else ""
        again = f'<span class="soft">the same in {", ".join(map(_place, one.again[:5]))}{rest}</span>'
    return f'{_place(one.shown)} <span class="soft">{_text(one.shown.why)}</span>{text}{again}'


def _openings(one: Diagnosis) -> Iterator[str]:
    yield '<div class="openings">'
    for opening in openings(one):
        yield f"<section><h3>{opening.reader}</h3><p>{_text(opening.text)}</p></section>"
    yield "</div>"


def _to_do(one: Diagnosis) -> Iterator[str]:
    advice = one.advice
    if one.verdict is not Verdict.IDENTIFIED:
        return
    if advice.mechanism:
        yield f"<p>{_text(advice.mechanism)}</p>"
    yield from _titled("Fix", map(_text, advice.fix))
    yield from _titled("Check that it is so", map(_text, advice.confirm))
    yield from _titled("After the fix", map(_text, advice.verify))
    yield from _titled("Prevent", map(_text, advice.prevent))
    yield from _titled("Resume", [_text(resume_words(one))])


def _preserve(one: Diagnosis) -> Iterator[str]:
    listed = commands(one)
    if listed:
        yield "<p>A restart takes some of the evidence away. These commands only read and copy.</p>"
        yield from _list(
            f'<span class="soft">{_text(command.where)}: {_text(command.why)}</span>'
            f"<pre>{escape(clean(command.command))}</pre>"
            for command in listed
        )


def _followers(one: Diagnosis) -> Iterator[str]:
    yield from _list(
        f"{_text(group_words(group))} ({number_ranges(group.ranks)})"
        + (f": {_place(group.example)}" if group.example else "")
        for group in one.collateral.groups
    )


def _spread(one: Diagnosis) -> Iterator[str]:
    yield from causal_graph(one.graph)
    yield from _list(
        f"{_text(link.cause)} → {_text(link.effect)}<br>"
        f'<span class="soft">{link.strength}: {_text(link.why)}</span> {" ".join(map(_place, link.evidence))}'
        for link in one.chain
    )


def _progress(one: Diagnosis) -> Iterator[str]:
    reached = one.progress.reached
    if reached:
        first, last = reached[0], reached[-1]
        if first is last:
            yield f"<p>{_text(ranks_words(first.ranks))} came to step {first.step:,}.</p>"
        else:
            yield f"<p>The furthest came to step {last.step:,}, the last to step {first.step:,}.</p>"
            yield from _list(
                f"step {stop.step:,}: {_text(short(ranks_words(stop.ranks), 200))}" for stop in reached[:8]
            )
            if len(reached) > 8:
                yield f'<p class="soft">and {len(reached) - 8} other steps up to {last.step:,}</p>'
    yield from progress(one.progress, one.swim)


def _hypotheses(one: Diagnosis) -> Iterator[str]:
    if one.verdict is Verdict.NO_FAILURE:
        return
    yield from _list(
        f"{candidate.confidence:.2f} <code>{_text(candidate.cls)}</code>, "
        + _text(suspect_words(candidate))
        + "".join(f"<br>for: {_text(reason)}" for reason in candidate.for_)
        + "".join(f"<br>against: {_text(reason)}" for reason in candidate.against)
        for candidate in one.hypotheses
    )


def _also(one: Diagnosis) -> Iterator[str]:
    yield from _list(
        f"{_text(other.failure.title or other.failure.cls or '')}: {_text(place_words(other.initiating))}"
        + "".join(f"<br>{_witness(witness)}" for witness in witnesses(other.evidence)[:3])
        for other in one.also
    )


def _attempts(one: Diagnosis) -> Iterator[str]:
    if len(one.attempts) < 2:
        return
    said = []
    for attempt in one.attempts:
        words = "completed" if attempt.verdict is Verdict.NO_FAILURE else "not determined"
        if attempt.failure.cls:
            words = f"{attempt.failure.title or attempt.failure.cls}: {place_words(attempt.initiating)}"
        said.append(f"attempt {attempt.attempt}: {_text(words)}")
    yield from _list(said)


def _comparison(one: Diagnosis) -> Iterator[str]:
    healthy = one.comparison
    if healthy is None:
        return
    yield f"<p>{_text(comparing.summary(healthy))}</p>"
    yield from _titled("Slower or faster", (_text(comparing.timing_words(timing)) for timing in healthy.timings))
    if healthy.settings:
        yield "<h3>Set differently</h3><table><tr><th></th><th>now</th><th>healthy run</th></tr>"
        for kind, name, now, then in comparing.setting_rows(healthy):
            yield f"<tr><td>{kind} {escape(name)}</td><td>{escape(now)}</td><td>{escape(then)}</td></tr>"
        yield "</table>"
    for change, title in comparing.HEADS.items():
        yield from _titled(
            title,
            (
                f'{_place(row)} <span class="soft">{_text(comparing.template_words(row))}</span>'
                f"<pre>{escape(comparing.example(row))}</pre>"
                for row in healthy.templates
                if row.change == change
            ),
        )


def _contexts(one: Diagnosis) -> Iterator[str]:
    for context in one.contexts:
        yield (
            f"<details><summary>{_text(context.who)}: {len(context.lines):,} lines of "
            f'<code class="place">{_text(context.path)}</code> up to line {context.until:,}</summary><pre>'
        )
        yield "\n".join(f"{line:>8,}  {escape(clean(said))}" for line, said in context.lines)
        yield "</pre></details>"


def _clocks(one: Diagnosis) -> Iterator[str]:
    yield from _list(map(_text, clocks_words(one.clocks, 12)))
    if len(one.clocks) > 12:
        yield "<details><summary>Each clock</summary>"
        yield from _list(_text(clock_words(clock)) for clock in one.clocks)
        yield "</details>"


def _reading(one: Diagnosis) -> Iterator[str]:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in one.coverage.sources_by_kind)
    read = [f"files: {_text(kinds or 'none')}"]
    read += [
        f"{severity}: {_text(kind)} ({count:,}): {_text(detail)}"
        for severity, kind, count, detail in one.coverage.problems
    ]
    yield from _list(read)
