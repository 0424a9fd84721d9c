"""When the alarm speaks, told by a clock of its own."""

from __future__ import annotations

from typing import Any

from firstfault.live.alarm import Alarm, Alert, Kind, Patience, verdict_text
from firstfault.live.reading import Seen, Sign, Step

DOCUMENT: dict[str, Any] = {
    "verdict": "identified",
    "failure": {"class": "cuda-oom", "entry": "pytorch-cuda-oom", "title": "CUDA out of memory"},
    "initiating": {"ranks": [3], "hosts": ["node-2"]},
    "evidence": [{"path": "rank3.log", "line": 9, "text": "torch.OutOfMemoryError"}],
    "confidence": 0.9,
    "missing_fact": None,
    "next_action": "smaller batch",
}


def sign(role: str = "initiating", path: str = "rank3.log", entry: str = "pytorch-cuda-oom") -> Sign:
    return Sign(path, 9, "torch.OutOfMemoryError", entry, "cuda-oom", "CUDA out of memory", role, 3, None, "node-2")


def kinds(alerts: list[Alert]) -> list[Kind]:
    return [alert.kind for alert in alerts]


def alarm(**patience: float) -> Alarm:
    return Alarm(Patience(**{"settle": 10, "longest": 60, "hang": 100, **patience}), 0)


def signs(*found: Sign) -> Seen:
    return Seen(lines=len(found), signs=list(found))


def steps(step: int, *ranks: int) -> Seen:
    return Seen(lines=len(ranks), steps=[Step(f"rank {rank}", step) for rank in ranks])


def test_the_first_sign_is_said_at_once_and_claims_no_verdict() -> None:
    one = alarm()
    (alert,) = one.feed(signs(sign()), 1)
    assert alert.kind is Kind.SIGN
    assert "rank 3 on node-2" in alert.text
    assert "rank3.log:9: torch.OutOfMemoryError" in alert.text
    assert "no verdict yet" in alert.text


def test_of_signs_that_come_together_one_that_may_begin_it_is_shown() -> None:
    one = alarm()
    (alert,) = one.feed(signs(sign("collateral", "a.log"), sign("initiating", "b.log"), sign("ambiguous", "a.log")), 1)
    assert alert.sign is not None
    assert alert.sign.path == "b.log"


def test_a_cascade_is_diagnosed_once_it_is_quiet() -> None:
    one = alarm()
    one.feed(signs(sign()), 0)
    for second in range(1, 8):
        assert one.feed(signs(sign("collateral", f"rank{second}.log")), second) == []
    assert one.tick(16) == []
    assert one.due is None
    one.tick(17)
    assert one.due is Kind.SETTLED
    (alert,) = one.diagnosed(DOCUMENT, 20)
    assert alert.kind is Kind.SETTLED
    assert (
        alert.text.splitlines()[0]
        == "First failure: CUDA out of memory (cuda-oom), rank 3 on node-2 (confidence 0.90)."
    )
    assert one.due is None


def test_a_cascade_without_an_end_is_diagnosed_all_the_same() -> None:
    one = alarm()
    one.feed(signs(sign()), 0)
    for second in range(1, 60):
        one.feed(signs(sign("collateral", f"rank{second}.log")), second)
        one.tick(second)
    one.tick(60)
    assert one.due is Kind.SETTLED


def test_what_may_have_begun_it_is_said_once_more_after_a_consequence() -> None:
    one = alarm()
    assert kinds(one.feed(signs(sign("collateral", "a.log")), 0)) == [Kind.SIGN]
    assert kinds(one.feed(signs(sign("initiating", "b.log")), 2)) == [Kind.NEARER]
    assert kinds(one.feed(signs(sign("initiating", "c.log")), 3)) == []


def test_the_same_sign_is_not_said_again_within_the_hour() -> None:
    one = alarm()
    one.feed(signs(sign()), 0)
    one.tick(10)
    one.diagnosed(DOCUMENT, 12)
    assert one.feed(signs(sign()), 60) == []
    assert kinds(one.feed(signs(sign()), 3700)) == [Kind.SIGN]
    assert one.state.signs["pytorch-cuda-oom", "cuda-oom"] == 3


def test_signs_in_old_lines_wait_until_all_old_lines_are_read() -> None:
    one = alarm()
    assert one.feed(signs(sign("collateral", "a.log")), 0, catching_up=True) == []
    (alert,) = one.feed(signs(sign("initiating", "z.log")), 1)
    assert alert.sign is not None
    assert alert.sign.path == "z.log"


def test_no_progress_of_anybody_is_a_hang_and_names_who_is_behind() -> None:
    one = alarm()
    for step in range(6):
        one.feed(steps(step, 0, 1, 2, 3), step)
    one.feed(steps(6, 0, 1, 3), 6)
    assert one.tick(105) == []
    (alert,) = one.tick(106)
    assert alert.kind is Kind.HANG
    assert alert.ranks == ("rank 2",)
    assert "the last steps are 5 to 6" in alert.text
    assert one.due is Kind.HANG
    assert one.tick(200) == []
    assert kinds(one.feed(steps(7, 0, 1, 2, 3), 201)) == [Kind.RESUMED]


def test_chatter_is_no_progress() -> None:
    one = alarm()
    for step in range(6):
        one.feed(steps(step, 0, 1), step)
    for second in range(6, 104):
        one.feed(Seen(lines=1), second)
        assert one.tick(second) == []
    assert kinds(one.tick(105)) == [Kind.HANG]


def test_a_pause_as_long_as_those_before_is_no_hang() -> None:
    """Evaluations of 40 s were there before: only five times as long is odd."""
    one = alarm(hang=30)
    for step in range(6):
        one.feed(steps(step, 0, 1), step * 40)
    assert one.tick(399) == []
    assert kinds(one.tick(400)) == [Kind.HANG]


def test_one_rank_that_stays_behind_is_named() -> None:
    one = alarm()
    for step in range(5):
        one.feed(steps(step, 0, 1, 2), step)
    found = []
    for second in range(5, 110):
        found += one.feed(steps(second, 0, 1), second) + one.tick(second)
    assert kinds(found) == [Kind.BEHIND]
    assert found[0].ranks == ("rank 2",)


def test_silence_after_a_good_end_is_no_hang() -> None:
    one = alarm()
    for step in range(6):
        one.feed(steps(step, 0, 1), step)
    one.feed(Seen(lines=1, completed=True), 7)
    assert one.tick(108) == []
    assert one.due is Kind.ENDED


def test_a_job_that_never_begins_is_said_once() -> None:
    one = alarm()
    assert one.tick(99) == []
    assert kinds(one.tick(100)) == [Kind.SILENT]
    assert one.tick(300) == []


def test_hang_detection_can_be_switched_off() -> None:
    one = alarm(hang=0)
    one.feed(steps(1, 0), 0)
    assert one.tick(1_000_000) == []


def test_a_diagnosis_that_settles_nothing_names_what_is_missing() -> None:
    text = verdict_text({**DOCUMENT, "verdict": "undetermined", "missing_fact": "the log of rank 5"})
    assert text.startswith("What failed first is not settled (confidence 0.90). Missing: the log of rank 5")
