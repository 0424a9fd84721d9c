"""Joins the two names of a machine that the same process shows: an address in one place, a name in another.

Ray puts `pid=4711, ip=10.0.0.7` in front of a line whose own NCCL header says `node-07:4711`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from firstfault.ingest.identity_sources import LineKey
from firstfault.ingest.identity_statements import Statement, is_address, short_host


def by_process(keys: Mapping[int, Sequence[LineKey]], statements: Iterable[Statement]) -> list[Statement]:
    """One statement for each address whose processes all bear the same one name in that source."""
    shown: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
    for source_id, group in keys.items():
        for key in group:
            if key.pid is not None and key.host:
                shown[(source_id, key.pid)].setdefault(short_host(key.host), key.first)
    for one in statements:
        address = one.address or one.host
        if one.how == "launcher-table" and one.pid is not None and address and is_address(address):
            shown[(one.source_id, one.pid)].setdefault(address, one.line)
    names: dict[str, set[str]] = defaultdict(set)
    first: dict[str, tuple[int, int]] = {}
    for (source_id, _), found in sorted(shown.items()):
        called = [name for name in found if not is_address(name)]
        for address in (name for name in found if is_address(name)):
            names[address].update(called)
            if called:
                first.setdefault(address, (source_id, found[address]))
    return [
        Statement(*first[address], "process", own=False, host=next(iter(called)), address=address)
        for address, called in sorted(names.items())
        if len(called) == 1
    ]
