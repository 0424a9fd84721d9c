"""Whose own loss is not a number, where all ranks stop because a reduced gradient is not.

The gradients are reduced over all ranks, so one rank's nan stops all of them with the same error; the loss that each
prints beside it is its own. Where a few print nan and the others a number, it came from the few.
"""

from __future__ import annotations

import re

from firstfault.correlate.candidate import BASE, Candidate, View
from firstfault.correlate.model import Signal

_LOSS = re.compile(r"(?i)\bloss(?:\.item\(\))?[ =:]{1,3}\[?(-?(?:\d[\d.]{0,20}(?:e[+-]?\d{1,3})?|nan|inf(?:inity)?))\b")


def place_own_loss(view: View, candidate: Candidate) -> Candidate:
    """Put a failure of numbers that all ranks raise on those few whose own loss is none."""
    if candidate.cls != "loss-nan-or-diverged" or not candidate.common:
        return candidate
    broken: dict[int, Signal] = {}
    sound: set[int] = set()
    for state in view.states.values():
        for signal in state.own:
            found = _LOSS.search(signal.text[:2000]) if signal.cls == candidate.cls else None
            if found is None:
                continue
            if found[1].lower().lstrip("-").startswith(("nan", "inf")):
                broken.setdefault(state.rank, signal)
            else:
                sound.add(state.rank)
    sound |= _sound_by_steps(view, broken)
    ranks = tuple(sorted(set(broken) - sound))
    if not ranks or len(ranks) >= len(sound) or len(ranks) + len(sound) < len(candidate.scope_ranks):
        return candidate
    candidate.rule, candidate.base = "own-error", BASE["own-error"] + 0.4
    candidate.ranks, candidate.common, candidate.component = ranks, False, "rank"
    candidate.hosts = view.names.rank_hosts(ranks, view.attempt)
    candidate.signals[:0] = [(broken[rank], f"the own loss of rank {rank} is not a number") for rank in ranks[:3]]
    candidate.for_.append(f"the other {len(sound)} ranks print a loss of their own that is a number")
    return candidate


def _sound_by_steps(view: View, broken: dict[int, Signal]) -> set[int]:
    """Ranks that print the step in which others print a loss that is none, and nothing of that kind themselves."""
    steps = {
        state.progress.step
        for rank, signal in broken.items()
        if (state := view.states[rank]).progress is not None
        and state.progress.source is signal.source
        and state.progress.line == signal.line
    }
    return {
        state.rank
        for state in view.states.values()
        if steps and state.rank not in broken and state.last_step is not None and state.last_step >= max(steps)
    }
