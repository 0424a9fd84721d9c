"""The catalog's patterns for other tools: alert rules of Loki and Prometheus, a Vector pipeline, grep and ripgrep.

    python -m firstfault.catalog.export loki > rules.yaml

Exported are the strong patterns of entries that may start a failure, without their captures: one alert an entry.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from firstfault.catalog.loader import Catalog, load_catalog
from firstfault.catalog.model import Entry, Role
from firstfault.catalog.triggers import derive

METRIC = "firstfault_log_matches_total"
"""The counter that the Vector pipeline makes and the Prometheus rules watch."""

_ROLES = (Role.INITIATING, Role.AMBIGUOUS)


def export(catalog: Catalog, form: str, roles: Iterable[Role] = _ROLES, only: Iterable[str] | None = None) -> str:
    """The patterns in one of the forms of `FORMS`: of entries with these roles, `only` of some entries and classes.

    An entry that is named itself is taken whatever its role.
    """
    chosen, wanted = frozenset(only or ()), frozenset(roles)
    entries = [
        entry
        for entry in catalog.entries.values()
        if entry.id in chosen or (entry.role in wanted and (not chosen or entry.cls in chosen))
    ]
    return FORMS[form]([entry for entry in entries if _strong(entry)])


def without_captures(pattern: str) -> str:
    """The same expression with groups that only group, in the syntax that RE2 and Rust share."""
    made: list[str] = []
    at = 0
    in_class = False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            made.append(pattern[at : at + 2])
            at += 2
            continue
        if in_class:
            first = made[-1:] in (["["], ["[^"])
            if char == "]" and not first:
                in_class = False
            made.append("\\" + char if char in "[&~]" and not (char == "]" and not first) else char)
        elif char == "[":
            in_class = True
            negated = pattern.startswith("[^", at)
            made.append("[^" if negated else "[")
            at += negated
        elif pattern.startswith("(?P<", at):
            made.append("(?:")
            at = pattern.index(">", at)
        elif char == "{" and not _counts(pattern, at):
            made.append("\\{")
        else:
            made.append(char)
        at += 1
    return "".join(made)


def _counts(pattern: str, at: int) -> bool:
    inside = pattern[at + 1 : max(pattern.find("}", at), at)].split(",")
    return len(inside) <= 2 and inside[0].isdigit() and (len(inside) == 1 or inside[1].isdigit() or not inside[1])


def _strong(entry: Entry) -> list[str]:
    return [without_captures(one.regex) for one in entry.patterns if not one.weak]


def _together(entry: Entry) -> str:
    patterns = _strong(entry)
    return patterns[0] if len(patterns) == 1 else "|".join(f"(?:{one})" for one in patterns)


def _quoted(text: str) -> str:
    """A text in double quotes, as JSON and YAML both read it."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def _alert_name(entry: Entry) -> str:
    return "".join(part.capitalize() for part in entry.id.replace("_", "-").split("-"))


def _alert(entry: Entry, expression: str, indent: str) -> Iterator[str]:
    severity = "critical" if entry.role is Role.INITIATING else "warning"
    labels: Mapping[str, str] = {"severity": severity, "entry": entry.id, "class": entry.cls, "scope": str(entry.scope)}
    yield f"{indent}- alert: {_alert_name(entry)}"
    yield f"{indent}  expr: {json.dumps(expression, ensure_ascii=False)}"
    yield f"{indent}  labels:"
    yield from (f"{indent}    {name}: {_quoted(value)}" for name, value in labels.items())
    yield f"{indent}  annotations:"
    yield f"{indent}    summary: {_quoted(entry.title)}"
    yield f"{indent}    description: {_quoted(entry.mechanism)}"
    yield f"{indent}    runbook: {_quoted(f'firstfault explain {entry.id}')}"


def _loki(entries: Sequence[Entry]) -> str:
    lines = ["# Alert rules for the Loki ruler. Narrow the stream selector to the logs of your jobs.", "groups:"]
    lines += ["  - name: firstfault", "    rules:"]
    for entry in entries:
        expression = (
            f'sum(count_over_time({{job=~".+"}} |~ {json.dumps(_together(entry), ensure_ascii=False)} [5m])) > 0'
        )
        lines += _alert(entry, expression, "      ")
    return "\n".join(lines) + "\n"


def _prometheus(entries: Sequence[Entry]) -> str:
    lines = [
        f"# Alerts on the counter {METRIC}, which the Vector pipeline of this export makes.",
        "apiVersion: monitoring.coreos.com/v1",
        "kind: PrometheusRule",
        "metadata:",
        "  name: firstfault",
        "spec:",
        "  groups:",
        "    - name: firstfault",
        "      rules:",
    ]
    for entry in entries:
        expression = f'sum by (host) (increase({METRIC}{{entry="{entry.id}"}}[5m])) > 0'
        lines += _alert(entry, expression, "        ")
    return "\n".join(lines) + "\n"


def _vector(entries: Sequence[Entry]) -> str:
    lines = [
        "# A Vector pipeline: name your own source in `inputs`; it marks lines and counts them.",
        "transforms:",
        "  firstfault_match:",
        "    type: remap",
        "    inputs: [logs]",
        "    drop_on_abort: true",
        "    source: |",
        '      message = to_string(.message) ?? ""',
    ]
    word = "if"
    for entry in entries:
        expression = _together(entry).replace("'", "\\x27")
        lines.append(f"      {word} match(message, r'{expression}') {{")
        lines.append(f"        .entry = {_quoted(entry.id)}")
        lines.append(f"        .class = {_quoted(entry.cls)}")
        word = "} else if"
    lines += ["      } else {", "        abort", "      }"] if entries else ["      abort"]
    lines += [
        "  firstfault_count:",
        "    type: log_to_metric",
        "    inputs: [firstfault_match]",
        "    metrics:",
        "      - type: counter",
        "        field: entry",
        f"        name: {METRIC}",
        "        tags:",
        '          entry: "{{entry}}"',
        '          class: "{{class}}"',
        '          host: "{{host}}"',
    ]
    return "\n".join(lines) + "\n"


def _grep(entries: Sequence[Entry]) -> str:
    """Fixed texts, one a line, for `grep -i -F -f`: every line that a pattern matches holds one of them."""
    texts = {
        text.decode("utf-8", "replace")
        for entry in entries
        for p in entry.patterns
        if not p.weak
        for text, _ in derive(p.regex).texts
    }
    return "".join(f"{text}\n" for text in sorted(texts))


def _ripgrep(entries: Sequence[Entry]) -> str:
    """Expressions, one a line, for `rg --no-unicode --regex-size-limit 1G -f`."""
    return "".join(f"{pattern}\n" for pattern in sorted({one for entry in entries for one in _strong(entry)}))


FORMS: Mapping[str, Callable[[Sequence[Entry]], str]] = {
    "grep": _grep,
    "loki": _loki,
    "prometheus-rule": _prometheus,
    "ripgrep": _ripgrep,
    "vector": _vector,
}
"""By name: what writes the form."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: prints one form."""
    parser = argparse.ArgumentParser(prog="python -m firstfault.catalog.export", description="Export the patterns.")
    parser.add_argument("form", choices=sorted(FORMS))
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders of your own entries")
    options = parser.parse_args(arguments)
    sys.stdout.write(export(load_catalog(options.paths), options.form))
    return 0


if __name__ == "__main__":
    sys.exit(main())
