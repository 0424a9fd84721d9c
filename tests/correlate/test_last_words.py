"""A process that ends by itself with a code, and whose last line means little alone; and one exception that befell
several ranks of which the launcher saw one end.
"""

from __future__ import annotations

from pathlib import Path

from firstfault.correlate.diagnosis import Verdict

from .test_ends import running
from .timeline_builder import Job, Log


def _cannot_bind(log: Log, at: float) -> Log:
    """A store that could not bind: the process may try another port, so the catalog calls the line weak."""
    return log.signal(
        "init-failure", "tcpstore-port-in-use", "port-in-use", "initiating", at, weak=True, errno=98, port=29500
    )


def test_the_last_words_name_what_only_an_exit_code_tells_of() -> None:
    job = running(a=2, b=2)
    _cannot_bind(job.rank(3), 9)
    job.launcher("b").kill(2, at=9.4).exit(3, 1, at=9.5)
    for log in job.ranks(3):
        log.lost("b", at=10)
    assert job.accused() == ("port-in-use", (3,), ("b",))


def test_a_weak_line_that_the_process_lived_on_after_names_nothing() -> None:
    job = Job(a=2, b=2)
    _cannot_bind(job.rank(3), 0.5)
    for log in job.ranks():
        log.steps(8)
    job.launcher("b").kill(2, at=9.4).exit(3, 1, at=9.5)
    for log in job.ranks(3):
        log.lost("b", at=10)
    assert job.accused() == ("python-exception", (3,), ("b",))


def test_the_same_last_words_on_all_hosts_accuse_none_of_them() -> None:
    job = running(a=2, b=2)
    for log in job.ranks():
        _cannot_bind(log, 9)
    job.launcher("a").kill(1, at=9.4).exit(0, 1, at=9.5)
    job.launcher("b").kill(3, at=9.4).exit(2, 1, at=9.5)
    assert job.accused() == ("port-in-use", (), ())


def _raises(log: Log, text: str, at: float | None) -> None:
    log.signal(
        "exception", "python-traceback", "python-exception", "ambiguous", at, text=text, exception=text.split(":")[0]
    )
    log.lines[-1].format = "torch-rank-prefix"  # torch's hook, which nothing had caught it before


def test_an_exception_of_all_ranks_of_a_host_is_all_of_theirs() -> None:
    """The launcher sees one end, and ends the others while they raise the same."""
    job = running(a=2, b=2)
    _raises(job.rank(2), "ValueError: no device 0 of this name", 9.4)
    _raises(job.rank(3), "ValueError: no device 0 of this name", 9.4)
    job.launcher("b").exit(2, 1, at=9.5).kill(3, at=9.6)
    for log in job.ranks(2, 3):
        log.lost("b", at=10)
    assert job.accused() == ("python-exception", (2, 3), ("b",))


def test_another_exception_of_a_rank_that_is_ended_is_the_end_s_doing() -> None:
    job = running(a=2, b=2)
    _raises(job.rank(2), "ValueError: no device 0 of this name", 9.4)
    _raises(job.rank(3), "ValueError: I/O operation on closed file", None)
    job.launcher("b").exit(2, 1, at=9.5).kill(3, at=9.6)
    for log in job.ranks(2, 3):
        log.lost("b", at=10)
    assert job.accused() == ("python-exception", (2,), ("b",))


def test_where_only_a_link_broke_its_two_ends_are_asked_for(tmp_path: Path) -> None:
    job = running(a=2, b=2)
    job.rank(2).signal("peer-loss", "ib-wc-12", "ib-completion-error", "ambiguous", 9, peer="10.9.9.9", wc_status=12)
    for log in job.ranks(2):
        log.lost("b", at=9.5)
    found = job.diagnose(tmp_path)
    assert found.verdict is Verdict.UNDETERMINED
    assert "(b and 10.9.9.9)" in (found.missing_fact or "")
