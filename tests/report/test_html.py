"""HTML: well formed, nothing fetched or run, nothing out of a log becomes markup."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from html.parser import HTMLParser

from firstfault.correlate.diagnosis import Diagnosis, Evidence, Failure, RankFate
from firstfault.correlate.picture import (
    CausalGraph,
    Context,
    GraphEdge,
    GraphNode,
    Lane,
    Mark,
    MarkKind,
    ProgressUpTo,
    Reached,
    Series,
    Swim,
)
from firstfault.report.html import policy, to_html

Make = Callable[..., Diagnosis]
VOID = {"meta", "br"}
EVIL = '<script>alert(1)</script><img src=x onerror="a()"> \x1b[2J \u202egnp]]></svg>'


class Seen(HTMLParser):
    """Tags that were met, and whether each was closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.scripts = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.scripts += tag == "script"
        self.links += [value or "" for name, value in attrs if name in ("href", "src") or name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_pages_are_well_formed(identified: Make, undetermined: Make, completed: Make) -> None:
    for make in (identified, undetermined, completed):
        seen = Seen(to_html(make()))
        assert seen.open == []
        assert [link for link in seen.links if not link.startswith("#")] == []
        assert seen.scripts == 1


def test_it_says_what_the_other_reports_say(identified: Make) -> None:
    page = to_html(identified())
    assert "<dt>where</dt><dd>rank 3 on host n2 (GPU n2/1)</dd>" in page
    assert '<code class="place">n2/rank3.log:120</code>' in page
    assert "7 ranks lost the connection to a peer (0-2, 4-7)" in page


def test_the_missing_fact_is_said_once(undetermined: Make) -> None:
    assert to_html(undetermined()).count("chronyc tracking") == 1


def test_log_text_is_escaped_everywhere(identified: Make) -> None:
    mark = Mark(1.0, MarkKind.ROOT, EVIL, EVIL, 3)
    page = to_html(
        identified(
            evidence=(Evidence(EVIL, 1, EVIL, EVIL),),
            failure=Failure("cuda-oom", EVIL, EVIL),
            summary=EVIL,
            fates=(RankFate(0, EVIL, EVIL),),
            swim=Swim(
                EVIL, 2.0, (0.0, 2.0), 1.0, (Lane(EVIL, (0,), (EVIL,), EVIL, True, False, ((0.0, 1.0),), (mark,)),)
            ),
            graph=CausalGraph(
                (GraphNode("a", "rank", EVIL, (0,), True, 0), GraphNode("b", "rank", EVIL, (1,), False, 1)),
                (GraphEdge("a", "b", EVIL, "weak", EVIL, 3),),
            ),
            progress=ProgressUpTo((Reached(3, (0,)),), (Series(EVIL, True, ((0.0, 1), (1.0, 3))),)),
            contexts=(Context(EVIL, EVIL, 4, ((4, EVIL),), True),),
        )
    )
    seen = Seen(page)
    assert seen.scripts == 1
    assert "img" not in seen.tags
    assert [link for link in seen.links if not link.startswith("#")] == []
    assert not set(page) & set("\x1b\u202e")
    assert seen.open == []


def test_only_its_own_style_and_script_may_run(identified: Make) -> None:
    page = to_html(identified())
    for tag in ("style", "script"):
        inside = re.findall(rf"(?s)<{tag}>(.*?)</{tag}>", page)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy()
    assert "unsafe" not in policy()
    assert 'style="' not in page


def test_every_rank_has_its_fate(identified: Make) -> None:
    fates = (RankFate(0, "n1", "lost the connection to a peer", 7), RankFate(3, "n2", "initiating: cuda-oom"))
    page = to_html(identified(fates=fates))
    assert '<li class=lost title="rank 0 on n1: lost the connection to a peer, last step 7">0</li>' in page
    assert '<li class=root title="rank 3 on n2: initiating: cuda-oom">3</li>' in page
    assert "<td>lost the connection to a peer</td><td>1: 0</td><td>7</td>" in page


def test_too_many_ranks_are_shown_by_host(identified: Make) -> None:
    fates = tuple(
        RankFate(rank, f"n{rank // 8}", "initiating: cuda-oom" if rank == 9 else "lost the connection to a peer")
        for rank in range(4096)
    )
    page = to_html(identified(fates=fates))
    assert (
        '<li class=root title="n1, ranks 8-15: 7× lost the connection to a peer; 1× initiating: cuda-oom">8</li>'
        in page
    )
    assert page.count("ranks 4088-4095") == 1
