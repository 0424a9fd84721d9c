"""Exports: every form is well formed and finds what the catalog finds."""

from __future__ import annotations

import polars as pl
import pytest

from firstfault.catalog import Catalog, Role
from firstfault.catalog.exact import ExactPattern
from firstfault.catalog.export import FORMS, export, main, without_captures

yaml = pytest.importorskip("yaml")


def strong_examples(catalog: Catalog) -> list[str]:
    lines = []
    for entry in catalog.entries.values():
        weak = {one.id for one in entry.patterns if one.weak}
        if entry.role in (Role.INITIATING, Role.AMBIGUOUS):
            lines += [one.line for one in entry.match if one.pattern and one.pattern not in weak]
    return lines


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        (r"a (?P<rank>\d+) b", r"a (?:\d+) b"),
        (r"\(?P<rank>\)", r"\(?P<rank>\)"),
        (r"[(?P<x>]+", r"[(?P<x>]+"),
        (r"x{2,3} {name}", r"x{2,3} \{name}"),
        (r"[[\]]", r"[\[\]]"),
        (r"(?i)out (?P<a>of (?P<b>memory))", r"(?i)out (?:of (?:memory))"),
    ],
)
def test_captures_are_taken_out_and_nothing_else(pattern: str, plain: str) -> None:
    assert without_captures(pattern) == plain


def test_plain_patterns_match_the_same_examples_in_both_engines(catalog: Catalog) -> None:
    for entry in catalog.entries.values():
        lines = [one.line for one in (*entry.match, *entry.no_match)]
        series = pl.Series(lines, dtype=pl.String)
        for pattern in entry.patterns:
            plain = without_captures(pattern.regex)
            wanted = [ExactPattern(pattern.regex).search(line) is not None for line in lines]
            assert [ExactPattern(plain).search(line) is not None for line in lines] == wanted, (entry.id, pattern.id)
            assert series.str.contains(plain).to_list() == wanted, (entry.id, pattern.id)


def test_loki_rules_have_one_alert_an_entry_and_its_page(catalog: Catalog) -> None:
    (group,) = yaml.safe_load(export(catalog, "loki"))["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(set(names)) > 100
    rule = next(rule for rule in group["rules"] if rule["labels"]["entry"] == "xid-79")
    assert rule["alert"] == "Xid79"
    assert rule["labels"]["class"] == "gpu-fell-off-bus"
    assert rule["annotations"]["runbook"] == "firstfault explain xid-79"
    assert "count_over_time" in rule["expr"]


def test_prometheus_rules_watch_the_counter_that_vector_makes(catalog: Catalog) -> None:
    rules = yaml.safe_load(export(catalog, "prometheus-rule"))
    assert rules["kind"] == "PrometheusRule"
    (group,) = rules["spec"]["groups"]
    vector = yaml.safe_load(export(catalog, "vector"))["transforms"]
    (metric,) = vector["firstfault_count"]["metrics"]
    assert all(metric["name"] in rule["expr"] for rule in group["rules"])
    source = vector["firstfault_match"]["source"]
    assert source.count("match(message") == len(group["rules"])


def test_grep_texts_are_held_by_every_example(catalog: Catalog) -> None:
    texts = export(catalog, "grep").lower().splitlines()
    assert [line for line in strong_examples(catalog) if not any(text in line.lower() for text in texts)] == []


def test_ripgrep_expressions_find_every_example(catalog: Catalog) -> None:
    expressions = export(catalog, "ripgrep").splitlines()
    lines = pl.Series(strong_examples(catalog))
    found = pl.Series([False] * len(lines))
    for expression in expressions:
        found = found | lines.str.contains(expression)
    assert lines.filter(~found).to_list() == []


@pytest.mark.parametrize("form", sorted(FORMS))
def test_the_command_prints_each_form(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([form]) == 0
    assert capsys.readouterr().out.endswith("\n")
