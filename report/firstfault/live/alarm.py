"""Decides when to speak: at the first sign of a failure, when the cascade has settled, when nothing moves any more.

Pure: it is told what was seen and what time it is, and answers with alerts. A sign is no verdict, and an alert says so;
the verdict comes from a diagnosis of all logs once the cascade has settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from firstfault.live.reading import Seen, Sign

_ROLES = {"initiating": 0, "ambiguous": 1, "collateral": 2}
_GAPS = 5
"""A pause is a hang only where it is so many times longer than the longest pause so far."""
_SURE = 3
"""Advances after which a rank is expected to go on."""
_LISTED = 16


class Kind(StrEnum):
    """What an alert is about."""

    SIGN = "first-sign"  # a line looks like a failure
    NEARER = "nearer-sign"  # the first one only followed from something, this one may be what failed
    SETTLED = "settled"  # the cascade is over: the diagnosis
    HANG = "hang"  # nobody gets on
    BEHIND = "rank-behind"  # some ranks do not get on while others do
    SILENT = "no-output"  # no line was written since the watch began
    RESUMED = "resumed"  # it goes on after a hang
    ENDED = "ended"  # the job is over: the last diagnosis
    TROUBLE = "trouble"  # the watch itself could not do something


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing to say. `document` is a `firstfault.diagnosis/1`, of alerts that bring one."""

    kind: Kind
    text: str
    sign: Sign | None = None
    ranks: tuple[str, ...] = ()
    document: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds. `hang` of 0 switches hang detection off."""

    settle: float = 15.0
    longest: float = 120.0
    hang: float = 600.0
    again: float = 3600.0


@dataclass(slots=True)
class _Progress:
    step: int
    at: float
    advances: int = 0
    longest: float = 0.0


@dataclass(slots=True)
class State:
    """What is known, for metrics."""

    lines: int = 0
    signs: Counter[tuple[str, str]] = field(default_factory=Counter)  # (entry, class)
    alerts: Counter[str] = field(default_factory=Counter)
    last_line: float | None = None
    last_advance: float | None = None
    steps: dict[str, int] = field(default_factory=dict)
    hanging: bool = False
    behind: int = 0
    document: Mapping[str, Any] | None = None


class Alarm:
    """The memory of a watch. Times are seconds of one steady clock."""

    def __init__(self, patience: Patience, now: float) -> None:
        self.state = State()
        self.due: Kind | None = None
        """The alert that waits for a diagnosis."""
        self._patience, self._began = patience, now
        self._progress: dict[str, _Progress] = {}
        self._said: dict[tuple[str, str], float] = {}
        self._held: list[Sign] = []
        self._cascade: tuple[float, float, Sign] | None = None
        self._nearer = self._completed = self._silent = self._over = False
        self._behind: frozenset[str] = frozenset()

    def feed(self, seen: Seen, now: float, catching_up: bool = False) -> list[Alert]:
        """Take what was seen. While old lines are still being read, signs are held back."""
        state = self.state
        state.lines += seen.lines
        if seen.lines:
            state.last_line, self._silent = now, False
        self._completed |= seen.completed
        alerts = list(self._advance(seen, now))
        state.signs.update((sign.entry, sign.cls or "") for sign in seen.signs)
        self._held += [sign for sign in seen.signs if self._new(sign, now)]
        if self._held and not catching_up:
            held, self._held = self._held, []
            alerts += self._signs(held, now)
        return self._counted(alerts)

    def tick(self, now: float) -> list[Alert]:
        """What the passing of time alone brings."""
        alerts: list[Alert] = []
        if self._cascade is not None:
            first, last, _ = self._cascade
            if now - last >= self._patience.settle or now - first >= self._patience.longest:
                self._cascade, self._over, self.due = None, True, Kind.SETTLED
        elif self._patience.hang and not self._over:
            alerts += self._hang(now)
        return self._counted(alerts)

    def end(self) -> None:
        """The job is over."""
        self._cascade, self._over, self.due = None, True, Kind.ENDED

    def diagnosed(self, document: Mapping[str, Any], now: float) -> list[Alert]:
        """The diagnosis that was due."""
        kind, self.due = self.due or Kind.SETTLED, None
        self.state.document = document
        text = verdict_text(document)
        if kind is Kind.SETTLED and self._going_on(now):
            text += "\nThe ranks have made progress since; the job seems to go on."
        return self._counted([Alert(kind, text, document=document)])

    def trouble(self, text: str) -> list[Alert]:
        """The watch could not do something."""
        self.due = None
        return self._counted([Alert(Kind.TROUBLE, text)])

    def _counted(self, alerts: list[Alert]) -> list[Alert]:
        self.state.alerts.update(str(alert.kind) for alert in alerts)
        return alerts

    def _new(self, sign: Sign, now: float) -> bool:
        """Whether this was not said of this log within the last hour."""
        said = self._said.get((sign.entry, sign.path))
        if said is not None and now - said < self._patience.again:
            if self._cascade is not None:
                self._cascade = (self._cascade[0], now, self._cascade[2])
            return False
        self._said[sign.entry, sign.path] = now
        return True

    def _signs(self, signs: list[Sign], now: float) -> Iterator[Alert]:
        best = min(signs, key=lambda sign: (_ROLES.get(sign.role, 3), sign.path, sign.line))
        if self._cascade is None:
            self._cascade, self._nearer, self._over = (now, now, best), best.role != "collateral", False
            yield Alert(Kind.SIGN, sign_text(best, len(signs)), best)
            return
        first, _, shown = self._cascade
        self._cascade = (first, now, shown)
        if not self._nearer and best.role != "collateral":
            self._nearer = True
            yield Alert(Kind.NEARER, sign_text(best, len(signs)), best)

    def _advance(self, seen: Seen, now: float) -> Iterator[Alert]:
        for one in seen.steps:
            known = self._progress.get(one.who)
            if known is None:
                self._progress[one.who] = _Progress(one.step, now)
            elif one.step != known.step:  # a smaller step is a new attempt or epoch
                known.longest = max(known.longest, now - known.at) if known.advances else known.longest
                known.step, known.at, known.advances = one.step, now, known.advances + 1
            else:
                continue
            self.state.steps[one.who] = one.step
            self.state.last_advance, self._completed, self._over = now, False, False
        if seen.steps and self.state.hanging and self.state.last_advance == now:
            self.state.hanging = False
            yield Alert(Kind.RESUMED, "The ranks make progress again.")

    def _hang(self, now: float) -> Iterator[Alert]:
        state, limit = self.state, self._patience.hang
        if state.last_line is None:
            if not self._silent and now - self._began >= limit:
                self._silent = True
                yield Alert(
                    Kind.SILENT, f"No log line was written for {_seconds(now - self._began)}: has the job begun?"
                )
            return
        sure = {who: one for who, one in self._progress.items() if one.advances >= _SURE}
        last = max((one.at for one in sure.values()), default=state.last_line)
        pause = max([limit, *(_GAPS * one.longest for one in sure.values())])
        if now - last >= pause:
            if self._completed:
                self.end()
            elif not state.hanging:
                state.hanging, self.due = True, Kind.HANG
                yield Alert(Kind.HANG, _hang_text(sure, now - last), ranks=_slowest(sure))
        elif not state.hanging and now - last < limit / 2:
            late = {who for who, one in sure.items() if now - one.at >= max(limit, _GAPS * one.longest)}
            behind = frozenset(late if len(late) * 2 < len(sure) else ())
            state.behind = len(behind)
            if behind - self._behind:
                names = tuple(sorted(behind, key=_by_number))
                said = ", ".join(names[:_LISTED]) + (
                    f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
                )
                yield Alert(Kind.BEHIND, f"No progress for {_seconds(limit)} while others go on: {said}.", ranks=names)
            self._behind = behind

    def _going_on(self, now: float) -> bool:
        return self.state.last_advance is not None and now - self.state.last_advance < self._patience.settle


def sign_text(sign: Sign, count: int) -> str:
    """A sign in words that claim no more than it shows."""
    who = f"rank {sign.rank}" if sign.rank is not None else None
    if who is None and sign.local_rank is not None:
        who = f"local rank {sign.local_rank}"
    place = " on ".join(filter(None, (who, sign.host))) or "a log that names no rank"
    looks = {"collateral": "follows from something else", "ambiguous": "may be cause or consequence"}.get(sign.role)
    more = {1: "", 2: " Another sign came with it."}.get(count, f" {count - 1} more signs came with it.")
    return (
        f"First sign of a failure: {sign.title.rstrip('.')} ({sign.cls or sign.entry}), {place}"
        f"{f'; such a line {looks}' if looks else ''}.\n{sign.path}:{sign.line}: {sign.text.splitlines()[0][:300]}\n"
        f"This is no verdict yet; the diagnosis comes when no more signs follow.{more}"
    )


def verdict_text(document: Mapping[str, Any]) -> str:
    """The heart of a diagnosis in a few lines."""
    place, failure = document["initiating"], document["failure"]
    confidence = f"confidence {document['confidence']:.2f}"
    if document["verdict"] == "no-failure":
        return f"No failure: the job completed ({confidence})."
    lines = []
    if document["verdict"] == "identified":
        ranks, hosts = place["ranks"], place["hosts"]
        where = " on ".join(filter(None, (_ranks(ranks), ", ".join(hosts)))) or "no rank by itself"
        lines.append(f"First failure: {failure['title']} ({failure['class']}), {where} ({confidence}).")
    else:
        lines.append(f"What failed first is not settled ({confidence}). Missing: {document['missing_fact']}")
    for one in document["evidence"][:2]:
        text = (one.get("text") or "").splitlines()
        lines.append(f"{one['path']}:{one['line']}: {text[0][:300] if text else ''}")
    if document["verdict"] == "identified" and document.get("next_action"):
        lines.append(f"Next: {document['next_action']}")
    return "\n".join(lines)


def _ranks(ranks: list[int]) -> str:
    if not ranks:
        return ""
    shown = ", ".join(map(str, ranks[:_LISTED])) + (f" and {len(ranks) - _LISTED} more" if len(ranks) > _LISTED else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"


def _hang_text(sure: Mapping[str, _Progress], pause: float) -> str:
    if not sure:
        return f"No log line for {_seconds(pause)}. Does the job hang?"
    steps = sorted({one.step for one in sure.values()})
    if len(steps) == 1:
        return (
            f"No rank made progress for {_seconds(pause)}; all {len(sure)} stand at step {steps[0]}. Does the job hang?"
        )
    late = _slowest(sure)
    shown = ", ".join(late[:_LISTED]) + (f" and {len(late) - _LISTED} more" if len(late) > _LISTED else "")
    return (
        f"No rank made progress for {_seconds(pause)}; the last steps are {steps[0]} to {steps[-1]}, "
        f"the fewest by {shown}. Does the job hang?"
    )


def _slowest(sure: Mapping[str, _Progress]) -> tuple[str, ...]:
    fewest = min((one.step for one in sure.values()), default=0)
    late = [who for who, one in sure.items() if one.step == fewest]
    return tuple(sorted(late, key=_by_number)) if len(late) < len(sure) else ()


def _by_number(who: str) -> tuple[int, str]:
    number = who.removeprefix("rank ")
    return (int(number), "") if number.isdigit() else (1 << 60, who)


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
