"""Stacks and RAS reports of a job that hangs: who is not where the others are."""

from __future__ import annotations

from .timeline_builder import Job


def stacked(*states: str) -> Job:
    """One stack of the main thread of each rank."""
    job = Job(a=4, b=4)
    for number, state in enumerate(states):
        log = job.rank(number)
        log.steps(3)
        log.signal(
            "phase", fact="stack", at=100, thread="MainThread", state=state, function="f", src_file="x.py", src_line=7
        )
    return job


def test_the_one_in_its_own_code_is_what_the_others_wait_for() -> None:
    states = ["collective"] * 8
    states[5] = "data"
    assert stacked(*states).accused() == ("collective-rank-absent", (5,), ("b",))


def test_all_in_a_collective_name_nobody() -> None:
    assert stacked(*["collective"] * 8).best() is None


def test_an_unknown_place_proves_nothing() -> None:
    states = ["collective"] * 8
    states[5] = "unknown"
    assert stacked(*states).best() is None


def test_many_outside_name_nobody() -> None:
    assert stacked(*["collective"] * 4, *["user"] * 4).best() is None


def test_other_threads_do_not_count() -> None:
    job = stacked(*["collective"] * 8)
    job.rank(2).signal("phase", fact="stack", at=101, thread="Thread-1 (_pin_memory_loop)", state="data")
    assert job.best() is None


def ras(behind: int | None) -> Job:
    """A RAS report about one communicator of eight ranks."""
    job = Job(a=4, b=4)
    for log in job.ranks():
        log.steps(3)
    report = job.log("ras.txt", "ras", None, clock=None)
    common = {"comm_id": "0xd1", "op": "AllReduce", "comm_size": 8, "reason": "MISMATCH"}
    report.signal("coll-state", fact="ras-count", count=7, seq=41, **common)
    if behind is not None:
        report.signal("coll-state", fact="ras-count", count=1, seq=40, **common)
        report.signal("coll-state", fact="ras-missing", comm_rank=behind, **common)
    return job


def test_the_rank_behind_in_a_ras_report_is_absent() -> None:
    assert ras(6).accused() == ("collective-rank-absent", (6,), ("b",))


def test_a_ras_report_in_which_all_agree_names_nobody() -> None:
    assert ras(None).best() is None
