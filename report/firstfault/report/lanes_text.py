"""Swim lanes in characters, for terminals and Markdown: the stretch of the failure, the root, a few of each fate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from firstfault.correlate.picture import Lane, Swim
from firstfault.report.layout import cells, cut
from firstfault.report.swim_svg import clock, shown_span
from firstfault.report.words import clean, duration_words

_SIGNS = (
    ("root", "✖", "first failure"),
    ("error", "!", "error"),
    ("exit", "!", "error"),
    ("machine", "◆", "machine record"),
    ("echo", "•", "only follows"),
    ("kill", "x", "ended by its launcher"),
    ("saved", "s", "checkpoint"),
    ("done", "✓", "good end"),
)
_MOST = 12
_OF_A_FATE = 4


def lane_rows(swim: Swim, width: int) -> Iterator[tuple[str, bool]]:
    """Rows of text, and whether each belongs to the root; nothing where no clock places a lane."""
    shown, left = _chosen(swim)
    if not shown or width < 50:
        return
    names = [cut(clean(lane.name), 22) + (" ?" if lane.loose else "") for lane in shown]
    wide = max(map(cells, names))
    room = min(width - wide - 3, 96)
    start, stop = shown_span(swim)
    first, last = clock(swim, start, stop - start), clock(swim, stop, stop - start)
    yield f"{' ' * wide}  {first}{duration_words(stop - start).center(room - len(first) - len(last))}{last}", False
    for name, lane in zip(names, shown, strict=True):
        pad = " " * (wide - cells(name))
        yield f"{pad}{name}  {_bar(swim, lane, start, stop, room)}", lane.root
    kinds = {str(mark.kind) for lane in shown for mark in lane.marks if start <= mark.at <= stop}
    signs = dict.fromkeys(f"{sign} {said}" for kind, sign, said in _SIGNS if kind in kinds)
    yield f"{' ' * wide}  ━ lines  · silence  {'  '.join(signs)}", False
    if any(lane.loose for lane in shown):
        yield f"{' ' * wide}  ? nothing links this clock to the others: times as printed", False
    if left:
        yield f"{' ' * wide}  and {left} lanes more that fared like these", False


def _chosen(swim: Swim) -> tuple[list[Lane], int]:
    """Root lanes first, then in turn one of each fate, in the order of the picture."""
    fates: dict[str, list[Lane]] = defaultdict(list)
    for lane in swim.lanes:
        if lane.spans or lane.marks or lane.root:
            fates["" if lane.root else lane.fate or "machine"].append(lane)
    picked = fates.pop("", [])[: _MOST // 2]
    turn = 0
    most = _OF_A_FATE if len(swim.lanes) > _MOST else _MOST
    while len(picked) < _MOST and turn < most and any(turn < len(lanes) for lanes in fates.values()):
        picked += [lanes[turn] for lanes in fates.values() if turn < len(lanes)][: _MOST - len(picked)]
        turn += 1
    kept = [lane for lane in swim.lanes if any(lane is one for one in picked)]
    return kept, len(swim.lanes) - len(kept)


def _bar(swim: Swim, lane: Lane, start: float, stop: float, room: int) -> str:
    step = (stop - start) / room
    bar = [" "] * room

    def place(at: float) -> int:
        return min(room - 1, max(0, int((at - start) / step)))

    if lane.spans and lane.spans[0][0] < stop:
        for column in range(place(lane.spans[0][0]), place(swim.until) + 1):
            bar[column] = "·"
    for begin, end in lane.spans:
        if end >= start and begin <= stop:
            for column in range(place(begin), place(end) + 1):
                bar[column] = "━"
    order = {kind: rate for rate, (kind, _, _) in enumerate(_SIGNS)}
    for mark in sorted(lane.marks, key=lambda one: -order.get(str(one.kind), 9)):
        if start <= mark.at <= stop:
            bar[place(mark.at)] = next((sign for kind, sign, _ in _SIGNS if kind == mark.kind), "?")
    return "".join(bar).rstrip()
