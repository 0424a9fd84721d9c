"""Texts that a reader only passes on are looked up in the catalog."""

from __future__ import annotations

import pytest

from firstfault.catalog.loader import load_catalog
from firstfault.catalog.matcher import Matcher
from firstfault.ingest.dumps import DumpRows, DumpSignal
from firstfault.ingest.dumps.classify import classified


@pytest.fixture(scope="module")
def matcher(tmp_path_factory: pytest.TempPathFactory) -> Matcher:
    return Matcher.load(load_catalog(), tmp_path_factory.mktemp("cache"))


def look_up(matcher: Matcher, **columns: object) -> DumpSignal:
    return classified(DumpRows((DumpSignal(1, **columns),)), matcher).signals[0]  # type: ignore[arg-type]


def test_the_message_of_an_error_file_gets_its_class(matcher: Matcher) -> None:
    text = "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOSError: [Errno 24] Too many open files"
    one = look_up(matcher, event="exception", text=text, captures={"exception": "RuntimeError"})
    assert one.cls == "open-files-exhausted"
    assert one.captures["exception"] == "RuntimeError"


def test_an_exception_that_nobody_knows_is_still_one(matcher: Matcher) -> None:
    one = look_up(matcher, event="exception", text="FrobnicationError: cannot frobnicate")
    assert (one.entry, one.cls, one.event) == ("python-traceback", "python-exception", "exception")


def test_facts_and_states_of_a_reader_stay_as_they_are(matcher: Matcher) -> None:
    one = look_up(matcher, event="phase", fact="stack", text="OSError: [Errno 24] Too many open files")
    assert (one.entry, one.event) == (None, "phase")
    assert look_up(matcher, event="sched-action", cls="pod-evicted", text="something").cls == "pod-evicted"


def test_an_effect_is_not_made_a_cause(matcher: Matcher) -> None:
    one = look_up(
        matcher, event="signal-received", role="collateral", text="Killing pod/w-1: Stopping container trainer"
    )
    assert (one.event, one.role) == ("signal-received", "collateral")
