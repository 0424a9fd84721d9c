"""A mismatch of versions that every rank raises lies with those who run the odd one."""

from __future__ import annotations

import pytest

from .timeline_builder import Job


def job_of(**versions: str) -> Job:
    """Two ranks on each host, all of which raise the mismatch; each host prints its version once."""
    job = Job(**dict.fromkeys(versions, 2))
    for number in range(len(job.hosts)):
        log = job.rank(number)
        if job.local(number) == 0:
            log.signal("identity", fact="version-nccl", at=1, version=versions[job.host(number)])
        log.signal(
            "init-failure", "nccl-version-mismatch-warn", "nccl-version-mismatch", "initiating", at=2, text="Mismatched"
        )
    return job


def test_the_host_with_the_odd_version_is_the_place() -> None:
    best = job_of(a="2.20.5", b="2.19.3", c="2.20.5").judge().ranked.best
    assert best is not None
    assert (best.cls, best.ranks, best.hosts) == ("nccl-version-mismatch", (2, 3), ("b",))
    assert best.signals[0][0].captures["version"] == "2.19.3"


@pytest.mark.parametrize("versions", [{"a": "2.20.5", "b": "2.19.3"}, {"a": "2.20.5", "b": "2.20.5"}])
def test_without_a_majority_no_host_is_named(versions: dict[str, str]) -> None:
    best = job_of(**versions).judge().ranked.best
    assert best is not None
    assert (best.ranks, best.hosts) == ((), ())
