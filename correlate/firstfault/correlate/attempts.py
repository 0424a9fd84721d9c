"""Attempts: every start of the workers is judged by itself; nothing explains across a restart but what persists on a
node.
"""

from __future__ import annotations

from firstfault.correlate.load import Timeline


def attempts_of(timeline: Timeline) -> tuple[int, ...]:
    """Numbers of all attempts of which a rank wrote a line, or a launcher a report, in order."""
    found = {extent.attempt for extent in timeline.extents}
    found.update(signal.attempt for signal in timeline.signals if signal.entry is not None)
    return tuple(sorted(found)) or (0,)
