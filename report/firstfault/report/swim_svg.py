"""Swim lanes as SVG: a fragment of the HTML page that a script can zoom, and a picture that stands alone.

In the page only the view box changes, so strokes keep their width; names and ticks are HTML beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from html import escape

from firstfault.correlate.picture import Lane, Mark, Swim
from firstfault.report.words import duration_words, one_sentence, short

ROW = 18
_TICKS = 5
KINDS = {
    "root": "first failure",
    "error": "error of its own",
    "echo": "only follows",
    "kill": "ended by its launcher",
    "exit": "ended by itself",
    "machine": "machine record",
    "saved": "checkpoint",
    "done": "good end",
}


LOOSE = " (times as printed: nothing links this clock to the others)"


def text(said: str) -> str:
    """Log text inside markup."""
    return escape(one_sentence(said))


def number(value: float) -> str:
    """A coordinate with no more digits than it needs."""
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"


def clock(swim: Swim, at: float, width: float) -> str:
    """The time of day at so many seconds from the origin; the day too where days are shown."""
    try:
        moment = datetime.fromisoformat(swim.origin or "") + timedelta(seconds=at)
    except (ValueError, OverflowError):
        return f"{at:.2f} s"
    if width > 172800:
        return f"{moment:%m-%d %H:%M}"
    if width > 600:
        return f"{moment:%H:%M:%S}"
    digits = 1 if width > 5 else 3
    return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}"[: 9 + digits]


def shown_span(swim: Swim) -> tuple[float, float]:
    """The stretch that is shown first: the failure with a margin."""
    start, stop = swim.focus
    room = max((stop - start) * 0.03, 0.05)
    return start - room, stop + room


def ticks(swim: Swim, start: float, stop: float) -> list[str]:
    """Labels at equal distances over the shown stretch."""
    return [clock(swim, start + (stop - start) * n / (_TICKS - 1), stop - start) for n in range(_TICKS)]


def lane_title(lane: Lane) -> str:
    """A lane in words."""
    hosts = f" on {', '.join(lane.hosts[:3])}" if lane.ranks and lane.hosts and lane.name not in lane.hosts else ""
    ranks = f" (ranks {lane.ranks[0]}-{lane.ranks[-1]})" if len(lane.ranks) > 1 else ""
    return f"{lane.name}{ranks}{hosts}{f': {lane.fate}' if lane.fate else ''}{LOOSE if lane.loose else ''}"


def mark_title(swim: Swim, lane: Lane, mark: Mark) -> str:
    """A mark in words: when, where, what, and the line."""
    return f"{clock(swim, mark.at, 1)} {lane.name}: {short(mark.what, 220)} ({mark.path}:{mark.line})"


def _lane(swim: Swim, lane: Lane, row: int, start: float, stop: float, titles: bool) -> Iterator[str]:
    y = row * ROW + ROW / 2
    yield f'<g class="lane{" root" if lane.root else ""}">'
    if titles:
        yield f"<title>{text(lane_title(lane))}</title>"
    yield f'<rect class="ground" x="{number(start)}" y="{row * ROW}" width="{number(stop - start)}" height="{ROW}"/>'
    if lane.spans and lane.spans[-1][1] < swim.until:
        yield f'<path class="quiet" d="M{number(lane.spans[-1][1])} {y}H{number(swim.until)}"/>'
    for (_, gone), (back, _) in zip(lane.spans, lane.spans[1:], strict=False):
        yield f'<path class="quiet" d="M{number(gone)} {y}H{number(back)}"/>'
    if lane.spans:
        # a stretch of one line has no length: it is given one that can be seen
        least = max((swim.focus[1] - swim.focus[0]) / 400, 0.001)
        path = "".join(f"M{number(a)} {y}H{number(max(b, a + least))}" for a, b in lane.spans)
        yield f'<path class="on" d="{path}"/>'
    for mark in lane.marks:
        said = f"<title>{text(mark_title(swim, lane, mark))}</title>" if titles else ""
        yield (
            f'<path class="mark {mark.kind}" data-at="{number(mark.at)}" data-y="{row * ROW}" '
            f'd="M{number(mark.at)} {y}h0">{said}</path>'
        )
    yield "</g>"


def figure(swim: Swim) -> Iterator[str]:
    """The zoomable figure of the page."""
    if not swim.lanes:
        return
    start, stop = shown_span(swim)
    low, high = min(0.0, start) - 1, max(swim.until, stop) + swim.until * 0.05 + 1
    height = len(swim.lanes) * ROW
    row = "".join(f"<span>{text(tick)}</span>" for tick in ticks(swim, start, stop))
    yield '<figure class="swim">'
    yield '<div class="tools" role="group" aria-label="View of the swim lanes">'
    for name, said in (("failure", "the failure"), ("all", "the whole job"), ("in", "+"), ("out", "−"), ("left", "◀"),
                       ("right", "▶"), ("previous", "previous mark"), ("next", "next mark")):  # fmt: skip
        yield f'<button type="button" data-do="{name}">{said}</button>'
    yield "</div>"
    yield (
        '<div class="plot" tabindex="0" role="group" aria-label="Swim lanes. Keys: + and - zoom, arrows move, '
        '0 shows all, f the failure, n and p step through the marks.">'
    )
    yield f'<div></div><div class="ticks top" aria-hidden="true">{row}</div>'
    yield '<div class="names">'
    for lane in swim.lanes:
        kind = " class=root" if lane.root else ""
        yield f'<div{kind} title="{text(lane_title(lane))}">{text(lane.name)}{" ?" if lane.loose else ""}</div>'
    yield "</div>"
    yield (
        f'<svg class="lanes" viewBox="{number(start)} 0 {number(stop - start)} {height}" height="{height}" '
        f'preserveAspectRatio="none" data-until="{number(swim.until)}" data-origin="{text(swim.origin or "")}" '
        f'data-focus="{number(start)} {number(stop)}" role="img" aria-label="Lines over time, one row for each lane">'
    )
    for number_, lane in enumerate(swim.lanes):
        yield from _lane(swim, lane, number_, low, high, titles=True)
    if swim.failed_at is not None:
        yield f'<path class="moment" d="M{number(swim.failed_at)} 0V{height}"/>'
    yield "</svg></div>"
    yield f'<figcaption aria-live="polite">{text(caption(swim))}</figcaption>'
    yield from legend(swim)
    yield "</figure>"


def caption(swim: Swim) -> str:
    """What the picture shows, in a sentence or two."""
    said = "Bars are stretches with lines, dashes silences; the dashed upright line is where it began."
    if swim.failed_at is None:
        said = "Bars are stretches with lines, dashes silences."
    loose = sum(lane.loose for lane in swim.lanes)
    if loose:
        said += f" Nothing links the clocks of {loose} lanes marked ? to the others: their times are as printed."
    if swim.unplaced:
        said += f" {swim.unplaced} lane{'' if swim.unplaced == 1 else 's'} left out: no clock places their lines."
    return said


def legend(swim: Swim) -> Iterator[str]:
    """The kinds of marks that occur."""
    kinds = {str(mark.kind) for lane in swim.lanes for mark in lane.marks}
    yield '<ul class="legend">'
    for kind, said in KINDS.items():
        if kind in kinds:
            dot = f'<path class="mark {kind}" d="M8 8h0"/>'
            yield f'<li><svg viewBox="0 0 16 16" aria-hidden="true">{dot}</svg>{said}</li>'
    yield "</ul>"


_COLOURS = {
    "root": "#c62828", "error": "#b4540a", "echo": "#d99000", "kill": "#7a5ea8", "exit": "#b4540a",
    "machine": "#1565c0", "saved": "#2e7d32", "done": "#2e7d32",
}  # fmt: skip
_ALONE = (
    "text{font:12px system-ui,sans-serif;fill:#1b1f24}.soft{fill:#5b6570}.paper{fill:#fff}.ground{fill:none}"
    ".lane.root .ground{fill:#f3d9d9;fill-opacity:.45}path{fill:none;vector-effect:non-scaling-stroke}"
    ".on{stroke:#8fa3b5;stroke-width:8}.quiet{stroke:#8fa3b5;stroke-dasharray:2 4}.lane.root .quiet{stroke:#c62828}"
    ".mark{stroke-width:9;stroke-linecap:round}.moment{stroke:#c62828;stroke-width:1.5;stroke-dasharray:5 3}"
    + "".join(f".mark.{kind}{{stroke:{colour}}}" for kind, colour in _COLOURS.items())
    + ".mark.root{stroke-width:13}"
)
_NAMES, _PLOT = 190, 900


def standalone(swim: Swim) -> str:
    """The failure's stretch as a picture of its own, 1100 wide, light, with names, ticks and legend inside."""
    start, stop = shown_span(swim)
    rows = len(swim.lanes)
    height = rows * ROW
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_NAMES + _PLOT + 20} {height + 70}" '
        f'width="{_NAMES + _PLOT + 20}" height="{height + 70}" role="img"><title>firstfault swim lanes</title>'
        f"<style>{_ALONE}</style>"
        f'<rect class="paper" width="100%" height="100%"/>'
    ]
    for row, lane in enumerate(swim.lanes):
        y = 26 + row * ROW + 13
        name = text(short(lane.name, 30)) + (" ?" if lane.loose else "")
        out.append(f'<text x="{_NAMES - 8}" y="{y}" text-anchor="end">{name}</text>')
    for n, tick in enumerate(ticks(swim, start, stop)):
        anchor = "start" if n == 0 else "end" if n == _TICKS - 1 else "middle"
        x = _NAMES + _PLOT * n / (_TICKS - 1)
        out.append(f'<text class="soft" x="{number(x)}" y="16" text-anchor="{anchor}">{text(tick)}</text>')
    out.append(
        f'<svg x="{_NAMES}" y="26" width="{_PLOT}" height="{height}" preserveAspectRatio="none" '
        f'viewBox="{number(start)} 0 {number(stop - start)} {height}">'
    )
    for row, lane in enumerate(swim.lanes):
        out.extend(_lane(swim, lane, row, start, stop, titles=True))
    if swim.failed_at is not None:
        out.append(f'<path class="moment" d="M{number(swim.failed_at)} 0V{height}"/>')
    out.append("</svg>")
    kinds = {str(mark.kind) for lane in swim.lanes for mark in lane.marks}
    x = _NAMES
    for kind, said in KINDS.items():
        if kind in kinds:
            out.append(f'<path class="mark {kind}" d="M{x + 6} {height + 46}h0"/>')
            out.append(f'<text class="soft" x="{x + 16}" y="{height + 50}">{said}</text>')
            x += 36 + 7 * len(said)
    span = duration_words(stop - start)
    out.append(
        f'<text class="soft" x="{_NAMES - 8}" y="{height + 50}" text-anchor="end">{text(span)} shown</text></svg>'
    )
    return "\n".join(out) + "\n"
