"""A saved diagnosis for a CI job: a comment for a pull request, annotations, outputs for later steps.

Nothing that a log says may act there: no mention, link, reference or markup in a comment, no command in what is
printed, no second value in a file of outputs. Which lines the runner takes for commands, and how their parts are
escaped, is in actions/runner, src/Runner.Common/ActionCommand.cs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from firstfault.correlate.diagnosis import CollateralGroup, Place
from firstfault.report.markdown import cell, code, words
from firstfault.report.words import (
    clean,
    group_words,
    many,
    number_ranges,
    one_sentence,
    place_words,
    short,
    time_words,
)

MOST = 30_000
"""Characters of a comment; GitHub takes 65,536."""
_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:/ ,-]")
_LIVE = str.maketrans({"@": "@\u200b", "#": "#\u200b", "$": "<span>$</span>"})
_HEADS = {"identified": "first failure identified", "undetermined": "not determined", "no-failure": "no failure"}
_LEVELS = {"identified": "error", "undetermined": "warning", "no-failure": "notice"}


@dataclass(frozen=True, slots=True)
class Annotation:
    """A message of a CI job; `file` is relative to the workspace, None where the place is not in it."""

    level: str  # error, warning, notice
    title: str
    message: str
    file: str | None = None
    line: int | None = None

    def command(self) -> str:
        """The line that makes GitHub show it."""
        parts = {"title": self.title, "file": self.file, "line": self.line if self.file else None}
        said = ",".join(f"{name}={_property(str(value))}" for name, value in parts.items() if value is not None)
        return f"::{self.level} {said}::{_data(self.message)}"


def marker(name: str) -> str:
    """What a comment begins with, so that the next run finds it."""
    return f"<!-- firstfault:{_NAME.sub('-', name)[:100]} -->"


def comment(document: Mapping[str, Any], name: str = "firstfault", link: str | None = None) -> str:
    """The comment as Markdown, at most 30,000 characters. `link` leads to the report."""
    return "\n".join([marker(name), *_fitting([*_answer(document), "", *_evidence(document)], _foot(link))]) + "\n"


def summary(document: Mapping[str, Any], report: str, most: int = 400_000) -> str:
    """What the page of a run shows: the answer, with the whole report (Markdown) folded below it."""
    shown = [*_answer(document), "", *_evidence(document), ""]
    if len(report.encode()) <= most:
        shown += ["<details><summary>The whole report</summary>", "", report.rstrip(), "", "</details>", ""]
    return "\n".join(shown)


def outputs(document: Mapping[str, Any]) -> dict[str, str]:
    """Values for later steps, each on one line of harmless characters, since scripts are made of them."""
    failure, place = document["failure"], document["initiating"]
    found = {
        "verdict": document["verdict"],
        "class": failure["class"] or "",
        "entry": failure["entry"] or "",
        "component": place["component"] or "",
        "ranks": number_ranges(place["ranks"]),
        "hosts": ", ".join(place["hosts"]),
        "confidence": f"{document['confidence']:.2f}",
    }
    return {name: _UNSAFE.sub("_", str(value))[:1000] for name, value in found.items()}


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in the code as a traceback prints it: the path where it ran, the line, and the text of that line."""

    file: str
    line: int
    text: str


def messages(
    document: Mapping[str, Any],
    logs: Sequence[Path],
    workspace: Path | None,
    frames: Sequence[Frame] = (),
) -> Iterator[Annotation]:
    """The verdict at its strongest line, and at the place in the code where that is part of the workspace.

    A frame counts where the line of the workspace's file reads as in the traceback.
    """
    level = _LEVELS[document["verdict"]]
    title = f"firstfault: {one_sentence(document['failure']['title'] or _HEADS[document['verdict']])}"
    cited = document["evidence"][:1]
    said = [one_sentence(document["missing_fact"] or document["summary"])]
    said += [f"{clean(one['path'])}:{one['line']}: {short(one['text'], 300)}" for one in cited]
    if document["advice"]["fix"]:
        said.append(f"Fix: {one_sentence(document['advice']['fix'][0])}")
    message = "\n".join(said)[:2000]
    places = [*(_source(one, workspace) for one in frames), *(_log(one, logs, workspace) for one in cited)]
    found = [one for one in dict.fromkeys(places) if one is not None][:2]
    for file, line in found:
        yield Annotation(level, title, message, file, line)
    if not found:
        yield Annotation(level, title, message)


def _answer(one: Mapping[str, Any]) -> Iterator[str]:
    verdict, failure = one["verdict"], one["failure"]
    yield f"### firstfault: {_HEADS[verdict]}"
    yield ""
    yield "The logs do not settle what failed first." if one["missing_fact"] else _prose(one["summary"])
    yield ""
    yield "| | |"
    yield "| --- | --- |"
    if verdict == "identified":
        entry = f", entry {cell(failure['entry'])}" if failure["entry"] else ""
        yield f"| what | {_prose(failure['title'] or '')} (class {cell(failure['class'] or '')}{entry}) |"
        yield f"| where | {cell(short(place_words(_place(one['initiating'])), 300))} |"
        if one["initiating"]["at"]:
            yield f"| when | {cell(time_words(one['initiating']['at']))} |"
    if one["missing_fact"]:
        yield f"| missing fact | {_prose(one['missing_fact'])} |"
    if verdict != "no-failure":
        yield f"| next | {_prose(one['next_action'])} |"
    job = one["job"]
    sizes = ((job["ranks"], "rank"), (job["hosts"], "host"), (job["attempts"], "attempt"), (job["lines"], "line"))
    yield f"| job | {' · '.join(many(number, what) for number, what in sizes if number is not None)} |"
    yield f"| confidence | {one['confidence']:.2f} |"


def _evidence(one: Mapping[str, Any]) -> Iterator[str]:
    yield from _list("Evidence", (_cited(line) for line in one["evidence"][:5]))
    yield from _list("Who only followed", map(_followed, one["collateral"]["groups"][:5]))
    if one["verdict"] == "undetermined":
        yield from _list("It could be", (_guess(guess) for guess in one["hypotheses"][:4]))
    yield from _list("Why not", (f"{_prose(each['who'])}: {_prose(each['why'])}" for each in one["why_not"][:4]))
    if one["verdict"] == "identified":
        yield from _list("Fix", map(_prose, one["advice"]["fix"][:4]))
        yield from _list("Check", map(_prose, one["advice"]["confirm"][:4]))


def _list(title: str, points: Iterator[str]) -> Iterator[str]:
    listed = [f"- {point}" for point in points]
    if listed:
        yield from (f"**{title}**", "", *listed, "")


def _cited(one: Mapping[str, Any]) -> str:
    place = code(short(f"{one['path']}:{one['line']}", 300))
    text = f"<br>{code(short(one['text'], 300))}" if one["text"] else ""
    return f"{place}: {_prose(one['why'])}{text}"


def _followed(one: Mapping[str, Any]) -> str:
    group = CollateralGroup(one["what"], tuple(one["ranks"]), tuple(one["hosts"]))
    return f"{_prose(group_words(group))} ({number_ranges(group.ranks)[:300]})"


def _guess(one: Mapping[str, Any]) -> str:
    place = place_words(Place(ranks=tuple(one["ranks"]), hosts=tuple(one["hosts"])))
    return f"{one['confidence']:.2f} {code(one['class'])}, {code(short(place, 200))}"


def _foot(link: str | None) -> list[str]:
    whole = f"[The whole report]({_address(link)}). " if link else ""
    return ["", f"<sub>{whole}Made by firstfault from the job's logs; what stands in code is quoted from them.</sub>"]


def _address(link: str) -> str:
    if not re.fullmatch(r"https?://[A-Za-z0-9._~:/?#@!$&'*+,;=%-]{1,2000}", link):
        raise ValueError(f"{link!r} is no address of a page")
    return link


def _fitting(lines: Sequence[str], foot: Sequence[str]) -> list[str]:
    kept: list[str] = []
    left = MOST - sum(len(line) + 1 for line in foot) - 200
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            kept += ["", "… the rest is in the report"]
            break
        kept.append(line)
    return [*kept, *foot]


def _prose(text: str) -> str:
    """Words in which nothing is a mention, a reference, a link, a formula or markup."""
    said = words(short(one_sentence(text), 800)).translate(_LIVE)
    said = re.sub(r"(?i)(www)\.", "\\1\u200b.", said.replace("://", ":\u200b//"))
    return re.sub(r"(?i)\b(gh)-(?=[0-9])", "\\1\u200b-", said)


def _place(one: Mapping[str, Any]) -> Place:
    return Place(one["component"], tuple(one["ranks"]), tuple(one["hosts"]), tuple(one["gpus"]))


def _log(one: Mapping[str, Any], logs: Sequence[Path], workspace: Path | None) -> tuple[str, int] | None:
    """The place of a cited line in the workspace."""
    for given in logs:
        file = given / one["path"] if given.is_dir() else given
        if file.is_file() and (given.is_dir() or file.name == one["path"]):
            inside = _inside(file, workspace)
            return (inside, int(one["line"])) if inside else None
    return None


def _source(frame: Frame, workspace: Path | None) -> tuple[str, int] | None:
    """The place in the workspace of a file that a traceback names by its path on the machine where it ran."""
    if workspace is None or "\0" in frame.file or not frame.text.strip():
        return None
    parts = [part for part in frame.file.split("/") if part not in ("", ".", "..")][-40:]
    for start in range(len(parts)):
        file = workspace.joinpath(*parts[start:])
        inside = _inside(file, workspace)
        if inside and _reads(file, frame.line) == frame.text.strip():
            return inside, frame.line
    return None


def _reads(file: Path, number: int) -> str | None:
    """A line of a file, without the space around it."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        return next((line.strip() for line in islice(lines, number - 1, number)), None)


def _inside(file: Path, workspace: Path | None) -> str | None:
    if workspace is None:
        return None
    try:
        real, root = file.resolve(strict=True), workspace.resolve(strict=True)
    except OSError:
        return None
    return str(real.relative_to(root)) if real.is_file() and real.is_relative_to(root) else None


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
