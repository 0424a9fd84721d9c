"""Files whose names differ in one number only: where the numbers are those of all ranks, each file is a rank's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from firstfault.ingest.identity_paths import PathClaims, shape_of

_LAST_NUMBER = re.compile(
    r"^(.*?)(\d{1,7})([^\d]*?(?:\.(?:log|txt|out|err|stdout|stderr)(?:\.(?:gz|zst|xz|bz2))?)?)$", re.S
)


def ranks_of_files(paths: Mapping[int, str], claims: Mapping[int, PathClaims], world: int | None) -> dict[int, int]:
    """The ranks of files that say nothing else about whose they are."""
    if world is None or world < 2:
        return {}
    families: dict[tuple[str, str, str], list[tuple[int, int]]] = defaultdict(list)
    for source_id, path in sorted(paths.items()):
        one = claims[source_id]
        if any(value is not None for value in (one.rank, one.local_rank, one.task, one.pod, one.pid, one.tree)):
            continue
        folder, _, base = path.replace("!/", "/").rpartition("/")
        if match := _LAST_NUMBER.match(base):
            families[(folder, shape_of(match[1]), match[3])].append((int(match[2]), source_id))
    found: dict[int, int] = {}
    for family in families.values():
        if sorted(rank for rank, _ in family) == list(range(world)):
            found |= {source_id: rank for rank, source_id in family}
    return found
