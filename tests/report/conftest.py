"""Small diagnoses made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firstfault.correlate.diagnosis import (
    Advice,
    Attempt,
    ChainLink,
    Clock,
    Collateral,
    CollateralGroup,
    Coverage,
    Diagnosis,
    Evidence,
    Failure,
    Hypothesis,
    Job,
    Place,
    Verdict,
)

Make = Callable[..., Diagnosis]

NOTHING = Failure(None, None, None)


@pytest.fixture
def identified() -> Make:
    """Rank 3 runs out of device memory, seven others follow; any part can be said otherwise."""

    def make(**parts: Any) -> Diagnosis:
        line = Evidence("n2/rank3.log", 120, "CUDA out of memory. Tried to allocate 2 GiB", "the rank's own error")
        echo = Evidence("n1/rank0.log", 88, "Connection closed by peer", "lost the connection to a peer")
        given: dict[str, Any] = {
            "verdict": Verdict.IDENTIFIED,
            "failure": Failure("cuda-oom", "cuda-oom", "Out of memory on the device"),
            "initiating": Place("gpu", (3,), ("n2",), ("n2/1",), ("10.0.0.2",), "2026-05-04T10:11:12.345Z"),
            "evidence": (line,),
            "collateral": Collateral(
                (0, 1, 2, 4, 5, 6, 7),
                ("n1", "n2"),
                (CollateralGroup("lost the connection to a peer", (0, 1, 2, 4, 5, 6, 7), ("n1", "n2"), echo),),
            ),
            "confidence": 0.97,
            "hypotheses": (Hypothesis("cuda-oom", "cuda-oom", (3,), ("n2",), 0.97, ("its own error",), ()),),
            "missing_fact": None,
            "next_action": "a smaller batch",
            "job": Job(8, 2, 1, 9, 4821, "2026-05-04T10:00:00.000Z", "2026-05-04T10:12:00.000Z"),
            "clocks": (Clock("n1", 0.0, 0.0, "the reference"), Clock("n2", 41.2, 0.03, "12 shared events")),
            "summary": "Out of memory on the device: it began on rank 3 (n2).",
            "why_not": (("rank 0 (n1)", "its peer-loss follows from cuda-oom on rank 3 (n2)"),),
            "chain": (
                ChainLink("rank 3", "ranks 0, 1", "follows-root", "nothing closer explains them", "weak", (echo,)),
            ),
            "advice": Advice(
                fix=("a smaller batch", "activation checkpointing"),
                confirm=("torch.cuda.memory_summary()",),
                verify=("the same step passes",),
                prevent=("log the peak",),
                resume="the last complete checkpoint",
                mechanism="The allocator could not serve a request.",
            ),
            "coverage": Coverage((("rank", 8), ("launcher", 1)), (("data-loss", "truncated-archive", 1, "logs.tar"),)),
        }
        return Diagnosis(**{**given, **parts})

    return make


@pytest.fixture
def undetermined(identified: Make) -> Make:
    """Two failures whose order nothing tells."""

    def make(**parts: Any) -> Diagnosis:
        given: dict[str, Any] = {
            "verdict": Verdict.UNDETERMINED,
            "failure": NOTHING,
            "initiating": Place(),
            "confidence": 0.5,
            "hypotheses": (
                Hypothesis("data-missing", "data-file-missing", (1,), ("n1",), 0.5, ("its own error",), ()),
                Hypothesis("python-exception", None, (), ("n2",), 0.5, (), ("no time",)),
            ),
            "missing_fact": "the clock offset of n1 and n2 (chronyc tracking)",
            "next_action": "Fetch the missing fact: the clock offset of n1 and n2 (chronyc tracking).",
            "summary": "The logs do not settle what failed first.",
            "why_not": (),
            "chain": (),
            "advice": Advice(),
        }
        return identified(**{**given, **parts})

    return make


@pytest.fixture
def completed(identified: Make) -> Make:
    """A job that ended well in its second attempt."""

    def make(**parts: Any) -> Diagnosis:
        root = Failure("process-segfault", "process-segfault", "Crash in native code")
        given: dict[str, Any] = {
            "verdict": Verdict.NO_FAILURE,
            "failure": NOTHING,
            "initiating": Place(),
            "evidence": tuple(Evidence(f"r{n}.log", 9, "training finished", "states a good end") for n in range(4)),
            "collateral": Collateral(),
            "hypotheses": (),
            "next_action": "Nothing to mend: the job completed.",
            "summary": "The job completed; nothing failed.",
            "why_not": (),
            "chain": (),
            "advice": Advice(),
            "attempts": (
                Attempt(0, Verdict.IDENTIFIED, root, Place("rank", (1,), ("n1",))),
                Attempt(1, Verdict.NO_FAILURE, NOTHING, Place()),
            ),
        }
        return identified(**{**given, **parts})

    return make
