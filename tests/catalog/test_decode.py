"""Codes in words: the tables are sound, and a code is understood in the forms that logs print it in."""

from __future__ import annotations

import errno
import signal

import pytest

from firstfault.catalog.decode import CodeKind, code_table, decode, decoded


@pytest.mark.parametrize("kind", list(CodeKind))
def test_every_code_has_a_name_and_a_sentence_and_its_table_a_reference(kind: CodeKind) -> None:
    table = code_table(kind)
    assert table.reference.startswith("https://")
    assert table.meanings
    for meaning in table.meanings.values():
        assert meaning.name
        assert meaning.means[0].isupper()
        assert meaning.means.endswith(".")


def test_errno_and_signals_have_the_numbers_of_linux() -> None:
    for meaning in code_table(CodeKind.ERRNO).meanings.values():
        assert getattr(errno, meaning.name, int(meaning.code)) == int(meaning.code)
    for meaning in code_table(CodeKind.SIGNAL).meanings.values():
        assert signal.Signals(int(meaning.code)).name == meaning.name


@pytest.mark.parametrize(
    ("kind", "code", "name"),
    [
        ("xid", 79, "GPU has fallen off the bus"),
        ("xid", "79", "GPU has fallen off the bus"),
        ("ib-status", "12", "IBV_WC_RETRY_EXC_ERR"),
        ("ib-status", "IBV_WC_RETRY_EXC_ERR", "IBV_WC_RETRY_EXC_ERR"),
        ("signal", "SIGKILL", "SIGKILL"),
        ("signal", "kill", "SIGKILL"),
        ("signal", "-9", "SIGKILL"),
        ("exit-code", "-9", "ended by SIGKILL"),
        ("exit-code", "137", "128 + SIGKILL"),
        ("exit-code", "138", "ended by SIGUSR1"),
        ("slurm-exit", "0:53", "output file"),
        ("slurm-exit", "1:0", "exit code 1"),
        ("slurm-exit", "139:0", "128 + SIGSEGV"),
        ("slurm-exit", "0:12", "SIGUSR2"),
        ("cuda-error", "700", "cudaErrorIllegalAddress"),
        ("nccl-result", "ncclRemoteError", "ncclRemoteError"),
        ("slurm-state", "TO", "TIMEOUT"),
        ("kubernetes-reason", "OOMKilled", "OOMKilled"),
    ],
)
def test_a_code_is_known_by_number_and_by_name(kind: str, code: str | int, name: str) -> None:
    meaning = decode(kind, code)
    assert meaning is not None
    assert meaning.name == name


@pytest.mark.parametrize(("kind", "code"), [("xid", "9999"), ("exit-code", "77"), ("exit-code", "x"), ("signal", "")])
def test_an_unknown_code_stays_a_number(kind: str, code: str) -> None:
    assert decode(kind, code) is None


def test_captures_are_decoded_by_their_names() -> None:
    assert [one.name for one in decoded({"xid": "79", "pid": "9", "exitcode": "-11", "reason": "Evicted"})] == [
        "ended by SIGSEGV",
        "Evicted",
        "GPU has fallen off the bus",
    ]
    assert decoded({"rank": "3"}) == ()
