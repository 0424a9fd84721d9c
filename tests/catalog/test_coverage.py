"""The texts that a reference collection names for each failure are found by the entry of that failure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from firstfault.catalog import Catalog
from firstfault.catalog.matcher import Matcher
from firstfault.catalog.regex import Atom, Boundary, Choice, Node, Repeat, Sequence, parse

yaml = pytest.importorskip("yaml")

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "catalog.yaml"
LOOK_AROUND = re.compile(r"\(\?<?[=!](?:[^()\\]|\\.|\([^()]*\))*\)")
PREFERRED = b"7a1x0_ /.:-'"


@pytest.fixture(scope="module")
def reference() -> list[dict[str, object]]:
    if not REFERENCE.exists():
        pytest.skip("needs the reference beside the repository")
    loaded: list[dict[str, object]] = yaml.safe_load(REFERENCE.read_text(encoding="utf-8"))
    return loaded


def variants(node: Node) -> Iterator[str]:
    """Texts that the tree matches: one as short as it goes, one with every option taken, one for each alternative."""
    yield _text(node, False, 0)
    for turn in range(_widest(node)):
        yield _text(node, True, turn)


def _widest(node: Node) -> int:
    match node:
        case Choice(options):
            return max(len(options), *map(_widest, options))
        case Sequence(items):
            return max(map(_widest, items), default=1)
        case Repeat(inner, _, _):
            return _widest(inner)
        case _:
            return 1


def _text(node: Node, full: bool, turn: int) -> str:
    match node:
        case Atom(mask):
            preferred = [byte for byte in PREFERRED if mask >> byte & 1]
            return chr(preferred[0] if preferred else (mask & -mask).bit_length() - 1)
        case Boundary():
            return ""
        case Repeat(inner, low, _):
            return _text(inner, full, turn) * max(low, int(full))
        case Sequence(items):
            return "".join(_text(item, full, turn) for item in items)
        case Choice(options):
            return _text(options[turn % len(options)], full, turn)


def samples(signature: dict[str, object], examples: list[str]) -> list[str]:
    """Lines that a signature describes: the literal, made-up ones, or examples that it matches."""
    text = str(signature["text"])
    if signature["kind"] == "literal":
        return [text]
    described = re.compile(text)
    real = [line for line in examples if described.search(line)]
    node, _ = parse(LOOK_AROUND.sub("", text))
    return real or [line for line in variants(node) if described.search(line)]


def test_signatures_of_the_reference_lead_to_their_entry(
    reference: list[dict[str, object]], catalog: Catalog, matcher: Matcher
) -> None:
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    missed: list[str] = []
    for wanted in reference:
        entry = catalog.entries.get(str(wanted["id"]))
        failure_class = catalog.classes[str(wanted["class"])]
        examples = [one.line for one in entry.match] if entry else []
        signatures = wanted["signatures"]
        assert isinstance(signatures, list)
        for signature in signatures:
            total[failure_class.group] += 1
            lines = samples(signature, examples)
            hits = [
                line
                for line in lines
                if any(_leads(matcher, number, wanted["id"]) for number, _ in matcher.matches(line))
            ]
            if hits:
                found[failure_class.group] += 1
            else:
                missed.append(f"{wanted['id']}: {signature['text']}")
    share = sum(found.values()) / sum(total.values())
    report = [f"{group}: {found[group]} of {total[group]}" for group in sorted(total)]
    assert share >= 0.95, "\n".join([f"{share:.1%}", *report, *missed])


def _leads(matcher: Matcher, number: int, entry: object) -> bool:
    return matcher.patterns[number].id == entry
