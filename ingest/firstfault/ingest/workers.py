"""Reads units in worker processes. Workers are spawned: a fork after the column engine has run would hang."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing import connection
from pathlib import Path

from firstfault.ingest.options import IngestOptions
from firstfault.ingest.part import Part
from firstfault.ingest.plan import Unit
from firstfault.ingest.read import Tools, read_unit
from firstfault.ingest.stages import seldom_collected

_LOOK = 0.2
_tools: list[Tools] = []
_staying = ExitStack()


def read_in_processes(
    numbered: Sequence[tuple[Unit, int]], options: IngestOptions, spill: Path | None, workers: int
) -> Generator[Part]:
    """The parts of the units in their order; big units are begun first."""
    context = multiprocessing.get_context("spawn")
    order = sorted(range(len(numbered)), key=lambda place: (-numbered[place][0].bytes, place))
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(options,)) as pool:
        try:
            with _without_ctrl_c():
                futures = {place: pool.submit(_work, *numbered[place], spill) for place in order}
            for place in range(len(numbered)):
                try:
                    yield _result(futures.pop(place))
                except BrokenProcessPool:
                    # a program without a file of its own cannot be started again in a worker, and memory may run out
                    yield _here(*numbered[place], options, spill)
        except BaseException:
            # told to end, or a unit failed: what the others would still make is for nobody
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.kill()
            raise


def _result(future: Future[Part]) -> Part:
    """What a future gives. Since polars restarts waits that Ctrl-C interrupts, nobody waits for long at once."""
    while not wait((future,), _LOOK).done:
        pass
    return future.result()


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Processes that are started meanwhile never hear of Ctrl-C: it is for the process that asked, and waits."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    main, told = threading.current_thread() is threading.main_thread(), []
    handler = signal.signal(signal.SIGINT, lambda number, _: told.append(number)) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if told:
        raise KeyboardInterrupt


def _here(unit: Unit, place: int, options: IngestOptions, spill: Path | None) -> Part:
    """Read a unit in this process, where a worker died over it."""
    if not _tools:
        _start(options)
    return _work(unit, place, spill)


def _begin(options: IngestOptions) -> None:
    """Begin as a worker: when the process that asked dies there is nobody to work for."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    _start(options)


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _start(options: IngestOptions) -> None:
    from firstfault.catalog import load_catalog
    from firstfault.catalog.matcher import Matcher
    from firstfault.ingest.extract.hits import Patterns
    from firstfault.ingest.formats import Formats

    _staying.enter_context(seldom_collected())
    _tools.append(Tools(Patterns(Matcher.load(load_catalog(options.catalogs))), Formats(), options))


def _work(unit: Unit, place: int, spill: Path | None) -> Part:
    return read_unit(unit, place, _tools[0], spill)
