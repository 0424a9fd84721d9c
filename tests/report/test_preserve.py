"""Commands that save evidence: chosen by the family of the failure, safe to copy, never built from hostile names."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable

import pytest

from firstfault.correlate.diagnosis import Advice, Coverage, Diagnosis, Failure, Place
from firstfault.report.preserve import commands, folded

Make = Callable[..., Diagnosis]


def said(diagnosis: Diagnosis) -> str:
    return "\n".join(one.command for one in commands(diagnosis))


def test_a_broken_gpu_asks_for_its_counters_and_the_kernel_log_of_its_host(identified: Make) -> None:
    text = said(identified(advice=Advice(group="gpu-hardware")))
    assert "ssh n2 nvidia-smi -q" in text
    assert "journalctl -k -o short-iso --since '2026-05-04 10:01:12 UTC'" in text


def test_a_hang_asks_for_stacks(identified: Make) -> None:
    assert "py-spy dump" in said(identified(advice=Advice(group="collective")))
    assert "py-spy dump" not in said(identified(advice=Advice(group="user-code")))


def test_schedulers_are_asked_before_they_forget(identified: Make) -> None:
    assert "sacct" in said(identified(coverage=Coverage((("scheduler", 1),), ())))
    assert "kubectl get events" in said(identified(coverage=Coverage((("events", 1),), ())))


def test_a_job_that_completed_needs_nothing(completed: Make) -> None:
    assert commands(completed()) == ()


@pytest.mark.parametrize("name", ["$(reboot)", "a;b", "-oProxyCommand=x", "a b", "../x", "host\nreboot"])
def test_a_host_name_that_is_no_plain_name_is_in_no_command(identified: Make, name: str) -> None:
    text = said(
        identified(
            advice=Advice(group="gpu-hardware"),
            failure=Failure("gpu-ecc-uncorrectable", None, "x"),
            initiating=Place("gpu", (3,), (name,)),
        )
    )
    assert name not in text
    assert "ssh HOST" in text


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_folded_command_is_the_same_to_a_shell(width: int) -> None:
    command = """printf '%s|' a "b  c 'd e' f" 'g h  i' "${NOTHING:-j k}" plain/word"""
    lines = folded(command, width)
    assert len(lines) > 1 or width == 80
    once = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert subprocess.run(["sh", "-c", "\n".join(lines)], capture_output=True, text=True, check=True).stdout == once


def test_every_command_can_be_read_by_a_shell(identified: Make, undetermined: Make) -> None:
    for group in ("gpu-hardware", "network", "storage", "collective", "host"):
        for diagnosis in (identified(advice=Advice(group=group)), undetermined()):
            for one in commands(diagnosis):
                assert shlex.split(one.command)
