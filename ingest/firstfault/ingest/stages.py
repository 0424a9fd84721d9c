"""Where the time of an ingest goes: with FIRSTFAULT_PROFILE=1 each process ends with a line of JSON on standard error.

It has the CPU seconds of each stage, all threads together, without those of the stages inside it, and `bytes`: how many
were read, searched, written to parts and written to the timeline.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import util
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MARK = "firstfault-profile "
ON = os.environ.get("FIRSTFAULT_PROFILE") == "1"
_spent: dict[str, float] = {}
_inner: list[float] = []
_bytes: dict[str, int] = {}


def stage(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Count the time of a function under a name; without the variable the function stays as it is."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        if not ON:
            return function

        @functools.wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            begun = time.process_time()
            _inner.append(0.0)
            try:
                return function(*args, **kwargs)
            finally:
                took = time.process_time() - begun
                _spent[name] = _spent.get(name, 0.0) + took - _inner.pop()
                if _inner:
                    _inner[-1] += took

        return timed

    return decorate


def count(name: str, size: int) -> None:
    """Add to the bytes that went through a stage."""
    if ON:
        _bytes[name] = _bytes.get(name, 0) + size


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the garbage collector run seldom: what an ingest makes lives on, and looking it through is lost time."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _report() -> None:
    spent: dict[str, object] = {
        name: round(seconds, 3) for name, seconds in sorted(_spent.items(), key=lambda pair: -pair[1])
    }
    spent["rest"] = round(time.process_time() - sum(_spent.values()), 3)
    spent["bytes"] = dict(sorted(_bytes.items()))
    print(MARK + json.dumps(spent), file=sys.stderr, flush=True)  # noqa: T201 - what the variable asks for


if ON:
    util.Finalize(None, _report, exitpriority=0)
