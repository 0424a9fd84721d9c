"""Changes of the logs that carry no news never move the blame: the answer stays, or it is withheld.

Sample jobs are rewritten as text: files under other folders, one host's clock hours off, the log of an innocent rank
left out, a file twice, hosts under other names.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from firstfault.correlate.diagnosis import Diagnosis, Verdict
from firstfault.correlate.engine import diagnose
from firstfault.ingest import ingest

SAMPLES = Path(__file__).parents[2] / "sample_logs"
JOBS = (
    "batch-width-rank5",
    "guard-names-absentee",
    "kernel-oom-second-host",
    "kill9-rank2-tee",
    "mute-rank6",
    "survived-then-fatal",
)
CLOCK = re.compile(r"(?<=[ _T])([01]\d|2[0-3])(?=:[0-5]\d:[0-5]\d\b)")
EPOCH = re.compile(r"\b1[789]\d{8}\b")
Answer = tuple[str | None, tuple[int, ...], tuple[str, ...]]

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample jobs are not here")


@pytest.fixture(scope="module", autouse=True)
def _one_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def read(folder: Path) -> Diagnosis:
    database = folder.parent / f"{folder.name}.duckdb"
    ingest([folder], database)
    return diagnose(database)


def answer(found: Diagnosis) -> Answer | None:
    """Class, ranks and hosts; None where the answer is withheld."""
    if found.verdict is not Verdict.IDENTIFIED:
        return None
    return (found.failure.cls, found.initiating.ranks, found.initiating.hosts)


@cache
def truth(job: str) -> dict[str, Any]:
    given: dict[str, Any] = tomllib.loads((SAMPLES / job / "case.toml").read_text(encoding="utf-8"))["truth"]
    return given


def expected(job: str) -> Answer:
    given = truth(job)
    return (given["failure_class"], tuple(given["initiating_ranks"]), tuple(given["initiating_hosts"]))


def host_of(path: Path, logs: Path) -> str:
    """The folder of a host, or the stem of its only file."""
    first = path.relative_to(logs).parts[0]
    return first.removesuffix(".log")


def files(logs: Path) -> list[Path]:
    return sorted(path for path in logs.rglob("*") if path.is_file())


def culprit(job: str) -> str:
    hosts: list[str] = truth(job)["initiating_hosts"]
    return hosts[0]


# the changes


def other_folders(job: str, logs: Path) -> dict[str, str]:
    """The files in reverse order of their hosts."""
    hosts = sorted({host_of(path, logs) for path in files(logs)}, reverse=True)
    for number, host in enumerate(hosts):
        for top in [path for path in logs.iterdir() if path.name.removesuffix(".log") == host]:
            target = logs / f"part-{number}"
            target.mkdir()
            shutil.move(str(top), target / top.name)
    return {}


def shifted(logs: Path, host: str, hours: int) -> None:
    """One host's clock is some hours off, in every stamp that its files hold."""

    def hour(found: re.Match[str]) -> str:
        return f"{(int(found[1]) + hours) % 24:02d}"

    def epoch(found: re.Match[str]) -> str:
        return str(int(found[0]) + hours * 3600)

    for path in files(logs):
        if host_of(path, logs) == host:
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            text = EPOCH.sub(epoch, CLOCK.sub(hour, text))
            path.write_bytes(text.encode("utf-8", "surrogateescape"))


def culprit_ahead(job: str, logs: Path) -> dict[str, str]:
    """The clock of the host where it began is three hours ahead."""
    shifted(logs, culprit(job), 3)
    return {}


def others_ahead(job: str, logs: Path) -> dict[str, str]:
    """The clocks of the other hosts are five hours ahead."""
    for host in sorted({host_of(path, logs) for path in files(logs)} - {culprit(job)}):
        shifted(logs, host, 5)
    return {}


def innocent_left_out(job: str, logs: Path) -> dict[str, str]:
    """The folder of a rank that only followed is missing; in merged logs, its prefixed lines."""
    by_rank = sorted(path for path in logs.glob("*/*/attempt_0/*") if path.is_dir())
    for path in by_rank:
        if path.relative_to(logs).parts[0] != culprit(job):
            shutil.rmtree(path)
            return {}
    for path in files(logs):
        if host_of(path, logs) != culprit(job):
            lines = path.read_bytes().split(b"\n")
            path.write_bytes(b"\n".join(line for line in lines if not line.startswith(b"[default2]")))
    return {}


def one_file_twice(job: str, logs: Path) -> dict[str, str]:
    """The largest file of another host lies there a second time."""
    path = max((one for one in files(logs) if host_of(one, logs) != culprit(job)), key=lambda one: one.stat().st_size)
    copy = logs / "copy" / path.relative_to(logs)
    copy.parent.mkdir(parents=True)
    shutil.copyfile(path, copy)
    return {}


def other_names(job: str, logs: Path) -> dict[str, str]:
    """Hosts are called otherwise, in names and in texts; the names sort the other way round."""
    hosts = sorted({host_of(path, logs) for path in files(logs)})
    names = {host: f"gpu-{chr(ord('z') - number)}{7 - number}" for number, host in enumerate(hosts)}
    for path in files(logs):
        text = path.read_bytes()
        for host, name in names.items():
            text = text.replace(host.encode(), name.encode())
        path.write_bytes(text)
    for top in sorted(logs.iterdir()):
        host = top.name.removesuffix(".log")
        top.rename(logs / top.name.replace(host, names[host]))
    return names


CHANGES: tuple[Callable[[str, Path], dict[str, str]], ...] = (
    other_folders,
    culprit_ahead,
    others_ahead,
    innocent_left_out,
    one_file_twice,
    other_names,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("job", JOBS)
def test_the_blame_does_not_move(job: str, change: Callable[[str, Path], dict[str, str]], tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLES / job / "logs", logs)
    names = change(job, logs)
    found = answer(read(logs))
    cls, ranks, hosts = expected(job)
    assert found in (None, (cls, ranks, tuple(names.get(host, host) for host in hosts)))


@pytest.mark.parametrize("job", JOBS)
def test_the_answer_without_a_change(job: str, tmp_path: Path) -> None:
    """Without this the property would hold for an engine that never answers."""
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLES / job / "logs", logs)
    assert answer(read(logs)) == expected(job)
