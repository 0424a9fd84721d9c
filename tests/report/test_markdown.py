"""Markdown: pastes well, and nothing out of a log becomes markup."""

from __future__ import annotations

import re
from collections.abc import Callable

from firstfault.correlate.diagnosis import Diagnosis, Evidence, Failure
from firstfault.report.markdown import cell, code, to_markdown, words

Make = Callable[..., Diagnosis]


def test_the_facts_come_first(identified: Make) -> None:
    lines = to_markdown(identified()).splitlines()
    assert lines[0] == "# firstfault: first failure identified"
    assert "| what | Out of memory on the device (class `cuda-oom`, entry `cuda-oom`) |" in lines
    assert "| where | rank 3 on host n2 (GPU n2/1) |" in lines
    assert "- `n2/rank3.log:120`: the rank's own error" in lines
    assert "- 7 ranks lost the connection to a peer (0-2, 4-7): `n1/rank0.log:88`" in lines


def test_what_is_missing_is_said_once(undetermined: Make) -> None:
    assert to_markdown(undetermined()).count("chronyc tracking") == 1


def test_a_good_end_has_no_advice(completed: Make) -> None:
    text = to_markdown(completed())
    assert "What it means" not in text
    assert "- 1: completed" in text


def test_a_code_span_closes_where_it_should() -> None:
    assert code("a`b``c") == "```a`b``c```"
    assert code("`x`") == "`` `x` ``"
    assert code("") == "`  `"
    assert cell("a|b") == "`a\\|b`"


def test_markup_in_prose_is_literal() -> None:
    assert words("a*b_c [x](y) <b>&amp;|") == "a\\*b\\_c \\[x\\](y) &lt;b&gt;&amp;amp;\\|"


def test_log_text_is_only_in_code_spans(identified: Make) -> None:
    line = Evidence("x|y.log", 3, "```\n<script>alert(1)</script> | [click](http://x)", "why <b>")
    text = to_markdown(identified(evidence=(line,), failure=Failure("cuda-oom", None, "a | <i>title")))
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<script>" not in outside
    assert "<b>" not in outside
    assert "<i>" not in outside
    assert all(row.count("|") - row.count("\\|") == 3 for row in text.splitlines() if row.startswith("|"))
