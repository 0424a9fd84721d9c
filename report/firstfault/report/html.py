"""The report as one HTML file: no script, nothing fetched, every word of a log escaped, readable in the dark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from firstfault.correlate.diagnosis import Diagnosis, Evidence, RankFate, Verdict
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
    time_words,
    verdict_words,
    witnesses,
)

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #888; --bad: #c62828; --unsure: #b26a00; --good: #2e7d32; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1.5rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; border-bottom: 1px solid var(--line); margin-top: 2rem; }
header { border-left: .4rem solid var(--soft); padding-left: 1rem; }
.identified { border-color: var(--bad); } .undetermined { border-color: var(--unsure); }
.no-failure { border-color: var(--good); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { margin: .2rem 0 .6rem; white-space: pre-wrap; }
pre, .place { overflow-wrap: anywhere; } .soft { color: var(--soft); } li { margin-bottom: .3rem; }
.grid { display: flex; flex-wrap: wrap; gap: 2px; } .grid span { width: 1.6rem; text-align: center; font-size: 11px; }
.grid span { background: #8883; }
.grid .root { background: var(--bad); color: #fff; } .grid .well { background: #2e7d3266; }
.grid .none { outline: 1px dashed var(--soft); background: none; }
""".strip()
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_MOST_RANKS = 4096


def to_html(diagnosis: Diagnosis) -> str:
    """The whole page."""
    return "\n".join(_page(diagnosis)) + "\n"


def _page(one: Diagnosis) -> Iterator[str]:
    title = f"firstfault: {verdict_words(one)}"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>{_text(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>"
    said = "The logs do not settle what failed first." if one.missing_fact else one.summary
    yield f'<header class="{one.verdict}"><h1>{_text(title)}</h1><p>{_text(said)}</p></header>'
    yield "<dl>"
    yield from (f"<dt>{name}</dt><dd>{value}</dd>" for name, value in _facts(one))
    yield "</dl>"
    yield from _list("Evidence", (_witness(witness) for witness in witnesses(one.evidence)))
    yield from _to_do(one)
    yield from _ranks(one.fates)
    yield from _followers(one)
    yield from _doubt(one)
    yield from _attempts(one)
    yield from _reading(one)
    yield "</body>\n</html>"


def _text(said: str) -> str:
    return escape(one_sentence(said))


def _place(one: Evidence) -> str:
    return f'<code class="place">{escape(clean(one.path))}:{one.line}</code>'


def _list(title: str, items: Iterable[str]) -> Iterator[str]:
    listed = list(items)
    if listed:
        yield f"<h2>{title}</h2>\n<ul>"
        yield from (f"<li>{item}</li>" for item in listed)
        yield "</ul>"


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


def _to_do(one: Diagnosis) -> Iterator[str]:
    advice = one.advice
    if one.verdict is not Verdict.IDENTIFIED:
        return
    if advice.mechanism:
        yield f"<h2>What it means</h2>\n<p>{_text(advice.mechanism)}</p>"
    yield from _list("Fix", map(_text, advice.fix))
    yield from _list("Check", map(_text, advice.confirm))
    yield from _list("Then see", map(_text, advice.verify))
    yield from _list("Prevent", map(_text, advice.prevent))
    yield from _list("Resume", map(_text, filter(None, (advice.resume, one.job.last_checkpoint))))


def _ranks(fates: tuple[RankFate, ...]) -> Iterator[str]:
    if not fates:
        return
    yield '<h2>Ranks</h2>\n<div class="grid">'
    for one in sorted(fates, key=lambda fate: fate.rank)[:_MOST_RANKS]:
        style = (
            "root" if one.fate.startswith("initiating") else {"completed": "well", "left no log": "none"}.get(one.fate)
        )
        host = f" on {one.host}" if one.host else ""
        step = f", last step {one.last_step}" if one.last_step is not None else ""
        said = _text(f"rank {one.rank}{host}: {one.fate}{step}")
        yield f'<span{f" class={style}" if style else ""} title="{said}">{one.rank}</span>'
    yield "</div>"
    if len(fates) > _MOST_RANKS:
        yield f'<p class="soft">and {len(fates) - _MOST_RANKS:,} more</p>'


def _followers(one: Diagnosis) -> Iterator[str]:
    title = "Who followed" if one.verdict is Verdict.IDENTIFIED else "The other ranks"
    yield from _list(
        title,
        (
            f"{_text(group_words(group))} ({number_ranges(group.ranks)})"
            + (f": {_place(group.example)}" if group.example else "")
            for group in one.collateral.groups
        ),
    )
    yield from _list(
        "How it spread",
        (
            f"{_text(link.cause)} → {_text(link.effect)}<br>"
            f'<span class="soft">{link.strength}: {_text(link.why)}</span> {" ".join(map(_place, link.evidence))}'
            for link in one.chain
        ),
    )


def _doubt(one: Diagnosis) -> Iterator[str]:
    if one.verdict is not Verdict.NO_FAILURE:
        yield from _list(
            "Hypotheses",
            (
                f"{candidate.confidence:.2f} <code>{_text(candidate.cls)}</code>, "
                + _text(
                    ranks_words(candidate.ranks) if candidate.ranks else ", ".join(candidate.hosts) or "no single place"
                )
                + "".join(f"<br>for: {_text(reason)}" for reason in candidate.for_)
                + "".join(f"<br>against: {_text(reason)}" for reason in candidate.against)
                for candidate in one.hypotheses
            ),
        )
    yield from _list("Why not", (f"{_text(who)}: {_text(why)}" for who, why in one.why_not))
    yield from _list(
        "Failed as well, and not because of it",
        (
            f"{_text(other.failure.title or other.failure.cls or '')}: {_text(place_words(other.initiating))}"
            + "".join(f"<br>{_witness(witness)}" for witness in witnesses(other.evidence)[:3])
            for other in one.also
        ),
    )


def _attempts(one: Diagnosis) -> Iterator[str]:
    if len(one.attempts) < 2:
        return
    said = []
    for attempt in one.attempts:
        words = "completed" if attempt.verdict is Verdict.NO_FAILURE else "not determined"
        if attempt.failure.cls:
            words = f"{attempt.failure.title or attempt.failure.cls}: {place_words(attempt.initiating)}"
        said.append(f"{attempt.attempt}: {_text(words)}")
    yield from _list("Attempts", said)


def _reading(one: Diagnosis) -> Iterator[str]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in one.coverage.sources_by_kind)
    read = [f"files: {_text(kinds or 'none')}"]
    read += [f"clock of {_text(clock_words(clock))}" for clock in one.clocks]
    read += [
        f"{severity}: {_text(kind)} ({count:,}): {_text(detail)}"
        for severity, kind, count, detail in one.coverage.problems
    ]
    yield from _list("What was read", read)
