"""Files whose names differ in one number only: where the numbers are those of all ranks, each file is a rank's; where
each host has the same numbers from 0 on, they are local ranks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from firstfault.ingest.identity_paths import PathClaims, shape_of

_LOG = re.compile(r"(?:^|[._/-])(?:log|txt|out|err|stdout|stderr)(?=$|[._-])|^[^.]*$", re.I)
_PACKED = re.compile(r"\.(?:gz|zst|xz|bz2)$")


def ranks_of_files(
    paths: Mapping[int, str],
    claims: Mapping[int, PathClaims],
    world: int | None,
    spoken: Mapping[int, frozenset[int]],
    one_each: frozenset[int] = frozenset(),
) -> dict[int, int]:
    """The ranks of files that say nothing else about whose they are.

    Where nothing tells how many ranks there are, some of the files must speak as the ranks in their names, none as
    another one, or all must be `one_each`: of programs that run one process on each host, numbered like these (JAX).
    """
    if world is not None and world < 2:
        return {}
    families: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    for source_id, path in _unclaimed(paths, claims):
        *folders, base = path.split("/")
        for place, (number, front, back) in enumerate(_numbers(base)):
            # of a family by its folder the words may differ, not those of a family over several folders
            families[("/".join((*folders, f"{shape_of(front)}#{_plain(back)}")), place)][source_id] = number
            whole = re.sub(r"\d+", "0", "/".join((*folders, f"{front}#{back}")))
            families[(whole, -1 - place)][source_id] = number
    found: dict[int, int] = {}
    for key in sorted(families):
        family = families[key]
        size = world if world is not None else len(family)
        if sorted(family.values()) == list(range(size)) and (
            world is not None or _speak_so(family, spoken) or (size > 1 and one_each >= family.keys())
        ):
            for source_id, number in family.items():
                found.setdefault(source_id, number)
    return found


def _speak_so(family: Mapping[int, int], spoken: Mapping[int, frozenset[int]]) -> bool:
    """Whether files whose lines name one rank bear its number."""
    named = {s: next(iter(spoken[s])) for s in family if len(spoken.get(s, ())) == 1}
    return any(named.values()) and all(family[s] == rank for s, rank in named.items())


def with_local_ranks(
    claims: Mapping[int, PathClaims], paths: Mapping[int, str], world: int | None
) -> dict[int, PathClaims]:
    """The claims, with the local rank of files whose numbers begin anew on each host."""
    out = dict(claims)
    if world is None or world < 2:
        return out
    groups: dict[tuple[str, int], dict[str, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    for source_id, path in _unclaimed(paths, claims):
        *folders, base = path.split("/")
        for place, (number, front, back) in enumerate(_numbers(base)):
            stem = "/".join((*folders, f"{front}#{back}"))
            groups[(shape_of(stem), place)][stem][source_id] = number
    for key in sorted(groups):
        hosts = list(groups[key].values())
        size = len(hosts[0])
        alike = all(sorted(files.values()) == list(range(size)) for files in hosts)
        if alike and 1 < size < world and size * len(hosts) == world:
            for files in hosts:
                for source_id, number in files.items():
                    out[source_id] = replace(out[source_id], local_rank=number)
    return out


def _unclaimed(paths: Mapping[int, str], claims: Mapping[int, PathClaims]) -> Iterator[tuple[int, str]]:
    for source_id, path in sorted(paths.items()):
        one = claims[source_id]
        if all(value is None for value in (one.rank, one.local_rank, one.task, one.pod, one.pid, one.tree)):
            path = _PACKED.sub("", path.replace("!/", "/"))
            if _LOG.search(path.rpartition("/")[2]) or path.rpartition(".")[2].isdigit():
                yield source_id, path


def _numbers(base: str) -> Iterator[tuple[int, str, str]]:
    """Each number of a name, the last first, with what stands before and behind it."""
    for match in reversed(list(re.finditer(r"\d{1,7}", base))):
        yield int(match[0]), base[: match.start()], base[match.end() :]


def _plain(back: str) -> str:
    return re.sub(r"\d+", "0", back)
