"""Finding entries by words, and what a pasted text leads to."""

from __future__ import annotations

import pytest

from firstfault.catalog import Catalog
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.search import explain, search


@pytest.mark.parametrize(
    ("words", "entry"),
    [
        ("too many open files hdf5", "fd-emfile-hdf5"),
        ("fell off the bus", "xid-79"),
        ("shared memory dataloader bus error", "dataloader-bus-error"),
        ("PORT already in use", "tcpstore-port-in-use"),
        ("retry exceeded infiniband", "ib-wc-12"),
        ("xid-48", "xid-48"),
    ],
)
def test_words_lead_to_the_entry_among_the_first(catalog: Catalog, words: str, entry: str) -> None:
    assert entry in [found.entry.id for found in search(catalog, words, 5)]


def test_a_beginning_of_a_word_is_enough(catalog: Catalog) -> None:
    assert any("nvlink" in found.entry.title.lower() for found in search(catalog, "nvli", 5))


def test_words_that_stand_nowhere_find_nothing(catalog: Catalog) -> None:
    assert search(catalog, "zzyzx ???") == []


def test_an_id_leads_to_its_entry_and_those_it_links_to(catalog: Catalog, matcher: Matcher) -> None:
    found = explain(catalog, matcher, " xid-79 ")
    assert [one.entry.id for one in found.candidates] == ["xid-79"]
    assert {one.id for one in found.related} <= set(catalog.entries)
    assert found.related


def test_a_class_leads_to_its_entries(catalog: Catalog, matcher: Matcher) -> None:
    found = explain(catalog, matcher, "open-files-exhausted")
    assert found.failure_class is not None
    assert found.failure_class.id == "open-files-exhausted"
    assert {one.cls for one in found.related} == {"open-files-exhausted"}


def test_a_line_with_its_header_leads_to_the_entry_with_captures(catalog: Catalog, matcher: Matcher) -> None:
    line = "Jan  2 03:04:05 node-2 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus."
    found = explain(catalog, matcher, line)
    first = found.candidates[0]
    assert first.entry.id == "xid-79"
    assert first.captures["bus_id"] == "0000:3b:00"
    assert [meaning.name for meaning in first.meanings] == ["GPU has fallen off the bus"]


def test_of_many_lines_the_likely_root_stands_first(catalog: Catalog, matcher: Matcher) -> None:
    text = "\n".join(
        [
            "[rank1]:[E512 10:11:12 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600099 ms",
            "[rank3]: Traceback (most recent call last):",
            "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        ]
    )
    found = [one.entry.id for one in explain(catalog, matcher, text).candidates]
    assert found[0] == "cuda-oom"
    assert "pgnccl-watchdog-timeout" in found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Xid 79", "GPU has fallen off the bus"),
        ("errno 28", "ENOSPC"),
        ("ECONNRESET", "ECONNRESET"),
        ("exit code 137", "128 + SIGKILL"),
        ("0:53", "output file"),
        ("it says ncclRemoteError", "ncclRemoteError"),
    ],
)
def test_codes_are_put_into_words(catalog: Catalog, matcher: Matcher, text: str, name: str) -> None:
    assert name in [meaning.name for meaning in explain(catalog, matcher, text).meanings]


def test_a_time_of_day_is_no_code(catalog: Catalog, matcher: Matcher) -> None:
    assert explain(catalog, matcher, "2026-05-12 10:11:12 started at 09:15").meanings == ()


def test_text_without_a_match_leads_to_related_entries_by_its_words(catalog: Catalog, matcher: Matcher) -> None:
    found = explain(catalog, matcher, "my nvlink looks odd")
    assert found.candidates == ()
    assert found.related


def test_a_name_in_shared_memory_is_no_file_of_the_data_set(catalog: Catalog, matcher: Matcher) -> None:
    line = "FileNotFoundError: [Errno 2] No such file or directory: '/psm_3f5a2b1c'"
    assert [one.entry.id for one in explain(catalog, matcher, line).candidates][:2] == [
        "shm-object-missing",
        "data-file-missing",
    ]
    ordinary = line.replace("/psm_3f5a2b1c", "/data/part-3.bin")
    assert explain(catalog, matcher, ordinary).candidates[0].entry.id == "data-file-missing"
