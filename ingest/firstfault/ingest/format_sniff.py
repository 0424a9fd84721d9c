"""Owns what is decided once for a whole source from a sample of its lines.

Which ambiguous prefixes are meant (`12: ` of srun or a number, `[3] ` of an MPI launcher or a list), and what their
numbers count. A format with `trust` says in its `sniff` table what a file must show before it is believed:
`share` of the lines and `least` of them that must match, all labels of one `width`, at most `distinct` labels a line,
what the numbers of a `mark` must be (`format_marks`).
"""

from __future__ import annotations

import json
import string
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from firstfault.ingest.format_front import masks_of
from firstfault.ingest.format_marks import numbers_hold
from firstfault.ingest.format_model import FormatKind, LineFormat, SourceFormat
from firstfault.ingest.format_regex import for_line, groups_of, has_rest
from firstfault.ingest.format_text import clean_line
from firstfault.ingest.format_words import base_name

MOST_LOCAL_RANKS = 16
MOST_LINES = 400
MOST_CHARS = 400
LONGEST_WRAPPED = 8192
MESSAGE_KEYS = ("message", "msg", "log", "line", "textPayload", "MESSAGE", "text")
_RANK_DIGITS = 7
_FEW = 24
_NAME = (*string.ascii_letters, "_")
_REAL_HEADER = r"(?: |\[[VIWEFC](?:\d{3,4})? |[VIWEC]\d{4} \d\d:|\[\d{4}-\d\d-\d\d |$)"
_HEADER_CHARS = 12
"""Characters of a line that decide whether it begins with such a header; which digits they are does not matter."""

_DIGITS = str.maketrans("123456789", "000000000")
_WRAPPED = r"\[pod/[^\] ]{1,300}\] |\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:?\d\d) (?:stdout|stderr) [FP] "
_LABELS = frozenset({"pdsh", "docker-bare", "compose", "stern"})
"""Prefixes that are a name alone, so that a mark with a name and a number is one of them, too."""
_BOTH = "torch-tee-custom"
_RANK_AND_LOCAL = r"\[[A-Za-z_]\w*-(\d{1,7})-(\d{1,4})\]"
_MARK = (
    r"(?:[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[T _])?\d\d:\d\d:\d\d[\d.,Z:+-]*[\])]?[ |:,-]{0,3})?"
    r"(?:[\[(]?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)[\])]?[ |:-]{0,4})?"
    r"(?:[\[(<{][^\])>}]{0,60}\d[^\])>}]{0,60}[\])>}]|[A-Za-z][\w.-]{0,60}?[ :=_#/@|.\[(-]{0,3}\d{1,6}|\d{1,6} ?\|)"
)
_UNLABELLED = r"(?:srun|slurmstepd|sbatch|salloc|mpirun|mpiexec|pdsh@[^:]*)(?:-[^:]*)?: "
_NO_HOST = (
    r"(?i)(?:rank|cuda|step|iter|epoch|layer|shard|task|proc|process|thread|stage|batch|r|p)s?[-_]?\d*$"
    r"|gpus?[-_]?(?:0|[1-9]\d*)?$"  # `gpu003` is a host: nothing pads an ordinal
    r"|.*(?:error|warning|exception)$"
)
_AGENT = r"(?:torch[./]distributed|\[default\d+\]:|torchrun)"


def sniff(formats: Sequence[LineFormat], sample: Iterable[str], path: str = "") -> SourceFormat:
    """What holds for the source that the sample is taken from."""
    lines = _Sample([clean_line(line[:MOST_CHARS]) for line in sample if line and not line.isspace()][:MOST_LINES])
    trusted: set[str] = set()
    why: list[str] = []
    shown: list[str] = []
    for one in formats:
        if one.trust and one.sniff and not one.sniff.get("mark") and (labels := _labels(one, lines)):
            trusted.add(one.id)
            why.append(f"{one.id}: {len(labels)} of {len(lines)} lines begin with it")
            if one.id == "srun-label":
                shown = labels
    if _BOTH in trusted and not _ranks_have_one_place(lines):
        trusted.remove(_BOTH)
    if _BOTH not in trusted and (mark := _mark(formats, lines, trusted)):
        trusted = (trusted - _LABELS if "host" in mark.sniff else trusted) | {mark.id}
        why.append(f"{mark.id}: lines begin with it")
    highest, proof = _rank_prefix(lines)
    if proof:
        if highest < MOST_LOCAL_RANKS:
            trusted.add("torch-tee-rank")
            why.append(
                "torch-tee-rank: lines follow [rankN]: without the blank of PyTorch's own prefix, N is the local rank"
            )
        else:
            trusted.add("torch-rank-bare")
            why.append(f"torch-rank-bare: [rank{highest}]: is no local rank")
    return SourceFormat(
        trusted=frozenset(trusted),
        tee_role=_tee_role(lines),
        task_means=_task_means(lines) if shown else None,
        why="; ".join(why),
    )


def inside(sample: Sequence[str]) -> list[str]:
    """The messages of some lines from all over the sample, where a collector wrapped most of them; none where not."""
    lines = [line for line in sample if line and not line.isspace()]
    few = [line for line in lines[:: max(1, len(lines) // 64) | 1] if len(line) <= LONGEST_WRAPPED]
    found = [text for line in few if (text := _message_of(line)) is not None]
    return found if len(found) * 2 > len(few) else []


def _message_of(line: str) -> str | None:
    """What a collector wrapped, as far as a look tells."""
    if line.startswith("{"):
        try:
            read = json.loads(line)
        except (ValueError, RecursionError):
            return None
        said = [read[key] for key in MESSAGE_KEYS if isinstance(read.get(key), str)] if isinstance(read, dict) else []
        return said[0].rstrip("\n") if said else None
    found = for_line(_WRAPPED).match(line) if line[:1].isdecimal() or line.startswith("[pod/") else None
    return line[found.end() :] if found else None


def marks(formats: Sequence[LineFormat], messages: Sequence[str]) -> list[str]:
    """The marks and tags on trust that the messages inside a collector's wrapper begin with."""
    lines = _Sample(clean_line(line[:MOST_CHARS]) for line in messages if line)
    found = [
        one.id for one in formats if one.trust and one.kind is FormatKind.TAG and one.sniff and _labels(one, lines)
    ]
    mark = _mark(formats, lines, set())
    return [*found, *([mark.id] if mark else [])]


def _mark(formats: Sequence[LineFormat], lines: _Sample, trusted: set[str]) -> LineFormat | None:
    """The one mark that a file has: the first that holds, where no label of another program explains it as well."""
    fronted = _may_be_marked(lines)
    marks = [one for one in formats if one.sniff.get("mark") and (fronted or has_rest(one.regex))]
    marks.sort(key=lambda one: int(one.sniff["mark"] or 0))
    some = _Sample(lines[:: max(1, len(lines) // 160) | 1])
    found = next((one for one in marks if _labels(one, some)), None)
    if found is None or "host" in found.sniff or not trusted & (_LABELS | {"srun-label", "hydra-label"}):
        return found
    return None


class _Sample(list[str]):
    """Lines that many patterns are tried on."""

    @cached_property
    def head(self) -> str | None:
        """The first lines that decide whether a label is worth looking for, None where there are fewer."""
        seen = 0
        for at, line in enumerate(self, 1):
            seen += not _unlabelled(line)
            if seen > _FEW:
                return "\n".join(self[:at])
        return None


def _ranks_have_one_place(lines: Sequence[str]) -> bool:
    """Whether `[trainer-9-1]` can be rank and local rank: each rank has one local rank, none above it."""
    found = {match.groups() for line in lines if (match := for_line(_RANK_AND_LOCAL).match(line))}
    return len({rank for rank, _ in found}) == len(found) and all(int(local) <= int(rank) for rank, local in found)


def _unlabelled(line: str) -> bool:
    """Whether a line is the launcher's own, which has no label."""
    return line[:1] in ("s", "m", "p") and for_line(_UNLABELLED).match(line) is not None


def _labels(one: LineFormat, lines: _Sample) -> list[str]:
    """The labels of the lines that begin with the format, none where the file does not live up to its `sniff` table."""
    rule = one.sniff
    expression = str(rule.get("regex") or one.regex)
    whole = f"(?:{expression})$" if has_rest(expression) else f"(?:{expression})"
    if lines.head is not None and for_line(f"(?m)^{whole}").search(lines.head) is None:
        return []
    pattern = for_line(whole)
    first = masks_of(expression)[0]
    share, least = float(rule.get("share") or 1.0), int(rule.get("least") or 1)
    labels: list[str] = []
    marks: list[str] = []
    hosts: list[str] = []
    widths: set[int] = set()
    seen = 0
    names = [name for name in groups_of(expression) if base_name(name) == rule.get("label")]
    for line in lines:
        found = pattern.match(line) if _may_begin(first, line) else None
        if found is None:
            seen += not _unlabelled(line)
            if seen > _FEW and len(labels) < seen * share / 2:
                return []
            continue
        seen += 1
        labels.append(next((found[name] for name in names if found[name] is not None), ""))
        if rule.get("width"):
            widths.add(found.end())
        if rule.get("mark"):
            marks.append(found[0])
        if isinstance(host := rule.get("host"), str):
            hosts.append(found[host])
    if len(labels) < least or len(labels) < share * seen or len(widths) > 1:
        return []
    distinct = set(labels)
    if rule.get("digit") and not _like_hosts(distinct):
        return []
    counts = rule.get("counts")
    if isinstance(counts, str) and counts != "host" and not numbers_hold(counts, marks, labels, hosts):
        return []
    if rule.get("label") in ("host", "container") and any(for_line(_NO_HOST).match(label) for label in distinct):
        return []
    most = rule.get("distinct")
    return labels if most is None or len(distinct) <= max(1.0, float(most) * len(labels)) else []


def _may_be_marked(lines: Sequence[str]) -> bool:
    """Whether a third of a few lines from all over the sample begin with something that holds a number or a name."""
    few = lines[:: max(1, len(lines) // 24)]
    shown = (for_line(_MARK).match(line) is not None and _behind_rank(line) is None for line in few)
    return sum(shown) * 3 >= len(few)


def _may_begin(first: int, line: str) -> bool:
    """Whether the first character of a line is one of these bytes."""
    return not line or ord(line[0]) > 127 or bool(first >> ord(line[0]) & 1)


def _like_hosts(labels: Collection[str]) -> bool:
    """Whether labels can be hosts: a digit in each; of several a hyphen is enough (`lab-a`, `lab-b`)."""
    numbered = [any(char.isdigit() for char in label) for label in labels]
    return all(numbered) or (
        len(numbered) > 1 and all(known or "-" in label for known, label in zip(numbered, labels, strict=True))
    )


def _rank_prefix(lines: Sequence[str]) -> tuple[int, bool]:
    """The highest N of `[rankN]:`, and whether something stands behind it that PyTorch itself never puts there."""
    highest, proof = -1, False
    ordinary: set[str] = set()
    for line in lines:
        found = _behind_rank(line)
        if found is not None:
            rank, rest = found
            highest = max(highest, rank)
            if not proof and rest[:1] not in ("", " "):
                begins = rest[:_HEADER_CHARS].translate(_DIGITS)
                proof = begins not in ordinary and (
                    _behind_rank(rest) is not None or for_line(_REAL_HEADER).match(rest) is None
                )
                ordinary.add(begins)
    return highest, proof


def _behind_rank(line: str) -> tuple[int, str] | None:
    """The number in `[rankN]:` at the start of a line, and what follows."""
    if not line.startswith("[rank"):
        return None
    end = line.find("]:", 5, 5 + _RANK_DIGITS + 2)
    digits = line[5:end] if end >= 0 else ""
    return (int(digits), line[end + 2 :]) if digits.isascii() and digits.isdigit() else None


def _tee_role(lines: Sequence[str]) -> str | None:
    """The role of the tee prefix where it ends in digits that would read as the local rank's first ones."""
    names: Counter[str] = Counter()
    for line in lines:
        if (
            line.startswith("[")
            and line[1:2] in _NAME
            and not line.startswith("[rank")
            and (found := for_line(r"\[([A-Za-z_][\w.-]*\d)\]:").match(line))
        ):
            names[found[1]] += 1
    shown = sorted(name for name in names if not name.startswith("rank"))
    if len(shown) < 2:
        return None
    stem = shown[0]
    for name in shown[1:]:
        while not name.startswith(stem):
            stem = stem[:-1]
    tails = {name[len(stem) :] for name in shown}
    if stem and stem[-1].isdigit() and "0" in tails and all(tail.isdigit() for tail in tails):
        return stem
    return None


def _task_means(lines: Sequence[str]) -> str | None:
    """What an srun label counts: ranks where the ranks inside agree with it, nodes where they do not."""
    same = other = agents = 0
    for line in lines:
        found = for_line(r" *(\d{1,6}): (.*)$").match(line)
        if found is None:
            continue
        inner = for_line(r"\[rank(\d{1,7})\]:").match(found[2])
        if inner is not None:
            same += inner[1] == found[1]
            other += inner[1] != found[1]
        agents += for_line(_AGENT).search(found[2]) is not None
    if other or (agents and not same):
        return "node"
    return "rank" if same else None
