"""A trigger fires on every raw line whose message its pattern matches, and never across line ends."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstfault.catalog import triggers
from firstfault.catalog.exact import ExactPattern
from firstfault.catalog.regex import PatternError, parse
from firstfault.catalog.textsearch import TextSearch
from firstfault.catalog.triggers import derive


def ends(pattern: str, text: bytes) -> list[int]:
    return TextSearch.of([derive(pattern)]).scan(text)[0].tolist()


def fires(pattern: str, text: bytes) -> bool:
    return bool(ends(pattern, text))


def texts(pattern: str) -> set[bytes]:
    return {text for text, _ in derive(pattern).texts}


def test_a_trigger_is_the_most_telling_text_that_every_match_holds() -> None:
    assert texts(r"rank (?P<rank>\d+) failed to pass monitoredBarrier in \d+ ms") == {
        b" failed to pass monitoredBarrier in "
    }
    assert texts(r"(?:ErrImagePull|ImagePullBackOff)\b") == {b"ErrImagePull", b"ImagePullBackOff"}
    assert texts(r"Xid \((?:PCI:)?(?P<bus_id>[0-9a-f:.]+)\): 79\b") in ({b"Xid ("}, {b"): 79"})


def test_a_trailing_capture_ends_once_and_not_once_per_byte() -> None:
    assert len(ends(r"Failed to open (?P<library>\S+)", b"Failed to open libibverbs.so.1 of the system\n")) == 1


def test_a_header_may_stand_in_front_of_an_anchored_message() -> None:
    assert fires(r"^Killed process (?P<pid>\d+)$", b"Jan  2 03:04:05 node-1 kernel: Killed process 77, now reaped\n")


def test_a_character_outside_ascii_counts_as_one() -> None:
    assert fires(r"path '.{3}' missing", "path 'дом' missing".encode())
    assert fires(r"path '[^x]{3}' missing", "path '日本語' missing".encode())
    assert fires(r"naïve[é-ü]path", "naïveêpath".encode())


def test_undecodable_bytes_match_where_their_replacement_would() -> None:
    line = b"file 'a\xff\xfeb' is gone"
    pattern = r"file 'a..b' is gone"
    assert ExactPattern(pattern).search(line.decode("utf-8", "replace")) is not None
    assert fires(pattern, line)


def test_the_bytes_at_both_ends_of_a_text_are_looked_at() -> None:
    assert fires(r"\b(?:nan|inf)\b", b"loss=nan,")
    assert not fires(r"\b(?:nan|inf)\b", b"finance, information, nano")
    assert fires(r"rank=\d", b"rank=1")
    assert not fires(r"rank=\d", b"rank=None rank=")


def test_a_common_text_is_found_only_where_what_stands_beside_it_fits() -> None:
    pattern = r"iteration\s+\d+/ *\d+"
    assert fires(pattern, b"iteration  12/100")
    assert not fires(pattern, b"elapsed time per iteration (ms): 12")
    assert not fires(r"grad norm\s*[:=]\s*nan", b"number of nan iterations: 3")


def test_a_rare_text_is_found_wherever_it_stands() -> None:
    assert fires(r"^zyzzyva count \d", b"a zyzzyva count x")


def test_a_long_text_is_searched_by_its_rarest_piece() -> None:
    (piece,) = derive(r"elapsed time per iteration has no zyzzyva in it").pieces
    assert b"zyzzyva" in piece.text
    assert len(piece.text) <= 16


def test_blanks_between_a_text_and_what_follows_do_not_matter() -> None:
    pattern = r"nan iterations:\s*[1-9]\d*"
    assert fires(pattern, b"number of nan iterations:   3 |")
    assert fires(pattern, b"number of nan iterations:3")
    assert fires(pattern, b"number of nan iterations:" + b" " * 40 + b"3")
    assert not fires(pattern, b"number of nan iterations:   0 |")


def test_either_case_is_found_where_the_pattern_says_so() -> None:
    assert fires(r"(?i)out of memory", b"Out Of Memory")
    assert not fires(r"out of memory", b"Out Of Memory")
    assert fires(r"[Oo]ut of memory", b"Out of memory")
    assert texts(r"(?i)out of memory") == {b"out of memory"}


def test_an_anchored_word_is_looked_for_as_a_word() -> None:
    assert not fires("^done$", b"abandoned")
    for wrapped in (
        b"done",
        b"12:00:01 done\r\n",
        b'{"log":"done","n":1}',
        b"[x] done \x1b[0m",
        b"| done\n",
        b"(done)",
    ):
        assert fires("^done$", wrapped)


def test_an_anchor_in_the_middle_does_not_narrow() -> None:
    assert fires(r"(?:x|^)\[gone\]", b"12:00:01 [gone]")


def test_specificity_counts_the_characters_that_every_match_holds() -> None:
    assert derive(r"error (?:1234|77): .*").specificity == len("error 77: ")
    assert derive(r"(?:optional )?fixed \d+").specificity == len("fixed ")
    assert derive(r"(?i)nan loss").specificity == len("nan loss")


@pytest.mark.parametrize("pattern", [r".*", r"\d+: \S+", r"(?:ab|cde) ?", r"(?:text)?"])
def test_a_pattern_without_a_fixed_text_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="every match holds"):
        derive(pattern)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"foo(?=bar)", "look-around"),
        (r"(?<!\d)12", "look-around"),
        (r"(a)\1", "do not agree"),
        (r"(?P<x>a)(?P=x)", "back-references"),
        (r"a++b", "possessive"),
        (r"(?>ab)", "look-around"),
        (r"foo\Z", "do not agree"),
        (r"(open", "without ')'"),
        (r"close)", "unmatched"),
        (r"*a", "nothing to repeat"),
        ("two\nlines", "one line"),
        (r"[[:nonsense:]]", "POSIX"),
    ],
)
def test_what_the_engines_do_not_share_is_refused_with_a_reason(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=re.escape(why)):
        parse(pattern)


PIECES = st.sampled_from(
    [
        *(
            "a",
            "B",
            r"\d",
            r"\w+",
            r"\s*",
            ".",
            ".*",
            r"[^)]",
            "[a-f]+",
            "(?:ab|c)",
            "(?P<x>x+)",
            "(?i:kEy)",
            "é",
            r"\.",
        ),
        *(
            "b{2,3}",
            "[^a]{2}",
            r"\bfoo\b",
            "(?:q|r+)?",
            "$",
            "^",
            "(?:^|a)",
            "(?:b|$)",
            r"\S+",
            "[é-ü]",
            "z*?",
            r"\x41",
            "[[:alpha:]]",
            r"\Q.*\E",
        ),
    ]
)
HEADERS = ["", "[1,0]<stderr>:", "2026-01-01 10:00:00 ", '{"log":"']
FOOTERS = ["", "\r", "\x1b[0m", '"}', " [rank 3]"]
BOTH = st.booleans()
TEXT = st.text(st.sampled_from('aAbBcfoxqryzKEYkey01. )(éü日\t*"<'), max_size=40)


@settings(deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=7), TEXT, st.sampled_from(HEADERS), st.sampled_from(FOOTERS), BOTH)
def test_whatever_the_pattern_finds_in_a_message_the_trigger_finds_in_the_line(
    pieces: list[str], message: str, header: str, footer: str, common: bool
) -> None:
    pattern = "".join(piece.replace("<x>", f"<x{at}>") for at, piece in enumerate(pieces))
    with pytest.MonkeyPatch.context() as patch:
        if common:
            patch.setattr(triggers, "_COMMON", 0.0)  # every text is searched with what stands beside it
        try:
            trigger = derive.__wrapped__(pattern)
        except PatternError:
            return
    if ExactPattern(pattern).search(message) is not None:
        search = TextSearch.of([trigger])
        for written in (message, json.dumps(message, ensure_ascii=False)[1:-1]):
            line = (header + written + footer).encode()
            assert search.scan(b"before\n" + line + b"\nbehind\n")[0].size


def test_the_place_of_a_hit_is_the_end_of_its_text_and_not_of_what_stands_behind() -> None:
    pattern = r"(?i)(?:step|iter(?:ation)?)[ :=#|](?P<step>\d+)"
    for line in (b"Step 3", b"iter:4", b"per iteration=5"):
        assert ends(pattern, line) == [len(line) - 2]


def test_bytes_at_both_ends_of_a_chunk_count_as_line_ends() -> None:
    for text in (b"node", b"node\n", b"\nnode", b"x node y\n"):
        assert fires(r"\bnode\b", text)
        assert fires("(?:^| )node(?: |$)", text)


def test_what_stands_around_alternatives_narrows_them() -> None:
    pattern = r"^(?P<gpu>\d+), (?:0000(?P<bus_id>[a-f]+)|(?P<bus_id2>0000:[a-f]+))"
    assert fires(pattern, b"0, 0000:a")
    assert not fires(pattern, b"node0000:a")


@pytest.mark.parametrize(
    "raw",
    [
        b"""cannot open "a/b" <c>\tnow""",
        rb"""{"log":"cannot open \"a/b\" <c>\tnow\n"}""",
        rb"""{"log":"cannot open \"a/b\" \u003cc\u003e\tnow\n"}""",
        rb"""{"msg":"cannot open \"a\/b\" <c>\tnow"}""",
    ],
)
@pytest.mark.parametrize(
    "pattern", [r'cannot open "', r'open "a/b"', r"b\" <(?P<name>\w+)>", r"<c>\snow", r'"a/b" <c>\tnow']
)
def test_a_text_is_found_as_json_writers_put_it(pattern: str, raw: bytes) -> None:
    assert fires(pattern, raw)
