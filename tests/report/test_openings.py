"""Three readers: each gets what they need, in words, from the same diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from firstfault.correlate.diagnosis import Advice, Checkpoint, Diagnosis
from firstfault.report.openings import openings, resume_words
from firstfault.report.words import duration_words, lower_first, span_of

Make = Callable[..., Diagnosis]
SAVED = Checkpoint("/ckpt/step_400", 400, "2026-05-04T10:01:12.345Z", "n1/rank0.log", 70, "saved checkpoint 400")


def by_reader(diagnosis: Diagnosis) -> dict[str, str]:
    return {one.reader: one.text for one in openings(diagnosis)}


def test_each_reader_gets_an_opening(identified: Make) -> None:
    one = identified(advice=Advice(fix=("a smaller batch",), owner="user", restart="same nodes after the fix"))
    said = by_reader(replace(one, job=replace(one.job, checkpoint=SAVED)))
    assert "rank 3 on host n2" in said["on call"]
    assert "Fix: a smaller batch." in said["on call"]
    assert "Start again on the same nodes once it is mended." in said["on call"]
    assert "n2/rank3.log:120" in said["engineer"]
    assert "out of memory on the device" in said["manager"]
    assert "10 min of work since the last checkpoint, 1.3 GPU hours" in said["manager"]
    assert "training code" in said["manager"]


def test_a_bad_node_is_left_out(identified: Make) -> None:
    said = by_reader(identified(advice=Advice(owner="platform", restart="exclude the node")))
    assert "Start again without host n2." in said["on call"]
    assert "platform team" in said["manager"]


def test_nobody_is_blamed_where_nothing_is_settled(undetermined: Make) -> None:
    said = by_reader(undetermined())
    assert "Do not blame anybody yet" in said["on call"]
    assert "do not say why" in said["manager"]


def test_a_good_end_needs_nothing(completed: Make) -> None:
    said = by_reader(completed())
    assert said["on call"] == "Nothing to do: the job completed."
    assert said["manager"] == "The job on 8 GPU processes completed."


def test_where_to_resume_names_the_checkpoint_and_its_line(identified: Make) -> None:
    one = identified()
    assert resume_words(one) == "the last complete checkpoint (the logs show none)"
    seen = replace(one, job=replace(one.job, checkpoint=SAVED))
    assert resume_words(seen) == (
        "the last finished checkpoint in the logs is step 400 in /ckpt/step_400, "
        "written 2026-05-04 10:01:12.345 UTC (n1/rank0.log:70)"
    )


def test_durations_in_words() -> None:
    assert [duration_words(one) for one in (0.25, 12.34, 61, 3600, 7500, 90000)] == [
        "250 ms",
        "12.3 s",
        "1 min 1 s",
        "1 h",
        "2 h 5 min",
        "1 d 1 h",
    ]
    assert span_of("2026-05-04T10:00:00Z", "2026-05-04T10:00:05Z") == ("5 s", 5.0)
    assert span_of("2026-05-04T10:00:00Z", "2026-05-04T10:00:05") is None
    assert span_of(None, "2026-05-04T10:00:05") is None


def test_titles_inside_a_sentence() -> None:
    assert lower_first("A rank fell silent") == "a rank fell silent"
    assert lower_first("CUDA out of memory") == "CUDA out of memory"
    assert lower_first("Out of memory") == "out of memory"
