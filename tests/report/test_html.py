"""HTML: well formed, nothing fetched or run, nothing out of a log becomes markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

from firstfault.correlate.diagnosis import Diagnosis, Evidence, Failure, RankFate
from firstfault.report.html import to_html

Make = Callable[..., Diagnosis]
VOID = {"meta", "br"}


class Seen(HTMLParser):
    """Tags that were met, and whether each was closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src") or name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_pages_are_well_formed(identified: Make, undetermined: Make, completed: Make) -> None:
    for make in (identified, undetermined, completed):
        seen = Seen(to_html(make()))
        assert seen.open == []
        assert seen.links == []
        assert "script" not in seen.tags


def test_it_says_what_the_other_reports_say(identified: Make) -> None:
    page = to_html(identified())
    assert "<dt>where</dt><dd>rank 3 on host n2 (GPU n2/1)</dd>" in page
    assert '<code class="place">n2/rank3.log:120</code>' in page
    assert "7 ranks lost the connection to a peer (0-2, 4-7)" in page


def test_the_missing_fact_is_said_once(undetermined: Make) -> None:
    assert to_html(undetermined()).count("chronyc tracking") == 1


def test_log_text_is_escaped(identified: Make) -> None:
    evil = '<script>alert(1)</script><img src=x onerror="a()"> \x1b[2J'
    page = to_html(
        identified(
            evidence=(Evidence(evil, 1, evil, evil),),
            failure=Failure("cuda-oom", evil, evil),
            summary=evil,
            fates=(RankFate(0, evil, evil),),
        )
    )
    seen = Seen(page)
    assert not seen.tags & {"script", "img"}
    assert seen.links == []
    assert "\x1b" not in page


def test_every_rank_has_its_fate(identified: Make) -> None:
    fates = (RankFate(0, "n1", "lost the connection to a peer", 7), RankFate(3, "n2", "initiating: cuda-oom"))
    page = to_html(identified(fates=fates))
    assert '<span title="rank 0 on n1: lost the connection to a peer, last step 7">0</span>' in page
    assert '<span class=root title="rank 3 on n2: initiating: cuda-oom">3</span>' in page
    assert re.search(r"<h2>Ranks</h2>", page)
