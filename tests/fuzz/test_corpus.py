"""The kept corpus with what fuzzing found, and some hundred bent inputs; `bench/fuzz.py` goes on for hours."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .bend import bent
from .ground import MOST, corpus
from .targets import TARGETS, Target

KEPT = [(name, number) for name in TARGETS for number in range(len(corpus(name)))]
EXAMPLES = {"whole": 3, "formats": 15, "dumps": 15, "catalog": 15, "patterns": 20, "parts": 15}


@pytest.mark.parametrize(("name", "number"), KEPT)
def test_a_kept_input_keeps_every_promise(name: str, number: int) -> None:
    TARGETS[name].run(corpus(name)[number])


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_bent_inputs_keep_every_promise(target: Target) -> None:
    pool = [*corpus(target.name), *target.seeds()]

    @settings(
        max_examples=EXAMPLES.get(target.name, 40),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32))
    def bend(seed: int) -> None:
        target.run(bent(pool, random.Random(seed), MOST))

    bend()
