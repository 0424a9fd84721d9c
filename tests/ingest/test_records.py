"""Tracebacks, failure tables and frame blocks: one signal each, at the line that says it."""

from __future__ import annotations

import json
from typing import Any

import pytest

SIGNALS = """
    SELECT line, first_line, last_line, event, entry, captures['exception'], captures['text']
    FROM signal_rows WHERE event IN ('exception', 'agent-report') ORDER BY source_id, line
"""
PLAIN = """\
Traceback (most recent call last):
  File "/opt/train/train.py", line 85, in <module>
    main()
  File "/opt/train/env/lib/python3.11/site-packages/torch/run.py", line 367, in wrapper
    return f(*args, **kwargs)
           ^^^^^^^^^^^^^^^^^^
KeyError: 'lr_scale'
"""


def prefixed(text: str, prefix: str) -> list[str]:
    return [prefix + line for line in text.splitlines()]


def test_a_traceback_is_one_signal_at_its_exception(read: Any) -> None:
    made = read({"a.log": "before\n" + PLAIN + "2025-05-12 10:11:12,345 - root - INFO - after\n"})
    assert made.rows(SIGNALS) == [(8, 2, 8, "exception", "python-traceback", "KeyError", "'lr_scale'")]
    assert made.rows("SELECT captures['src_file'], captures['src_line'], captures['function'] FROM signal_rows") == [
        ("/opt/train/train.py", "85", "<module>")
    ]
    assert made.rows("SELECT line, record, class FROM line_rows WHERE record IS NOT NULL OR class IS NOT NULL") == [
        *((line, 2, None) for line in range(2, 8)),
        (8, 2, "python-exception"),
    ]


def test_ranks_of_one_file_are_separated_first(read: Any) -> None:
    zero, one = (
        prefixed(PLAIN, "[rank0]: "),
        prefixed(PLAIN.replace("KeyError: 'lr_scale'", "ValueError: bad"), "[rank1]: "),
    )
    mixed = [line for pair in zip(zero, one, strict=True) for line in pair]
    made = read({"train.log": "\n".join(mixed) + "\n"})
    assert made.rows("SELECT line, first_line, rank, captures['exception'] FROM signal_rows ORDER BY line") == [
        (13, 1, 0, "KeyError"),
        (14, 2, 1, "ValueError"),
    ]


def test_lines_of_other_threads_do_not_break_a_traceback(read: Any) -> None:
    lines = prefixed(PLAIN, "[rank3]: ")
    lines.insert(3, "[rank3]:[W512 10:11:12.715298746 socket.cpp:207] [c10d] a warning in between")
    made = read({"a.log": "\n".join(lines) + "\n"})
    assert made.rows(SIGNALS) == [(8, 1, 8, "exception", "python-traceback", "KeyError", "'lr_scale'")]


def test_a_header_on_every_line_is_no_obstacle(read: Any) -> None:
    lines = prefixed(PLAIN, "E0512 10:11:12.345000 8573 torch/distributed/elastic/api.py:882] ")
    made = read({"a.log": "\n".join(lines) + "\n"})
    assert made.rows(SIGNALS) == [(7, 1, 7, "exception", "python-traceback", "KeyError", "'lr_scale'")]


def test_a_head_behind_a_header_goes_on_without_it(read: Any) -> None:
    made = read({"a.log": "2025-05-12 10:11:12,345 - root - ERROR - " + PLAIN})
    assert made.rows(SIGNALS) == [(7, 1, 7, "exception", "python-traceback", "KeyError", "'lr_scale'")]


@pytest.mark.parametrize(
    "joint",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
@pytest.mark.parametrize("prefix", ["", "[rank5]: "])
def test_a_chain_names_the_line_of_its_root(read: Any, joint: str, prefix: str) -> None:
    second = PLAIN.replace("KeyError: 'lr_scale'", "RuntimeError: step failed")
    third = PLAIN.replace("KeyError: 'lr_scale'", "SystemExit: 1")
    chain = f"{PLAIN}\n{joint}\n\n{second}\n{joint}\n\n{third}"
    text = "\n".join(prefix + line if line else line for line in chain.splitlines())
    made = read({"a.log": text + "\n"})
    assert made.rows("SELECT line, captures['exception'], captures['cause_line'] FROM signal_rows ORDER BY line") == [
        (7, "KeyError", None),
        (17, "RuntimeError", "7"),
        (27, "SystemExit", "7"),
    ]


def test_the_message_of_an_exception_may_go_on(read: Any) -> None:
    text = PLAIN.replace("KeyError: 'lr_scale'", "RuntimeError: CUDA error: something\nCompile with `X` to see more.\n")
    made = read({"a.log": text + "2025-05-12 10:11:12,345 - root - INFO - next\n"})
    assert made.rows("SELECT line, last_line FROM signal_rows") == [(7, 8)]


def test_a_traceback_at_the_end_of_a_growing_file(read: Any) -> None:
    cut = PLAIN.rstrip("\n")
    assert read({"a.log": cut}).rows("SELECT line FROM signal_rows") == [(7,)]
    assert read({"a.log": cut.rpartition("\n")[0]}).rows("SELECT line FROM signal_rows") == []


def test_what_stands_behind_an_exception_keeps_its_own_signals(read: Any) -> None:
    text = (
        PLAIN + "slurmstepd: error: *** STEP 42.0 ON node-07 CANCELLED AT 2025-05-12T10:11:12 DUE TO TIME LIMIT ***\n"
    )
    made = read({"slurm-42.out": text})
    assert made.rows("SELECT line, last_line, class FROM signal_rows ORDER BY line") == [
        (7, 7, "python-exception"),
        (8, 8, "time-limit"),
    ]


def test_signals_inside_the_frames_are_quotes(read: Any) -> None:
    text = PLAIN.replace("    main()", "    raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB.')")
    assert read({"a.log": text}).column("SELECT line FROM signal_rows") == [7]


TABLE = """\
Traceback (most recent call last):
  File "/opt/train/env/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-30_13:47:05
  host      : gpu-a01.cluster.local
  rank      : 9 (local_rank: 1)
  exitcode  : -15 (pid: 10529)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 10529
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-30_13:47:02
  host      : gpu-a01.cluster.local
  rank      : 8 (local_rank: 0)
  exitcode  : 1 (pid: 10525)
  error_file: /x/0/error.json
  traceback : Traceback (most recent call last):
    File "/opt/train/train.py", line 53, in main
      scale = schedule["lr_scale"]
              ~~~~~~~~^^^^^^^^^^^^
  KeyError: 'lr_scale'
  
============================================================
"""  # noqa: W291, W293


@pytest.mark.parametrize("prefix", ["", "0: "])
def test_each_failure_of_a_launchers_table_is_a_report_about_its_rank(read: Any, prefix: str) -> None:
    text = "".join(prefix + line + "\n" for line in TABLE.splitlines())
    made = read({"agent.log": text})
    rows = made.rows("""
        SELECT line, event, rank, local_rank, host, captures['exitcode'], captures['child_pid'], captures['reported'],
            captures['exception'], captures['path'], make_timestamp(stamp_ns // 1000)::VARCHAR
        FROM signal_rows WHERE event = 'agent-report' AND rank IS NOT NULL ORDER BY line
    """)
    assert rows == [
        (15, "agent-report", 9, 1, "gpu-a01", "-15", "10529", "other", None, None, "2026-11-30 13:47:05"),
        (
            28, "agent-report", 8, 0, "gpu-a01", "1", "10525", "first", "KeyError", "/x/0/error.json",
            "2026-11-30 13:47:02",
        ),
    ]  # fmt: skip
    assert made.rows("SELECT min(line), max(line), count(*) FROM line_rows WHERE record = 1") == [(1, 30, 30)]


def test_the_launchers_own_exception_is_no_failure_of_a_rank(read: Any) -> None:
    made = read({"agent.log": TABLE})
    assert made.rows("SELECT event, entry IS DISTINCT FROM 'python-traceback' FROM signal_rows WHERE line = 4") == [
        ("agent-report", True)
    ]


def test_frame_blocks_stay_together(read: Any) -> None:
    text = (
        "Exception raised from checkTimeout at /pytorch/x.cpp:632 (most recent call first):\n"
        "frame #0: c10::Error::Error(...) + 0x96 (0x7f in /lib/libc10.so)\n"
        "frame #1: c10d::run() + 0x1d0 (0x7f in /lib/libtorch.so)\n"
        "\n"
        "next\n"
    )
    made = read({"a.log": text})
    assert made.rows("SELECT line, record FROM line_rows WHERE record IS NOT NULL") == [(1, 1), (2, 1), (3, 1)]


def test_a_traceback_in_json_stays_a_line(read: Any) -> None:
    made = read({"notes.jsonl": json.dumps({"event": PLAIN}) + "\n"})
    assert made.rows("SELECT count(*) FROM line_rows") == [(1,)]


@pytest.mark.parametrize(
    ("outer", "between"),
    [
        ("RuntimeError: Caught RuntimeError in DataLoader worker process 0.", "Original "),
        (
            "torch.multiprocessing.spawn.ProcessRaisedException: ",
            "\n-- Process 1 terminated with the following error:\n",
        ),
    ],
)
def test_a_traceback_quoted_from_another_process_is_the_cause(read: Any, outer: str, between: str) -> None:
    text = PLAIN.replace("KeyError: 'lr_scale'", outer) + between + PLAIN
    made = read({"a.log": text})
    rows = made.rows("""
        SELECT line, captures['exception'], captures['cause_line'] FROM signal_rows
        WHERE captures['exception'] IS NOT NULL ORDER BY line
    """)
    inner = rows[-1][0]
    assert [row[1] for row in rows] == [outer.partition(":")[0], "KeyError"]
    assert [row[2] for row in rows] == [str(inner), None]


def test_an_exception_that_an_entry_knows_is_not_named_twice(read: Any) -> None:
    text = PLAIN.replace(
        "KeyError: 'lr_scale'", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    )
    made = read({"a.log": text})
    assert made.column("SELECT class FROM signal_rows") == ["cuda-oom"]


def test_an_exception_without_traceback_is_still_seen(read: Any) -> None:
    made = read({"a.log": "ValueError: bad sample\n"})
    assert made.rows("SELECT entry, captures['exception'] FROM signal_rows") == [("python-traceback", "ValueError")]


@pytest.mark.parametrize(
    ("line", "capture", "value"),
    [
        ("Exception ignored in: <function Writer.__del__ at 0x7f3c>", "state", "ignored"),
        ("Exception in thread Thread-3 (_pin_memory_loop):", "thread", "Thread-3"),
    ],
)
def test_a_traceback_that_ends_no_process_says_so(read: Any, line: str, capture: str, value: str) -> None:
    made = read({"a.log": f"{line}\n{PLAIN}{PLAIN}"})
    assert made.rows(f"SELECT line, captures['{capture}'] FROM signal_rows WHERE event = 'exception' AND line > 1") == [
        (8, value),
        (15, None),
    ]
