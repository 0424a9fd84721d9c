"""The progress chart and the causal graph as SVG fragments of the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from firstfault.correlate.picture import CausalGraph, GraphNode, ProgressUpTo, Swim
from firstfault.report.swim_svg import number, text, ticks
from firstfault.report.words import number_ranges, short

_HEIGHT = 160
_BOX_WIDTH, _BOX_HEIGHT, _GAP, _LAYER, _MOST_IN_ROW = 190, 40, 16, 84, 5


def progress(one: ProgressUpTo, swim: Swim) -> Iterator[str]:
    """Steps over time of the telling ranks, over the whole run."""
    points = [point for series in one.series for point in series.points]
    if len(points) < 2:
        return
    begin, end = min(at for at, _ in points), max(swim.until, *(at for at, _ in points))
    low, high = min(step for _, step in points), max(step for _, step in points)
    width, tall = max(end - begin, 0.001), max(high - low, 1)
    yield '<figure class="progress"><div class="plot">'
    yield f'<div class="steps"><span>step {high:,}</span><span>{low:,}</span></div>'
    yield (
        f'<svg viewBox="{number(begin)} 0 {number(width)} {_HEIGHT}" height="{_HEIGHT}" preserveAspectRatio="none" '
        f'role="img" aria-label="Steps over time">'
    )
    if swim.failed_at is not None:
        yield f'<path class="moment" d="M{number(swim.failed_at)} 0V{_HEIGHT}"/>'
    names = []
    for position, series in enumerate(one.series):
        kind = "root" if series.root else f"c{position % 5}"
        path = "L".join(
            f"{number(at)} {number(8 + (_HEIGHT - 16) * (high - step) / tall)}" for at, step in series.points
        )
        yield f'<path class="curve {kind}" d="M{path}"><title>{text(series.name)}</title></path>'
        names.append(
            f'<li><svg viewBox="0 0 16 16" aria-hidden="true"><path class="curve {kind}" d="M0 8H16"/></svg>'
            f"{text(series.name)}: step {series.points[-1][1]:,}</li>"
        )
    yield "</svg>"
    row = "".join(f"<span>{text(tick)}</span>" for tick in ticks(swim, begin, begin + width))
    yield f'<div></div><div class="ticks" aria-hidden="true">{row}</div></div>'
    yield f'<ul class="legend">{"".join(names)}</ul></figure>'


def causal_graph(one: CausalGraph) -> Iterator[str]:
    """Boxes in layers, the root on top, arrows from causes to effects."""
    if len(one.nodes) < 2:
        return
    layers: dict[int, list[GraphNode]] = defaultdict(list)
    for node in one.nodes:
        layers[node.depth].append(node)
    rows = [
        layers[depth][first : first + _MOST_IN_ROW]
        for depth in sorted(layers)
        for first in range(0, len(layers[depth]), _MOST_IN_ROW)
    ]
    widest = max(map(len, rows))
    width = widest * (_BOX_WIDTH + _GAP) + _GAP
    places: dict[str, tuple[float, float]] = {}
    for number_, row in enumerate(rows):
        left = (width - len(row) * (_BOX_WIDTH + _GAP) + _GAP) / 2
        for column, node in enumerate(row):
            places[node.key] = (left + column * (_BOX_WIDTH + _GAP), 8 + number_ * _LAYER)
    height = len(rows) * _LAYER - (_LAYER - _BOX_HEIGHT) + 16
    yield '<div class="wide">'
    yield (
        f'<svg viewBox="0 0 {number(width)} {height}" width="{number(width)}" height="{height}" role="img" '
        'aria-label="Causal graph, from the root down; the list below says the same">'
    )
    for edge in one.edges:
        (x1, y1), (x2, y2) = places[edge.cause], places[edge.effect]
        level = abs(y1 - y2) < 1
        x1, x2 = x1 + _BOX_WIDTH / 2, x2 + _BOX_WIDTH / 2
        if level:  # neighbours of one layer: an arc above them
            path = f"M{number(x1)} {number(y1)}Q{number((x1 + x2) / 2)} {number(y1 - 30)} {number(x2)} {number(y2 - 6)}"
            end = (x2, y2)
        else:
            y1, y2 = y1 + _BOX_HEIGHT, y2 - 7
            bend = (y2 - y1) / 2
            path = (
                f"M{number(x1)} {number(y1)}C{number(x1)} {number(y1 + bend)} {number(x2)} {number(y2 - bend)} "
                f"{number(x2)} {number(y2)}"
            )
            end = (x2, y2 + 7)
        where = f" ({edge.path}:{edge.line})" if edge.path else ""
        said = text(f"{edge.rule}, {edge.strength}{where}")
        yield f'<path class="arrow {edge.strength}" d="{path}"><title>{said}</title></path>'
        yield f'<path class="tip" d="M{number(end[0] - 4)} {number(end[1] - 7)}h8l-4 7z"/>'
    for node in one.nodes:
        x, y = places[node.key]
        title, under = _label(node)
        yield f"<g><title>{text(f'{title} {under}')}</title>"
        yield (
            f'<rect class="box{" root" if node.root else ""}" x="{number(x)}" y="{number(y)}" width="{_BOX_WIDTH}" '
            f'height="{_BOX_HEIGHT}" rx="4"/>'
        )
        middle = number(x + _BOX_WIDTH / 2)
        lift = 17 if under else 24
        yield f'<text x="{middle}" y="{number(y + lift)}" text-anchor="middle">{text(short(title, 30))}</text>'
        if under:
            low = number(y + 32)
            yield f'<text class="rule" x="{middle}" y="{low}" text-anchor="middle">{text(short(under, 36))}</text>'
        yield "</g>"
    yield "</svg></div>"
    if one.left_out:
        yield f'<p class="soft">and {one.left_out:,} vertices more</p>'


def _label(node: GraphNode) -> tuple[str, str]:
    if len(node.ranks) > 1:
        return f"{len(node.ranks)} ranks", number_ranges(node.ranks)
    return node.label, "the first failure" if node.root else ""
