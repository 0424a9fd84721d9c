"""The report on a terminal: what stands on the first screen, what is said once, what no log can do to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from firstfault.correlate.diagnosis import Collateral, CollateralGroup, Diagnosis, Evidence, Place
from firstfault.report.layout import cells
from firstfault.report.text import render, to_text

Make = Callable[..., Diagnosis]


def test_the_first_screen_answers_in_order(identified: Make) -> None:
    screen = to_text(identified(), 100).split("\n\n")
    assert screen[0] == "firstfault: first failure identified (confidence 0.97)"
    assert screen[1].splitlines() == [
        "  what      Out of memory on the device",
        "            class cuda-oom, entry cuda-oom",
        "  where     rank 3 on host n2 (GPU n2/1)",
        "            also named 10.0.0.2",
        "  when      2026-05-04 10:11:12.345 UTC",
        "  evidence  n2/rank3.log:120 (the rank's own error)",
        "              CUDA out of memory. Tried to allocate 2 GiB",
        "  followed  7 ranks lost the connection to a peer (0-2, 4-7): n1/rank0.log:88",
        "  fix       - a smaller batch",
        "            - activation checkpointing",
        "  check     torch.cuda.memory_summary()",
        "  resume    the last complete checkpoint (the logs show none)",
        "  job       8 ranks · 2 hosts · 1 attempt · 9 files · 4,821 lines · 2026-05-04 10:00:00.000 to",
        "            10:12:00.000 UTC",
    ]


def test_what_to_do_first_is_said_once(identified: Make) -> None:
    screen, _, _ = to_text(identified()).partition("In short")
    assert screen.count("a smaller batch") == 1
    assert "  next      drain n2\n" in to_text(identified(next_action="drain n2"))


def test_a_missing_fact_is_said_once(undetermined: Make) -> None:
    text = to_text(undetermined(), 120)
    assert text.count("chronyc tracking") == 1
    assert "firstfault: not determined (confidence 0.50)" in text
    assert "  suspects  0.50  data-missing, rank 1\n" in text
    assert "0.50  python-exception, n2\n                  against: no time\n" in text
    assert "What it means" not in text


def test_a_good_end_is_shown_with_its_lines_folded(completed: Make) -> None:
    text = to_text(completed(), 100)
    assert "  result    The job completed; nothing failed.\n" in text
    assert "r0.log:9 (states a good end)\n" in text
    assert "the same in r1.log:9 r2.log:9 and 1 more\n" in text
    assert "Nothing to mend" not in text


def test_attempts_are_told_apart(completed: Make) -> None:
    assert "Attempts ───" in (text := to_text(completed(), 100))
    assert "  0         Crash in native code: rank 1 on host n1\n  1         completed\n" in text


def test_groups_speak_in_the_plural(identified: Make) -> None:
    groups = (
        CollateralGroup("was ended by its launcher", (0, 1), ()),
        CollateralGroup("was ended by its launcher", (5,), ()),
    )
    text = to_text(identified(collateral=Collateral((0, 1, 5), (), groups)))
    assert "2 ranks were ended by their launcher (0, 1)\n" in text
    assert "1 rank was ended by its launcher (5)\n" in text


def test_a_cause_outside_the_ranks_is_named(identified: Make) -> None:
    assert "  where     the scheduler\n" in to_text(identified(initiating=Place("scheduler")))
    assert "  where     common to the whole job, no single rank or host\n" in to_text(
        identified(initiating=Place("job"))
    )


@pytest.mark.parametrize("width", [40, 60, 100, 140])
def test_no_line_is_wider_than_the_terminal(identified: Make, undetermined: Make, width: int) -> None:
    for diagnosis in (identified(), undetermined()):
        wide = [line for line in to_text(diagnosis, width).splitlines() if cells(line) > width]
        # only a word of a command that cannot be broken
        assert [line for line in wide if " " in line.strip().removesuffix(" \\")] == []


def test_a_narrow_terminal_gets_forty_columns(identified: Make) -> None:
    assert to_text(identified(), 10) == to_text(identified(), 40)


def test_no_log_text_acts_on_the_terminal(identified: Make) -> None:
    line = Evidence("a\x1b]0;x\x07.log", 1, "\x1b[2Jgone\u202egnp\x00\ttab", "why \x1b[0m")
    text = to_text(identified(evidence=(line,)))
    assert not set(text) & set("\x1b\x07\x00\u202e\t")
    assert "\\x1b[2Jgone\\u202egnp\\x00 tab" in text


def test_the_coloured_report_says_the_same(identified: Make) -> None:
    from rich.console import Console

    console = Console(width=300, no_color=True, highlight=False, emoji=False, markup=False)
    with console.capture() as capture:
        console.print(render(identified(), 80), soft_wrap=True)
    assert [line.rstrip() for line in capture.get().splitlines()] == to_text(identified(), 80).splitlines()


def test_data_loss_is_shown(identified: Make) -> None:
    assert "  data-loss truncated-archive (1): logs.tar\n" in to_text(identified())
