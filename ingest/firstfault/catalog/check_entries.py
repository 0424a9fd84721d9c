"""Checks of one entry by itself and of the links between entries: sentences, words that contradict each other, ids."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

from firstfault.catalog.captures import NAMES, base_name
from firstfault.catalog.loader import Catalog
from firstfault.catalog.model import Entry, Event, Role
from firstfault.catalog.problem import Reporter
from firstfault.catalog.triggers import derive

FRAMEWORKS = ("pytorch", "lightning", "huggingface", "deepspeed", "megatron", "vllm", "ray")
_SENTENCES = (
    *("mechanism", "observe", "confirm", "fix", "verify", "prevent"),
    *("cannot_prove", "missing_fact", "references", "match", "no_match"),
)
_NEVER_FIRST = frozenset((Event.TEARDOWN, Event.AGENT_KILL, Event.AGENT_REPORT, Event.DUMP_SIGNAL, Event.NOISE))
_NEEDED_CAPTURES = {
    Event.ABSENT: ("ranks", "rank", "pg_ranks", "pg_rank", "comm_ranks", "comm_rank", "tasks", "count"),
    Event.OOM_KILL: ("victim_pid", "pid", "cgroup", "pod", "container", "node", "task", "host", "process", "count"),
    Event.PEER_LOSS: ("peer", "peer_rank", "peer_host", "peer_ip", "pg_rank", "comm_rank", "local_rank", "server"),
    Event.EXIT: ("exitcode", "signal", "signal_no", "status", "code", "state", "reason"),
}


def check_entry(entry: Entry, report: Reporter) -> None:
    """What can be seen in one entry alone."""
    _check_sentences(entry, report)
    _check_words(entry, report)
    _check_patterns(entry, report)
    if PurePath(entry.path).stem != entry.id:
        report.add(
            entry.path,
            f"the id {entry.id!r} is not the name of its file",
            "whoever reads an id in a report looks for the file of that name",
            f"rename the file to {entry.id}.toml or change the id",
            key="id",
        )


def _check_sentences(entry: Entry, report: Reporter) -> None:
    missing = [key for key in _SENTENCES if not _said(getattr(entry, key))]
    if missing:
        report.add(
            entry.path,
            f"missing or empty: {', '.join(missing)}",
            "someone on call reads this page to the end and acts on it",
            "write them; what nobody knows is said under cannot_prove or missing_fact",
            key="id",
        )
    for reference in entry.references:
        if not reference.startswith(("https://", "http://")) or " " in reference:
            report.add(
                entry.path,
                f"the reference {reference!r} is no address",
                "a reader follows it",
                "give the https address of a document, a source file or a public thread",
                key="references",
            )
    for index, fix in enumerate(entry.fix_for):
        if fix.framework not in FRAMEWORKS or not fix.do:
            report.add(
                entry.path,
                f"fix_for of framework {fix.framework!r} is not usable",
                "the report picks the wording for the framework it found",
                f"use one of: {', '.join(FRAMEWORKS)}; and say what to do",
                table="fix_for",
                index=index,
            )


def _said(value: str | tuple[object, ...]) -> bool:
    return bool(value) and (isinstance(value, str) or all(value))


def _check_words(entry: Entry, report: Reporter) -> None:
    if (entry.role is Role.AMBIGUOUS) != bool(entry.decides):
        ambiguous = entry.role is Role.AMBIGUOUS
        report.add(
            entry.path,
            "role is ambiguous, and nothing says what decides"
            if ambiguous
            else "decides is set, and role is not ambiguous",
            "an ambiguous line helps only together with what decides about it",
            "write decides" if ambiguous else "remove decides, or make the role ambiguous",
            key="role",
        )
    if entry.role is Role.INITIATING and (entry.event in _NEVER_FIRST or entry.cls == "teardown-echo"):
        report.add(
            entry.path,
            f"role initiating contradicts event {entry.event} of class {entry.cls}",
            "such a line is printed because something else happened",
            "make the role collateral or context, or choose the event that says what failed",
            key="role",
        )
    for name in entry.points_at:
        if name not in NAMES:
            report.add(
                entry.path,
                f"points_at names {name!r}, which is no capture",
                "only what a pattern takes out can point somewhere",
                "use a name of docs/captures.md",
                key="points_at",
            )


def _check_patterns(entry: Entry, report: Reporter) -> None:
    for pattern_id, times in Counter(one.id for one in entry.patterns).items():
        if times > 1:
            report.add(
                entry.path,
                f"{times} patterns are called {pattern_id!r}",
                "examples name the pattern they exercise",
                "give each pattern an id of its own",
                key="id",
                table="pattern",
                index=[one.id for one in entry.patterns].index(pattern_id),
            )
    taken = {base_name(name) for one in entry.patterns for name in derive(one.regex).captures}
    needed = _NEEDED_CAPTURES.get(entry.event)
    if needed and entry.role is not Role.CONTEXT and not taken.intersection(needed):
        report.add(
            entry.path,
            f"no pattern of this {entry.event} entry captures any of: {', '.join(needed)}",
            "the causal graph joins such an event with others by what it names",
            "capture it, or choose another event",
            key="event",
        )
    for name in entry.points_at:
        if name in NAMES and name not in taken:
            report.add(
                entry.path,
                f"points_at names {name!r}, which no pattern captures",
                "nothing would ever point there",
                "capture it in a pattern, or remove it",
                key="points_at",
            )


def check_links(catalog: Catalog, report: Reporter) -> None:
    """Classes and ids that entries name, and pages that say the same."""
    mechanisms: dict[str, str] = {}
    for entry in catalog.entries.values():
        if entry.cls not in catalog.classes:
            report.add(
                entry.path,
                f"there is no failure class {entry.cls!r}",
                "a diagnosis names one of the closed set",
                "use an id of classes.toml",
                key="class",
            )
        for key in ("upstream", "downstream", "siblings", "overlaps"):
            _check_ids(catalog, entry, key, report)
        if entry.mechanism:
            other = mechanisms.setdefault(entry.mechanism, entry.id)
            if other != entry.id:
                report.add(
                    entry.path,
                    f"mechanism is word for word that of {other!r}",
                    "a page that fits two failures explains neither",
                    "say what is particular here, or make it one entry with two patterns",
                    key="mechanism",
                )


def _check_ids(catalog: Catalog, entry: Entry, key: str, report: Reporter) -> None:
    named: tuple[str, ...] = getattr(entry, key)
    for other, times in Counter(named).items():
        if other == entry.id:
            what = "names the entry itself"
        elif other not in catalog.entries:
            what = f"names {other!r}, which is no entry"
        elif times > 1:
            what = f"names {other!r} {times} times"
        else:
            continue
        report.add(entry.path, f"{key} {what}", "every link is followed", "correct or remove it", key=key)
