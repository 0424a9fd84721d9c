"""Who reads: what `--engine` and its companions say where they cannot be meant, and where Ray is not installed."""

from __future__ import annotations

import sys

import pytest

from .conftest import SAMPLE, Cli


def test_without_the_extra_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = cli("diagnose", SAMPLE, "--engine", "ray", "--fresh")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "--engine ray needs Ray (ray is not installed): pip install 'firstfault[ray]'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x", "--engine", "dask"], "--engine dask: choose local or ray"),
        (["x", "--address", "n-0:6379"], "--address: it says what a cluster reads; give --engine ray too"),
        (["--per-node", "/var/log/job"], "--per-node: it says what a cluster reads; give --engine ray too"),
        (["-", "--engine", "ray"], "--engine ray: standard input cannot be shared out; give files or directories"),
        (["--engine", "ray"], "missing PATH: give the logs of the job, a directory, a file, an archive, or '-'"),
        ([], "missing PATH: give the logs of the job, a directory, a file, an archive, or '-'"),
    ],
)
def test_what_does_not_go_together(cli: Cli, arguments: list[str], said: str) -> None:
    done = cli("diagnose", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"firstfault: {said}"


def test_a_cluster_shares_out_by_itself(cli: Cli) -> None:
    done = cli("ingest", SAMPLE, "--db", "x", "--engine", "ray", "--shard", "0/2")
    assert (done.exit_code, done.stderr) == (
        2,
        "firstfault: --shard: the cluster shares the files out itself; leave out one of the two\n",
    )
