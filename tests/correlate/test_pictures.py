"""What the pictures of a report are made of: lanes, marks, progress, the folded graph, lines before the failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstfault.correlate.contexts import Wanted
from firstfault.correlate.diagnosis import Diagnosis
from firstfault.correlate.engine import diagnose
from firstfault.correlate.picture import MarkKind
from firstfault.correlate.swim import RANK_LANES

from .timeline_builder import Job


def oom() -> Job:
    """
    a  r0 1..8 [saved 5]          lost b 11     the clock of b is 40 s ahead
       r1 1..8                    lost b 12
    b  r2 1..9                    lost b 12
       r3 1..9            OOM 10
    """
    job = Job(skew={"b": 40.0}, a=2, b=2)
    job.rank(0).steps(5).signal("checkpoint", fact="checkpoint-end", at=5.5, step=5, path="/ckpt/5", text="saved")
    job.rank(0).signal("checkpoint", fact="checkpoint-begin", at=7.5, step=7, text="saving")
    job.rank(0).steps(8, first=6).lost("b", at=11)
    job.rank(1).steps(8).lost("b", at=12)
    job.rank(2).steps(9).lost("b", at=12)
    job.rank(3).steps(9).error("cuda-oom", at=10)
    job.launcher("b").exit(3, 1, at=12)
    return job


def answer(job: Job, folder: Path, wanted: Wanted | None = None) -> Diagnosis:
    return diagnose(job.write(folder / "t.duckdb"), wanted=wanted)


def test_each_rank_has_a_lane_on_the_aligned_clock(tmp_path: Path) -> None:
    swim = answer(oom(), tmp_path).swim
    lanes = {lane.name: lane for lane in swim.lanes}
    assert [lane.name for lane in swim.lanes if lane.ranks] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert [lane.root for lane in swim.lanes if lane.ranks] == [False, False, False, True]
    # rank 3 fails 9 seconds after the first step, however far the clock of its host is off
    assert [mark.at for mark in lanes["rank 3"].marks if mark.kind is MarkKind.ROOT] == [pytest.approx(9.0, abs=0.1)]
    assert lanes["rank 2"].spans == ((pytest.approx(0.0, abs=0.1), pytest.approx(11.0, abs=0.1)),)
    assert swim.failed_at == pytest.approx(9.0, abs=0.1)
    assert swim.focus[0] < 9.0 <= swim.focus[1] <= swim.until


def test_marks_say_what_happened_and_where(tmp_path: Path) -> None:
    lanes = {lane.name: lane for lane in answer(oom(), tmp_path).swim.lanes}
    marks = {mark.kind: mark for mark in lanes["rank 3"].marks}
    assert set(marks) == {MarkKind.ROOT, MarkKind.EXIT}
    assert (marks[MarkKind.ROOT].path, marks[MarkKind.ROOT].line) == ("b/rank3.log", 10)
    assert {mark.kind for mark in lanes["rank 0"].marks} == {MarkKind.ECHO, MarkKind.SAVED}


def test_a_silent_rank_is_marked_at_its_last_line(tmp_path: Path) -> None:
    job = Job(a=2, b=2)
    for log in job.ranks():
        log.steps(8)
    for rank in (0, 1, 2):
        job.rank(rank).timeout(9, at=610, enqueued=9, completed=8)
    found = answer(job, tmp_path)
    assert found.initiating.ranks == (3,)
    lane = next(lane for lane in found.swim.lanes if lane.name == "rank 3")
    assert [(mark.kind, mark.line) for mark in lane.marks] == [(MarkKind.ROOT, 8)]
    assert lane.spans[-1][1] < found.swim.until - 500


def test_many_ranks_share_lanes_by_host_and_the_root_keeps_its_own(tmp_path: Path) -> None:
    hosts = {f"n{number:02}": 8 for number in range(RANK_LANES // 8 + 1)}
    job = Job(**hosts)
    for log in job.ranks():
        log.steps(3)
    job.rank(19).error("cuda-oom", at=4)
    for log in job.ranks():
        if log.rank != 19:
            log.lost("n02", at=5)
    swim = answer(job, tmp_path).swim
    assert [lane.name for lane in swim.lanes if lane.root] == ["rank 19"]
    assert sum(len(lane.ranks) for lane in swim.lanes) == sum(hosts.values())
    assert len(swim.lanes) == len(hosts) + 1
    one = next(lane for lane in swim.lanes if lane.name == "n00")
    assert one.fate == "8× lost the connection to a peer"


def test_without_a_time_there_are_no_lanes(tmp_path: Path) -> None:
    job = Job(a=2)
    job.rank(0).step(1, None).step(2, None)
    job.rank(1).step(1, None).error("cuda-oom")
    found = answer(job, tmp_path)
    assert found.swim.lanes == ()
    assert found.swim.unplaced == 2
    assert [(one.step, one.ranks) for one in found.progress.reached] == [(1, (1,)), (2, (0,))]


def test_progress_shows_where_ranks_stopped_and_telling_curves(tmp_path: Path) -> None:
    progress = answer(oom(), tmp_path).progress
    assert [(one.step, one.ranks) for one in progress.reached] == [(8, (0, 1)), (9, (2, 3))]
    assert [(one.name, one.root) for one in progress.series] == [("rank 3", True), ("rank 0", False), ("rank 2", False)]
    assert [step for _, step in progress.series[0].points] == list(range(1, 10))


def test_the_last_checkpoint_is_the_last_finished_one_before_the_failure(tmp_path: Path) -> None:
    saved = answer(oom(), tmp_path).job.checkpoint
    assert saved is not None
    assert (saved.step, saved.path, saved.source, saved.line) == (5, "/ckpt/5", "a/rank0.log", 6)


def test_ranks_that_follow_alike_are_one_vertex(tmp_path: Path) -> None:
    graph = answer(oom(), tmp_path).graph
    assert [(node.key, node.depth) for node in graph.nodes if node.root] == [("rank:3", 0)]
    assert any(node.ranks == (0, 1, 2) for node in graph.nodes)
    keys = {node.key for node in graph.nodes}
    assert all(edge.cause in keys and edge.effect in keys for edge in graph.edges)
    assert graph.left_out == 0


def test_lines_before_the_failure_come_on_demand(tmp_path: Path) -> None:
    assert answer(oom(), tmp_path).contexts == ()
    found = answer(oom(), tmp_path, Wanted(3, every_rank=True)).contexts
    shown = {one.who: [line for line, _ in one.lines] for one in found}
    # the failure is at 10 s: rank 2 had printed nine steps, rank 0 eight and two lines of checkpoints
    assert shown["rank 3"] == [8, 9, 10]
    assert shown["rank 2"] == [7, 8, 9]
    assert shown["rank 0"] == [8, 9, 10]
    assert [one.who for one in answer(oom(), tmp_path, Wanted(1, (1,))).contexts] == ["rank 1"]


def test_the_first_to_complain_is_told_apart_from_the_root(tmp_path: Path) -> None:
    why = dict(answer(oom(), tmp_path).why_not)
    assert "it only lost the connection to a peer" in why["rank 0 (a)"]
